//! Decides how an engine without work waits: polling (*spinning*) or asleep.
//!
//! A wake-up costs some microseconds where the core runs other threads, and some tens of microseconds where the core
//! slept. Spinning responds at once but occupies a core. [`Spin::Auto`] adapts the time of spinning (the window) to
//! the previous waits, as KVM does for halted processors:
//! 1. work arrived while spinning: the window stays;
//! 2. work arrived after the engine went to sleep, but within `WINDOW_MAX`: a longer window would have caught it, so
//!    the window doubles;
//! 3. no work arrived for longer than any window: the window is halved, down to `WINDOW_MIN`.
//!
//! Packets that arrive at least every two milliseconds therefore find the engine awake, for at most one core. Rarer
//! packets cost the shortest window each. After `YIELD_AFTER` of spinning the engine offers its core to other
//! threads every `YIELD_EVERY`. If another thread took it for `CROWDED` or longer, others use the core better.
//! The engine then spins for the shortest window only, for `RESTS` times as long: the scheduler runs a sleeper
//! again sooner than a thread that yielded, and longer absences are to be rare.
use crate::clock::SwitchClock;
use crate::turns::TurnOutcome;
use serde::Deserialize;
use std::str::FromStr;
use std::time::Duration;
use weir_units::{Clock, Instant, TimeSpan};

/// Longest window of [`Spin::Auto`]: twice the millisecond at which probes and many applications send.
const WINDOW_MAX: Duration = Duration::from_millis(2);
/// Shortest window of [`Spin::Auto`], about the cost of a wake-up: sleeping at once would save no more than that.
const WINDOW_MIN: Duration = Duration::from_micros(30);
/// Work due within this time is awaited spinning: after sleeping it would be late by the wake-up.
const NEAR: Duration = Duration::from_micros(60);
/// Lower bound of the time before a release of a profile's timing that is awaited spinning. The time follows the
/// longest recent wake-up, because releases must be more exact than other work.
const NEAR_RELEASE_MIN: Duration = Duration::from_micros(100);
/// Upper bound of that time: after a longer wake-up the core is not available anyway.
const NEAR_RELEASE_MAX: Duration = Duration::from_micros(300);
/// Margin over the longest recent wake-up.
const NEAR_RELEASE_SPARE: Duration = Duration::from_micros(40);
/// Each wake-up removes one part in this many of what a long wake-up added to that time.
const FORGOTTEN: u32 = 64;
/// Spinning time after which the engine yields to other threads.
const YIELD_AFTER: Duration = Duration::from_micros(50);
/// Interval between two yields.
const YIELD_EVERY: Duration = Duration::from_micros(20);
/// Time on the core after a yield from which on another thread counts as needing the core.
const CROWDED: Duration = Duration::from_micros(100);
/// Short windows last this many times as long as the other thread kept the core. The engine therefore waits for other
/// threads at most a 26th of its time.
const RESTS: u32 = 25;

/// Time for which an engine polls without finding packets before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spin {
    /// Spin as long as it is likely to pay, up to two milliseconds.
    #[default]
    Auto,
    /// Spin always this long; zero: sleep at once.
    For(Duration),
}

