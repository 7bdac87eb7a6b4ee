//! Why a switch could not be asked.
use std::time::Duration;
use weir_openflow::model::ErrorType;

/// Why there is no channel, or what went wrong on it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No channel came to be.
    #[error("{target}: {problem}")]
    Unreachable {
        /// Where the switch should be.
        target: String,
        /// What was tried and found, and what to do.
        problem: String,
    },
    /// The channel ended.
    #[error("the switch's control channel ended: {reason}")]
    Ended {
        /// Why.
        reason: String,
    },
    /// Nothing came for too long.
    #[error("the switch did not answer within {0:?}")]
    Silent(Duration),
    /// The switch answered with an error.
    #[error("the switch answered message {xid} with {error:?}")]
    Refused {
        /// The transaction id of the message that it refuses.
        xid: u32,
        /// What it says.
        error: ErrorType,
    },
    /// The switch answered something else than what was asked for.
    #[error("the switch answered with {found}, expected {expected}")]
    Unexpected {
        /// What came.
        found: String,
        /// What was to come.
        expected: &'static str,
    },
    /// The message cannot be said in the channel's version.
    #[error("{0}")]
    Unsayable(String),
}

impl ClientError {
    pub(crate) fn ended(reason: impl ToString) -> ClientError {
        ClientError::Ended { reason: reason.to_string() }
    }
}
