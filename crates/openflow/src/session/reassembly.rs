//! Reassembles messages from a byte stream that arrives in pieces of any size.
use crate::codec::{HEADER_BYTES, Header};

/// Received bytes that are not processed yet. After [`Reassembly::next`] returned `Incomplete`, they are less than
/// one message, so at most 65535 bytes.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    bytes: Vec<u8>,
    /// Offset of the next message in `bytes`.
    start: usize,
}

/// Result of looking for the next message in the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A whole message.
    Message(Header, &'a [u8]),
    /// The rest of the next message is not received yet.
    Incomplete,
    /// A header with a length below 8. The start of the following message is unknown, so the stream cannot be decoded
    /// any further.
    Broken(Header, &'a [u8]),
}

impl Reassembly {
    /// Appends received bytes to the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.start));
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes the next message from the stream and returns it.
    pub(super) fn next(&mut self) -> Next<'_> {
        let rest = &self.bytes[self.start..];
        let Some(header) = Header::read(rest) else {
            return Next::Incomplete;
        };
        let length = usize::from(header.length);
        if length < HEADER_BYTES {
            return Next::Broken(header, &rest[..HEADER_BYTES]);
        }
        let Some(message) = rest.get(..length) else {
            return Next::Incomplete;
        };
        self.start += length;
        Next::Message(header, message)
    }

    /// Returns the bytes received of the next message.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}
