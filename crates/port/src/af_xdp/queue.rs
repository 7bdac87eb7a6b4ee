//! Receives and sends frames at one queue of an interface: AF_XDP sockets with their frame memory and rings.
use crate::sys::ring::{XdpConsumer, XdpProducer, XdpRing, XdpRingKind, XdpUmem};
use crate::sys::{PlainData as _, errno, socket, while_busy};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use weir_memory::prefetch;
use weir_packet::frame::{Frame, FramePool, MAX_FRAME};

/// Capacity of the receive ring in frames, before the kernel drops frames.
const RECEIVE_FRAMES: u32 = 2048;
/// Capacity of the transmit ring in frames.
const TRANSMIT_FRAMES: u32 = 1024;
/// Maximum number of consecutive send calls that send no frame.
const RETRIES_MAX: u32 = 3;
/// Bytes of sent frames that receivers may hold before sending stops.
const SEND_BUFFER: i32 = 8 << 20;

/// Socket option for the number of frames that one send call takes (`XDP_MAX_TX_SKB_BUDGET`, Linux 6.17); 32 frames
/// where the kernel does not know the option.
const CALL_BUDGET_OPTION: libc::c_int = 9;
const CALL_BUDGET: u32 = 256;

/// Number of frames to prefetch ahead of the current one: another core wrote them, so they are not in this core's
/// cache.
const AHEAD: u32 = 4;

/// Descriptor flag: the frame continues in the next descriptor.
const CONTINUED: u32 = libc::XDP_PKT_CONTD;

/// AF_XDP sockets bound to one queue in copy mode: one receives, one sends.
pub(super) struct XdpQueue {
    fill: XdpProducer<u64>,
    completion: XdpConsumer<u64>,
    receive: XdpConsumer<libc::xdp_desc>,
    transmit: XdpProducer<libc::xdp_desc>,
    memory: XdpUmem,
    /// Addresses of free chunks, for sending.
    free: Vec<u64>,
    chunk: u32,
    /// True if frames may span several chunks.
    several: bool,
    /// Parts received so far of a continued frame; the rest of a frame that is too long is skipped.
    partial: XdpReassembly,
    socket: OwnedFd,
    /// Socket that sends and shares the chunks. No thread polls it: each sent frame that its receiver frees wakes the
    /// threads that poll the sending socket, which would cost a seventh of sending.
    sender: OwnedFd,
}

/// Reception state of a frame that spans several chunks.
enum XdpReassembly {
    None,
    Growing(Frame),
    Skipping,
}

/// A received frame, or the reason why there is none.
pub(super) enum XdpReceiveResult {
    Frame(Frame),
    /// A frame longer than every buffer.
    TooLong,
}

/// Result of sending.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct XdpSendResult {
    /// Number and bytes of frames that the device dropped although the kernel had accepted them.
    pub(super) dropped: u64,
    pub(super) dropped_bytes: u64,
    /// True if the interface is down.
    pub(super) down: bool,
}

impl XdpQueue {
    /// Opens sockets for queue `number` with chunks of `chunk` bytes, and binds them.
    pub(super) fn open(interface: i32, number: u32, chunk: u32) -> io::Result<Self> {
        let socket = socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        let sender = socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        let fd = socket.as_fd();
        let chunks = RECEIVE_FRAMES + TRANSMIT_FRAMES;
        let memory = XdpUmem::new(chunks as usize * chunk as usize)?;
        memory.register(fd, chunk)?;
        let mut queue = XdpQueue {
            fill: XdpProducer::new(XdpRing::new(fd, XdpRingKind::Fill, RECEIVE_FRAMES)?),
            completion: XdpConsumer::new(XdpRing::new(fd, XdpRingKind::Completion, TRANSMIT_FRAMES)?),
            receive: XdpConsumer::new(XdpRing::new(fd, XdpRingKind::Receive, RECEIVE_FRAMES)?),
            transmit: XdpProducer::new(XdpRing::new(sender.as_fd(), XdpRingKind::Transmit, TRANSMIT_FRAMES)?),
            memory,
            free: (RECEIVE_FRAMES..chunks).map(|at| u64::from(at) * u64::from(chunk)).collect(),
            chunk,
            several: false,
            partial: XdpReassembly::None,
            socket,
            sender,
        };
        (0..RECEIVE_FRAMES).for_each(|at| queue.fill.push(u64::from(at) * u64::from(chunk)));
        queue.fill.publish();
        queue.several = bind(queue.socket.as_fd(), interface, number)?;
        share(queue.sender.as_fd(), queue.socket.as_fd(), interface, number)?;
        // Without the privilege, the system's default applies.
        let _ = socket::set(queue.sender.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER);
        let _ = socket::set(queue.sender.as_fd(), libc::SOL_XDP, CALL_BUDGET_OPTION, &CALL_BUDGET);
        Ok(queue)
    }

