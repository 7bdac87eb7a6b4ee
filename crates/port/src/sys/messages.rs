//! Receives and sends many frames in one system call, each with its virtio header, without copying super-frames.
use super::{PlainData, check, fitted};
use crate::virtio;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use weir_packet::{Frame, FramePool, frame::MAX_FRAME};

/// Maximum number of frames per system call. Each receive slot holds a super-frame's buffer, so they take 2 MiB per
/// port.
pub(crate) const BATCH: usize = 32;

/// Room in bytes for control messages: a `tpacket_auxdata`, and the arrival time if requested. If sending times are
/// requested, the time comes twice, the second time with two hardware times.
const CONTROL_BYTES: usize = 160;
/// Requested kind of sending times: software timestamps, reported without the frame.
const REPORT: u32 = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_TSONLY;

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct CmsgBuffer([u8; CONTROL_BYTES]);

/// Buffers for one frame of any length: an ordinary buffer, followed by a super-frame's buffer from the offset at
/// which the ordinary one ends. An ordinary frame therefore touches only a small buffer. For a super-frame, only the
/// bytes in the small buffer are copied, into the gap left for them. The slot allocates only if the pool is empty.
#[derive(Default)]
pub(crate) struct ReceiveBufferPair {
    small: Frame,
    large: Frame,
}

impl ReceiveBufferPair {
    /// Returns the buffers to receive into, in this order. Takes new ones from `pool` if the slot's buffers left with
    /// a frame.
    pub(crate) fn buffers(&mut self, pool: &mut FramePool) -> [&mut [u8]; 2] {
        if self.small.room() == 0 {
            self.small = pool.take(0);
        }
        if self.large.room() == 0 {
            self.large = pool.take(MAX_FRAME);
        }
        let ordinary = self.small.begin_receive();
        let behind = self.large.begin_receive().get_mut(ordinary.len()..).unwrap_or_default();
        [ordinary, behind]
    }

    /// Returns the frame of `length` bytes that was received into [`ReceiveBufferPair::buffers`].
    pub(crate) fn take(&mut self, length: usize) -> Frame {
        let ordinary = self.small.room();
        if length <= ordinary {
            let mut frame = std::mem::take(&mut self.small);
            frame.finish_receive(length);
            return frame;
        }
        let mut frame = std::mem::take(&mut self.large);
        frame.begin_receive()[..ordinary].copy_from_slice(self.small.begin_receive());
        frame.finish_receive(length);
        frame
    }
}

/// Buffers for the frames of one receive call. Preparing a slot costs a third of an empty call, so only slots that
/// were received into are prepared again.
pub(crate) struct ReceiveSlots {
    slots: [ReceiveBufferPair; BATCH],
    virtio: [virtio::VirtioNetHeader; BATCH],
    control: [CmsgBuffer; BATCH],
    vectors: [[libc::iovec; 3]; BATCH],
    headers: [libc::mmsghdr; BATCH],
    /// Number of slots, from the first, that must be prepared before the next call.
    used: usize,
    /// Address of this value when the other slots were prepared: their pointers refer to it.
    ready_at: usize,
    /// True if the socket reports arrival times.
    pub(crate) are_stamped: bool,
}

// SAFETY: the pointers in `vectors` and `headers` lead into this value and into buffers that it owns.
unsafe impl Send for ReceiveSlots {}

/// A received frame with the kernel's metadata.
pub(crate) struct PacketSocketFrame {
    /// Frame with its offload; `None` if it was longer than every buffer or its virtio header is not valid.
    pub(crate) frame: Option<Frame>,
    /// VLAN tag that the kernel stripped: protocol identifier and tag control information.
    pub(crate) vlan: Option<(u16, u16)>,
    /// Arrival time in nanoseconds since 1970, if requested.
    pub(crate) came_ns: Option<u64>,
}

impl ReceiveSlots {
    pub(crate) fn new() -> Box<Self> {
        Box::new(ReceiveSlots {
            slots: std::array::from_fn(|_| ReceiveBufferPair::default()),
            virtio: [virtio::VirtioNetHeader::default(); BATCH],
            control: [CmsgBuffer([0; CONTROL_BYTES]); BATCH],
            vectors: [[empty_vector(); 3]; BATCH],
            headers: [empty_message(); BATCH],
            used: BATCH,
            ready_at: 0,
            are_stamped: false,
        })
    }

