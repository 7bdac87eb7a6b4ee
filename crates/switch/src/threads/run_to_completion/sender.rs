//! Sends one thread's frames by a port that other threads use, too. While another thread has the port, frames are
//! kept, and the thread continues with other work: the thread that has the port may have lost its core, and would
//! delay all others.
//!
//! Kept frames are sent first, so frames of one thread leave in the order in which it sent them. At most [`MAX_KEPT`]
//! frames and a burst are kept. Beyond that the thread waits for the port, so no frame is lost.
use super::port::SharedPort;
use super::port_contention::PortContention;
use std::sync::Arc;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Number of frames that a thread keeps before it waits for the port: some bursts, 20 us of small frames.
pub(super) const MAX_KEPT: usize = 256;

/// Sending side of a shared port for one thread.
pub(super) struct SharedPortSender {
    common: Arc<SharedPort>,
    kept: Vec<Frame>,
    hindered: Arc<PortContention>,
}

impl SharedPortSender {
    pub(super) fn new(common: Arc<SharedPort>, hindered: Arc<PortContention>) -> SharedPortSender {
        SharedPortSender { common, kept: Vec::new(), hindered }
    }

    pub(super) fn port(&self) -> &Arc<SharedPort> {
        &self.common
    }

    /// Returns true if frames wait for the port.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Sends or keeps `frames`, and leaves the list empty. With an empty list, the port still gets a call, so that it
    /// can release frames that it delays.
    #[inline]
    pub(super) fn send(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) {
        if self.holds() {
            self.kept.append(frames);
            return self.flush(now, pool);
        }
        if !self.common.try_transmit(now, pool, frames) {
            std::mem::swap(&mut self.kept, frames);
            self.hindered.note();
            self.bound(now, pool);
        }
    }

    /// Sends the kept frames, if the port is free.
    #[cold]
    pub(super) fn flush(&mut self, now: Instant, pool: &mut FramePool) {
        if !self.common.try_transmit(now, pool, &mut self.kept) {
            self.hindered.note();
            self.bound(now, pool);
        }
    }

    /// Waits for the port if too many frames are kept.
    fn bound(&mut self, now: Instant, pool: &mut FramePool) {
        if self.kept.len() > MAX_KEPT {
            self.common.transmit(now, pool, &mut self.kept);
        }
    }

    /// Ends the use of the port: drops the kept frames and returns their buffers to `pool`.
    pub(super) fn end(mut self, pool: &mut FramePool) {
        self.common.drop_frames(&mut self.kept, pool);
    }
}
