//! Who runs packets through the tables: the engine's thread alone, or workers.
//!
//! Handing frames over costs time and latency, so it is done only where it pays:
//! 1. While the engine's thread keeps up, it does everything itself, as in run to completion: no wake-up, no burst that waits.
//! 2. When it does not (bursts are full for [`FULL_ROUNDS`] in a row), workers are given the frames.
//! 3. When it would keep up again for [`CALM`], it takes the work back. A load between what it does alone and what workers do sends it to and
//!    fro: each time it comes back soon, the next try waits twice as long.
//! 4. While it does not keep up, both ways are compared, by frames done in the best of [`WINDOWS`] times [`WINDOW`]: what others do on the
//!    machine takes away from some, never adds. The better way is kept for a time that doubles from [`RETRY_MIN`] to [`RETRY_MAX`]. So more threads are never worse than one, whatever the machine is doing besides. Where classes keep flows apart
//!    this is not done: with workers, those that fill a core do not make others wait.
//!
//! It decides; who changes sides has to see to it that nothing is overtaken ([`super::pipeline`]).
use std::time::Duration;
use weir_units::Instant;

/// Rounds in a row with full bursts after which the engine is taken not to keep up.
const FULL_ROUNDS: u32 = 64;
/// What is counted at a time.
const WINDOW: Duration = Duration::from_micros(500);
/// How often, of each side.
const WINDOWS: u32 = 4;
/// Time that workers are given to come awake before they are compared.
const WARM_UP: Duration = Duration::from_millis(1);
/// Time without full bursts after which the engine takes the work back.
const CALM: Duration = Duration::from_millis(5);
/// The longest that it waits for that, however often it came back.
const CALM_MAX: Duration = Duration::from_millis(320);
/// How long the better way is kept, at first.
const RETRY_MIN: Duration = Duration::from_millis(100);
/// The same, at last: 3 ms of comparing in so long cost nothing.
const RETRY_MAX: Duration = Duration::from_millis(3200);
/// How much more workers have to do than one thread, or their cores are better left to others.
const BETTER: f64 = 1.03;

/// Who runs packets through the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The engine's thread.
    Alone,
    /// Workers.
    Workers,
}

/// When the engine may be alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// While it keeps up, and when it does more.
    Better,
    /// While it keeps up.
    KeepsUp,
    Never,
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Balance {
    side: Side,
    when: When,
    full_rounds: u32,
    /// When the last round was that did not keep up.
    full_at: Instant,
    /// When this side was taken.
    since: Instant,
    /// What is being measured: from when on, and frames done until then.
    window: Option<(Instant, u64)>,
    /// Windows of this side so far, and the best of them in frames a nanosecond.
    counted: (u32, f64),
    /// Frames a nanosecond that the engine did alone while it did not keep up.
    alone_rate: Option<f64>,
    /// When to compare next.
    compare_at: Instant,
    retry: Duration,
    calm: Duration,
    /// When the engine took the work back last since it would keep up again.
    calmed_at: Option<Instant>,
}

