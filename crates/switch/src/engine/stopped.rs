//! When an engine was stopped by others while it had nothing to do but to look: the machine's host or another thread had its processor. What it did itself is
//! never taken for that.
//!
//! 1. Between two looks in a round without work lay [`LEAST`] or more.
//! 2. It slept and woke up [`WAKES`] or more after it was to, or after the first frame came that it found then. A frame says when it came only where the switch has a
//!    profile.
use super::Engine;
use std::time::Duration;
use weir_units::{Instant, Stops};

/// A round without work takes a few microseconds at most, with ports of the kernel.
const LEAST: Duration = Duration::from_micros(20);
/// A wake-up takes so long at most where the processor is there.
const WAKES: Duration = Duration::from_micros(150);

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Stopped {
    stops: Stops,
    /// It sleeps, and is to wake up then.
    wakes_at: Option<Instant>,
    /// It woke up, and has not looked whether frames came.
    woke_at: Option<Instant>,
}

impl Stopped {
    /// A round begins.
    #[inline]
    pub(crate) fn begins(&mut self, now: Instant) {
        self.stops.look(now, LEAST);
    }

    /// The round found something.
    #[inline]
    pub(crate) fn worked(&mut self) {
        self.woke_at = None;
        self.stops.look_away();
    }

    /// It is about to sleep, until then if nothing comes.
    pub(crate) fn sleeps(&mut self, until: Instant) {
        self.wakes_at = Some(until);
        self.stops.look_away();
    }

    /// It is awake again.
    pub(crate) fn woke(&mut self, now: Instant) {
        self.woke_at = Some(now);
        if let Some(until) = self.wakes_at.take().filter(|until| now.since(*until) >= WAKES) {
            self.stops.note(until, now);
        }
    }

    /// A frame is there that came then.
    pub(crate) fn found(&mut self, came: Instant) {
        if let Some(woke) = self.woke_at.take().filter(|woke| woke.since(came) >= WAKES) {
            self.stops.note(came, woke);
        }
    }
}

impl Engine {
    /// Notes from now on when it is stopped.
    pub(crate) fn note_stops(&mut self) {
        self.stopped = Some(Box::default());
    }

    /// When it was stopped, if that is noted.
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
