//! Decides whether the engine's thread alone or the workers run packets through the flow tables.
//!
//! Handing frames over costs time and latency, so it happens only where it pays:
//! 1. While the engine's thread keeps up, it does everything itself, as in run to completion. No thread must be
//!    woken, and no burst waits.
//! 2. If it does not keep up (bursts are full for [`FULL_ROUNDS`] in a row), workers get the frames.
//! 3. If it would have kept up for [`CALM`], it takes the work back. A load between the capacities of both sides
//!    makes the work move back and forth: each time it returns to the workers soon, the next attempt waits twice as
//!    long.
//! 4. While the engine does not keep up, both sides are compared by the frames done in the best of [`WINDOWS`]
//!    windows of [`WINDOW`]. The best counts because other programs on the machine can only lower a result. The
//!    better side is kept for a time that doubles from [`RETRY_MIN`] to [`RETRY_MAX`]. More threads are therefore
//!    never worse than one, whatever else the machine does. With classes there is no comparison: workers keep flows
//!    apart, so that flows that fill a core do not delay others.
//!
//! This module only decides. The caller that changes sides must keep the frames in order ([`super::pipeline`]).
use std::time::Duration;
use weir_units::Instant;

/// Number of rounds in a row with full bursts after which the engine counts as not keeping up.
const FULL_ROUNDS: u32 = 64;
/// Length of one measurement.
const WINDOW: Duration = Duration::from_micros(500);
/// Number of measurements of each side.
const WINDOWS: u32 = 4;
/// Time for workers to wake up before they are measured.
const WARM_UP: Duration = Duration::from_millis(1);
/// Time without full bursts after which the engine takes the work back.
const CALM: Duration = Duration::from_millis(5);
/// Maximum of that time, however often the work returned to the workers.
const CALM_MAX: Duration = Duration::from_millis(320);
/// Initial time for which the better side is kept.
const RETRY_MIN: Duration = Duration::from_millis(100);
/// Maximum time for which the better side is kept; the 3 ms that a comparison spends on the worse side then cost
/// almost nothing.
const RETRY_MAX: Duration = Duration::from_millis(3200);
/// Minimum ratio of the workers' rate to the engine's. Below it the workers' cores are better left to other programs.
const BETTER: f64 = 1.03;

/// The threads that run packets through the flow tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForwardingSide {
    /// The engine's thread.
    Alone,
    /// The worker threads.
    Workers,
}

/// Conditions under which the engine's thread works alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EngineOnlyPolicy {
    /// While it keeps up, and while it does more than the workers.
    Better,
    /// While it keeps up.
    KeepsUp,
    Never,
}

/// State of the decision between the engine and the workers.
#[derive(Debug)]
pub(super) struct HandOverDecision {
    side: ForwardingSide,
    when: EngineOnlyPolicy,
    full_rounds: u32,
    /// Time of the last round that did not keep up.
    full_at: Instant,
    /// Time since which the current side has the work.
    since: Instant,
    /// Current measurement: its start, and the number of frames done before it.
    window: Option<(Instant, u64)>,
    /// Number of finished measurements of this side, and the best rate in frames/ns.
    counted: (u32, f64),
    /// Rate of the engine alone in frames/ns while it did not keep up.
    alone_rate: Option<f64>,
    /// Time of the next comparison.
    compare_at: Instant,
    retry: Duration,
    calm: Duration,
    /// Time at which the engine last took the work back because it would have kept up.
    calmed_at: Option<Instant>,
}

impl HandOverDecision {
    /// Starts with the engine alone, if `when` allows it.
    pub(super) fn new(when: EngineOnlyPolicy) -> HandOverDecision {
        HandOverDecision {
            side: if when == EngineOnlyPolicy::Never { ForwardingSide::Workers } else { ForwardingSide::Alone },
            when,
            full_rounds: 0,
            full_at: Instant::ZERO,
            since: Instant::ZERO,
            window: None,
            counted: (0, 0.0),
            alone_rate: None,
            compare_at: Instant::ZERO,
            retry: RETRY_MIN,
            calm: CALM,
            calmed_at: None,
        }
    }

    /// Returns the side that has the work.
    #[inline]
    pub(super) fn side(&self) -> ForwardingSide {
        self.side
    }