impl Balance {
    /// The engine alone, if it may be so.
    pub(super) fn new(when: When) -> Balance {
        Balance {
            side: if when == When::Never { Side::Workers } else { Side::Alone },
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

    /// Who does it.
    #[inline]
    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// A round that began at `now` is over: whether a burst was full, and frames done since the start. Who is to do it from now on.
    #[inline]
    pub(super) fn round(&mut self, now: Instant, is_full: bool, done: impl FnOnce() -> u64) -> Side {
        if self.when == When::Never {
            return Side::Workers;
        }
        if !is_full {
            self.full_rounds = 0;
            return if self.side == Side::Alone { Side::Alone } else { self.perhaps_calm(now) };
        }
        self.full_rounds = self.full_rounds.saturating_add(1);
        if self.full_rounds < FULL_ROUNDS {
            return self.side;
        }
        if now.since(self.full_at) > CALM_MAX {
            // What was compared long ago was another load.
            (self.compare_at, self.retry, self.alone_rate) = (now, RETRY_MIN, None);
        }
        self.full_at = now;
        self.crowded(now, done)
    }

    /// The side that was to be taken is.
    pub(super) fn take(&mut self, side: Side, now: Instant) {
        match side {
            Side::Alone => self.calmed_at = (self.full_rounds == 0).then_some(now),
            Side::Workers => {
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

    /// The side that was to be taken cannot be now.
    pub(super) fn refuse(&mut self, now: Instant) {
        (self.full_at, self.compare_at) = (now, now + self.retry);
        (self.window, self.counted) = (None, (0, 0.0));
    }

    /// Workers have it, and bursts are not full.
    fn perhaps_calm(&mut self, now: Instant) -> Side {
        if now.since(self.full_at) < self.calm { Side::Workers } else { Side::Alone }
    }

    /// The engine does not keep up.
    fn crowded(&mut self, now: Instant, done: impl FnOnce() -> u64) -> Side {
        if self.when != When::Better {
            return Side::Workers;
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
            Side::Alone => {
                self.alone_rate = Some(rate);
                Side::Workers
            }
            Side::Workers => self.compared(now, rate),
        }
    }

    fn warm_up(&self) -> Duration {
        if self.side == Side::Workers { WARM_UP } else { Duration::ZERO }
    }

    /// Workers did `rate`.
    fn compared(&mut self, now: Instant, rate: f64) -> Side {
        let Some(alone) = self.alone_rate.take() else {
            // Not known, or long ago: it is measured next.
            return Side::Alone;
        };
        self.compare_at = now + self.retry;
        self.retry = (self.retry * 2).min(RETRY_MAX);
        if rate > alone * BETTER { Side::Workers } else { Side::Alone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine in virtual time: a round takes 5 us.
    struct Engine {
        balance: Balance,
        now: Instant,
        done: u64,
        changes: u32,
    }

    /// Frames per round that are offered, and that each side does at most.
    struct Load {
        offered: u64,
        alone: u64,
        workers: u64,
    }

    const BURST: u64 = 32;

    impl Engine {
        fn new(when: When) -> Engine {
            let now = Instant::from_nanos(1_000_000);
            Engine { balance: Balance::new(when), now, done: 0, changes: 0 }
        }

        /// Runs for a time; the share of it that workers had.
        fn run(&mut self, load: &Load, time: Duration) -> f64 {
            let (until, mut rounds, mut with_workers) = (self.now + time, 0_u32, 0_u32);
            while self.now < until {
                let side = self.balance.side();
                let most = if side == Side::Alone { load.alone } else { load.workers };
                self.done += load.offered.min(most);
                let (is_full, done) = (load.offered >= BURST.min(most), self.done);
                let wanted = self.balance.round(self.now, is_full, || done);
                if wanted != side {
                    self.balance.take(wanted, self.now);
                    self.changes += 1;
                }
                rounds += 1;
                with_workers += u32::from(side == Side::Workers);
                self.now += Duration::from_micros(5);
            }
            f64::from(with_workers) / f64::from(rounds)
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_engine_that_keeps_up_is_left_alone() {
        for when in [When::Better, When::KeepsUp] {
            let mut engine = Engine::new(when);
            let share = engine.run(&Load { offered: 20, alone: 32, workers: 64 }, SECOND);
            assert_eq!((share, engine.changes), (0.0, 0));
        }
    }

    #[test]
    fn workers_are_not_asked_for_it_back_if_they_are_always_to_have_it() {
        let mut engine = Engine::new(When::Never);
        for offered in [1, 100] {
            let share = engine.run(&Load { offered, alone: 60, workers: 32 }, SECOND);
            assert_eq!((share, engine.changes), (1.0, 0));
        }
    }

    #[test]
    fn a_flood_gets_the_side_that_does_more() {
        for (alone, workers, at_least, at_most) in [(32, 60, 0.95, 1.0), (60, 32, 0.0, 0.03), (32, 32, 0.0, 0.03)] {
            let mut engine = Engine::new(When::Better);
            engine.run(&Load { offered: 100, alone, workers }, SECOND);
            let share = engine.run(&Load { offered: 100, alone, workers }, 10 * SECOND);
            assert!((at_least..=at_most).contains(&share), "{alone} and {workers}: {share}");
        }
    }

    #[test]
    fn others_on_the_machine_do_not_decide() {
        let mut engine = Engine::new(When::Better);
        let load = Load { offered: 100, alone: 60, workers: 32 };
        let mut with_workers = 0.0;
        for _ in 0..2000 {
            with_workers += engine.run(&load, Duration::from_millis(2)) / 2000.0;
            // Another thread has the core.
            engine.now += Duration::from_millis(3);
        }
        assert!(with_workers < 0.15, "{with_workers}");
    }

    #[test]
    fn it_notices_that_the_better_side_is_another_one() {
        let mut engine = Engine::new(When::Better);
        engine.run(&Load { offered: 100, alone: 60, workers: 32 }, 10 * SECOND);
        engine.run(&Load { offered: 100, alone: 32, workers: 60 }, 4 * SECOND);
        let share = engine.run(&Load { offered: 100, alone: 32, workers: 60 }, SECOND);
        assert!(share > 0.95, "{share}");
    }

    #[test]
    fn classes_keep_workers_while_there_is_a_flood() {
        let mut engine = Engine::new(When::KeepsUp);
        let share = engine.run(&Load { offered: 100, alone: 60, workers: 32 }, SECOND);
        assert!(share > 0.99, "{share}");
        engine.run(&Load { offered: 5, alone: 60, workers: 32 }, SECOND / 10);
        let share = engine.run(&Load { offered: 5, alone: 60, workers: 32 }, SECOND);
        assert_eq!(share, 0.0, "the flood is over");
    }

    #[test]
    fn a_load_in_between_does_not_go_to_and_fro_for_ever() {
        // The engine alone does not keep up; with workers bursts are not full.
        let mut engine = Engine::new(When::Better);
        let load = Load { offered: 31, alone: 16, workers: 100 };
        engine.run(&load, 2 * SECOND);
        engine.changes = 0;
        let share = engine.run(&load, 10 * SECOND);
        assert!(share > 0.95 && engine.changes < 80, "{share}, {} changes", engine.changes);
    }
}