impl FromStr for Spin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Spin::Auto),
            "0" => Ok(Spin::For(Duration::ZERO)),
            time => {
                let span = time.parse::<TimeSpan>().map(|span| Spin::For(span.0));
                span.map_err(|_| format!("found `{text}`, expected auto, 0, or a time such as 50us"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Spin {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Next step of an engine that found no work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpinDecision {
    /// Poll again at once.
    Look,
    /// Yield to other threads, report it by [`SpinState::gave_way`], and poll again.
    GiveWay,
    /// Sleep until work arrives.
    Sleep,
}

/// State of an engine's waiting.
#[derive(Debug)]
pub(crate) struct SpinState {
    spin: Spin,
    window: Duration,
    /// Start of the last round that found work.
    busy_at: Instant,
    /// Time of the next yield.
    yield_at: Instant,
    /// Until then only the shortest window is used.
    rest_until: Instant,
    /// Releases due within this time are awaited spinning.
    near_release: Duration,
}

impl SpinState {
    /// Returns the state at `now`, the start of the first wait.
    pub(crate) fn new(spin: Spin, now: Instant) -> SpinState {
        let window = match spin {
            Spin::Auto => WINDOW_MIN,
            Spin::For(time) => time,
        };
        SpinState {
            spin,
            window,
            busy_at: now,
            yield_at: now + YIELD_AFTER,
            rest_until: Instant::ZERO,
            near_release: NEAR_RELEASE_MIN,
        }
    }

    /// Returns the configured way of waiting.
    pub(crate) fn kind(&self) -> Spin {
        self.spin
    }

    /// Notes that the round that began at `now` found work.
    #[inline]
    pub(crate) fn found(&mut self, now: Instant) {
        let waited = now.since(self.busy_at);
        if waited > self.window {
            self.adapt(waited);
        }
        self.busy_at = now;
        self.yield_at = now + YIELD_AFTER;
    }

    /// Adapts the window after work that arrived later than the window lasted.
    fn adapt(&mut self, waited: Duration) {
        if self.spin != Spin::Auto {
            return;
        }
        self.window = match waited <= WINDOW_MAX {
            true => (self.window * 2).min(WINDOW_MAX),
            false => (self.window / 2).max(WINDOW_MIN),
        };
    }

    /// Returns the next step after the round that began at `now` found nothing.
    pub(crate) fn wait(&mut self, now: Instant) -> SpinDecision {
        let window = if now < self.rest_until { self.window.min(WINDOW_MIN) } else { self.window };
        if now.since(self.busy_at) >= window {
            return SpinDecision::Sleep;
        }
        if self.spin == Spin::Auto && now >= self.yield_at {
            return SpinDecision::GiveWay;
        }
        SpinDecision::Look
    }

    /// Handles the round that began at `now`, which found nothing while nothing is due. Yields to other threads if it
    /// is time to, and returns the next step.
    pub(crate) fn look_or_sleep(&mut self, now: Instant, clock: SwitchClock) -> TurnOutcome {
        match self.wait(now) {
            SpinDecision::Look => std::hint::spin_loop(),
            SpinDecision::GiveWay => {
                let from = clock.now();
                std::thread::yield_now();
                self.gave_way(from, clock.now());
            }
            SpinDecision::Sleep => return TurnOutcome::Sleep,
        }
        TurnOutcome::Turn
    }

    /// Returns true if work due at `due` is near enough to be awaited spinning.
    pub(crate) fn is_near(&self, now: Instant, due: Instant) -> bool {
        let may_spin = self.spin != Spin::For(Duration::ZERO) && now >= self.rest_until;
        may_spin && due.since(now) <= NEAR
    }

    /// Returns true if a release at `due` is awaited spinning. The configured [`Spin`] does not matter.
    pub(crate) fn awaits(&self, now: Instant, due: Instant) -> bool {
        now >= self.rest_until && due.since(now) <= self.near_release
    }

    /// Returns true if frames that a port releases at `due` are awaited spinning. Never with a window of zero.
    pub(crate) fn awaits_frames(&self, now: Instant, due: Instant) -> bool {
        self.spin != Spin::For(Duration::ZERO) && self.awaits(now, due)
    }

    /// Returns when to wake up for frames that a port releases at `due`: early enough to spin for the rest. Returns
    /// [`Instant::FAR`] where spinning is not allowed; the other due times then decide.
    pub(crate) fn wakes_for_frames(&self, now: Instant, due: Instant) -> Instant {
        let may_spin = self.spin != Spin::For(Duration::ZERO) && now >= self.rest_until;
        if may_spin && due != Instant::FAR { self.wakes_for(due) } else { Instant::FAR }
    }

    /// Returns when to wake up for a release at `due`.
    pub(crate) fn wakes_for(&self, due: Instant) -> Instant {
        due - self.near_release
    }

    /// Adjusts the lead of wake-ups after one that was late by `by`.
    pub(crate) fn overslept(&mut self, by: Duration) {
        let forgets = (self.near_release - NEAR_RELEASE_MIN) / FORGOTTEN;
        self.near_release = (self.near_release - forgets).max(by + NEAR_RELEASE_SPARE).min(NEAR_RELEASE_MAX);
    }

    /// Notes that other threads could run from `from` to `until`.
    pub(crate) fn gave_way(&mut self, from: Instant, until: Instant) {
        self.yield_at = until + YIELD_EVERY;
        let kept = until.since(from);
        if kept >= CROWDED {
            self.rest_until = until + kept.saturating_mul(RESTS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    /// An engine in virtual time: a round takes a microsecond, a wake-up twenty.
    struct Engine {
        spinner: SpinState,
        now: Instant,
        /// Microseconds spent awake.
        awake: u32,
        sleeps: u32,
        /// Time for which other threads keep the core at a yield.
        others: Duration,
    }

    impl Engine {
        fn new(spin: Spin) -> Engine {
            let (spinner, now) = (SpinState::new(spin, Instant::ZERO), Instant::ZERO);
            Engine { spinner, now, awake: 0, sleeps: 0, others: Duration::ZERO }
        }

        /// Delivers work `after` the previous work, and returns the delay with which the engine finds it.
        fn meets(&mut self, after: Duration) -> Duration {
            let comes = self.spinner.busy_at + after;
            while self.now < comes {
                match self.spinner.wait(self.now) {
                    SpinDecision::Look => self.round(),
                    SpinDecision::GiveWay => {
                        let from = self.now;
                        self.now += self.others;
                        self.spinner.gave_way(from, self.now);
                        self.round();
                    }
                    SpinDecision::Sleep => {
                        self.sleeps += 1;
                        self.now = comes + 20 * US;
                    }
                }
            }
            let late = self.now.since(comes);
            self.spinner.found(self.now);
            late
        }

        fn round(&mut self) {
            self.now += US;
            self.awake += 1;
        }

        /// Delivers request and reply of a ping, `times` times every `interval`. Returns the worst delay of the last
        /// ten.
        fn pings(&mut self, interval: Duration, times: u32) -> Duration {
            let delays: Vec<_> = (0..times).map(|_| self.meets(interval - 10 * US).max(self.meets(10 * US))).collect();
            delays.into_iter().rev().take(10).max().unwrap_or_default()
        }
    }

    #[test]
    fn what_comes_often_is_met_awake() {
        for interval in [100 * US, 1000 * US, 1900 * US] {
            let mut engine = Engine::new(Spin::Auto);
            assert!(engine.pings(interval, 100) <= US, "{interval:?}");
            assert!(engine.sleeps < 10, "{interval:?}: slept {} times", engine.sleeps);
        }
    }

    #[test]
    fn what_comes_seldom_costs_the_shortest_window() {
        for (per_second, most) in [(1, 0.000_1), (10, 0.000_6), (100, 0.006)] {
            let mut engine = Engine::new(Spin::Auto);
            engine.pings(Duration::from_secs(1) / per_second, 200);
            let share = f64::from(engine.awake) / 1e6 / engine.now.as_secs_f64();
            assert!(share < most, "{per_second} pings per second: {share}");
        }
    }

    #[test]
    fn busy_times_are_forgotten() {
        let mut engine = Engine::new(Spin::Auto);
        engine.pings(1000 * US, 100);
        assert!(engine.spinner.window >= 1000 * US);
        engine.pings(Duration::from_millis(100), 10);
        assert_eq!(engine.spinner.window, WINDOW_MIN);
    }

    #[test]
    fn a_crowded_core_is_left_to_others() {
        let mut engine = Engine::new(Spin::Auto);
        engine.pings(1000 * US, 100);
        engine.others = Duration::from_millis(4);
        let (awake, sleeps, start) = (engine.awake, engine.sleeps, engine.now);
        engine.pings(1000 * US, 1000);
        let share = f64::from(engine.awake - awake) / 1e6 / engine.now.since(start).as_secs_f64();
        assert!(share < 0.05 && engine.sleeps - sleeps > 900, "{share}, slept {} times", engine.sleeps - sleeps);
        // From time to time others need the core for a short time.
        engine.others = Duration::ZERO;
        engine.pings(1000 * US, 200);
        engine.others = 200 * US;
        engine.meets(1000 * US);
        engine.others = Duration::ZERO;
        engine.pings(1000 * US, 10);
        assert!(engine.pings(1000 * US, 10) <= US);
        // Others that have only little to do run at the yields, and spinning continues.
        engine.others = 30 * US;
        engine.pings(1000 * US, 200);
        assert!(engine.pings(1000 * US, 100) <= 31 * US);
    }

    #[test]
    fn a_stated_time_is_kept() {
        let mut engine = Engine::new(Spin::For(50 * US));
        assert_eq!(engine.pings(1000 * US, 100), 20 * US);
        assert_eq!((engine.sleeps, engine.spinner.window), (100, 50 * US));
        assert!(engine.pings(40 * US, 100) <= US);
        let mut engine = Engine::new(Spin::For(Duration::ZERO));
        engine.pings(1000 * US, 100);
        assert_eq!((engine.sleeps, engine.awake), (200, 0));
    }

    #[test]
    fn what_is_due_soon_is_waited_for_awake_where_spinning_is_allowed() {
        let now = Instant::ZERO + 1000 * US;
        let near = |spin| [0, 60, 61].map(|after| SpinState::new(spin, now).is_near(now, now + after * US));
        assert_eq!(near(Spin::Auto), [true, true, false]);
        assert_eq!(near(Spin::For(20 * US)), [true, true, false]);
        assert_eq!(near(Spin::For(Duration::ZERO)), [false; 3]);
        // Others need the core.
        let mut spinner = SpinState::new(Spin::Auto, now);
        spinner.gave_way(now, now + 1000 * US);
        assert!(!spinner.is_near(now + 1001 * US, now + 1002 * US));
    }

    #[test]
    fn frames_that_ports_hold_back_are_woken_up_for_where_spinning_is_allowed() {
        let (now, due) = (Instant::ZERO, Instant::ZERO + 1000 * US);
        let woken = |spin| SpinState::new(spin, now).wakes_for_frames(now, due);
        let early = Instant::ZERO + 900 * US;
        assert_eq!(
            [Spin::Auto, Spin::For(20 * US), Spin::For(Duration::ZERO)].map(woken),
            [early, early, Instant::FAR]
        );
        assert_eq!(SpinState::new(Spin::Auto, now).wakes_for_frames(now, Instant::FAR), Instant::FAR);
        let awaits = |spin, at| SpinState::new(spin, now).awaits_frames(at, due);
        assert!(
            awaits(Spin::Auto, early) && !awaits(Spin::Auto, early - US) && !awaits(Spin::For(Duration::ZERO), due)
        );
        // Others need the core.
        let mut spinner = SpinState::new(Spin::Auto, now);
        spinner.gave_way(now, now + 500 * US);
        assert_eq!(spinner.wakes_for_frames(now + 600 * US, due), Instant::FAR);
    }

    #[test]
    fn reads_text() {
        for (text, spin) in [("auto", Spin::Auto), ("1.5ms", Spin::For(1500 * US)), ("0", Spin::For(Duration::ZERO))] {
            assert_eq!(text.parse(), Ok(spin));
        }
        for wrong in ["", "1", "always", "-1us", "auto:2ms"] {
            assert!(wrong.parse::<Spin>().unwrap_err().contains("expected auto, 0, or a time"), "{wrong}");
        }
    }

    #[test]
    fn wakes_as_early_as_wake_ups_took_lately() {
        let mut spinner = SpinState::new(Spin::Auto, Instant::ZERO);
        let due = Instant::ZERO + US * 1000;
        assert_eq!(spinner.wakes_for(due), Instant::ZERO + US * 900);
        spinner.overslept(US * 120);
        assert_eq!(spinner.wakes_for(due), Instant::ZERO + US * 840);
        assert!(spinner.awaits(Instant::ZERO + US * 840, due) && !spinner.awaits(Instant::ZERO + US * 839, due));
        spinner.overslept(US * 5000);
        assert_eq!(spinner.wakes_for(due), Instant::ZERO + US * 700, "a core that is not there is not waited for");
        (0..1000).for_each(|_| spinner.overslept(US * 50));
        assert!(spinner.wakes_for(due) >= Instant::ZERO + US * 899);
    }
}
