//! Frames: bytes on a port, with room in front for headers to be pushed, and what the sender left to be done.
mod pool;
mod tag;
mod work;

pub use pool::FramePool;
pub use work::{Offload, PartialChecksum, Segmentation, SegmentationKind};

use crate::{PacketType, Tunnel};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use weir_memory::Buffer;

/// Room kept in front of a received frame, so that pushing headers moves only the addresses: eight 4-byte tags and an
/// outer Ethernet/IPv6/UDP/VXLAN header fit.
pub const HEADROOM: usize = 128;
/// Longest frame weir carries: a 64 KiB super-frame as TCP segmentation offload makes, plus its link header.
pub const MAX_FRAME: usize = 65_535 + 64;
/// Room in a small buffer: a 1500-byte MTU with tags, or a short jumbo.
const SMALL: usize = 2048;
/// Bytes of a small buffer, with the room around the frame.
pub const SMALL_BUFFER: usize = HEADROOM + SMALL + TAILROOM;
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
    /// Given up by [`Drop`] alone, so that where frames are moved on, which leaves nothing to give up, that costs a comparison.
    body: ManuallyDrop<Option<Box<FrameBody>>>,
}

impl Drop for Frame {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            give_up(body);
        }
    }
}

/// Out of line: frames go back to pools, or become other frames.
#[cold]
#[inline(never)]
fn give_up(body: Box<FrameBody>) {
    drop(body);
}

/// What is known of a frame beside its bytes, and where those lie.
#[derive(Clone, Default)]
#[repr(align(64))]
pub struct FrameBody {
    buffer: Buffer,
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
    /// Nanoseconds, as bytes: so the compiler puts them behind all that every packet needs, and nothing of that moves. Not reset with the others.
    arrived: [u8; 8],
}

const _: () = assert!(size_of::<Frame>() == 8 && size_of::<FrameBody>() <= 128);

/// What an empty frame without memory looks like.
static NOTHING: FrameBody = FrameBody {
    buffer: Buffer::EMPTY,
    start: 0,
    end: 0,
    home: 0,
    offload: Offload { checksum: None, segmentation: None },
    eth_type: 0,
    queue: DEFAULT_QUEUE,
    tunnel: Tunnel::NONE,
    arrived: [0; 8],
};

impl Deref for Frame {
    type Target = FrameBody;

    #[inline(always)]
    fn deref(&self) -> &FrameBody {
        match &*self.body {
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

impl Frame {
    /// An empty frame whose buffer holds `capacity` bytes behind the headroom.
    pub fn with_capacity(capacity: usize) -> Self {
        Frame::in_buffer(Buffer::zeroed(HEADROOM + capacity + TAILROOM))
    }

    /// An empty frame in a buffer, which has room if it is longer than [`HEADROOM`].
    pub(crate) fn in_buffer(buffer: Buffer) -> Self {
        // Headers that begin a cache line are read with one access: buffers begin with one, and the headroom is whole ones.
        const { assert!(HEADROOM.is_multiple_of(LINE)) };
        let home = HEADROOM.min(buffer.len());
        let mut body = FrameBody { buffer, ..FrameBody::default() };
        body.set_home(home);
        body.reset();
        Frame { body: ManuallyDrop::new(Some(Box::new(body))) }
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

    /// When it came in, in nanoseconds of the clock that its port was given. Of frames of ports that do not say so it means nothing.
    pub fn arrived(&self) -> u64 {
        u64::from_ne_bytes(self.arrived)
    }

    /// States when it came in.
    pub fn set_arrived(&mut self, nanoseconds: u64) {
        self.arrived = nanoseconds.to_ne_bytes();
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
            let mut buffer = Buffer::zeroed(new_end + TAILROOM);
            buffer[..end].copy_from_slice(&self.buffer[..end]);
            self.buffer = buffer;
        }
        self.buffer[end..new_end].copy_from_slice(bytes);
        self.set_end(new_end);
        Ok(())
    }

    /// Makes the headroom at least [`HEADROOM`] `+ count`; rare: more headers than it was made for.
    fn regrow(&mut self, count: usize) {
        let (start, end) = (HEADROOM + count, HEADROOM + count + self.len());
        let mut buffer = Buffer::zeroed(end + TAILROOM);
        buffer[start..end].copy_from_slice(self.bytes());
        self.set_home(HEADROOM);
        self.set_start(start);
        self.set_end(end);
        self.buffer = buffer;
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
}
