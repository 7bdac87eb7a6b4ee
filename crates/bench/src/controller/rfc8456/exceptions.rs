//! Invalid messages from switches (RFC 8456, sections 5.3.1 and A.6.1): packet-ins of a wrong version, packet-ins with
//! an incorrect match, and failure notifications of an unknown type.
use std::time::Duration;
use weir_openflow::Version;
use weir_units::Instant;

/// Type numbers of messages (OpenFlow 1.3.5, 7.1).
const ERROR: u8 = 1;
const PACKET_IN: u8 = 10;
/// A version number that no OpenFlow has.
const NO_VERSION: u8 = 0x7f;
/// Length that an incorrect match claims to have.
const WRONG_MATCH_BYTES: u16 = 0xfff0;
/// A type of errors that no OpenFlow has.
const NO_ERROR_TYPE: u16 = 0x7ffe;

/// Invalid messages at a constant rate, from switch after switch.
#[derive(Debug, Clone)]
pub(super) struct InvalidMessages {
    version: Version,
    interval: Duration,
    due: Instant,
    /// Messages that were sent.
    pub(super) sent: u64,
}

impl InvalidMessages {
    /// Returns messages at a rate in messages a second, from `now` on.
    pub(super) fn new(version: Version, now: Instant, per_second: f64) -> InvalidMessages {
        let interval = Duration::from_secs_f64(1.0 / per_second.max(0.01));
        InvalidMessages { version, interval, due: now + interval, sent: 0 }
    }

    /// Returns the next message if one is due, with its switch.
    pub(super) fn next(&mut self, now: Instant, nodes: usize) -> Option<(usize, Vec<u8>)> {
        if now < self.due {
            return None;
        }
        self.due += self.interval;
        let number = self.sent;
        self.sent += 1;
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of switches")]
        let node = (number % nodes.max(1) as u64) as usize;
        Some((node, message(self.version, number / nodes.max(1) as u64)))
    }

    /// Returns the time of the next message.
    pub(super) fn due(&self) -> Instant {
        self.due
    }
}

/// Returns an invalid message; three kinds take turns. Each has a header whose length is true, so that what follows can
/// be read.
fn message(version: Version, number: u64) -> Vec<u8> {
    let version = version as u8;
    match number % 3 {
        0 => with_header(NO_VERSION, PACKET_IN, &[0; 24]),
        1 => {
            let mut body = vec![0xff; 4];
            body.extend([0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            // Type and length of the match (OpenFlow 1.3.5, 7.2.3.1); in 1.0 these bytes are the packet's.
            body.extend([0, 1]);
            body.extend(WRONG_MATCH_BYTES.to_be_bytes());
            body.extend([0; 8]);
            if version == Version::V10 as u8 {
                // 1.0 has no match in a packet-in: the message is too short for its fields.
                body.truncate(6);
            }
            with_header(version, PACKET_IN, &body)
        }
        _ => {
            let mut body = NO_ERROR_TYPE.to_be_bytes().to_vec();
            body.extend([0x7f, 0xff, 0, 0, 0, 0]);
            with_header(version, ERROR, &body)
        }
    }
}

fn with_header(version: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + body.len()).unwrap_or(u16::MAX);
    let mut message = vec![version, kind];
    message.extend(length.to_be_bytes());
    message.extend([0; 4]);
    message.extend(body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::codec;

    #[test]
    fn messages_are_invalid_but_have_true_lengths() {
        for version in [Version::V10, Version::V13] {
            for number in 0..2 {
                let bytes = message(version, number);
                let header = codec::MessageHeader::read(&bytes).unwrap();
                assert_eq!(usize::from(header.length), bytes.len());
                assert!(codec::decode(&bytes).is_err(), "{version:?} {number}: {bytes:?}");
            }
            let error = codec::MessageHeader::read(&message(version, 2)).unwrap();
            assert_eq!((error.version, error.kind), (version as u8, ERROR));
        }
    }

    #[test]
    fn the_rate_is_kept_over_all_switches() {
        let at = |milliseconds: u64| Instant::from_nanos(milliseconds * 1_000_000);
        let mut messages = InvalidMessages::new(Version::V13, at(0), 100.0);
        let nodes: Vec<usize> = std::iter::from_fn(|| messages.next(at(45), 3)).map(|(node, _)| node).collect();
        assert_eq!(nodes, [0, 1, 2, 0]);
        assert_eq!((messages.sent, messages.due()), (4, at(50)));
    }
}
