//! Detects times at which other threads or the machine's host held the engine's processor while the engine had no
//! work. Time spent on the engine's own work is never counted.
//!
//! 1. In rounds without work, two reads of the clock were [`LEAST`] or more apart.
//! 2. The engine woke from a sleep [`WAKES`] or more after its deadline, or after the arrival of the first frame
//!    found then. Frames carry their arrival time only where the switch has a profile.
use super::Engine;
use std::time::Duration;
use weir_units::{Instant, Stops};

/// Minimum gap that counts as a stop. A round without work takes a few microseconds at most, with ports of the
/// kernel.
const LEAST: Duration = Duration::from_micros(20);
/// Minimum delay of a wake-up that counts as a stop. A wake-up takes less where the processor is free.
const WAKES: Duration = Duration::from_micros(150);

/// Detector and record of the times at which the engine was stopped.
#[derive(Debug, Default)]
pub(crate) struct Stopped {
    stops: Stops,
    /// Deadline of the current sleep.
    wakes_at: Option<Instant>,
    /// End of the last sleep, until the first frame after it is found.
    woke_at: Option<Instant>,
}

impl Stopped {
    /// Notes the begin of a round.
    #[inline]
    pub(crate) fn begins(&mut self, now: Instant) {
        self.stops.look(now, LEAST);
    }

    /// Notes that the round had work.
    #[inline]
    pub(crate) fn worked(&mut self) {
        self.woke_at = None;
        self.stops.look_away();
    }

    /// Notes that the engine goes to sleep until `until` at the latest.
    pub(crate) fn sleeps(&mut self, until: Instant) {
        self.wakes_at = Some(until);
        self.stops.look_away();
    }

    /// Notes that the engine is awake again.
    pub(crate) fn woke(&mut self, now: Instant) {
        self.woke_at = Some(now);
        if let Some(until) = self.wakes_at.take().filter(|until| now.since(*until) >= WAKES) {
            self.stops.note(until, now);
        }
    }

    /// Notes a frame that arrived at `came`. Only the first frame after a sleep counts.
    pub(crate) fn found(&mut self, came: Instant) {
        if let Some(woke) = self.woke_at.take().filter(|woke| woke.since(came) >= WAKES) {
            self.stops.note(came, woke);
        }
    }
}

impl Engine {
    /// Starts recording the times at which the engine is stopped.
    pub(crate) fn note_stops(&mut self) {
        self.stopped = Some(Box::default());
    }

    /// Returns the recorded times, if recording is on.
    pub(crate) fn stops(&self) -> Option<Stops> {
        self.stopped.as_ref().map(|stopped| stopped.stops.clone())
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
        let mut engine = Stopped::default();
        let touched = |engine: &Stopped, from, until| engine.stops.touch(us(from), us(until));
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
