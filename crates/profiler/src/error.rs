//! Defines the errors of a measurement.
use std::time::Duration;
use weir_openflow::model::ErrorType;

/// Reason why a device could not be measured, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum ProfilerError {
    /// The control channel cannot be opened.
    #[error("{target}: {problem}")]
    Channel {
        /// Address of the channel.
        target: String,
        /// Attempted operation, and its failure.
        problem: String,
    },
    /// The control channel ended.
    #[error("the switch's control channel ended while {during}: {reason}")]
    Ended {
        /// Activity of the profiler at that time.
        during: String,
        /// Reason why the channel ended.
        reason: String,
    },
    /// The switch did not respond in time.
    #[error("no {what} within {after:?}; a slower switch needs a longer --patience")]
    Silent {
        /// Response that was expected.
        what: String,
        /// Time after which waiting for the response ended.
        after: Duration,
    },
    /// The switch refused a request that measuring needs.
    #[error("the switch refuses {what}: {error:?}")]
    Refused {
        /// Request that was refused.
        what: String,
        /// Error the switch sent.
        error: ErrorType,
    },
    /// A requested value or a property of the device is unsuitable.
    #[error("{what}: found {found}, expected {expected}")]
    Wrong {
        /// Name of the value or property.
        what: String,
        /// Value that was found.
        found: String,
        /// Suitable values, with a hint how to get one.
        expected: String,
    },
    /// The user stopped the measurement; results so far are kept.
    #[error("stopped")]
    Stopped,
    /// A file of runs cannot be read or written.
    #[error("{path}: {problem}")]
    File {
        /// Path of the file.
        path: String,
        /// Problem with the file.
        problem: String,
    },
    /// The control channel cannot be used.
    #[error(transparent)]
    Client(weir_client::ClientError),
    /// An interface cannot be used.
    #[error(transparent)]
    Port(#[from] weir_port::PortError),
    /// A parameter cannot be computed from the measurements.
    #[error(transparent)]
    Model(#[from] weir_model::ModelError),
    /// A profile, or the model of the switch found so far, cannot be emulated.
    #[error(transparent)]
    Timing(#[from] weir_device::TimingError),
    /// The fitted parameters do not form a valid profile.
    #[error(transparent)]
    Profile(#[from] weir_profile::ProfileError),
}

impl From<weir_client::ClientError> for ProfilerError {
    fn from(error: weir_client::ClientError) -> ProfilerError {
        use weir_client::ClientError::{Ended, Unreachable};
        match error {
            Unreachable { target, problem } => ProfilerError::Channel { target, problem },
            Ended { reason } => ProfilerError::Ended { during: "measuring".to_owned(), reason },
            other => ProfilerError::Client(other),
        }
    }
}

impl ProfilerError {
    /// Returns the error with `what` as the activity during which the channel ended; other errors are unchanged.
    pub(crate) fn while_doing(self, what: &str) -> ProfilerError {
        match self {
            ProfilerError::Ended { reason, .. } => ProfilerError::Ended { during: what.to_owned(), reason },
            other => other,
        }
    }

    pub(crate) fn wrong(what: impl ToString, found: impl ToString, expected: impl ToString) -> ProfilerError {
        ProfilerError::Wrong { what: what.to_string(), found: found.to_string(), expected: expected.to_string() }
    }

    pub(crate) fn silent(what: impl ToString, after: Duration) -> ProfilerError {
        ProfilerError::Silent { what: what.to_string(), after }
    }
}
