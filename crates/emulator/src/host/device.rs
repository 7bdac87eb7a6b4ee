//! A port as smoltcp's device.
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use std::collections::VecDeque;
use weir_packet::{Frame, FramePool};
use weir_port::{Port, PortError};
use weir_units::Instant;

/// Frames taken from the port at once.
const BURST: usize = 64;
/// Longest frame of a host: an Ethernet header and 1500 bytes.
const MAX_FRAME_BYTES: usize = 1514;
/// Frames that a host may have on their way to the port at once; its stack waits beyond that.
const MAX_OUTGOING: usize = 512;

/// A port with the frames on their way from and to it.
pub(crate) struct Device {
    pub(crate) port: Box<dyn Port>,
    pool: FramePool,
    incoming: VecDeque<Frame>,
    outgoing: Vec<Frame>,
    /// Frames the stack has read.
    spent: Vec<Frame>,
    /// Kept to reuse its room.
    burst: Vec<Frame>,
}

impl Device {
    pub(crate) fn new(port: Box<dyn Port>) -> Device {
        let pool = FramePool::new(1024, 8);
        Device { port, pool, incoming: VecDeque::new(), outgoing: Vec::new(), spent: Vec::new(), burst: Vec::new() }
    }

    /// Takes a burst of frames in; whether there may be more. Work that a frame's sender left to the port is done here.
    pub(crate) fn receive(&mut self, now: Instant) -> Result<bool, PortError> {
        self.spent.drain(..).for_each(|frame| self.pool.give(frame));
        self.port.receive(now, &mut self.pool, &mut self.burst, BURST)?;
        let full = self.burst.len() == BURST;
        let mut finished = Vec::new();
        for frame in self.burst.drain(..) {
            if frame.offload.is_none() {
                self.incoming.push_back(frame);
            } else {
                weir_packet::offload::finish(frame, &mut self.pool, &mut finished);
                self.incoming.extend(finished.drain(..));
            }
        }
        Ok(full)
    }

    /// Sends what the stack has made.
    pub(crate) fn flush(&mut self, now: Instant) -> Result<(), PortError> {
        if self.outgoing.is_empty() { Ok(()) } else { self.port.transmit(now, &mut self.pool, &mut self.outgoing) }
    }
}

impl phy::Device for Device {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Received<'_>, Outgoing<'_>)> {
        let frame = self.incoming.pop_front()?;
        let Device { pool, outgoing, spent, .. } = self;
        Some((Received { frame, spent }, Outgoing { pool, frames: outgoing }))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Outgoing<'_>> {
        let room = self.outgoing.len() < MAX_OUTGOING;
        room.then_some(Outgoing { pool: &mut self.pool, frames: &mut self.outgoing })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = MAX_FRAME_BYTES;
        capabilities
    }
}

/// A frame for the stack.
pub(crate) struct Received<'a> {
    frame: Frame,
    spent: &'a mut Vec<Frame>,
}

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let result = read(self.frame.bytes());
        self.spent.push(self.frame);
        result
    }
}

/// Room for a frame from the stack.
pub(crate) struct Outgoing<'a> {
    pool: &'a mut FramePool,
    frames: &'a mut Vec<Frame>,
}

impl phy::TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut frame = self.pool.take(len);
        let result = write(&mut frame.receive_buffer()[..len]);
        frame.received(len);
        self.frames.push(frame);
        result
    }
}
