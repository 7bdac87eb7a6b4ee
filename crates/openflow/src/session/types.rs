//! Defines the configuration, events, errors and counters of a session.
use crate::codec::EncodeError;
use crate::model::{FeaturesReply, Message, Version};
use serde::Serialize;
use std::time::Duration;

/// Configuration of a session.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Supported versions, at least one, in any order.
    pub versions: Vec<Version>,
    /// Silence of the peer after which the session sends an echo request. Further silence of the same length closes
    /// the session. Zero disables both.
    pub echo_interval: Duration,
    /// Time limit for the handshake, from the start of the session.
    pub handshake_timeout: Duration,
    /// Number of unwritten output bytes from which on [`Session::send`](super::Session::send) refuses messages,
    /// because the peer does not read.
    pub max_output_bytes: usize,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            versions: Version::ALL.to_vec(),
            echo_interval: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(10),
            max_output_bytes: 4 << 20,
        }
    }
}

/// Event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEvent {
    /// The handshake is complete.
    Up {
        /// Version that both sides agreed on.
        version: Version,
        /// Features of the switch; only at the controller's side.
        features: Option<FeaturesReply>,
    },
    /// A message for the application. The session itself handles hellos, echo requests, the features reply of the
    /// handshake, and echo replies, except replies with data at the controller's side. Errors from the peer are
    /// passed on.
    Message(Message),
    /// The session is closed and processes no further input. Write the remaining output before closing the
    /// connection.
    Closed {
        /// Readable text with the reason.
        reason: String,
    },
}

/// A message that passed a session that is watched ([`Session::watch`](super::Session::watch)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedMessage {
    /// True if the session queued the message for its peer; false if the peer sent it.
    pub is_sent: bool,
    /// The message as on the wire, valid or not.
    pub bytes: Vec<u8>,
}

/// Reason why a message was not queued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SendError {
    #[error("the session is not up")]
    NotUp,
    #[error("{0} bytes wait to be written: the peer does not read")]
    Full(usize),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Counters of a session since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SessionCounters {
    /// Whole messages received, valid or not.
    pub received: u64,
    /// Messages queued for the peer, including those that the session sends by itself.
    pub sent: u64,
    /// Received messages that were refused: undecodable, of another version, or of a type that the peer may not send.
    pub refused: u64,
    /// Messages received before the handshake was complete, and ignored.
    pub early: u64,
    /// Messages of the session itself (echo requests, echo replies and errors) that were dropped, because the output
    /// was full or the version could not carry them.
    pub answers_dropped: u64,
}
