//! Messages out of a stream of bytes that comes in pieces of any size.
use crate::codec::{HEADER_BYTES, Header};

/// What has come of a stream and is not a whole message yet: after [`Reassembly::next`] said `Incomplete`, less than one
/// message, so never more than 65535 bytes.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    bytes: Vec<u8>,
    /// Where the next message begins.
    start: usize,
}

/// What comes next in the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A whole message.
    Message(Header, &'a [u8]),
    /// More bytes are needed.
    Incomplete,
    /// A header whose length cannot be: where the next message begins is unknown from here on.
    Broken(Header, &'a [u8]),
}

impl Reassembly {
    /// Adds bytes at the stream's end.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.start));
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next message off the stream.
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

    /// What is there of the next message.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}
