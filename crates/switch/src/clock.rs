//! The clock of a switch's threads: the machine's, or virtual time where [`crate::schedules`] runs the switch.
//!
//! A shipped switch has only the machine's clock: virtual time is compiled for tests and the feature `schedules`, so
//! the packet path has no branch for it.
#[cfg(not(any(test, feature = "schedules")))]
pub(crate) use machine::{SwitchClock, cycles, machine_clock, switch_clock, time_of_day};
#[cfg(any(test, feature = "schedules"))]
pub(crate) use virtual_time::{SwitchClock, cycles, machine_clock, switch_clock, time_of_day};

#[cfg(not(any(test, feature = "schedules")))]
mod machine {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    pub(crate) use weir_memory::cycles;
    pub(crate) use weir_units::SystemClock as SwitchClock;

    /// The clock of a switch's threads from the one its owner gave.
    pub(crate) fn switch_clock(clock: SwitchClock) -> SwitchClock {
        clock
    }

    /// The machine's clock, for ports and sockets that read stamps of the kernel.
    pub(crate) fn machine_clock(clock: SwitchClock) -> SwitchClock {
        clock
    }

    /// Time since 1970; zero where the machine's clock is set before that.
    pub(crate) fn time_of_day(_clock: SwitchClock) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

#[cfg(any(test, feature = "schedules"))]
pub(crate) mod virtual_time {
    use std::cell::Cell;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    use weir_units::{Clock, Instant, SystemClock};

    /// The machine's clock, or virtual time.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum SwitchClock {
        /// The machine's.
        Machine(SystemClock),
        /// The calling thread's [`Virtual`].
        Virtual,
    }

    /// Virtual time of one thread.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Virtual {
        /// Nanoseconds since the start.
        now_ns: u64,
        /// Nanoseconds by which each reading moves it: time passes within a step, too.
        reading_ns: u64,
        /// Seconds since 1970 at the start; a step of the time of day changes it.
        today_s: u64,
    }

    thread_local! {
        static VIRTUAL: Cell<Option<Virtual>> = const { Cell::new(None) };
    }

    impl Virtual {
        /// Begins virtual time on this thread.
        pub(crate) fn start() {
            VIRTUAL.set(Some(Virtual { now_ns: 1_000_000, reading_ns: 100, today_s: 1_700_000_000 }));
        }

        /// Ends a run in which a part waits for another one for ever: all have this one thread.
        pub(crate) fn refuse_to_wait(looks: u32) {
            assert!(
                looks < 1000 || VIRTUAL.get().is_none(),
                "a part waits for what another part has between its steps"
            );
        }

        /// Ends virtual time on this thread.
        pub(crate) fn end() {
            VIRTUAL.set(None);
        }

        fn change(change: impl FnOnce(&mut Virtual)) {
            let mut state = VIRTUAL.get().expect("this thread has virtual time");
            change(&mut state);
            VIRTUAL.set(Some(state));
        }

        /// The time now, without moving it.
        pub(crate) fn now() -> Instant {
            Instant::from_nanos(VIRTUAL.get().expect("this thread has virtual time").now_ns)
        }

        /// Moves time on.
        pub(crate) fn advance(by: Duration) {
            Self::change(|state| state.now_ns += u64::try_from(by.as_nanos()).unwrap_or(u64::MAX / 4));
        }

        /// Sets by how much each reading moves time.
        pub(crate) fn set_reading(by: Duration) {
            Self::change(|state| state.reading_ns = u64::try_from(by.as_nanos()).unwrap_or(0));
        }

        /// Sets the time of day at the start, in seconds since 1970.
        pub(crate) fn set_today(today_s: u64) {
            Self::change(|state| state.today_s = today_s);
        }

        fn read() -> u64 {
            let mut now_ns = 0;
            Self::change(|state| {
                state.now_ns += state.reading_ns;
                now_ns = state.now_ns;
            });
            now_ns
        }
    }

    /// The clock of a switch's threads from the one its owner gave.
    pub(crate) fn switch_clock(clock: SystemClock) -> SwitchClock {
        if VIRTUAL.get().is_some() { SwitchClock::Virtual } else { SwitchClock::Machine(clock) }
    }

    /// The machine's clock, for ports and sockets that read stamps of the kernel; virtual time has none of those.
    pub(crate) fn machine_clock(clock: SwitchClock) -> SystemClock {
        match clock {
            SwitchClock::Machine(clock) => clock,
            SwitchClock::Virtual => SystemClock::start(),
        }
    }

    impl Clock for SwitchClock {
        fn now(&self) -> Instant {
            match self {
                SwitchClock::Machine(clock) => clock.now(),
                SwitchClock::Virtual => Instant::from_nanos(Virtual::read()),
            }
        }
    }

    /// Time since 1970; zero where the machine's clock is set before that.
    pub(crate) fn time_of_day(clock: SwitchClock) -> Duration {
        match (clock, VIRTUAL.get()) {
            (SwitchClock::Virtual, Some(state)) => {
                Duration::from_secs(state.today_s) + Duration::from_nanos(state.now_ns)
            }
            _ => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }

    /// The processor's cycles; in virtual time one for each nanosecond, so that decisions that rest on them can be
    /// repeated.
    pub(crate) fn cycles() -> u64 {
        if VIRTUAL.get().is_some() { Virtual::read() } else { weir_memory::cycles() }
    }
}
