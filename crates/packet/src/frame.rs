//! Frames: bytes on a port, with room in front for headers to be pushed, and what the sender left to be done.
mod tag;

use crate::depot::Size;
use crate::{Depot, PacketType, Tunnel};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Room kept in front of a received frame, so that pushing headers moves only the addresses: eight 4-byte tags and an
/// outer Ethernet/IPv6/UDP/VXLAN header fit.
pub const HEADROOM: usize = 128;
/// Longest frame weir carries: a 64 KiB super-frame as TCP segmentation offload makes, plus its link header.
pub const MAX_FRAME: usize = 65_535 + 64;
/// Room in a small buffer: a 1500-byte MTU with tags, or a short jumbo.
const SMALL: usize = 2048;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Room a buffer keeps behind its frame for headers pushed beyond the headroom.
const TAILROOM: usize = 64;

/// A frame, and the work its sender left to whoever transmits it.
///
/// A handle of eight bytes: frames are moved several times on their way, their content stays where it is. An empty frame
/// (`Frame::default()`) has no memory.
#[derive(Clone, Default)]
pub struct Frame {
    body: Option<Box<FrameBody>>,
}

/// What is known of a frame beside its bytes, and where those lie.
#[derive(Clone, Default)]
#[repr(align(64))]
pub struct FrameBody {
    buffer: Vec<u8>,
    start: u32,
    end: u32,
    /// Where a received frame starts: behind the headroom, at the beginning of a cache line.
    home: u32,
    /// Work left undone by the sender.
    pub offload: Offload,
    /// The EtherType of what the bytes begin with; 0 for an Ethernet header.
    eth_type: u16,
    /// The queue of a port that it is to wait in. [`DEFAULT_QUEUE`] when it is received.
    pub queue: u32,
    /// The tunnel it came through or is to go through.
    pub tunnel: Tunnel,
}

const _: () = assert!(size_of::<Frame>() == 8 && size_of::<FrameBody>() <= 128);

/// What an empty frame without memory looks like.
static NOTHING: FrameBody = FrameBody {
    buffer: Vec::new(),
    start: 0,
    end: 0,
    home: 0,
    offload: Offload { checksum: None, segmentation: None },
    eth_type: 0,
    queue: DEFAULT_QUEUE,
    tunnel: Tunnel::NONE,
};

impl Deref for Frame {
    type Target = FrameBody;

    #[inline(always)]
    fn deref(&self) -> &FrameBody {
        match &self.body {
            Some(body) => body,
            None => &NOTHING,
        }
    }
}

impl DerefMut for Frame {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut FrameBody {
        self.body.get_or_insert_default()
    }
}

/// The queue of frames for which nobody chose one; every port has it.
pub const DEFAULT_QUEUE: u32 = 0;

/// What the sender of a frame left to the transmitting port, as in `virtio_net_hdr` (virtio 1.2, 5.1.6): the port either
/// hands it on or does it in software ([`crate::offload`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// The transport checksum holds only the pseudo header's sum: the rest is still to be added.
    pub checksum: Option<PartialChecksum>,
    /// The frame is longer than the link's MTU and is to be cut into segments.
    pub segmentation: Option<Segmentation>,
}

/// A transport checksum that is still to be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Bytes from the frame's start to where summing starts (the transport header).
    pub start: u16,
    /// Bytes from `start` to the checksum field.
    pub offset: u16,
}

/// A super-frame that is still to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// What is cut.
    pub kind: SegmentationKind,
    /// Payload bytes of each segment but the last (the TCP maximum segment size).
    pub segment_bytes: u16,
    /// Bytes of headers repeated in front of each segment, from the frame's start. A hint: parse, do not trust.
    pub header_bytes: u16,
}

/// What a super-frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentationKind {
    /// TCP over IPv4; `ecn` set when CWR may be set only in the first segment.
    Tcpv4 {
        /// CWR is set in the first segment only (RFC 3168).
        ecn: bool,
    },
    /// TCP over IPv6.
    Tcpv6 {
        /// CWR is set in the first segment only (RFC 3168).
        ecn: bool,
    },
    /// UDP datagrams of equal length behind one header (`UDP_SEGMENT`), over IPv4 or IPv6.
    Udp,
}

