//! What one thread sends by a port that others use, too. While another thread has the port, frames are kept and the thread goes on with what
//! else it has: whoever has the port may have lost its core, and would hold up all others with it.
//!
//! What is kept goes first, so frames of one thread leave in the order it sent them. It is at most [`MAX_KEPT`] frames and a burst; then the
//! thread waits for the port, so nothing is lost.
use super::hindered::Hindered;
use super::port::Common;
use std::sync::Arc;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Frames that a thread keeps for a port before it waits for it: some bursts, 20 us of small ones.
pub(super) const MAX_KEPT: usize = 256;

/// See the module's page.
pub(super) struct Sender {
    common: Arc<Common>,
    kept: Vec<Frame>,
    hindered: Arc<Hindered>,
}

impl Sender {
    pub(super) fn new(common: Arc<Common>, hindered: Arc<Hindered>) -> Sender {
        Sender { common, kept: Vec::new(), hindered }
    }

    pub(super) fn port(&self) -> &Arc<Common> {
        &self.common
    }

    /// Whether frames wait for the port.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Sends frames, none of which is left in the list: they went, or are kept. None is sent where there are none, so that the port can
    /// release what it holds back.
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

    /// Sends what is kept, if the port can be had.
    #[cold]
    pub(super) fn flush(&mut self, now: Instant, pool: &mut FramePool) {
        if !self.common.try_transmit(now, pool, &mut self.kept) {
            self.hindered.note();
            self.bound(now, pool);
        }
    }

    /// Waits for the port if too much is kept.
    fn bound(&mut self, now: Instant, pool: &mut FramePool) {
        if self.kept.len() > MAX_KEPT {
            self.common.transmit(now, pool, &mut self.kept);
        }
    }

    /// The port is not to be used any more: buffers of frames that were kept go to `pool`.
    pub(super) fn end(mut self, pool: &mut FramePool) {
        self.common.drop_frames(&mut self.kept, pool);
    }
}