    /// Ends a round that began at `now`, and returns the side that should have the work from now on. `is_full` is
    /// true if a burst was full; `done` returns the number of frames done since the start.
    #[inline]
    pub(super) fn round(&mut self, now: Instant, is_full: bool, done: impl FnOnce() -> u64) -> ForwardingSide {
        if self.when == EngineOnlyPolicy::Never {
            return ForwardingSide::Workers;
        }
        if !is_full {
            self.full_rounds = 0;
            return if self.side == ForwardingSide::Alone { ForwardingSide::Alone } else { self.perhaps_calm(now) };
        }
        self.full_rounds = self.full_rounds.saturating_add(1);
        if self.full_rounds < FULL_ROUNDS {
            return self.side;
        }
        if now.since(self.full_at) > CALM_MAX {
            // A comparison from long ago was made under another load.
            (self.compare_at, self.retry, self.alone_rate) = (now, RETRY_MIN, None);
        }
        self.full_at = now;
        self.crowded(now, done)
    }

    /// Notes that `side` has taken the work.
    pub(super) fn take(&mut self, side: ForwardingSide, now: Instant) {
        match side {
            ForwardingSide::Alone => self.calmed_at = (self.full_rounds == 0).then_some(now),
            ForwardingSide::Workers => {
                let kept_up = self.calmed_at.take().map(|at| now.since(at));
                self.calm = match kept_up {
                    Some(time) if time < CALM_MAX => (self.calm * 2).min(CALM_MAX),
                    Some(_) => CALM,
                    None => self.calm,
                };
            }
        }
        (self.side, self.since, self.full_rounds) = (side, now, 0);
        (self.window, self.counted) = (None, (0, 0.0));
    }

    /// Notes that the wanted side cannot take the work now.
    pub(super) fn refuse(&mut self, now: Instant) {
        (self.full_at, self.compare_at) = (now, now + self.retry);
        (self.window, self.counted) = (None, (0, 0.0));
    }

    /// Decides for workers without full bursts.
    fn perhaps_calm(&mut self, now: Instant) -> ForwardingSide {
        if now.since(self.full_at) < self.calm { ForwardingSide::Workers } else { ForwardingSide::Alone }
    }

    /// Decides while the engine does not keep up.
    fn crowded(&mut self, now: Instant, done: impl FnOnce() -> u64) -> ForwardingSide {
        if self.when != EngineOnlyPolicy::Better {
            return ForwardingSide::Workers;
        }
        if now < self.compare_at || now.since(self.since) < self.warm_up() {
            return self.side;
        }
        let Some((from, before)) = self.window else {
            self.window = Some((now, done()));
            return self.side;
        };
        let took = now.since(from);
        if took < WINDOW {
            return self.side;
        }
        let done = done();
        let rate = done.saturating_sub(before) as f64 / took.as_nanos() as f64;
        let (count, rate) = (self.counted.0 + 1, self.counted.1.max(rate));
        if count < WINDOWS {
            (self.window, self.counted) = (Some((now, done)), (count, rate));
            return self.side;
        }
        (self.window, self.counted) = (None, (0, 0.0));
        match self.side {
            ForwardingSide::Alone => {
                self.alone_rate = Some(rate);
                ForwardingSide::Workers
            }
            ForwardingSide::Workers => self.compared(now, rate),
        }
    }

    fn warm_up(&self) -> Duration {
        if self.side == ForwardingSide::Workers { WARM_UP } else { Duration::ZERO }
    }