impl Frame {
    /// An empty frame whose buffer holds `capacity` bytes behind the headroom.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut buffer = vec![0; HEADROOM + LINE - 1 + capacity + TAILROOM];
        // Headers that begin a cache line are read with one access.
        let home = HEADROOM + (buffer[HEADROOM..].as_ptr().addr().wrapping_neg() & (LINE - 1));
        buffer.truncate(home + capacity + TAILROOM);
        let mut body = FrameBody { buffer, ..FrameBody::default() };
        body.set_home(home);
        body.reset();
        Frame { body: Some(Box::new(body)) }
    }

    /// A frame with a copy of `bytes`, of which at most [`MAX_FRAME`] are kept.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut frame = Frame::with_capacity(bytes.len().clamp(SMALL, MAX_FRAME));
        frame.assign(bytes);
        frame
    }
}

impl FrameBody {
    /// Replaces the contents by `bytes`, of which as many are kept as [`Frame::room`] says; offload and queue are reset.
    pub fn assign(&mut self, bytes: &[u8]) {
        self.reset();
        let kept = bytes.len().min(self.room());
        let start = self.start();
        self.buffer[start..start + kept].copy_from_slice(&bytes[..kept]);
        self.set_end(start + kept);
    }

    /// The frame's bytes, from the destination address on.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start()..self.end()]
    }

    /// The frame's bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let (start, end) = (self.start(), self.end());
        &mut self.buffer[start..end]
    }

    /// Length in bytes, without frame check sequence.
    pub fn len(&self) -> usize {
        self.end() - self.start()
    }

    /// The same as a number of 32 bits, which it always fits.
    #[inline(always)]
    pub fn bytes_len(&self) -> u32 {
        self.end - self.start
    }

    /// Bytes it has on a wire: those of all its segments, each with headers of its own.
    pub fn wire_bytes(&self) -> u64 {
        let bytes = self.len() as u64;
        self.offload.segmentation.map_or(bytes, |cut| bytes + cut.repeated_bytes(bytes))
    }

    /// Whether no byte is there.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Empties the frame and gives the headroom back.
    #[inline]
    pub fn reset(&mut self) {
        self.start = self.home;
        self.end = self.home;
        self.offload = Offload::default();
        self.queue = DEFAULT_QUEUE;
        self.eth_type = 0;
        self.tunnel = Tunnel::NONE;
    }

    /// What its bytes begin with; an Ethernet header unless [`Frame::set_packet_type`] said otherwise.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        if self.eth_type == 0 { PacketType::ETHERNET } else { PacketType::of_eth_type(self.eth_type) }
    }

    /// States what its bytes begin with. Types of other namespaces than 0 and 1 do not exist and count as Ethernet.
    pub fn set_packet_type(&mut self, kind: PacketType) {
        self.eth_type = kind.eth_type().unwrap_or(0);
    }

    /// Takes over what is known of another frame beside its bytes.
    pub fn inherit(&mut self, original: &FrameBody) {
        self.offload = original.offload;
        self.eth_type = original.eth_type;
        self.queue = original.queue;
        self.tunnel = original.tunnel;
    }

    /// The 64 bytes from the frame's start on, if the buffer has as many: of a shorter frame, whatever lies behind it too.
    #[inline(always)]
    pub fn head(&self) -> Option<&[u8; LINE]> {
        self.buffer.get(self.start()..)?.first_chunk()
    }

    #[inline]
    fn start(&self) -> usize {
        self.start as usize
    }

    #[inline]
    fn end(&self) -> usize {
        self.end as usize
    }

    #[expect(clippy::cast_possible_truncation, reason = "buffers are far shorter than 4 GiB")]
    #[inline]
    fn set_start(&mut self, at: usize) {
        self.start = at as u32;
    }

    #[expect(clippy::cast_possible_truncation, reason = "buffers are far shorter than 4 GiB")]
    #[inline]
    fn set_end(&mut self, at: usize) {
        self.end = at as u32;
    }

    #[expect(clippy::cast_possible_truncation, reason = "buffers are far shorter than 4 GiB")]
    fn set_home(&mut self, at: usize) {
        self.home = at as u32;
    }

    /// Whether nothing is known of the packet but its bytes, which begin with an Ethernet header.
    #[inline]
    pub fn is_plain(&self) -> bool {
        (u32::from(self.eth_type) | self.tunnel.id | self.tunnel.src | self.tunnel.dst) == 0
    }

    /// Bytes that a receiver may write behind the headroom.
    #[inline]
    pub fn room(&self) -> usize {
        self.buffer.len().saturating_sub(self.home as usize + TAILROOM)
    }

    /// The buffer a receiver writes into, [`Frame::room`] bytes; then [`Frame::received`] says how many it wrote.
    #[inline]
    pub fn receive_buffer(&mut self) -> &mut [u8] {
        // One from a pool was emptied there.
        if self.start != self.home || self.end != self.home {
            self.reset();
        }
        let (start, end) = (self.start(), self.start() + self.room());
        &mut self.buffer[start..end]
    }

    /// States that a receiver wrote the first `len` bytes of [`Frame::receive_buffer`]; more than there is room for is cut.
    #[inline]
    pub fn received(&mut self, len: usize) {
        self.set_end(self.start() + len.min(self.room()));
    }

    /// Opens a gap of `count` bytes at `at` (bytes from the frame's start, at most its length). The bytes of the gap are
    /// whatever was there: the caller writes them. Offload offsets behind the gap move with it.
    ///
    /// # Errors
    /// The frame stays as it was when it would exceed [`MAX_FRAME`].
    pub fn insert(&mut self, at: usize, count: usize) -> Result<(), TooLong> {
        let at = at.min(self.len());
        if self.len() + count > MAX_FRAME {
            return Err(TooLong);
        }
        if count > self.start() {
            self.regrow(count);
        }
        let start = self.start();
        self.buffer.copy_within(start..start + at, start - count);
        self.set_start(start - count);
        self.offload.shift(at, count, |offset, count| offset.saturating_add(count));
        Ok(())
    }

    /// Removes `count` bytes at `at`, as far as they are there. Offload offsets behind them move too.
    pub fn remove(&mut self, at: usize, count: usize) {
        let at = at.min(self.len());
        let count = count.min(self.len() - at);
        let start = self.start();
        self.buffer.copy_within(start..start + at, start + count);
        self.set_start(start + count);
        self.offload.shift(at, count, |offset, count| offset.saturating_sub(count));
    }

    /// Cuts the frame to its first `len` bytes, if it is longer.
    pub fn truncate(&mut self, len: usize) {
        self.set_end(self.end().min(self.start().saturating_add(len)));
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// The frame stays as it was when it would exceed [`MAX_FRAME`].
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.len() + bytes.len() > MAX_FRAME {
            return Err(TooLong);
        }
        let (end, new_end) = (self.end(), self.end() + bytes.len());
        if new_end > self.buffer.len() {
            self.buffer.resize(new_end + TAILROOM, 0);
        }
        self.buffer[end..new_end].copy_from_slice(bytes);
        self.set_end(new_end);
        Ok(())
    }

    /// Makes the headroom at least [`HEADROOM`] `+ count`; rare: more headers than it was made for.
    fn regrow(&mut self, count: usize) {
        let (start, end) = (HEADROOM + count, HEADROOM + count + self.len());
        let mut buffer = vec![0; end + TAILROOM];
        buffer[start..end].copy_from_slice(self.bytes());
        self.set_home(HEADROOM);
        self.set_start(start);
        self.set_end(end);
        self.buffer = buffer;
    }
}