    /// Receives at most `max` frames (and at most [`BATCH`]) into the first slots. Returns their number.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, pool: &mut FramePool, max: usize) -> io::Result<usize> {
        let count = max.min(BATCH);
        self.make_ready(pool);
        // SAFETY: each header points to vectors, and these to buffers, in fields of `self` or owned by them, as
        // `prepare` set them: since then `self` has not moved (`make_ready`) and no frame has been taken out of the
        // slot (`used`). `self` is borrowed mutably during the call; the lengths are the buffers'.
        let received = unsafe { receive_messages(socket, &mut self.headers[..count]) };
        // The kernel may have begun to fill the slot after the last one.
        self.used = received.as_ref().map_or(1, |received| (received + 1).min(BATCH));
        received
    }

    /// Prepares the slots that were used, or all of them if this value has moved since their pointers were set.
    fn make_ready(&mut self, pool: &mut FramePool) {
        let here = std::ptr::from_ref(self).addr();
        let stale = if here == self.ready_at { self.used } else { BATCH };
        for slot in 0..stale {
            self.prepare(slot, pool);
        }
        self.ready_at = here;
    }

    /// Prepares a slot: points its message at its buffers.
    fn prepare(&mut self, slot: usize, pool: &mut FramePool) {
        let [ordinary, behind] = self.slots[slot].buffers(pool);
        self.vectors[slot] = [vector(&mut self.virtio[slot].0), vector(ordinary), vector(behind)];
        let header = &mut self.headers[slot].msg_hdr;
        header.msg_iov = self.vectors[slot].as_mut_ptr();
        header.msg_iovlen = 3;
        header.msg_control = self.control[slot].0.as_mut_ptr().cast();
        header.msg_controllen = fitted(CONTROL_BYTES);
        header.msg_flags = 0;
    }

    /// Takes the frame out of a slot that was received into.
    pub(crate) fn take(&mut self, slot: usize) -> PacketSocketFrame {
        let message = &self.headers[slot];
        let whole = message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        let length = usize::try_from(message.msg_len).unwrap_or(0).checked_sub(virtio::VirtioNetHeader::LENGTH);
        let vlan = beside(&message.msg_hdr, libc::SOL_PACKET, libc::PACKET_AUXDATA).and_then(vlan_of);
        let came_ns = if self.are_stamped { came_ns(&message.msg_hdr) } else { None };
        let frame = length.filter(|_| whole).and_then(|length| {
            let offload = self.virtio[slot].offload()?;
            let mut frame = self.slots[slot].take(length);
            frame.offload = offload;
            Some(frame)
        });
        PacketSocketFrame { frame, vlan, came_ns }
    }
}

/// Buffers for the frames of one send call.
pub(crate) struct SendSlots {
    virtio: [virtio::VirtioNetHeader; BATCH],
    vectors: [[libc::iovec; 2]; BATCH],
    headers: [libc::mmsghdr; BATCH],
    /// Control message that requests the sending time; attached to the last frame of a call.
    ask: Option<CmsgBuffer>,
}

// SAFETY: the pointers in `vectors` and `headers` are written right before each system call and not read after it.
unsafe impl Send for SendSlots {}

impl SendSlots {
    pub(crate) fn new() -> Box<Self> {
        Box::new(SendSlots {
            virtio: [virtio::VirtioNetHeader::default(); BATCH],
            vectors: [[empty_vector(); 2]; BATCH],
            headers: [empty_message(); BATCH],
            ask: None,
        })
    }

