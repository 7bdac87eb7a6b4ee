//! Stores frames: bytes on a port, with room at the front for pushed headers, and the work that the sender left
//! undone.
mod pool;
mod tag;
mod work;

pub use pool::FramePool;
pub use work::{Offload, PartialChecksum, Segmentation, SegmentationKind};

use crate::{PacketType, Tunnel};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use weir_memory::AlignedBuffer;

/// Length in bytes of the headroom before a received frame, so that pushing headers moves only the addresses. Eight
/// 4-byte tags and an outer Ethernet/IPv6/UDP/VXLAN header fit.
pub const HEADROOM: usize = 128;
/// Maximum length of a frame in bytes: a 64 KiB super-frame of TCP segmentation offload, plus its link header.
pub const MAX_FRAME: usize = 65_535 + 64;
/// Capacity of a small buffer in bytes: a 1500-byte MTU with tags, or a short jumbo frame.
const SMALL: usize = 2048;
/// Total length of a small buffer in bytes, including headroom and tailroom.
pub const SMALL_BUFFER: usize = HEADROOM + SMALL + TAILROOM;
/// Length of a cache line in bytes.
const LINE: usize = 64;
/// Length in bytes of the room behind a frame, for headers beyond the headroom.
const TAILROOM: usize = 64;

/// A frame, and the work that its sender left to the transmitting port.
///
/// A handle of eight bytes: frames are moved several times on their way, while their content stays in place. An empty
/// frame (`Frame::default()`) has no memory.
#[derive(Clone, Default)]
pub struct Frame {
    /// Dropped only by [`Drop`]: for a frame that was moved on, which has nothing left to drop, this costs one
    /// comparison.
    body: ManuallyDrop<Option<Box<FrameBody>>>,
}

impl Drop for Frame {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            free_body(body);
        }
    }
}

/// Frees a body. Out of line because frames normally return to pools or become other frames.
#[cold]
#[inline(never)]
fn free_body(body: Box<FrameBody>) {
    drop(body);
}

/// Location of a frame's bytes, and its properties that are not in the bytes.
#[derive(Clone, Default)]
#[repr(align(64))]
pub struct FrameBody {
    buffer: AlignedBuffer,
    start: u32,
    end: u32,
    /// Offset at which a received frame starts: after the headroom, at the start of a cache line.
    home: u32,
    /// Work that the sender left undone.
    pub offload: Offload,
    /// EtherType of the packet's first header; 0 if that is an Ethernet header.
    eth_type: u16,
    /// Queue of the output port to wait in. [`DEFAULT_QUEUE`] after reception.
    pub queue: u32,
    /// Tunnel that the frame was received through, or is to be sent through.
    pub tunnel: Tunnel,
    /// Arrival time in nanoseconds. Stored as bytes, so that the compiler places it after the fields that every
    /// packet needs. Not reset with the other fields.
    arrived: [u8; 8],
}

const _: () = assert!(size_of::<Frame>() == 8 && size_of::<FrameBody>() <= 128);

/// Content of an empty frame without memory.
static EMPTY_BODY: FrameBody = FrameBody {
    buffer: AlignedBuffer::EMPTY,
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
            None => &EMPTY_BODY,
        }
    }
}

impl DerefMut for Frame {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut FrameBody {
        self.body.get_or_insert_default()
    }
}

/// Queue of frames for which no queue was selected; every port has it.
pub const DEFAULT_QUEUE: u32 = 0;

impl Frame {
    /// Creates an empty frame with a capacity of `capacity` bytes after the headroom.
    pub fn with_capacity(capacity: usize) -> Self {
        Frame::in_buffer(AlignedBuffer::zeroed(HEADROOM + capacity + TAILROOM))
    }

    /// Creates an empty frame in a buffer. It has capacity only if the buffer is longer than [`HEADROOM`].
    pub(crate) fn in_buffer(buffer: AlignedBuffer) -> Self {
        // Headers at the start of a cache line are read with one access. Buffers start at one, and the headroom is a
        // whole number of them.
        const { assert!(HEADROOM.is_multiple_of(LINE)) };
        let home = HEADROOM.min(buffer.len());
        let mut body = FrameBody { buffer, ..FrameBody::default() };
        body.set_home(home);
        body.reset();
        Frame { body: ManuallyDrop::new(Some(Box::new(body))) }
    }

    /// Creates a frame with a copy of `bytes`, cut to [`MAX_FRAME`].
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut frame = Frame::with_capacity(bytes.len().clamp(SMALL, MAX_FRAME));
        frame.assign(bytes);
        frame
    }
}

impl FrameBody {
    /// Replaces the content by `bytes`, cut to `Frame::room`. Resets offload and queue.
    pub fn assign(&mut self, bytes: &[u8]) {
        self.reset();
        let kept = bytes.len().min(self.room());
        let start = self.start();
        self.buffer[start..start + kept].copy_from_slice(&bytes[..kept]);
        self.set_end(start + kept);
    }

