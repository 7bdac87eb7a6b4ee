//! Detects times (stops) at which the engine had no processor, because another thread or another virtual machine used
//! it. Time spent on the engine's own work is never counted. A stop is recorded in two cases:
//!
//! 1. The engine had no work between two reads of the clock, and they were [`LEAST`] or more apart.
//! 2. The engine slept, and woke [`WAKES`] or more after the deadline of the sleep, or after the arrival of the first
//!    frame that it then found. The arrival time is known only on switches with a profile, whose frames carry it.
use super::Engine;
use std::time::Duration;
use weir_units::{Instant, StallLog};

/// Minimum time between two reads of the clock that counts as a stop. A round without work takes a few microseconds at
/// most, even with ports of the kernel.
const LEAST: Duration = Duration::from_micros(20);
/// Minimum delay of a wake-up that counts as a stop. A wake-up takes less time if the processor is free.
const WAKES: Duration = Duration::from_micros(150);

/// Detector and record of the times at which the engine was stopped.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    stops: StallLog,
    /// Deadline of the current sleep; `None` while the engine is awake.
    wakes_at: Option<Instant>,
    /// End of the last sleep; `None` after the first frame or other work since then.
    woke_at: Option<Instant>,
}

impl StallDetector {
    /// Records the begin of a round of the engine.
    #[inline]
    pub(crate) fn begins(&mut self, now: Instant) {
        self.stops.look(now, LEAST);
    }

    /// Records that the round had work.
    #[inline]
    pub(crate) fn worked(&mut self) {
        self.woke_at = None;
        self.stops.look_away();
    }

    /// Records that the engine goes to sleep until `until` at the latest.
    pub(crate) fn sleeps(&mut self, until: Instant) {
        self.wakes_at = Some(until);
        self.stops.look_away();
    }

    /// Records that the engine is awake again.
    pub(crate) fn woke(&mut self, now: Instant) {
        self.woke_at = Some(now);
        if let Some(until) = self.wakes_at.take().filter(|until| now.since(*until) >= WAKES) {
            self.stops.note(until, now);
        }
    }

    /// Records a frame that arrived at `came`. Only the first frame after a sleep counts.
    pub(crate) fn found(&mut self, came: Instant) {
        if let Some(woke) = self.woke_at.take().filter(|woke| woke.since(came) >= WAKES) {
            self.stops.note(came, woke);
        }
    }
}

impl Engine {
    /// Starts recording the engine's stops.
    pub(crate) fn note_stops(&mut self) {
        self.stalls = Some(Box::default());
    }

    /// Returns the recorded stops; `None` if recording was not started.
    pub(crate) fn stops(&self) -> Option<StallLog> {
        self.stalls.as_ref().map(|stopped| stopped.stops.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    #[test]
    fn what_others_took_is_told_from_what_it_did() {
        let mut engine = StallDetector::default();
        let touched = |engine: &StallDetector, from, until| engine.stops.touch(us(from), us(until));
        [0, 2, 50].into_iter().for_each(|at| engine.begins(us(at)));
        assert!(touched(&engine, 10, 11), "nothing to do, and 48 us between two looks");
        engine.worked();
        engine.begins(us(400));
        assert!(!touched(&engine, 60, 400), "it worked");
        engine.sleeps(us(1000));
        engine.woke(us(1060));
        assert!(!touched(&engine, 400, 1060), "it slept, and woke up in time");
        engine.sleeps(us(2000));
        engine.woke(us(2500));
        assert!(touched(&engine, 2000, 2001) && !touched(&engine, 1100, 2000));
        engine.sleeps(us(9000));
        engine.woke(us(4000));
        engine.found(us(3500));
        assert!(touched(&engine, 3500, 3501) && !touched(&engine, 2500, 3500), "it was to wake up when the frame came");
        engine.found(us(3000));
        assert!(!touched(&engine, 2500, 3500), "only the first frame woke it");
    }
}
