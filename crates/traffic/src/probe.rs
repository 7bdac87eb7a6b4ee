//! Header by which measurement packets are recognised: sequence number and sending time.
//!
//! The header has 18 bytes, so that it fits the UDP payload of the shortest Ethernet frame. Numbers are big-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0, 1 | `0x5772` |
//! | 2 | version (low four bits: 1), flags `0x10` first packet of its flow, `0x20` counts, `0x40` times since 1970 |
//! | 3 | check: exclusive or of all other bytes, each rotated by its position |
//! | 4, 5 | run: packets of other runs are ignored |
//! | 6 to 9 | packet number in its run, from 0, modulo 2^32 |
//! | 10 to 17 | sending time in nanoseconds of the sender's clock |
//!
//! The header is found at any position: after tags and tunnels, in a packet-in to a controller, or at the end of a
//! captured packet that is replayed.

/// Length of the header.
pub const BYTES: usize = 18;
/// Range in bytes, from a frame's start, in which the header is searched.
pub const REACH: usize = 512;

const MARK: [u8; 2] = [0x57, 0x72];
const VERSION: u8 = 1;
const NEW_FLOW: u8 = 0x10;
const COUNTS: u8 = 0x20;
const WALL: u8 = 0x40;
const KNOWN: u8 = NEW_FLOW | COUNTS | WALL | 0x0f;

/// Contents of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeHeader {
    /// Number of the run.
    pub run: u16,
    /// Number of the packet in its run, modulo 2^32.
    pub sequence: u32,
    /// Sending time in nanoseconds of the sender's clock.
    pub sent_ns: u64,
    /// True if the packet is the first of its flow.
    pub is_new_flow: bool,
    /// True if the packet counts; false if it was sent during the warm-up.
    pub counts: bool,
    /// True if the sender's clock counts from 1970; false if it counts from the start of the machine.
    pub is_wall: bool,
}