impl Segmentation {
    /// Bytes of the headers that cutting a frame of `bytes` repeats.
    fn repeated_bytes(self, bytes: u64) -> u64 {
        let header = u64::from(self.header_bytes);
        let payload = bytes.saturating_sub(header);
        let segments = payload.div_ceil(u64::from(self.segment_bytes).max(1));
        header * segments.saturating_sub(1)
    }
}

impl Offload {
    /// Whether nothing is left to be done.
    pub fn is_none(&self) -> bool {
        *self == Offload::default()
    }

    /// Moves the offsets at or behind `at` by `count`. Only headers are inserted and removed, so `count` is small.
    fn shift(&mut self, at: usize, count: usize, by: fn(u16, u16) -> u16) {
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        if let Some(checksum) = &mut self.checksum
            && usize::from(checksum.start) >= at
        {
            checksum.start = by(checksum.start, count);
        }
        if let Some(segmentation) = &mut self.segmentation
            && usize::from(segmentation.header_bytes) >= at
        {
            segmentation.header_bytes = by(segmentation.header_bytes, count);
        }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({} bytes:", self.len())?;
        for byte in self.bytes().iter().take(64) {
            write!(f, " {byte:02x}")?;
        }
        f.write_str(if self.len() > 64 { " ...)" } else { ")" })
    }
}

/// A header could not be pushed: the frame would exceed [`MAX_FRAME`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame would exceed {MAX_FRAME} bytes")]
pub struct TooLong;

/// Buffers waiting to be used again, so that the packet path does not allocate.
#[derive(Debug)]
pub struct FramePool {
    small: Vec<Frame>,
    large: Vec<Frame>,
    max_small: usize,
    max_large: usize,
    depot: Option<Arc<Depot>>,
}

impl FramePool {
    /// A pool that keeps at most `max_small` buffers of ordinary size and `max_large` of super-frame size; what is given
    /// back beyond that is freed.
    pub fn new(max_small: usize, max_large: usize) -> Self {
        FramePool { small: Vec::new(), large: Vec::new(), max_small, max_large, depot: None }
    }

