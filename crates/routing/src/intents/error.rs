//! Errors of requests about intents.
use crate::request::ErrorKind;
use thiserror::Error;

/// Why a request about intents is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IntentError {
    /// A part of the intent is wrong.
    #[error("`{key}`: found {found}, expected {expected}")]
    Invalid {
        /// Part of the intent, such as `constraints.delay`.
        key: &'static str,
        /// Value found.
        found: String,
        /// Values allowed.
        expected: String,
    },
    /// The store keeps no more intents.
    #[error("there are {most} intents already, the most that this controller keeps; remove some")]
    Full {
        /// The limit.
        most: usize,
    },
    /// No intent has the key.
    #[error("found the key `{key}`, expected the key of an intent")]
    Unknown {
        /// The key asked for.
        key: String,
    },
}

impl IntentError {
    pub(super) fn invalid(key: &'static str, found: impl Into<String>, expected: impl Into<String>) -> IntentError {
        IntentError::Invalid { key, found: found.into(), expected: expected.into() }
    }

    /// Returns the kind of the error for a reply of the interface.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            IntentError::Invalid { .. } => ErrorKind::Invalid,
            IntentError::Full { .. } => ErrorKind::Refused,
            IntentError::Unknown { .. } => ErrorKind::NotFound,
        }
    }
}
