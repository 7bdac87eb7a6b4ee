//! Reassembles TCP streams from captured frames: each direction's bytes in order, despite retransmission, reordering
//! and loss.
use super::segment::{TcpDirection, TcpSegment, segment};
use std::collections::{BTreeMap, HashMap};

/// Maximum number of directions followed at a time; packets of further ones are counted and left out.
const MAX_DIRECTIONS: usize = 1 << 16;
/// Maximum number of bytes kept per direction behind a gap; beyond it the missing bytes count as lost.
const MAX_AHEAD: usize = 1 << 20;

/// Output of a stream; it is passed on with the time of the packet that completed it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TcpStreamEvent {
    /// The next bytes.
    Data(Vec<u8>),
    /// Number of bytes that are missing in the capture at this place.
    Lost(u64),
    /// A new connection starts between the same two addresses.
    Start,
}

/// The streams of a capture.
#[derive(Default)]
pub(super) struct TcpReassembler {
    directions: HashMap<TcpDirection, TcpStreamReassembly>,
    /// Number of packets of directions beyond [`MAX_DIRECTIONS`].
    pub(super) left_out: u64,
}

impl TcpReassembler {
    /// Processes a frame captured at `time_ns` and passes each completed piece to `each`.
    pub(super) fn receive(
        &mut self,
        time_ns: u64,
        frame: &[u8],
        mut each: impl FnMut(TcpDirection, u64, TcpStreamEvent),
    ) {
        let Some(segment) = segment(time_ns, frame) else { return };
        self.acknowledge(&segment, &mut each);
        if !self.directions.contains_key(&segment.direction) && self.directions.len() == MAX_DIRECTIONS {
            self.left_out += 1;
            return;
        }
        let direction = segment.direction;
        let assembly = self.directions.entry(direction).or_default();
        assembly.receive(segment, &mut |time, piece| each(direction, time, piece));
    }

    /// Declares bytes lost that the receiver has acknowledged and the capture does not contain.
    fn acknowledge(&mut self, segment: &TcpSegment, each: &mut impl FnMut(TcpDirection, u64, TcpStreamEvent)) {
        let other = TcpDirection { from: segment.direction.to, to: segment.direction.from };
        if let (Some(wanted), Some(assembly)) = (segment.acknowledged, self.directions.get_mut(&other)) {
            assembly.acknowledge(wanted, &mut |time, piece| each(other, time, piece));
        }
    }

    /// Passes on the data behind gaps at the end of the capture, in the order of the directions' addresses.
    pub(super) fn finish(self, mut each: impl FnMut(TcpDirection, u64, TcpStreamEvent)) {
        let mut directions: Vec<_> = self.directions.into_iter().collect();
        directions.sort_by_key(|(direction, _)| *direction);
        for (direction, mut assembly) in directions {
            while !assembly.ahead.is_empty() {
                assembly.skip_gap(&mut |time, piece| each(direction, time, piece));
            }
        }
    }
}

/// Puts one direction's segments in order.
#[derive(Default)]
struct TcpStreamReassembly {
    /// First sequence number of the stream that was captured.
    base: Option<u32>,
    /// Offset from `base` of the next byte to deliver.
    next: u64,
    /// Segments behind a gap, with their times, by their offset from `base`.
    ahead: BTreeMap<u64, (u64, Vec<u8>)>,
    /// Number of bytes in `ahead`.
    ahead_bytes: usize,
}

impl TcpStreamReassembly {
    fn receive(&mut self, segment: TcpSegment, each: &mut impl FnMut(u64, TcpStreamEvent)) {
        if segment.is_syn {
            let first = segment.sequence.wrapping_add(1);
            if self.base != Some(first) {
                if self.base.is_some() {
                    each(segment.time_ns, TcpStreamEvent::Start);
                }
                *self = TcpStreamReassembly { base: Some(first), ..TcpStreamReassembly::default() };
            }
        }
        if segment.length == 0 {
            return;
        }
        let sequence = segment.sequence.wrapping_add(u32::from(segment.is_syn));
        let base = *self.base.get_or_insert(sequence);
        let at = self.position(sequence.wrapping_sub(base));
        if let Some(at) = at {
            self.place(at, segment, each);
        }
    }