    /// A thread's pool that exchanges buffers with those of other threads: 512 small and 64 large ones at most are its own.
    pub fn shared(depot: &Arc<Depot>) -> Self {
        FramePool { depot: Some(Arc::clone(depot)), ..FramePool::new(512, 64) }
    }

    /// An empty frame with room for at least `bytes` (at most [`MAX_FRAME`]).
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Frame {
        let (kept, capacity) = if bytes <= SMALL { (&mut self.small, SMALL) } else { (&mut self.large, MAX_FRAME) };
        match kept.pop() {
            Some(mut frame) => {
                frame.reset();
                frame
            }
            None => self.fetch(capacity),
        }
    }

    /// A buffer when none is kept: from the depot, or made.
    #[cold]
    fn fetch(&mut self, capacity: usize) -> Frame {
        let (kept, size) =
            if capacity == SMALL { (&mut self.small, Size::Small) } else { (&mut self.large, Size::Large) };
        if let Some(load) = self.depot.as_ref().and_then(|depot| depot.fetch(size)) {
            *kept = load;
        }
        let mut frame = kept.pop().unwrap_or_else(|| Frame::with_capacity(capacity));
        frame.reset();
        frame
    }

    /// A buffer when enough are kept: half of them go to the depot, if there is one.
    #[cold]
    fn bring(&mut self, frame: Frame, size: Size) {
        let Some(depot) = &self.depot else { return };
        let kept = if size == Size::Small { &mut self.small } else { &mut self.large };
        depot.bring(size, kept.split_off(kept.len() / 2));
        self.give(frame);
    }

    /// A frame with a copy of `original`'s bytes, offload and queue.
    pub fn copy(&mut self, original: &Frame) -> Frame {
        let mut copy = self.take(original.len());
        copy.assign(original.bytes());
        copy.inherit(original);
        copy
    }

    /// Takes a buffer back.
    #[inline]
    pub fn give(&mut self, frame: Frame) {
        // Nearly all are small ones.
        if (SMALL..MAX_FRAME).contains(&frame.room()) && self.small.len() < self.max_small {
            self.small.push(frame);
        } else {
            self.give_other(frame);
        }
    }

    /// As [`FramePool::take`] for a burst: appends `count` empty frames.
    #[inline]
    pub fn take_burst(&mut self, bytes: usize, count: usize, into: &mut Vec<Frame>) {
        match self.small.len().checked_sub(count) {
            Some(rest) if bytes <= SMALL => {
                self.small[rest..].iter_mut().for_each(|frame| frame.reset());
                into.extend(self.small.drain(rest..));
            }
            _ => into.extend((0..count).map(|_| self.take(bytes))),
        }
    }

    /// As [`FramePool::give`] for a burst, which is empty then.
    #[inline]
    pub fn give_burst(&mut self, frames: &mut Vec<Frame>) {
        let are_small = frames.iter().all(|frame| (SMALL..MAX_FRAME).contains(&frame.room()));
        if are_small && self.small.len() + frames.len() <= self.max_small {
            self.small.append(frames);
        } else {
            frames.drain(..).for_each(|frame| self.give(frame));
        }
    }

