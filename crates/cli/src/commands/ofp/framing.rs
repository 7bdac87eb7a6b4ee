//! Finds OpenFlow messages in a byte stream that may carry something else.
use weir_openflow::codec::{HEADER_BYTES, MessageHeader};
use weir_openflow::model::ErrorType;
use weir_openflow::{Body, decode};

/// Highest version number of OpenFlow (1.5).
const MAX_VERSION: u8 = 6;
/// Highest message type of any version (1.5's `OFPT_CONTROLLER_STATUS`).
const MAX_KIND: u8 = 35;

/// Longest message with arbitrary content (hello, echo, experimenter) that identifies a stream as OpenFlow, in bytes.
const OPAQUE_MAX: usize = 128;

/// Splits one direction of a connection into messages.
#[derive(Default)]
pub(super) struct OpenFlowFramer {
    /// Bytes of a message that is still incomplete; at most one message more than one piece of data.
    buffer: Vec<u8>,
    /// True if `buffer` starts at a message boundary.
    synchronous: bool,
    /// Number of messages decoded since the connection started.
    understood: u64,
    /// Bytes that belong to no message.
    pub(super) foreign_bytes: u64,
}

/// Result of reading a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FramerEvent {
    /// A complete message, decodable or not.
    Message(Vec<u8>),
    /// Message boundaries are lost from here on, until a segment starts with a message.
    OutOfSync(String),
}

impl OpenFlowFramer {
    /// Returns true if a message was decoded, so that the stream is OpenFlow.
    pub(super) fn is_openflow(&self) -> bool {
        self.understood > 0
    }

    /// Appends the bytes of the next segment and passes each complete message to `each`. After a loss of message
    /// boundaries, a message is expected only at a segment's start. With `expected`, the stream is known to be
    /// OpenFlow, so that a message that cannot be decoded is passed, too.
    pub(super) fn receive(&mut self, data: &[u8], expected: bool, mut each: impl FnMut(FramerEvent)) {
        if !self.synchronous && !is_start(data) {
            self.foreign_bytes += data.len() as u64;
            return;
        }
        self.synchronous = true;
        self.buffer.extend_from_slice(data);
        let mut at = 0;
        while let Some(length) = self.next_length(at) {
            let Ok(length) = length else {
                self.out_of_step(at, &mut each);
                return;
            };
            let Some(message) = self.buffer.get(at..at + length) else { break };
            let decoded = decode(message);
            let good = decoded.is_ok();
            if !expected && !self.is_openflow() && !decoded.is_ok_and(|decoded| is_conclusive(&decoded.body, length)) {
                self.abandon(at);
                return;
            }
            self.understood += u64::from(good);
            each(FramerEvent::Message(message.to_vec()));
            at += length;
        }
        self.buffer.drain(..at);
    }

    /// Discards the incomplete message, because bytes of the stream are missing.
    pub(super) fn lose(&mut self) {
        self.foreign_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        self.synchronous = false;
    }

    /// Returns the length of the message at `at`, `None` if its header is incomplete, or an error if the bytes are no
    /// header.
    fn next_length(&self, at: usize) -> Option<Result<usize, ()>> {
        let rest = &self.buffer[at..];
        let header = MessageHeader::read(rest)?;
        Some(if is_header(header) { Ok(usize::from(header.length)) } else { Err(()) })
    }

    fn out_of_step(&mut self, at: usize, each: &mut impl FnMut(FramerEvent)) {
        if self.is_openflow() {
            let header: Vec<String> = self.buffer[at..at + HEADER_BYTES].iter().map(|b| format!("{b:02x}")).collect();
            each(FramerEvent::OutOfSync(format!("found bytes {}, expected the header of a message", header.join(" "))));
        }
        self.abandon(at);
    }

    fn abandon(&mut self, at: usize) {
        self.buffer.drain(..at);
        self.lose();
    }
}

/// Returns true if a segment may start with a message.
fn is_start(data: &[u8]) -> bool {
    MessageHeader::read(data).is_some_and(is_header)
}

/// Returns true if random bytes are very unlikely to form this message. Hello, echo and experimenter messages may
/// hold any bytes: in a long transfer of other data, some segment looks like a long one of them.
fn is_conclusive(body: &Body, length: usize) -> bool {
    match body {
        Body::Hello(_) | Body::EchoRequest(_) | Body::EchoReply(_) | Body::Experimenter { .. } => length <= OPAQUE_MAX,
        Body::Error(error) => !matches!(error.error, ErrorType::Unknown { .. } | ErrorType::Experimenter { .. }),
        _ => true,
    }
}

fn is_header(header: MessageHeader) -> bool {
    (1..=MAX_VERSION).contains(&header.version) && header.kind <= MAX_KIND && usize::from(header.length) >= HEADER_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
    #[test]
    fn a_long_message_of_anything_shows_nothing() {
        let mut echo = vec![0x5a; 4096];
        echo[..4].copy_from_slice(&[4, 2, 0x10, 0]);
        let (found, framing) = found(&[&echo, &[0x17, 3, 3, 0, 8, 0, 0, 0]], false);
        assert!(found.is_empty() && !framing.is_openflow(), "{found:?}");
        assert_eq!(super::tests::found(&[&echo], true).0.len(), 1, "where OpenFlow is expected it is one");
        assert_eq!(super::tests::found(&[&HELLO, &echo], false).0.len(), 2, "as it is behind a hello");
    }

    const BARRIER: [u8; 8] = [4, 20, 0, 8, 0, 0, 0, 2];

    fn found(segments: &[&[u8]], expected: bool) -> (Vec<FramerEvent>, OpenFlowFramer) {
        let (mut framing, mut found) = (OpenFlowFramer::default(), Vec::new());
        for segment in segments {
            framing.receive(segment, expected, |one| found.push(one));
        }
        (found, framing)
    }

    #[test]
    fn messages_may_share_and_span_segments() {
        let both = [HELLO, BARRIER].concat();
        let (found, framing) = found(&[&both[..11], &both[11..]], false);
        assert_eq!(found, [FramerEvent::Message(HELLO.to_vec()), FramerEvent::Message(BARRIER.to_vec())]);
        assert!(framing.is_openflow() && framing.foreign_bytes == 0);
    }

    #[test]
    fn what_is_not_openflow_is_counted() {
        let (found, framing) =
            found(&[b"GET / HTTP/1.1", &[1, 2, 0, 9, 1, 1, 1, 1, 1], &[5, 14, 0, 8, 0, 0, 0, 0]], false);
        // An echo request is decoded whatever its data; the 1.4 flow-mod of eight bytes that follows it is malformed.
        assert_eq!(found.len(), 2);
        assert!(framing.is_openflow());
        assert_eq!(framing.foreign_bytes, 14);
    }

    #[test]
    fn a_stream_out_of_step_finds_the_next_message() {
        let (found, framing) = found(&[&HELLO, &[9; 20], &BARRIER], false);
        assert!(matches!(&found[1], FramerEvent::OutOfSync(reason) if reason.contains("09 09 09")), "{found:?}");
        assert_eq!(found[2], FramerEvent::Message(BARRIER.to_vec()));
        assert_eq!(framing.foreign_bytes, 20);
    }

    #[test]
    fn an_unknown_first_message_counts_only_where_openflow_is_expected() {
        let wrong = [4, 14, 0, 8, 0, 0, 0, 0];
        assert_eq!(found(&[&wrong], false).0, []);
        assert_eq!(found(&[&wrong], true).0, [FramerEvent::Message(wrong.to_vec())]);
    }
}