    /// Enables reports of when the last frame of a call left ([`left_ns`]).
    pub(crate) fn ask_when_left(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        super::socket::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &REPORT)?;
        let mut ask = CmsgBuffer([0; CONTROL_BYTES]);
        // SAFETY: integers.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = ask.0.as_mut_ptr().cast();
        header.msg_controllen = fitted(CONTROL_BYTES);
        // SAFETY: the header's control pointer refers to a buffer with room for one message of an integer, and
        // aligned for it.
        unsafe {
            let control = libc::CMSG_FIRSTHDR(&raw const header);
            (*control).cmsg_level = libc::SOL_SOCKET;
            (*control).cmsg_type = libc::SO_TIMESTAMPING;
            (*control).cmsg_len = fitted(libc::CMSG_LEN(4));
            libc::CMSG_DATA(control).cast::<u32>().write_unaligned(libc::SOF_TIMESTAMPING_TX_SOFTWARE);
        }
        self.ask = Some(ask);
        Ok(())
    }

    /// Sends the first of `frames`, at most [`BATCH`]. If `asks` is set and reports are enabled, requests the sending
    /// time of the last one. Returns the number sent, at least one. An error concerns the first frame.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, frames: &[Frame], asks: bool) -> io::Result<usize> {
        let count = frames.len().min(BATCH);
        for (slot, frame) in frames.iter().take(BATCH).enumerate() {
            self.virtio[slot] = virtio::VirtioNetHeader::of(frame);
            self.vectors[slot] = [constant_vector(&self.virtio[slot].0), constant_vector(frame.bytes())];
            let header = &mut self.headers[slot].msg_hdr;
            header.msg_iov = self.vectors[slot].as_mut_ptr();
            header.msg_iovlen = 2;
            let ask = self.ask.as_mut().filter(|_| asks && slot + 1 == count);
            // SAFETY: CMSG_SPACE computes a length.
            let length = if ask.is_some() { unsafe { libc::CMSG_SPACE(4) as usize } } else { 0 };
            header.msg_control = ask.map_or(std::ptr::null_mut(), |ask| ask.0.as_mut_ptr().cast());
            header.msg_controllen = fitted(length);
        }
        let headers = self.headers.as_mut_ptr();
        // SAFETY: the first `count` headers point to vectors and a control message of `self`, and the vectors to
        // headers of `self` and to `frames`, all borrowed during the call; sending only reads through the pointers.
        check(unsafe { libc::sendmmsg(socket.as_raw_fd(), headers, count_of(count), fitted(libc::MSG_DONTWAIT)) })
    }
}

/// Returns the latest sending time, in nanoseconds since 1970, that the kernel reported since the last call
/// ([`SendSlots::ask_when_left`]), if any.
pub(crate) fn left_ns(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut left = None;
    loop {
        let mut control = CmsgBuffer([0; CONTROL_BYTES]);
        let mut message = empty_message().msg_hdr;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = fitted(CONTROL_BYTES);
        // SAFETY: the header points to a buffer that is borrowed during the call, with its length; there are no
        // vectors and no address.
        let read =
            unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
        if read < 0 {
            return left;
        }
        // The first of the three times is the software timestamp; the others are hardware timestamps.
        let times: Option<[libc::timespec; 3]> = beside(&message, libc::SOL_SOCKET, libc::SCM_TIMESTAMPING);
        left = times.and_then(|times| since_1970_ns(times[0])).or(left);
    }
}

/// Reads one frame after its virtio header from a descriptor that returns a frame per read, as TUN does. Returns the
/// number of bytes, header included.
pub(crate) fn read_frame(
    file: BorrowedFd<'_>,
    header: &mut virtio::VirtioNetHeader,
    parts: [&mut [u8]; 2],
) -> io::Result<usize> {
    let [first, second] = parts;
    let vectors = [vector(&mut header.0), vector(first), vector(second)];
    // SAFETY: the vectors point to three buffers that are borrowed mutably during the call.
    let result = unsafe { libc::readv(file.as_raw_fd(), vectors.as_ptr(), 3) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Writes one frame after its virtio header.
pub(crate) fn write_frame(file: BorrowedFd<'_>, frame: &Frame) -> io::Result<()> {
    let header = virtio::VirtioNetHeader::of(frame);
    let vectors = [constant_vector(&header.0), constant_vector(frame.bytes())];
    // SAFETY: the vectors point to two buffers that are borrowed during the call, which only reads them.
    let result = unsafe { libc::writev(file.as_raw_fd(), vectors.as_ptr(), 2) };
    usize::try_from(result).map(drop).map_err(|_| io::Error::last_os_error())
}

/// Returns the control message of a kind that the kernel attached to a frame, if it exists and is long enough for a
/// `T`.
fn beside<T: PlainData>(header: &libc::msghdr, level: i32, kind: i32) -> Option<T> {
    // SAFETY: the header's control pointer and length describe what recvmmsg just wrote.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: null, or a control message that lies within what recvmmsg wrote.
    while let Some(control) = unsafe { at.as_ref() } {
        if control.cmsg_level == level && control.cmsg_type == kind {
            if fitted::<usize, _>(control.cmsg_len) < size_of::<libc::cmsghdr>() + size_of::<T>() {
                return None;
            }
            // SAFETY: the message's length was just checked, any bytes are a `T`; it may be unaligned.
            return Some(unsafe { libc::CMSG_DATA(at).cast::<T>().read_unaligned() });
        }
        // SAFETY: as for the first; `at` is one of the header's control messages.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
    None
}

// SAFETY: integers.
unsafe impl PlainData for libc::tpacket_auxdata {}
// SAFETY: integers.
unsafe impl PlainData for libc::timespec {}
// SAFETY: integers.
unsafe impl PlainData for [libc::timespec; 3] {}

/// Returns the arrival time that the kernel reported for a frame, in nanoseconds since 1970.
#[cold]
fn came_ns(header: &libc::msghdr) -> Option<u64> {
    since_1970_ns(beside(header, libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)?)
}

fn since_1970_ns(time: libc::timespec) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec).ok()?)
}