    /// Returns the receiving socket, readable when frames arrived.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns true if received frames wait.
    pub(super) fn has_received(&self) -> bool {
        self.receive.has_entry()
    }

    /// Returns true if frames wait to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.transmit.waiting() > 0
    }

    /// Returns the next received frame. Call [`XdpQueue::release`] after the last one of a batch.
    pub(super) fn next(&mut self, pool: &mut FramePool) -> Option<XdpReceiveResult> {
        loop {
            let descriptor = self.receive.pop()?;
            while let Some(soon) = self.receive.look_ahead(AHEAD) {
                if let Some(bytes) = self.memory.bytes(soon.addr, 1) {
                    prefetch(bytes, 0);
                }
            }
            let last = descriptor.options & CONTINUED == 0;
            let length = descriptor.len as usize;
            let bytes = self.memory.bytes(descriptor.addr, length).unwrap_or_default();
            let received = match (&mut self.partial, last) {
                (XdpReassembly::None, true) => Some(whole(bytes, pool)),
                (partial, last) => partial.add(bytes, last, pool),
            };
            // The address points after the kernel's headroom; masking it gives the start of the chunk.
            self.fill.push(descriptor.addr & !u64::from(self.chunk - 1));
            if received.is_some() {
                return received;
            }
        }
    }

    /// Returns the chunks of received frames to the kernel.
    pub(super) fn release(&mut self) {
        self.receive.release();
        self.fill.publish();
    }

    /// Puts a frame into the transmit ring. Returns false if there is no room. Call [`XdpQueue::send`] after the last
    /// frame of a batch.
    pub(super) fn enqueue(&mut self, bytes: &[u8]) -> bool {
        let chunk = self.chunk as usize;
        let count = bytes.len().div_ceil(chunk);
        if self.free.len() < count || (self.transmit.free() as usize) < count {
            return false;
        }
        let mut rest = bytes.chunks(chunk).peekable();
        while let Some(part) = rest.next() {
            let Some(address) = self.free.pop() else { return false };
            if let Some(place) = self.memory.bytes(address, part.len()) {
                place.copy_from_slice(part);
            }
            let mut descriptor = libc::xdp_desc::zeroed();
            descriptor.addr = address;
            descriptor.len = u32::try_from(part.len()).unwrap_or(0);
            descriptor.options = if rest.peek().is_some() { CONTINUED } else { 0 };
            self.transmit.push(descriptor);
        }
        true
    }

    /// Returns the maximum length in bytes of a frame to send.
    pub(super) fn transmit_max(&self) -> usize {
        if self.several { MAX_FRAME } else { self.chunk as usize }
    }

    /// Makes the kernel send the frames in the transmit ring. One call sends a few dozen frames, so the call is
    /// repeated until the ring is empty or no more frames are taken. Remaining frames are sent with the next batch.
    pub(super) fn send(&mut self) -> io::Result<XdpSendResult> {
        let mut sent = XdpSendResult::default();
        let mut retries = 0;
        self.transmit.publish();
        while self.transmit.waiting() > 0 && retries <= RETRIES_MAX {
            let before = self.transmit.taken();
            match socket::kick(self.sender.as_fd()) {
                Ok(()) => {}
                Err(error) => match errno(&error) {
                    libc::EAGAIN | libc::ENOBUFS | libc::EINTR => {}
                    libc::EBUSY => {
                        sent.dropped += 1;
                        sent.dropped_bytes += u64::from(self.transmit.last_taken().len);
                    }
                    libc::ENETDOWN => {
                        sent.down = true;
                        break;
                    }
                    _ => return Err(error),
                },
            }
            retries = if self.transmit.taken() == before { retries + 1 } else { 0 };
        }
        self.reclaim();
        Ok(sent)
    }

    /// Collects the chunks of sent frames.
    fn reclaim(&mut self) {
        while let Some(address) = self.completion.pop() {
            self.free.push(address & !u64::from(self.chunk - 1));
        }
        self.completion.release();
    }

    /// Returns the number of frames that the kernel dropped because they were not read in time or exceed a chunk.
    pub(super) fn missed(&self) -> u64 {
        let stats: io::Result<libc::xdp_statistics> =
            socket::get(self.socket.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS);
        stats.map_or(0, |stats| stats.rx_dropped + stats.rx_ring_full)
    }
}

