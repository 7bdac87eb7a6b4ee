//! Why a switch could not be measured.
use std::time::Duration;
use weir_openflow::model::ErrorType;

/// Why a switch could not be measured, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum ProfilerError {
    /// There is no control channel.
    #[error("{target}: {problem}")]
    Channel {
        /// Where it should be.
        target: String,
        /// What was tried and found.
        problem: String,
    },
    /// The control channel ended.
    #[error("the switch's control channel ended while {during}: {reason}")]
    Ended {
        /// What was being measured.
        during: String,
        /// Why it ended.
        reason: String,
    },
    /// The switch did not do something in time.
    #[error("no {what} within {after:?}; a slower switch needs a longer --patience")]
    Silent {
        /// What was waited for.
        what: String,
        /// For how long.
        after: Duration,
    },
    /// The switch refuses something that measuring needs.
    #[error("the switch refuses {what}: {error:?}")]
    Refused {
        /// What.
        what: String,
        /// Its answer.
        error: ErrorType,
    },
    /// Something that was asked for cannot be.
    #[error("{what}: found {found}, expected {expected}")]
    Wrong {
        /// What was asked for.
        what: String,
        /// What was found.
        found: String,
        /// What would do, and what to do about it.
        expected: String,
    },
    /// The measurement was stopped; what was measured so far is kept.
    #[error("stopped")]
    Stopped,
    /// A file of runs cannot be read or written.
    #[error("{path}: {problem}")]
    File {
        /// Its name.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The control channel cannot be used.
    #[error(transparent)]
    Client(weir_client::ClientError),
    /// An interface cannot be used.
    #[error(transparent)]
    Port(#[from] weir_port::PortError),
    /// Measurements do not give a parameter.
    #[error(transparent)]
    Model(#[from] weir_model::ModelError),
    /// A profile cannot be lived up to.
    #[error(transparent)]
    Timing(#[from] weir_timing::TimingError),
    /// What was fitted is no profile.
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
    /// The same, with what was being measured when the channel ended.
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
