//! A worker's share of the flows, with all it takes to run them through the tables: a ring in front of it, one behind it, and one thread
//! that runs it, which may run others too.
use super::hand::Hand;
use super::worker::Stage;
use std::sync::atomic::Ordering;
use weir_packet::FramePool;
use weir_units::Instant;

/// When what was forwarded is handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandOn {
    /// When its burst is due.
    WhenDue,
    /// At once: no burst is to be waited for.
    AtOnce,
}

/// See the module's page.
pub(super) struct Share {
    pub(super) stage: Stage,
    pub(super) hand: Hand,
}

impl Share {
    /// Runs a burst; how many frames there were. `is_over` ends waiting for the tables.
    #[inline]
    pub(super) fn run(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        hand_on: HandOn,
        is_over: impl Fn() -> bool,
    ) -> usize {
        let Share { stage, hand } = self;
        let frames = stage.read();
        if frames > 0 {
            stage.process(pool, |port, frames, pool, out| hand.forward(now, port, frames, pool, out, &is_over));
            hand.end_burst(frames, &mut stage.out);
        }
        stage.write(now, pool, hand_on);
        if stage.has_handed_on() {
            // After what it gave is in the ring behind it, for who reads both.
            let frames = hand.counters.frames.load(Ordering::Relaxed);
            hand.counters.handed_on.store(frames, Ordering::Release);
        }
        frames
    }
}