impl XdpReassembly {
    /// Adds a part of a frame. Returns the frame once it is complete.
    fn add(&mut self, bytes: &[u8], last: bool, pool: &mut FramePool) -> Option<XdpReceiveResult> {
        *self = match std::mem::replace(self, XdpReassembly::None) {
            XdpReassembly::None => XdpReassembly::Growing(pool.take(MAX_FRAME)).with(bytes, pool),
            partial => partial.with(bytes, pool),
        };
        if !last {
            return None;
        }
        match std::mem::replace(self, XdpReassembly::None) {
            XdpReassembly::Growing(frame) => Some(XdpReceiveResult::Frame(frame)),
            _ => Some(XdpReceiveResult::TooLong),
        }
    }

    fn with(self, bytes: &[u8], pool: &mut FramePool) -> Self {
        match self {
            XdpReassembly::Growing(mut frame) => match frame.append(bytes) {
                Ok(()) => XdpReassembly::Growing(frame),
                Err(_) => {
                    pool.give(frame);
                    XdpReassembly::Skipping
                }
            },
            other => other,
        }
    }
}

/// Copies a frame that lies in one chunk.
fn whole(bytes: &[u8], pool: &mut FramePool) -> XdpReceiveResult {
    let mut frame = pool.take(bytes.len());
    frame.assign(bytes);
    XdpReceiveResult::Frame(frame)
}

/// Binds a socket to a queue. Returns true if frames may span several chunks, which kernels before 6.6 do not
/// support.
fn bind(socket: BorrowedFd<'_>, interface: i32, queue: u32) -> io::Result<bool> {
    let mut address = address(interface, queue);
    let mut bind = |several| {
        address.sxdp_flags = libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP | if several { libc::XDP_USE_SG } else { 0 };
        while_busy(|| socket::bind(socket, &address))
    };
    match bind(true) {
        Err(error) if errno(&error) == libc::EINVAL => bind(false).map(|()| false),
        result => result.map(|()| true),
    }
}

/// Binds a socket to the queue of `first`, and shares the memory, fill and completion rings and settings of `first`.
fn share(socket: BorrowedFd<'_>, first: BorrowedFd<'_>, interface: i32, queue: u32) -> io::Result<()> {
    let mut address = address(interface, queue);
    address.sxdp_flags = libc::XDP_SHARED_UMEM;
    address.sxdp_shared_umem_fd = first.as_raw_fd().cast_unsigned();
    while_busy(|| socket::bind(socket, &address))
}

fn address(interface: i32, queue: u32) -> libc::sockaddr_xdp {
    let mut address = libc::sockaddr_xdp::zeroed();
    address.sxdp_family = u16::try_from(libc::AF_XDP).unwrap_or(0);
    address.sxdp_ifindex = interface.cast_unsigned();
    address.sxdp_queue_id = queue;
    address
}
