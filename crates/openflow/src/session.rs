//! One end of an OpenFlow channel, without I/O: bytes in, events and bytes out, in the time it is told.
use crate::codec::EncodeError;
use crate::model::{FeaturesReply, Message, Version};
use std::time::Duration;
use weir_units::Instant;

/// How a session behaves.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Versions spoken, any order, at least one.
    pub versions: Vec<Version>,
    /// Silence after which an echo request is sent; as much silence again after it ends the session. Zero: never.
    pub echo_interval: Duration,
    /// Time the peer has to finish the handshake.
    pub handshake_timeout: Duration,
    /// Bytes of output waiting to be written beyond which [`Session::send`] reports a full session: a peer that stalls.
    pub max_output_bytes: usize,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            versions: vec![Version::V13, Version::V10],
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
    /// A message for the application. Hello, echo, and (controller's end) the handshake's features reply do not show up;
    /// errors from the peer do.
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

/// One end of an OpenFlow channel.
#[derive(Debug)]
pub struct Session {}

impl Session {
    /// The switch's end: says hello, then is up once versions agree; answers echo and messages it cannot decode.
    pub fn switch(_config: SessionConfig, _now: Instant) -> Session {
        todo!()
    }
    /// The controller's end: says hello, asks for features, and is up once they came.
    pub fn controller(_config: SessionConfig, _now: Instant) -> Session {
        todo!()
    }
    /// Takes bytes from the peer, in pieces of any size.
    pub fn receive(&mut self, _now: Instant, _bytes: &[u8]) {
        todo!()
    }
    /// What happened since, oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        todo!()
    }
    /// Queues a message for the peer. Its `xid` is kept: replies carry their request's; [`Session::next_xid`] gives fresh ones.
    ///
    /// # Errors
    /// [`SendError`]; nothing is queued.
    pub fn send(&mut self, _message: &Message) -> Result<(), SendError> {
        todo!()
    }
    /// A transaction id not used by this end lately.
    pub fn next_xid(&mut self) -> u32 {
        todo!()
    }
    /// Bytes to be written to the peer: write some, then drain them from the front.
    pub fn output(&mut self) -> &mut Vec<u8> {
        todo!()
    }
    /// Lets time pass: sends echo requests, ends a silent session. To be called at the time [`Session::deadline`] gives.
    pub fn poll(&mut self, _now: Instant) {
        todo!()
    }
    /// When to call [`Session::poll`] next.
    pub fn deadline(&self) -> Option<Instant> {
        todo!()
    }
    /// The version agreed on, once up.
    pub fn version(&self) -> Option<Version> {
        todo!()
    }
    /// Whether the session ended.
    pub fn is_closed(&self) -> bool {
        todo!()
    }
}
