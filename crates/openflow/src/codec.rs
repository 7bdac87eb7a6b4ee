//! Between messages and bytes, in any version.
use crate::model::{ErrorType, Message, Version};

/// Bytes of a message header (OpenFlow 1.3.5, 7.1.1).
pub const HEADER_BYTES: usize = 8;

/// A message header, whatever its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Version number as it came.
    pub version: u8,
    /// Message type as it came.
    pub kind: u8,
    /// Length of the whole message in bytes.
    pub length: u16,
    /// Transaction id.
    pub xid: u32,
}

impl Header {
    /// Reads a header; `None` while fewer than eight bytes are there.
    pub fn read(_bytes: &[u8]) -> Option<Header> {
        todo!()
    }
}

/// A message that cannot be understood: what to answer, and why for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct DecodeError {
    /// The error to answer with.
    pub error: ErrorType,
    /// What was found, where (byte offset), and what was expected.
    pub reason: String,
}

/// A message that a version cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("OpenFlow {} cannot carry {what}", .version.name())]
pub struct EncodeError {
    /// The version.
    pub version: Version,
    /// What it cannot carry, and why.
    pub what: String,
}

/// Decodes one whole message (`bytes` ends where its header says); its version is the header's. A hello and an error are
/// decoded whatever the version (OpenFlow 1.3.5, 7.5.1).
///
/// # Errors
/// What to answer the sender with.
pub fn decode(_bytes: &[u8]) -> Result<Message, DecodeError> {
    todo!()
}

/// Encodes a message, appending it to `out`.
///
/// # Errors
/// When the version has no such message, field, action, ..., or it would exceed 65535 bytes; `out` is as it was.
pub fn encode(_message: &Message, _version: Version, _out: &mut Vec<u8>) -> Result<(), EncodeError> {
    todo!()
}
