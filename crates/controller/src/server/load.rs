//! Measures how busy a thread is: the part of the time in which it worked and did not wait.
use std::time::Duration;
use weir_units::Instant;

/// Time over which the latest share is taken.
const WINDOW: Duration = Duration::from_secs(1);

/// Work of a thread since its start.
#[derive(Debug)]
pub(super) struct ThreadLoad {
    start: Instant,
    busy: Duration,
    turns: u64,
    /// Begin of the present window, and the work in it.
    window: (Instant, Duration),
    /// Share of the last whole window.
    last: f64,
}

/// Shares of the time in which a thread worked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ThreadShares {
    pub(super) recent: f64,
    pub(super) since_start: f64,
    pub(super) turns: u64,
}

impl ThreadLoad {
    pub(super) fn new(now: Instant) -> ThreadLoad {
        ThreadLoad { start: now, busy: Duration::ZERO, turns: 0, window: (now, Duration::ZERO), last: 0.0 }
    }

    /// Counts a turn with work.
    pub(super) fn count_turn(&mut self, from: Instant, to: Instant) {
        let took = to.since(from);
        self.turns += 1;
        self.busy += took;
        if from.since(self.window.0) >= WINDOW {
            self.last = share(self.window.1, from.since(self.window.0));
            self.window = (from, Duration::ZERO);
        }
        self.window.1 += took;
    }

    /// Returns the shares as of now.
    pub(super) fn shares(&self, now: Instant) -> ThreadShares {
        let open = now.since(self.window.0);
        // A thread that waits for long has no turn that closes the window.
        let recent = if open >= WINDOW { share(self.window.1, open) } else { self.last };
        ThreadShares { recent, since_start: share(self.busy, now.since(self.start)), turns: self.turns }
    }
}

fn share(part: Duration, of: Duration) -> f64 {
    if of.is_zero() { 0.0 } else { (part.as_secs_f64() / of.as_secs_f64()).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_second_is_told_apart_from_all_time() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut load = ThreadLoad::new(at(0));
        // Half of each millisecond is work.
        (0..2000).for_each(|ms| load.count_turn(at(ms), at(ms) + Duration::from_micros(500)));
        let shares = load.shares(at(2000));
        assert_eq!((shares.turns, shares.since_start), (2000, 0.5));
        assert!((shares.recent - 0.5).abs() < 0.01, "{shares:?}");
        let later = load.shares(at(10_000));
        assert!(later.recent < 0.06 && (later.since_start - 0.1).abs() < 1e-9, "{later:?}");
        assert_eq!(ThreadLoad::new(at(5)).shares(at(5)).since_start, 0.0);
    }
}
