//! OpenFlow messages out of a stream of bytes that may be something else.
use weir_openflow::codec::{HEADER_BYTES, Header};
use weir_openflow::model::ErrorType;
use weir_openflow::{Body, decode};

/// The highest version number that OpenFlow has given out (1.5).
const MAX_VERSION: u8 = 6;
/// The highest message type of any version (1.5's `OFPT_CONTROLLER_STATUS`).
const MAX_KIND: u8 = 35;

/// Longest message of anything (hello, echo, experimenter) that shows a stream to be OpenFlow.
const OPAQUE_MAX: usize = 128;

/// One direction of a connection, taken apart.
#[derive(Default)]
pub(super) struct Framing {
    /// Bytes of a message whose end has not come; at most one message long beyond one piece of data.
    buffer: Vec<u8>,
    /// Whether `buffer` starts where a message does.
    synchronous: bool,
    /// Messages that could be understood, since the connection started.
    understood: u64,
    /// Bytes that belong to no message.
    pub(super) foreign_bytes: u64,
}

/// Something found in a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A whole message, whether or not it can be understood.
    Message(Vec<u8>),
    /// From here on the stream cannot be followed until a message starts where a segment does.
    OutOfStep(String),
}

impl Framing {
    /// Whether a message has been understood: the stream is OpenFlow.
    pub(super) fn is_openflow(&self) -> bool {
        self.understood > 0
    }

    /// Takes the next bytes, which a segment brought: a message is looked for at their start. With `expected`, OpenFlow is
    /// known to be spoken here, and a message that cannot be understood is one nevertheless.
    pub(super) fn receive(&mut self, data: &[u8], expected: bool, mut each: impl FnMut(Found)) {
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
            if !expected && !self.is_openflow() && !decoded.is_ok_and(|decoded| is_telling(&decoded.body, length)) {
                self.abandon(at);
                return;
            }
            self.understood += u64::from(good);
            each(Found::Message(message.to_vec()));
            at += length;
        }
        self.buffer.drain(..at);
    }

    /// Bytes are missing: what was begun cannot be ended.
    pub(super) fn lose(&mut self) {
        self.foreign_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        self.synchronous = false;
    }

    /// The length of the message at `at`, if its header is there; an error if it is no header.
    fn next_length(&self, at: usize) -> Option<Result<usize, ()>> {
        let rest = &self.buffer[at..];
        let header = Header::read(rest)?;
        Some(if is_header(header) { Ok(usize::from(header.length)) } else { Err(()) })
    }

    fn out_of_step(&mut self, at: usize, each: &mut impl FnMut(Found)) {
        if self.is_openflow() {
            let header: Vec<String> = self.buffer[at..at + HEADER_BYTES].iter().map(|b| format!("{b:02x}")).collect();
            each(Found::OutOfStep(format!("found bytes {}, expected the header of a message", header.join(" "))));
        }
        self.abandon(at);
    }

    fn abandon(&mut self, at: usize) {
        self.buffer.drain(..at);
        self.lose();
    }
}

/// Whether a segment may start with a message.
fn is_start(data: &[u8]) -> bool {
    Header::read(data).is_some_and(is_header)
}

/// Whether a message is such that random bytes are hardly ever one. Some hold anything: in a long transfer of something
/// else, some segment starts like a long one of them.
fn is_telling(body: &Body, length: usize) -> bool {
    match body {
        Body::Hello(_) | Body::EchoRequest(_) | Body::EchoReply(_) | Body::Experimenter { .. } => length <= OPAQUE_MAX,
        Body::Error(error) => !matches!(error.error, ErrorType::Unknown { .. } | ErrorType::Experimenter { .. }),
        _ => true,
    }
}

fn is_header(header: Header) -> bool {
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

    fn found(segments: &[&[u8]], expected: bool) -> (Vec<Found>, Framing) {
        let (mut framing, mut found) = (Framing::default(), Vec::new());
        for segment in segments {
            framing.receive(segment, expected, |one| found.push(one));
        }
        (found, framing)
    }

    #[test]
    fn messages_may_share_and_span_segments() {
        let both = [HELLO, BARRIER].concat();
        let (found, framing) = found(&[&both[..11], &both[11..]], false);
        assert_eq!(found, [Found::Message(HELLO.to_vec()), Found::Message(BARRIER.to_vec())]);
        assert!(framing.is_openflow() && framing.foreign_bytes == 0);
    }

    #[test]
    fn what_is_not_openflow_is_counted() {
        let (found, framing) =
            found(&[b"GET / HTTP/1.1", &[1, 2, 0, 9, 1, 1, 1, 1, 1], &[5, 14, 0, 8, 0, 0, 0, 0]], false);
        // An echo request is understood whatever its data; a 1.4 flow-mod of eight bytes behind it is one that is wrong.
        assert_eq!(found.len(), 2);
        assert!(framing.is_openflow());
        assert_eq!(framing.foreign_bytes, 14);
    }

    #[test]
    fn a_stream_out_of_step_finds_the_next_message() {
        let (found, framing) = found(&[&HELLO, &[9; 20], &BARRIER], false);
        assert!(matches!(&found[1], Found::OutOfStep(reason) if reason.contains("09 09 09")), "{found:?}");
        assert_eq!(found[2], Found::Message(BARRIER.to_vec()));
        assert_eq!(framing.foreign_bytes, 20);
    }

    #[test]
    fn an_unknown_first_message_counts_only_where_openflow_is_expected() {
        let wrong = [4, 14, 0, 8, 0, 0, 0, 0];
        assert_eq!(found(&[&wrong], false).0, []);
        assert_eq!(found(&[&wrong], true).0, [Found::Message(wrong.to_vec())]);
    }
}
