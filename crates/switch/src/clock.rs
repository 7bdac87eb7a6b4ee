//! Clock of a switch's threads: the machine's clock, or virtual time where `crate::schedules` runs the switch.
//!
//! A shipped switch has only the machine's clock. Virtual time is compiled for tests and the feature `schedules`
//! only, so the packet path has no branch for it.
#[cfg(not(any(test, feature = "schedules")))]
pub(crate) use machine::{SwitchClock, cycles, machine_clock, switch_clock, time_of_day};
#[cfg(any(test, feature = "schedules"))]
pub(crate) use virtual_time::{SwitchClock, cycles, machine_clock, switch_clock, time_of_day};

#[cfg(not(any(test, feature = "schedules")))]
mod machine {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    pub(crate) use weir_memory::cycles;
    pub(crate) use weir_units::SystemClock as SwitchClock;

    /// Returns the clock for a switch's threads, given the one in [`crate::SoftwareSwitchConfig`].
    pub(crate) fn switch_clock(clock: SwitchClock) -> SwitchClock {
        clock
    }

    /// Returns the machine's clock, for ports and sockets that read kernel timestamps.
    pub(crate) fn machine_clock(clock: SwitchClock) -> SwitchClock {
        clock
    }

    /// Returns the time since 1970; zero if the machine's clock is set to an earlier date.
    pub(crate) fn time_of_day(_clock: SwitchClock) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

#[cfg(any(test, feature = "schedules"))]
pub(crate) mod virtual_time {
    use std::cell::Cell;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    use weir_units::{Clock, Instant, SystemClock};

    /// Clock of a switch's threads: the machine's clock or virtual time.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum SwitchClock {
        /// The machine's clock.
        Machine(SystemClock),
        /// Virtual time of the calling thread ([`ThreadVirtualTime`]).
        Virtual,
    }

    /// State of the virtual time of one thread.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct ThreadVirtualTime {
        /// Current virtual time in nanoseconds since the start.
        now_ns: u64,
        /// Nanoseconds by which each reading advances the time, so that time also passes within a step.
        reading_ns: u64,
        /// Time of day at the start, in seconds since 1970. A step of the time of day changes it.
        today_s: u64,
    }

    thread_local! {
        static VIRTUAL: Cell<Option<ThreadVirtualTime>> = const { Cell::new(None) };
    }

    impl ThreadVirtualTime {
        /// Starts virtual time on this thread.
        pub(crate) fn start() {
            VIRTUAL.set(Some(ThreadVirtualTime { now_ns: 1_000_000, reading_ns: 100, today_s: 1_700_000_000 }));
        }

        /// Panics in virtual time after 1000 looks in vain: all parts of a run share this one thread, so waiting for
        /// another part would never end.
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

        fn change(change: impl FnOnce(&mut ThreadVirtualTime)) {
            let mut state = VIRTUAL.get().expect("this thread has virtual time");
            change(&mut state);
            VIRTUAL.set(Some(state));
        }

        /// Returns the current virtual time without advancing it.
        pub(crate) fn now() -> Instant {
            Instant::from_nanos(VIRTUAL.get().expect("this thread has virtual time").now_ns)
        }

        /// Advances virtual time.
        pub(crate) fn advance(by: Duration) {
            Self::change(|state| state.now_ns += u64::try_from(by.as_nanos()).unwrap_or(u64::MAX / 4));
        }

        /// Sets by how much each reading advances the time.
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

    /// Returns virtual time if this thread has it, otherwise `clock`, the one in [`crate::SwitchConfig`].
    pub(crate) fn switch_clock(clock: SystemClock) -> SwitchClock {
        if VIRTUAL.get().is_some() { SwitchClock::Virtual } else { SwitchClock::Machine(clock) }
    }

    /// Returns the machine's clock, for ports and sockets that read kernel timestamps; a new one in virtual time,
    /// which has no such timestamps.
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
                SwitchClock::Virtual => Instant::from_nanos(ThreadVirtualTime::read()),
            }
        }
    }

    /// Returns the time since 1970; zero if the machine's clock is set to an earlier date.
    pub(crate) fn time_of_day(clock: SwitchClock) -> Duration {
        match (clock, VIRTUAL.get()) {
            (SwitchClock::Virtual, Some(state)) => {
                Duration::from_secs(state.today_s) + Duration::from_nanos(state.now_ns)
            }
            _ => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }

    /// Returns the processor's cycle counter. In virtual time a cycle is a nanosecond, so that decisions based on
    /// cycles are reproducible.
    pub(crate) fn cycles() -> u64 {
        if VIRTUAL.get().is_some() { ThreadVirtualTime::read() } else { weir_memory::cycles() }
    }
}