    fn acknowledge(&mut self, wanted: u32, each: &mut impl FnMut(u64, TcpStreamEvent)) {
        let Some(base) = self.base else { return };
        let arrived = self.position(wanted.wrapping_sub(base)).unwrap_or_default();
        while self.ahead.first_key_value().is_some_and(|(at, _)| *at <= arrived) {
            self.skip_gap(each);
        }
    }

    /// Converts a sequence number near `next`, given relative to `base`, to an offset from `base`. Returns `None` if
    /// it lies before `base`. Sequence numbers wrap around every 4 GiB.
    fn position(&self, relative: u32) -> Option<u64> {
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers are compared modulo 2^32")]
        let distance = relative.wrapping_sub(self.next as u32).cast_signed();
        self.next.checked_add_signed(i64::from(distance))
    }

    fn place(&mut self, at: u64, segment: TcpSegment, each: &mut impl FnMut(u64, TcpStreamEvent)) {
        let old = usize::try_from(self.next.saturating_sub(at)).unwrap_or(usize::MAX);
        if old >= segment.length {
            return; // retransmitted
        }
        let data = segment.data.get(old..).unwrap_or_default().to_vec();
        let missing = segment.length - segment.data.len().max(old);
        let at = at.max(self.next);
        if at > self.next {
            self.keep(at, segment.time_ns, data);
        } else {
            self.deliver(segment.time_ns, data, each);
            // A segment that was captured only in part leaves a gap after its captured bytes.
            if missing > 0 {
                self.lose(segment.time_ns, missing as u64, each);
            }
        }
        while self.ahead_bytes > MAX_AHEAD {
            self.skip_gap(each);
        }
        self.drain(each);
    }

    fn keep(&mut self, at: u64, time_ns: u64, data: Vec<u8>) {
        if data.is_empty() {
            return; // none of it was captured
        }
        let kept = self.ahead.entry(at).or_default();
        if data.len() > kept.1.len() {
            self.ahead_bytes += data.len() - kept.1.len();
            *kept = (time_ns, data);
        }
    }

    fn deliver(&mut self, time_ns: u64, data: Vec<u8>, each: &mut impl FnMut(u64, TcpStreamEvent)) {
        if !data.is_empty() {
            self.next += data.len() as u64;
            each(time_ns, TcpStreamEvent::Data(data));
        }
    }

    fn lose(&mut self, time_ns: u64, bytes: u64, each: &mut impl FnMut(u64, TcpStreamEvent)) {
        self.next += bytes;
        each(time_ns, TcpStreamEvent::Lost(bytes));
    }

    /// Delivers the segments that are now contiguous.
    fn drain(&mut self, each: &mut impl FnMut(u64, TcpStreamEvent)) {
        while let Some(first) = self.ahead.first_entry().filter(|first| *first.key() <= self.next) {
            let (at, (time_ns, data)) = first.remove_entry();
            self.ahead_bytes -= data.len();
            let old = usize::try_from(self.next - at).unwrap_or(usize::MAX);
            self.deliver(time_ns, data.get(old..).unwrap_or_default().to_vec(), each);
        }
    }

    /// Declares the bytes before the first segment in `ahead` lost, and delivers the segments after them.
    fn skip_gap(&mut self, each: &mut impl FnMut(u64, TcpStreamEvent)) {
        if let Some((at, (time_ns, _))) = self.ahead.first_key_value() {
            let (missing, time_ns) = (at.saturating_sub(self.next), *time_ns);
            if missing > 0 {
                self.lose(time_ns, missing, each);
            }
        }
        self.drain(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a frame with a TCP segment; the last `cut` bytes of the payload were not captured.
    fn frame(sequence: u32, syn: bool, payload: &[u8], cut: usize) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend(u16::try_from(40 + payload.len()).unwrap().to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x19, 0xfd, 0x80, 0]);
        frame.extend(sequence.to_be_bytes());
        frame.extend([0, 0, 0, 0, 0x50, if syn { 2 } else { 0x10 }, 0, 0, 0, 0, 0, 0]);
        frame.extend(payload);
        frame.truncate(frame.len() - cut);
        frame
    }

