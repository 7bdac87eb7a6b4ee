//! Reads frames from a worker's ring, runs them through the flow tables, and passes on those to be transmitted.
use super::RingFrame;
use super::pipeline_worker::FlushTiming;
use super::ring_writer::{BurstRingWriter, read};
use rtrb::Consumer;
use weir_datapath::{DatapathOutput, MAX_PORTS};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Maximum number of frames given to the tables at once; they are looked up together.
const LOOK_UP_MAX: usize = 64;

/// A worker's rings and working memory.
#[derive(Debug)]
pub(crate) struct WorkerStage {
    /// Maximum number of frames read at once.
    read: usize,
    ring: Consumer<RingFrame>,
    outlet: BurstRingWriter,
    received: Vec<RingFrame>,
    /// Frames of one input port.
    frames: Vec<Frame>,
    /// Output of the tables. The worker's owner takes the messages.
    pub(crate) out: DatapathOutput,
}

impl WorkerStage {
    /// Returns a stage that reads at most `read` frames at once.
    pub(crate) fn new(read: usize, ring: Consumer<RingFrame>, outlet: BurstRingWriter) -> WorkerStage {
        let (received, frames) = (Vec::with_capacity(read), Vec::with_capacity(read));
        WorkerStage { read, ring, outlet, received, frames, out: DatapathOutput::default() }
    }

    /// Reads a burst from the ring. Returns the number of frames.
    #[inline]
    pub(crate) fn read(&mut self) -> usize {
        let received = &mut self.received;
        read(&mut self.ring, self.read, |carried| received.push(carried))
    }

    /// Passes the burst to `forward` in its order, frames of one port at a time.
    #[inline]
    pub(crate) fn process(
        &mut self,
        pool: &mut FramePool,
        mut forward: impl FnMut(PortNo, &mut Vec<Frame>, &mut FramePool, &mut DatapathOutput),
    ) {
        let mut from = None;
        for RingFrame { port, frame } in self.received.drain(..) {
            if let Some(last) = from
                && (last != port || self.frames.len() == LOOK_UP_MAX)
            {
                forward(last, &mut self.frames, pool, &mut self.out);
                self.frames.clear();
            }
            from = Some(port);
            self.frames.push(frame);
        }
        if let Some(last) = from {
            forward(last, &mut self.frames, pool, &mut self.out);
            self.frames.clear();
        }
    }

    /// Ends a turn: passes on the frames to be transmitted, in bursts.
    #[inline]
    pub(super) fn write(&mut self, now: Instant, pool: &mut FramePool, hand_on: FlushTiming) {
        for (port, frames) in &mut self.out.frames {
            for frame in frames.drain(..) {
                self.outlet.push(now, RingFrame { port: *port, frame }, pool);
            }
        }
        if self.out.frames.len() > MAX_PORTS {
            // Removed ports must not leave lists behind forever.
            self.out.frames.clear();
        }
        match hand_on {
            FlushTiming::WhenDue => self.outlet.turn(now, pool),
            FlushTiming::AtOnce => self.outlet.hand_on(pool),
        }
    }

    /// Returns true if no frame waits for a burst to fill.
    #[inline]
    pub(crate) fn has_handed_on(&self) -> bool {
        self.outlet.is_empty()
    }

    /// Returns true if no frame waits in the ring or for a burst to fill.
    pub(crate) fn is_idle(&self) -> bool {
        self.ring.is_empty() && self.outlet.is_empty()
    }
}
