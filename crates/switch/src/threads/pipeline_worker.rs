//! Runs one worker: a share of the flows with a ring in front of it and one behind it. One thread runs it, and may
//! run other workers, too.
use super::worker::WorkerStage;
use super::worker_context::WorkerContext;
use std::sync::atomic::Ordering;
use weir_packet::FramePool;
use weir_units::Instant;

/// Time at which forwarded frames are passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlushTiming {
    /// After their burst has become due.
    WhenDue,
    /// Immediately; no burst waits to fill.
    AtOnce,
}

/// A worker's stage and its access to the tables.
pub(super) struct PipelineWorker {
    pub(super) stage: WorkerStage,
    pub(super) hand: WorkerContext,
}

impl PipelineWorker {
    /// Runs one burst and returns its number of frames. `is_over` ends the wait for the tables.
    #[inline]
    pub(super) fn run(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        hand_on: FlushTiming,
        is_over: impl Fn() -> bool,
    ) -> usize {
        let PipelineWorker { stage, hand } = self;
        let frames = stage.read();
        if frames > 0 {
            stage.process(pool, |port, frames, pool, out| hand.forward(now, port, frames, pool, out, &is_over));
            hand.end_burst(frames, &mut stage.out);
        }
        stage.write(now, pool, hand_on);
        if stage.has_handed_on() {
            // Stored after the output is in the ring behind the worker, because the reader of both relies on that
            // order.
            let frames = hand.counters.frames.load(Ordering::Relaxed);
            hand.counters.handed_on.store(frames, Ordering::Release);
        }
        frames
    }
}
