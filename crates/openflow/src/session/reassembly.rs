//! Reassembles messages from a byte stream that arrives in pieces of any size.
use crate::codec::{HEADER_BYTES, MessageHeader};

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
pub(super) enum NextMessage<'a> {
    /// A whole message.
    Message(MessageHeader, &'a [u8]),
    /// The rest of the next message is not received yet.
    Incomplete,
    /// A header with a length below 8. The start of the following message is unknown, so the stream cannot be decoded
    /// any further.
    Broken(MessageHeader, &'a [u8]),
}

impl Reassembly {
    /// Appends received bytes to the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.start));
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes the next message from the stream and returns it.
    pub(super) fn next(&mut self) -> NextMessage<'_> {
        let next = first(&self.bytes[self.start..]);
        if let NextMessage::Message(_, message) = &next {
            self.start += message.len();
        }
        next
    }

    /// Removes the next message from `bytes`, which continue a stream of which nothing is held. Bytes of an incomplete
    /// message are held.
    pub(super) fn next_in_place<'a>(&mut self, bytes: &mut &'a [u8]) -> NextMessage<'a> {
        let next = first(bytes);
        match &next {
            NextMessage::Message(_, message) => *bytes = &bytes[message.len()..],
            NextMessage::Incomplete => self.push(std::mem::take(bytes)),
            NextMessage::Broken(..) => {}
        }
        next
    }

    /// Returns true if no byte is held.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Returns the bytes received of the next message.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Returns the first message of a stream's next bytes.
fn first(rest: &[u8]) -> NextMessage<'_> {
    let Some(header) = MessageHeader::read(rest) else {
        return NextMessage::Incomplete;
    };
    let length = usize::from(header.length);
    if length < HEADER_BYTES {
        return NextMessage::Broken(header, &rest[..HEADER_BYTES]);
    }
    match rest.get(..length) {
        Some(message) => NextMessage::Message(header, message),
        None => NextMessage::Incomplete,
    }
}