    /// Compares the workers' rate `rate` with the engine's, and returns the better side.
    fn compared(&mut self, now: Instant, rate: f64) -> ForwardingSide {
        let Some(alone) = self.alone_rate.take() else {
            // The engine's rate is unknown or outdated, so it is measured next.
            return ForwardingSide::Alone;
        };
        self.compare_at = now + self.retry;
        self.retry = (self.retry * 2).min(RETRY_MAX);
        if rate > alone * BETTER { ForwardingSide::Workers } else { ForwardingSide::Alone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine in virtual time; a round takes 5 us.
    struct Engine {
        balance: HandOverDecision,
        now: Instant,
        done: u64,
        changes: u32,
    }

    /// Offered frames per round, and the most that each side can do.
    struct Load {
        offered: u64,
        alone: u64,
        workers: u64,
    }

    const BURST: u64 = 32;

    impl Engine {
        fn new(when: EngineOnlyPolicy) -> Engine {
            let now = Instant::from_nanos(1_000_000);
            Engine { balance: HandOverDecision::new(when), now, done: 0, changes: 0 }
        }

        /// Runs for `time` and returns the share of rounds with workers.
        fn run(&mut self, load: &Load, time: Duration) -> f64 {
            let (until, mut rounds, mut with_workers) = (self.now + time, 0_u32, 0_u32);
            while self.now < until {
                let side = self.balance.side();
                let most = if side == ForwardingSide::Alone { load.alone } else { load.workers };
                self.done += load.offered.min(most);
                let (is_full, done) = (load.offered >= BURST.min(most), self.done);
                let wanted = self.balance.round(self.now, is_full, || done);
                if wanted != side {
                    self.balance.take(wanted, self.now);
                    self.changes += 1;
                }
                rounds += 1;
                with_workers += u32::from(side == ForwardingSide::Workers);
                self.now += Duration::from_micros(5);
            }
            f64::from(with_workers) / f64::from(rounds)
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_engine_that_keeps_up_is_left_alone() {
        for when in [EngineOnlyPolicy::Better, EngineOnlyPolicy::KeepsUp] {
            let mut engine = Engine::new(when);
            let share = engine.run(&Load { offered: 20, alone: 32, workers: 64 }, SECOND);
            assert_eq!((share, engine.changes), (0.0, 0));
        }
    }

    #[test]
    fn workers_are_not_asked_for_it_back_if_they_are_always_to_have_it() {
        let mut engine = Engine::new(EngineOnlyPolicy::Never);
        for offered in [1, 100] {
            let share = engine.run(&Load { offered, alone: 60, workers: 32 }, SECOND);
            assert_eq!((share, engine.changes), (1.0, 0));
        }
    }

    #[test]
    fn a_flood_gets_the_side_that_does_more() {
        for (alone, workers, at_least, at_most) in [(32, 60, 0.95, 1.0), (60, 32, 0.0, 0.03), (32, 32, 0.0, 0.03)] {
            let mut engine = Engine::new(EngineOnlyPolicy::Better);
            engine.run(&Load { offered: 100, alone, workers }, SECOND);
            let share = engine.run(&Load { offered: 100, alone, workers }, 10 * SECOND);
            assert!((at_least..=at_most).contains(&share), "{alone} and {workers}: {share}");
        }
    }

    #[test]
    fn others_on_the_machine_do_not_decide() {
        let mut engine = Engine::new(EngineOnlyPolicy::Better);
        let load = Load { offered: 100, alone: 60, workers: 32 };
        let mut with_workers = 0.0;
        for _ in 0..2000 {
            with_workers += engine.run(&load, Duration::from_millis(2)) / 2000.0;
            // Another thread holds the core.
            engine.now += Duration::from_millis(3);
        }
        assert!(with_workers < 0.15, "{with_workers}");
    }

    #[test]
    fn it_notices_that_the_better_side_is_another_one() {
        let mut engine = Engine::new(EngineOnlyPolicy::Better);
        engine.run(&Load { offered: 100, alone: 60, workers: 32 }, 10 * SECOND);
        engine.run(&Load { offered: 100, alone: 32, workers: 60 }, 4 * SECOND);
        let share = engine.run(&Load { offered: 100, alone: 32, workers: 60 }, SECOND);
        assert!(share > 0.95, "{share}");
    }

    #[test]
    fn classes_keep_workers_while_there_is_a_flood() {
        let mut engine = Engine::new(EngineOnlyPolicy::KeepsUp);
        let share = engine.run(&Load { offered: 100, alone: 60, workers: 32 }, SECOND);
        assert!(share > 0.99, "{share}");
        engine.run(&Load { offered: 5, alone: 60, workers: 32 }, SECOND / 10);
        let share = engine.run(&Load { offered: 5, alone: 60, workers: 32 }, SECOND);
        assert_eq!(share, 0.0, "the flood is over");
    }

    #[test]
    fn a_load_in_between_does_not_go_to_and_fro_for_ever() {
        // The engine alone does not keep up. With workers, bursts are not full.
        let mut engine = Engine::new(EngineOnlyPolicy::Better);
        let load = Load { offered: 31, alone: 16, workers: 100 };
        engine.run(&load, 2 * SECOND);
        engine.changes = 0;
        let share = engine.run(&load, 10 * SECOND);
        assert!(share > 0.95 && engine.changes < 80, "{share}, {} changes", engine.changes);
    }
}
