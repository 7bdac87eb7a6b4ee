//! Errors of a channel to a switch.
use std::time::Duration;
use weir_openflow::model::ErrorType;

/// Reasons why there is no channel, or what went wrong on it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No channel could be opened.
    #[error("{target}: {problem}")]
    Unreachable {
        /// Address of the switch.
        target: String,
        /// Failed attempt, with advice.
        problem: String,
    },
    /// The channel ended.
    #[error("the switch's control channel ended: {reason}")]
    Ended {
        /// Reason of the end.
        reason: String,
    },
    /// Silence of the switch for the time of patience.
    #[error("the switch did not answer within {0:?}")]
    Silent(Duration),
    /// The switch replied with an error.
    #[error("the switch answered message {xid} with {error:?}")]
    Refused {
        /// Transaction id of the refused message.
        xid: u32,
        /// Type of the error.
        error: ErrorType,
    },
    /// The switch sent another reply than expected.
    #[error("the switch answered with {found}, expected {expected}")]
    Unexpected {
        /// Description of the reply.
        found: String,
        /// Description of the expected reply.
        expected: &'static str,
    },
    /// The message cannot be expressed in the channel's version.
    #[error("{0}")]
    Unencodable(String),
}

impl ClientError {
    pub(crate) fn ended(reason: impl ToString) -> ClientError {
        ClientError::Ended { reason: reason.to_string() }
    }
}
