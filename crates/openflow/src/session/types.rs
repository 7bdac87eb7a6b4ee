//! What a session is told, and what it tells.
use crate::codec::EncodeError;
use crate::model::{FeaturesReply, Message, Version};
use serde::Serialize;
use std::time::Duration;

/// How a session behaves.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Versions spoken, any order, at least one.
    pub versions: Vec<Version>,
    /// Silence after which an echo request is sent; as much silence again after it ends the session. Zero: never.
    pub echo_interval: Duration,
    /// Time the peer has to finish the handshake.
    pub handshake_timeout: Duration,
    /// Bytes of output waiting to be written beyond which [`Session::send`](super::Session::send) reports a full session: a peer that stalls.
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

/// What happened on a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done. At the controller's end, with what the switch said of itself; at the switch's end without.
    Up {
        /// The version both speak.
        version: Version,
        /// The switch's features, at the controller's end.
        features: Option<FeaturesReply>,
    },
    /// A message for the application. Hello, echo (but, at the controller's end, answers to echo requests with data), and the handshake's features reply
    /// do not show up; errors from the peer do.
    Message(Message),
    /// The session ended; nothing more is received. Bytes still in the output should be written before closing.
    Closed {
        /// Why, for people.
        reason: String,
    },
}

/// Why a message was not sent.
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

/// What a session counted since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SessionCounters {
    /// Whole messages received, good or bad.
    pub received: u64,
    /// Messages queued for the peer, the session's own included.
    pub sent: u64,
    /// Messages received that were refused: undecodable, of another version, or not for this end to receive.
    pub refused: u64,
    /// Messages received before the handshake was done, and left aside.
    pub early: u64,
    /// Echo replies and errors not sent because the peer does not read.
    pub answers_dropped: u64,
}
