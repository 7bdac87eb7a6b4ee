//! Adapts a port to smoltcp's device: IP packets towards the stack, Ethernet frames towards the port.
use super::neighbours::{ETHERNET_BYTES, IncomingFrameKind, NeighbourCache};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use std::collections::VecDeque;
use weir_packet::{Frame, FramePool, IpNet, MacAddr};
use weir_port::{Port, PortError, PortResult};
use weir_units::Instant;

/// Frames taken from the port at once.
const BURST: usize = 64;
/// Longest IP packet of a host, in bytes.
const MTU: usize = 1500;
/// Most frames of a host on their way to the port. Beyond that the stack has to wait.
const MAX_OUTGOING: usize = 512;

/// Port with the frames on their way from and to it.
pub(crate) struct StackDevice {
    pub(crate) port: Box<dyn Port>,
    neighbours: NeighbourCache,
    pool: FramePool,
    now: Instant,
    incoming: VecDeque<Frame>,
    outgoing: Vec<Frame>,
    /// Frames that the stack has read, to be returned to the pool.
    spent: Vec<Frame>,
    /// Buffer for received frames, kept to reuse its memory.
    burst: Vec<Frame>,
}

impl StackDevice {
    pub(crate) fn new(port: Box<dyn Port>, mac: MacAddr, addresses: &[IpNet]) -> StackDevice {
        StackDevice {
            port,
            neighbours: NeighbourCache::new(mac, addresses),
            pool: FramePool::new(1024, 8),
            now: Instant::ZERO,
            incoming: VecDeque::new(),
            outgoing: Vec::new(),
            spent: Vec::new(),
            burst: Vec::new(),
        }
    }

    /// Receives a burst of frames. Returns true if there may be more. Segmentation and checksums that a frame's
    /// sender left to the port are done here.
    pub(crate) fn receive(&mut self, now: Instant) -> Result<bool, PortError> {
        self.now = now;
        self.spent.drain(..).for_each(|frame| self.pool.give(frame));
        self.neighbours.retry(now, &mut self.outgoing);
        self.port.receive(now, &mut self.pool, &mut self.burst, BURST)?;
        let full = self.burst.len() == BURST;
        let mut finished = Vec::new();
        let mut burst = std::mem::take(&mut self.burst);
        for frame in burst.drain(..) {
            if frame.offload.is_none() {
                self.take_in(frame);
            } else {
                weir_packet::offload::finish(frame, &mut self.pool, &mut finished);
                finished.drain(..).for_each(|frame| self.take_in(frame));
            }
        }
        self.burst = burst;
        Ok(full)
    }

    fn take_in(&mut self, mut frame: Frame) {
        match self.neighbours.receive(self.now, frame.bytes(), &mut self.outgoing) {
            IncomingFrameKind::Packet => {
                frame.remove(0, ETHERNET_BYTES);
                self.incoming.push_back(frame);
            }
            IncomingFrameKind::Other => self.pool.give(frame),
        }
    }

    /// Tells all neighbours the own addresses with the next call of [`StackDevice::flush`].
    pub(crate) fn announce(&mut self) {
        self.neighbours.announce(&mut self.outgoing);
    }

    /// Returns the number of packets not sent because the Ethernet address of their receiver is not known.
    pub(crate) fn unresolved(&self) -> u64 {
        self.neighbours.unresolved()
    }

    /// Returns the latest time for the next call if no frame arrives.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.port.next_wake().into_iter().chain(self.neighbours.next_wake()).min()
    }

    /// Sends the frames that the stack has made.
    pub(crate) fn flush(&mut self, now: Instant) -> PortResult {
        if self.outgoing.is_empty() { Ok(()) } else { self.port.transmit(now, &mut self.pool, &mut self.outgoing) }
    }
}

impl phy::Device for StackDevice {
    type RxToken<'a> = FrameRxToken<'a>;
    type TxToken<'a> = FrameTxToken<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(FrameRxToken<'_>, FrameTxToken<'_>)> {
        let frame = self.incoming.pop_front()?;
        let StackDevice { pool, outgoing, spent, neighbours, now, .. } = self;
        Some((FrameRxToken { frame, spent }, FrameTxToken { now: *now, pool, neighbours, frames: outgoing }))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<FrameTxToken<'_>> {
        let room = self.outgoing.len() < MAX_OUTGOING;
        let StackDevice { pool, outgoing, neighbours, now, .. } = self;
        room.then_some(FrameTxToken { now: *now, pool, neighbours, frames: outgoing })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

/// Frame for the stack.
pub(crate) struct FrameRxToken<'a> {
    frame: Frame,
    spent: &'a mut Vec<Frame>,
}

impl phy::RxToken for FrameRxToken<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let result = read(self.frame.bytes());
        self.spent.push(self.frame);
        result
    }
}

/// Room for a packet from the stack.
pub(crate) struct FrameTxToken<'a> {
    now: Instant,
    pool: &'a mut FramePool,
    neighbours: &'a mut NeighbourCache,
    frames: &'a mut Vec<Frame>,
}

impl phy::TxToken for FrameTxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let whole = ETHERNET_BYTES + len;
        let mut frame = self.pool.take(whole);
        let result = write(&mut frame.begin_receive()[ETHERNET_BYTES..whole]);
        frame.finish_receive(whole);
        self.neighbours.send(self.now, frame, self.frames);
        result
    }
}