/// Returns the VLAN tag that the kernel stripped from the frame.
fn vlan_of(data: libc::tpacket_auxdata) -> Option<(u16, u16)> {
    const ETHERTYPE_VLAN: u16 = 0x8100;
    let has = |flag| data.tp_status & flag != 0;
    let protocol = if has(libc::TP_STATUS_VLAN_TPID_VALID) { data.tp_vlan_tpid } else { ETHERTYPE_VLAN };
    has(libc::TP_STATUS_VLAN_VALID).then_some((protocol, data.tp_vlan_tci))
}

pub(super) fn vector(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}

/// Returns a vector for sending: the kernel only reads through it, although its type allows writing.
pub(super) fn constant_vector(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

fn empty_vector() -> libc::iovec {
    libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }
}

pub(super) fn empty_message() -> libc::mmsghdr {
    // SAFETY: integers and pointers, which may be null.
    unsafe { std::mem::zeroed() }
}

/// Receives waiting messages, at most one for each header, without blocking. Returns their number.
///
/// # Safety
/// Each header points to names, control buffers and vectors, and these to buffers, that nothing else uses during the
/// call and that are as long as they say.
pub(super) unsafe fn receive_messages(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
    // SAFETY: the headers are borrowed mutably, and their count is that of the slice; the caller answers for the rest.
    check(unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count_of(headers.len()),
            fitted(libc::MSG_DONTWAIT),
            std::ptr::null_mut(),
        )
    })
}

/// Converts a number of messages, at most [`BATCH`], to the kernel's type.
pub(super) fn count_of(count: usize) -> libc::c_uint {
    libc::c_uint::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixDatagram;

    /// Receives the waiting frames and returns their bytes.
    fn receive(slots: &mut ReceiveSlots, socket: &UnixDatagram, pool: &mut FramePool) -> Vec<Vec<u8>> {
        let count = slots.receive(socket.as_fd(), pool, BATCH).unwrap_or(0);
        let frames = (0..count).map(|slot| slots.take(slot).frame.expect("a whole frame"));
        frames.map(|frame| frame.bytes().to_vec()).collect()
    }

    #[test]
    fn slots_are_used_again_wherever_they_are() {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        let (mut slots, mut pool) = (ReceiveSlots::new(), FramePool::default());
        let mut mark = 0;
        for (round, count) in [1, 3, 0, 2, 8, 0, 1, 8, 8, 3].into_iter().enumerate() {
            // Lengths from an ordinary frame's to a super-frame's.
            let lengths = (0..count).map(|at| if at % 3 == 2 { 40_000 } else { 60 + at });
            let sent: Vec<Vec<u8>> = lengths
                .map(|length| {
                    mark += 1;
                    vec![mark; length]
                })
                .collect();
            for frame in &sent {
                sender.send(&[&[0; virtio::VirtioNetHeader::LENGTH], &frame[..]].concat()).unwrap();
            }
            assert_eq!(receive(&mut slots, &receiver, &mut pool), sent, "round {round}");
            if round % 2 == 1 {
                // Moves the slots to another address.
                let mut elsewhere = ReceiveSlots::new();
                std::mem::swap(&mut *slots, &mut *elsewhere);
                slots = elsewhere;
            }
        }
    }

    #[test]
    fn a_frame_too_long_for_any_buffer_is_none() {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        let (mut slots, mut pool) = (ReceiveSlots::new(), FramePool::default());
        for _ in 0..2 {
            sender.send(&vec![0; MAX_FRAME + 4096]).unwrap();
            assert_eq!(slots.receive(receiver.as_fd(), &mut pool, BATCH).unwrap(), 1);
            assert!(slots.take(0).frame.is_none());
        }
    }
}