    #[cold]
    fn give_other(&mut self, frame: Frame) {
        let (kept, max, size) = match frame.room() {
            room if room >= MAX_FRAME => (&mut self.large, self.max_large, Size::Large),
            room if room >= SMALL => (&mut self.small, self.max_small, Size::Small),
            _ => return,
        };
        if kept.len() < max {
            kept.push(frame);
        } else {
            self.bring(frame, size);
        }
    }
}

impl Default for FramePool {
    /// Enough for a worker: 4096 small (9 MiB) and 128 large buffers (8 MiB) at most.
    fn default() -> Self {
        FramePool::new(4096, 128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insert_and_remove_are_inverse() {
        let mut frame = Frame::from_bytes(&(0..60).collect::<Vec<u8>>());
        frame.offload.checksum = Some(PartialChecksum { start: 34, offset: 6 });
        let before = (frame.bytes().to_vec(), frame.offload);
        for _ in 0..100 {
            frame.insert(12, 4).unwrap();
            frame.bytes_mut()[12..16].copy_from_slice(&[0x81, 0, 0, 1]);
        }
        assert_eq!(frame.len(), 460);
        assert_eq!(frame.offload.checksum.unwrap().start, 434);
        for _ in 0..100 {
            frame.remove(12, 4);
        }
        assert_eq!((frame.bytes().to_vec(), frame.offload), before);
    }

    #[test]
    fn limits_hold() {
        let mut frame = Frame::from_bytes(&vec![1; MAX_FRAME + 10]);
        assert_eq!(frame.len(), MAX_FRAME);
        assert_eq!(frame.insert(12, 4), Err(TooLong));
        assert_eq!(frame.append(&[0]), Err(TooLong));
        frame.truncate(10);
        frame.remove(8, 100);
        assert_eq!(frame.len(), 8);
        let mut empty = Frame::default();
        assert_eq!(empty.room(), 0);
        empty.assign(&[1, 2, 3]);
        assert!(empty.is_empty());
    }

    #[test]
    fn a_super_frame_has_the_bytes_of_its_segments() {
        let mut frame = Frame::from_bytes(&[0; 54 + 3000]);
        assert_eq!(frame.wire_bytes(), 3054);
        let cut = |segment_bytes, header_bytes| Segmentation {
            kind: SegmentationKind::Tcpv4 { ecn: false },
            segment_bytes,
            header_bytes,
        };
        frame.offload.segmentation = Some(cut(1448, 54));
        assert_eq!(frame.wire_bytes(), 54 * 3 + 3000);
        // Hints that are nonsense do no harm.
        for (segment_bytes, header_bytes) in [(0, 0), (1448, u16::MAX), (u16::MAX, 54)] {
            frame.offload.segmentation = Some(cut(segment_bytes, header_bytes));
            assert_eq!(frame.wire_bytes(), 3054);
        }
    }

    #[test]
    fn the_queue_goes_with_copies_and_ends_with_the_frame() {
        let mut pool = FramePool::default();
        let mut frame = Frame::from_bytes(&[0; 60]);
        frame.queue = 7;
        assert_eq!(pool.copy(&frame).queue, 7);
        pool.give(frame);
        assert_eq!(pool.take(60).queue, DEFAULT_QUEUE);
    }

    #[test]
    fn bursts_are_as_many_frames() {
        let mut pool = FramePool::new(10, 2);
        for (bytes, count, kept) in
            [(60, 0, (0, 0)), (60, 4, (4, 0)), (60, 7, (7, 0)), (9000, 3, (7, 2)), (60, 12, (10, 2))]
        {
            let mut burst = vec![Frame::from_bytes(&[1; 3])];
            pool.take_burst(bytes, count, &mut burst);
            assert_eq!(burst.len(), count + 1);
            assert!(
                burst[1..]
                    .iter()
                    .all(|frame| frame.is_empty() && frame.queue == DEFAULT_QUEUE && frame.room() >= bytes)
            );
            burst.iter_mut().for_each(|frame| frame.queue = 5);
            burst[0] = Frame::with_capacity(10);
            pool.give_burst(&mut burst);
            assert_eq!((burst.len(), (pool.small.len(), pool.large.len())), (0, kept));
        }
        let mut all = Vec::new();
        pool.take_burst(60, 3, &mut all);
        pool.give_burst(&mut all);
        assert_eq!(pool.small.len(), 10);
    }

    #[test]
    fn pool_gives_back_what_it_got() {
        let mut pool = FramePool::new(1, 1);
        let frame = pool.take(60);
        assert!(frame.room() >= 60);
        pool.give(frame);
        pool.give(Frame::with_capacity(10));
        assert_eq!(pool.small.len(), 1);
        let large = pool.take(9000);
        assert!(large.room() >= MAX_FRAME);
        pool.give(large);
        assert_eq!(pool.large.len(), 1);
    }
}
