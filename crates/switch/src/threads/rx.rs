//! The receiving stage: frames of a port go to the workers that the policy names, in bursts.
use super::Carried;
use super::outlet::Outlet;
use super::policy::Steering;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Rx {
    steering: Steering,
    /// By worker.
    workers: Vec<Outlet>,
}

impl Rx {
    pub(crate) fn new(steering: Steering, workers: Vec<Outlet>) -> Rx {
        Rx { steering, workers }
    }

    /// Takes frames that came in on a port.
    pub(crate) fn receive(&mut self, now: Instant, port: PortNo, frames: &mut Vec<Frame>, pool: &mut FramePool) {
        for frame in frames.drain(..) {
            let worker = self.steering.worker(port, &frame);
            self.workers[worker].push(now, Carried { port, frame }, pool);
        }
    }

    /// A turn of the loop is over.
    pub(crate) fn turn(&mut self, now: Instant, pool: &mut FramePool) {
        self.workers.iter_mut().for_each(|worker| worker.turn(now, pool));
    }

    /// What waits for a burst to fill goes, due or not.
    pub(crate) fn hand_on(&mut self, pool: &mut FramePool) {
        self.workers.iter_mut().for_each(|worker| worker.hand_on(pool));
    }

    /// Frames that a worker was given since the start.
    pub(crate) fn given(&self, worker: usize) -> u64 {
        self.workers[worker].accepted()
    }

    /// Whether no frame waits for a burst to fill.
    pub(crate) fn is_empty(&self) -> bool {
        self.workers.iter().all(Outlet::is_empty)
    }

    /// Frames that wait for a worker.
    pub(crate) fn waiting(&self, worker: usize) -> usize {
        self.workers[worker].waiting()
    }
}
