//! Receives frames and passes them in bursts to the workers that the policy selects.
use super::RingFrame;
use super::policy::Steering;
use super::ring_writer::BurstRingWriter;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Receiving stage of a pipeline.
#[derive(Debug)]
pub(crate) struct RxStage {
    steering: Steering,
    /// Outlets by worker.
    workers: Vec<BurstRingWriter>,
}

impl RxStage {
    pub(crate) fn new(steering: Steering, workers: Vec<BurstRingWriter>) -> RxStage {
        RxStage { steering, workers }
    }

    /// Distributes the frames received on a port to the workers' outlets.
    pub(crate) fn receive(&mut self, now: Instant, port: PortNo, frames: &mut Vec<Frame>, pool: &mut FramePool) {
        for frame in frames.drain(..) {
            let worker = self.steering.worker(port, &frame);
            self.workers[worker].push(now, RingFrame { port, frame }, pool);
        }
    }

    /// Ends a turn of the loop, and writes bursts that are due.
    pub(crate) fn turn(&mut self, now: Instant, pool: &mut FramePool) {
        self.workers.iter_mut().for_each(|worker| worker.turn(now, pool));
    }

    /// Writes the waiting frames, whether their bursts are due or not.
    pub(crate) fn hand_on(&mut self, pool: &mut FramePool) {
        self.workers.iter_mut().for_each(|worker| worker.hand_on(pool));
    }

    /// Number of frames written to a worker's ring since the start.
    pub(crate) fn given(&self, worker: usize) -> u64 {
        self.workers[worker].accepted()
    }

    /// Returns true if no frame waits for a burst to fill.
    pub(crate) fn is_empty(&self) -> bool {
        self.workers.iter().all(BurstRingWriter::is_empty)
    }

    /// Number of frames in a worker's ring.
    pub(crate) fn waiting(&self, worker: usize) -> usize {
        self.workers[worker].waiting()
    }
}