    /// Returns the frame's bytes, from the destination address on.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start()..self.end()]
    }

    /// Returns the frame's bytes for changes in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let (start, end) = (self.start(), self.end());
        &mut self.buffer[start..end]
    }

    /// Returns the length in bytes, without frame check sequence.
    pub fn len(&self) -> usize {
        self.end() - self.start()
    }

    /// Returns the length in bytes as a 32-bit number, which is always large enough.
    #[inline(always)]
    pub fn bytes_len(&self) -> u32 {
        self.end - self.start
    }

    /// Returns the number of bytes on the wire: the sum over all segments, each with its own headers.
    pub fn wire_bytes(&self) -> u64 {
        let bytes = self.len() as u64;
        self.offload.segmentation.map_or(bytes, |cut| bytes + cut.repeated_bytes(bytes))
    }

    /// Returns true if the frame has no bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Empties the frame and restores the headroom.
    #[inline]
    pub fn reset(&mut self) {
        self.start = self.home;
        self.end = self.home;
        self.offload = Offload::default();
        self.queue = DEFAULT_QUEUE;
        self.eth_type = 0;
        self.tunnel = Tunnel::NONE;
    }

    /// Returns the arrival time in nanoseconds, in the clock of the receiving port. Meaningless for frames of ports
    /// that do not set it.
    pub fn arrived(&self) -> u64 {
        u64::from_ne_bytes(self.arrived)
    }

    /// Sets the arrival time in nanoseconds.
    pub fn set_arrived(&mut self, nanoseconds: u64) {
        self.arrived = nanoseconds.to_ne_bytes();
    }

    /// Returns the type of the frame's first header: Ethernet, unless `Frame::set_packet_type` set another.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        if self.eth_type == 0 { PacketType::ETHERNET } else { PacketType::of_eth_type(self.eth_type) }
    }

    /// Sets the type of the frame's first header. Types of namespaces other than 0 and 1 do not exist and count as
    /// Ethernet.
    pub fn set_packet_type(&mut self, kind: PacketType) {
        self.eth_type = kind.eth_type().unwrap_or(0);
    }

    /// Copies the properties of another frame that are not in its bytes, except the arrival time.
    pub fn inherit(&mut self, original: &FrameBody) {
        self.offload = original.offload;
        self.eth_type = original.eth_type;
        self.queue = original.queue;
        self.tunnel = original.tunnel;
    }

    /// Returns the 64 bytes from the frame's start, if the buffer has as many. For a shorter frame they include
    /// arbitrary bytes after its end.
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

    /// Returns true if the frame starts with an Ethernet header and has no tunnel.
    #[inline]
    pub fn is_plain(&self) -> bool {
        (u32::from(self.eth_type) | self.tunnel.id | self.tunnel.src | self.tunnel.dst) == 0
    }

    /// Returns the number of bytes that a receiver may write after the headroom.
    #[inline]
    pub fn room(&self) -> usize {
        self.buffer.len().saturating_sub(self.home as usize + TAILROOM)
    }

    /// Empties the frame, and returns the buffer for a receiver, `Frame::room` bytes long. Afterwards,
    /// `Frame::finish_receive` sets the length written.
    #[inline]
    pub fn begin_receive(&mut self) -> &mut [u8] {
        // A frame from a pool is already empty.
        if self.start != self.home || self.end != self.home {
            self.reset();
        }
        let (start, end) = (self.start(), self.start() + self.room());
        &mut self.buffer[start..end]
    }

    /// Sets the length to the first `len` bytes of `Frame::begin_receive`, cut to its length.
    #[inline]
    pub fn finish_receive(&mut self, len: usize) {
        self.set_end(self.start() + len.min(self.room()));
    }

    /// Inserts `count` bytes at offset `at`, at most the frame's length. The inserted bytes have arbitrary values;
    /// the caller must write them. Offload offsets behind the gap move with it.
    ///
    /// # Errors
    /// The frame would exceed [`MAX_FRAME`]; it is then unchanged.
    pub fn insert(&mut self, at: usize, count: usize) -> Result<(), FrameTooLong> {
        let at = at.min(self.len());
        if self.len() + count > MAX_FRAME {
            return Err(FrameTooLong);
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

    /// Removes `count` bytes at offset `at`, or as many as there are. Offload offsets behind them move, too.
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
    /// The frame would exceed [`MAX_FRAME`]; it is then unchanged.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FrameTooLong> {
        if self.len() + bytes.len() > MAX_FRAME {
            return Err(FrameTooLong);
        }
        let (end, new_end) = (self.end(), self.end() + bytes.len());
        if new_end > self.buffer.len() {
            let mut buffer = AlignedBuffer::zeroed(new_end + TAILROOM);
            buffer[..end].copy_from_slice(&self.buffer[..end]);
            self.buffer = buffer;
        }
        self.buffer[end..new_end].copy_from_slice(bytes);
        self.set_end(new_end);
        Ok(())
    }

    /// Moves the frame to a new buffer with a headroom of [`HEADROOM`] `+ count`. Rare: only for more headers than
    /// the headroom holds.
    fn regrow(&mut self, count: usize) {
        let (start, end) = (HEADROOM + count, HEADROOM + count + self.len());
        let mut buffer = AlignedBuffer::zeroed(end + TAILROOM);
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

/// Error: bytes cannot be added, because the frame would exceed [`MAX_FRAME`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame would exceed {MAX_FRAME} bytes")]
pub struct FrameTooLong;

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
        assert_eq!(frame.insert(12, 4), Err(FrameTooLong));
        assert_eq!(frame.append(&[0]), Err(FrameTooLong));
        frame.truncate(10);
        frame.remove(8, 100);
        assert_eq!(frame.len(), 8);
        let mut empty = Frame::default();
        assert_eq!(empty.room(), 0);
        empty.assign(&[1, 2, 3]);
        assert!(empty.is_empty());
    }
}