impl ProbeHeader {
    /// Encodes the header.
    pub fn bytes(&self) -> [u8; BYTES] {
        let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        let mut bytes = [0; BYTES];
        bytes[..2].copy_from_slice(&MARK);
        bytes[2] = VERSION | flag(NEW_FLOW, self.is_new_flow) | flag(COUNTS, self.counts) | flag(WALL, self.is_wall);
        bytes[4..6].copy_from_slice(&self.run.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[10..].copy_from_slice(&self.sent_ns.to_be_bytes());
        bytes[3] = check(&bytes);
        bytes
    }

    /// Decodes the header at the start of `bytes`; `None` if there is none, or one of another version.
    pub fn read(bytes: &[u8]) -> Option<ProbeHeader> {
        let bytes: &[u8; BYTES] = bytes.first_chunk()?;
        let flags = bytes[2];
        if bytes[..2] != MARK || flags & 0x0f != VERSION || flags & !KNOWN != 0 || bytes[3] != check(bytes) {
            return None;
        }
        let [_, _, _, _, run @ .., _, _, _, _, _, _, _, _, _, _, _, _] = *bytes;
        let (sequence, sent) = bytes[6..].split_first_chunk()?;
        Some(ProbeHeader {
            run: u16::from_be_bytes(run),
            sequence: u32::from_be_bytes(*sequence),
            sent_ns: u64::from_be_bytes(*sent.first_chunk()?),
            is_new_flow: flags & NEW_FLOW != 0,
            counts: flags & COUNTS != 0,
            is_wall: flags & WALL != 0,
        })
    }

    /// Finds the first header in a frame's first [`REACH`] bytes, else the one at its end. Accepts only this run, if
    /// `run` is given.
    pub fn find(frame: &[u8], run: Option<u16>) -> Option<ProbeHeader> {
        ProbeHeader::all(frame, REACH, run).next().or_else(|| ProbeHeader::at_end(frame, run))
    }

    /// Returns the header at the end of a frame, where the generator writes it into replayed packets. At most one byte
    /// follows, because the header is aligned to the 16-bit words of the transport checksum.
    fn at_end(frame: &[u8], run: Option<u16>) -> Option<ProbeHeader> {
        let at = |behind: usize| frame.len().checked_sub(BYTES + behind).and_then(|at| ProbeHeader::read(&frame[at..]));
        at(0).or_else(|| at(1)).filter(|found| run.is_none_or(|run| found.run == run))
    }

    /// Iterates over all headers in a frame's first `reach` bytes. Accepts only this run, if `run` is given.
    pub fn all(frame: &[u8], reach: usize, run: Option<u16>) -> impl Iterator<Item = ProbeHeader> {
        let reach = reach.min(frame.len());
        let at = (0..reach.saturating_sub(BYTES - 1)).filter(move |at| frame[*at] == MARK[0]);
        at.filter_map(|at| ProbeHeader::read(&frame[at..])).filter(move |found| run.is_none_or(|run| found.run == run))
    }
}

/// Returns the check: exclusive or of all bytes but the check itself, each rotated by its position.
fn check(bytes: &[u8; BYTES]) -> u8 {
    let others = bytes.iter().zip(0_u32..).filter(|(_, at)| *at != 3);
    others.fold(0x5a, |sum, (byte, at)| sum ^ byte.rotate_left(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROBE: ProbeHeader =
        ProbeHeader { run: 0x1234, sequence: 7, sent_ns: 1 << 50, is_new_flow: true, counts: false, is_wall: false };

    #[test]
    fn the_layout_is_as_documented() {
        let bytes = PROBE.bytes();
        assert_eq!(bytes[..3], [0x57, 0x72, 0x11]);
        assert_eq!(bytes[4..], [0x12, 0x34, 0, 0, 0, 7, 0, 4, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn it_is_found_wherever_it_stands() {
        let mut frame = [0x57; 300];
        assert_eq!(ProbeHeader::find(&frame, None), None);
        frame[81..81 + BYTES].copy_from_slice(&PROBE.bytes());
        assert_eq!(ProbeHeader::find(&frame, None), Some(PROBE));
        assert_eq!(ProbeHeader::find(&frame, Some(0x1235)), None);
        let mut long = [0x57; 1500];
        for (at, found) in [(1482, Some(PROBE)), (1481, Some(PROBE)), (1480, None)] {
            long.fill(0x57);
            long[at..at + BYTES].copy_from_slice(&PROBE.bytes());
            assert_eq!(
                (ProbeHeader::find(&long, Some(0x1234)), ProbeHeader::find(&long, Some(1))),
                (found, None),
                "at {at}"
            );
        }
        let second = ProbeHeader { sequence: 8, ..PROBE };
        frame[282..].copy_from_slice(&second.bytes());
        assert_eq!(ProbeHeader::all(&frame, 300, Some(0x1234)).collect::<Vec<_>>(), [PROBE, second]);
        assert_eq!(ProbeHeader::all(&frame, 299, None).count(), 1, "the second is beyond reach");
        assert_eq!(ProbeHeader::all(&frame[..98], 1000, None).count(), 0, "the first is cut off");
    }

    #[test]
    fn what_is_damaged_is_none() {
        for at in 0..BYTES {
            let mut bytes = PROBE.bytes();
            bytes[at] ^= 1;
            assert_eq!(ProbeHeader::read(&bytes), None, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(run: u16, sequence: u32, sent_ns: u64, flags: [bool; 3]) {
            let [is_new_flow, counts, is_wall] = flags;
            let probe = ProbeHeader { run, sequence, sent_ns, is_new_flow, counts, is_wall };
            prop_assert_eq!(ProbeHeader::read(&probe.bytes()), Some(probe));
        }

        #[test]
        fn any_bytes_are_looked_through(bytes: Vec<u8>, reach in 0_usize..100) {
            prop_assert!(ProbeHeader::all(&bytes, reach, None).count() <= bytes.len());
        }
    }
}