    fn pieces(frames: &[Vec<u8>]) -> Vec<TcpStreamEvent> {
        let (mut streams, mut pieces) = (TcpReassembler::default(), Vec::new());
        for frame in frames {
            streams.receive(0, frame, |_, _, piece| pieces.push(piece));
        }
        streams.finish(|_, _, piece| pieces.push(piece));
        pieces
    }

    fn data(bytes: &[u8]) -> TcpStreamEvent {
        TcpStreamEvent::Data(bytes.to_vec())
    }

    #[test]
    fn resent_and_reordered_segments_come_in_order() {
        let start = u32::MAX - 2;
        let after = |bytes: u32| start.wrapping_add(1 + bytes);
        let frames = [
            frame(start, true, b"", 0),
            frame(after(0), false, b"abcd", 0),
            frame(after(6), false, b"gh", 0),
            frame(after(0), false, b"abcd", 0),
            frame(after(2), false, b"cdef", 0),
            frame(after(8), false, b"i", 0),
        ];
        assert_eq!(pieces(&frames), [data(b"abcd"), data(b"ef"), data(b"gh"), data(b"i")]);
    }

    #[test]
    fn what_is_missing_is_said() {
        let frames = [frame(100, false, b"ab", 0), frame(105, false, b"fg", 0)];
        assert_eq!(pieces(&frames), [data(b"ab"), TcpStreamEvent::Lost(3), data(b"fg")]);
        let frames = [frame(100, false, b"abcdef", 4), frame(106, false, b"g", 0)];
        assert_eq!(pieces(&frames), [data(b"ab"), TcpStreamEvent::Lost(4), data(b"g")]);
    }

    #[test]
    fn what_the_receiver_has_is_not_waited_for() {
        let mut answer = frame(1, false, b"", 0);
        // A segment of the opposite direction, which acknowledges up to 107.
        answer[26..34].rotate_left(4);
        answer[34..38].rotate_left(2);
        answer[42..46].copy_from_slice(&107_u32.to_be_bytes());
        let (mut streams, mut found) = (TcpReassembler::default(), Vec::new());
        let frames = [frame(100, false, b"ab", 0), frame(105, false, b"fg", 0), answer, frame(107, false, b"h", 0)];
        for (time, frame) in (1..).zip(&frames) {
            streams.receive(time, frame, |_, time, piece| found.push((time, piece)));
        }
        assert_eq!(found, [(1, data(b"ab")), (2, TcpStreamEvent::Lost(3)), (2, data(b"fg")), (4, data(b"h"))]);
    }

    #[test]
    fn a_new_connection_starts_anew() {
        let frames = [frame(100, false, b"ab", 0), frame(7, true, b"", 0), frame(8, false, b"cd", 0)];
        assert_eq!(pieces(&frames), [data(b"ab"), TcpStreamEvent::Start, data(b"cd")]);
    }

    #[test]
    fn padding_is_not_payload() {
        let mut padded = frame(100, false, b"a", 0);
        padded.extend([0; 5]);
        assert_eq!(pieces(&[padded]), [data(b"a")]);
    }

    #[test]
    fn bytes_ahead_are_bounded() {
        let mut frames = vec![frame(1, false, b"a", 0)];
        let block = vec![7; 1400];
        frames.extend((0..1000_u32).map(|i| frame(10 + i * 1400, false, &block, 0)));
        let (mut streams, mut lost) = (TcpReassembler::default(), false);
        for frame in &frames {
            streams.receive(0, frame, |_, _, piece| lost |= piece == TcpStreamEvent::Lost(8));
            assert!(streams.directions.values().all(|one| one.ahead_bytes <= MAX_AHEAD + 1400));
        }
        assert!(lost);
    }
}
