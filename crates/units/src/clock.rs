//! Provides clocks. Only engines own one; other code gets the current time as a parameter.
use crate::Instant;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Source of the current time. Logic does not own a clock, but gets `now` as a parameter.
pub trait Clock {
    /// Returns the time since the clock's start; never decreases.
    fn now(&self) -> Instant;
}

/// The machine's monotonic clock, counted from its creation. Copies share the start.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: std::time::Instant,
    /// Start of the clock in nanoseconds of [`Epoch::Boot`].
    start_boot_ns: u64,
}

/// Number of attempts to read two clocks at the same time. Each attempt reads one clock between two readings of the
/// other; the attempt with the shortest time between these is used.
const READINGS: u32 = 4;
/// Time between the two readings below which no further attempt is made.
const CLOSE: Duration = Duration::from_nanos(500);

impl SystemClock {
    /// Creates a clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    pub fn start() -> Self {
        let reading = |_| {
            let (before, start, after) = (Epoch::Boot.now_ns(), std::time::Instant::now(), Epoch::Boot.now_ns());
            let apart_ns = after.saturating_sub(before);
            (apart_ns, SystemClock { start, start_boot_ns: before + apart_ns / 2 })
        };
        let mut best = reading(0);
        for other in (1..READINGS).map(reading) {
            best = if other.0 < best.0 { other } else { best };
        }
        best.1
    }

    /// Returns the current time of this clock, and the same time in nanoseconds of `epoch`. Repeats the reading if
    /// the thread is interrupted between the two, at most four times in all, and uses the closest one.
    pub fn beside(&self, epoch: Epoch) -> (Instant, u64) {
        let reading = || {
            let (before, ns, after) = (self.now(), epoch.now_ns(), self.now());
            (after.since(before), before + after.since(before) / 2, ns)
        };
        let mut best = reading();
        for _ in 1..READINGS {
            if best.0 <= CLOSE {
                break;
            }
            best = best.min(reading());
        }
        (best.1, best.2)
    }

    /// Returns the clock's start in nanoseconds of [`Epoch::Boot`], equal for all copies. The difference of two such
    /// values is the offset between two clocks of one machine.
    pub fn start_boot_ns(&self) -> u64 {
        self.start_boot_ns
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }
}

/// Reference point of time stamps that are shared with a [`SystemClock`] of another process, or with the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Epoch {
    /// Start of this machine: equal for all its processes, and never set.
    #[default]
    Boot,
    /// Start of 1970: equal for machines whose clocks are synchronised, for example by PTP.
    Wall,
}

impl Epoch {
    /// Returns the current time in nanoseconds since this epoch.
    pub fn now_ns(self) -> u64 {
        let time = clock_gettime(match self {
            Epoch::Boot => ClockId::Monotonic,
            Epoch::Wall => ClockId::Realtime,
        });
        let part = |part: i64| u64::try_from(part).unwrap_or(0);
        part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec))
    }
}

/// A clock that a test or a simulation sets.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Sets the clock to `now`; earlier times are ignored.
    pub fn set(&self, now: Instant) {
        self.0.fetch_max(now.as_nanos(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_do_not_go_back() {
        let machine = SystemClock::start();
        let first = machine.now();
        assert!(machine.now() >= first);
        let since_boot = machine.start_boot_ns() + machine.now().as_nanos();
        assert!(since_boot <= Epoch::Boot.now_ns() + 1_000_000, "read in two ways, it is one clock");
        let (now, ns) = machine.beside(Epoch::Boot);
        let apart_ns = ns.abs_diff(machine.start_boot_ns() + now.as_nanos());
        assert!(now >= first && now <= machine.now() && apart_ns < 1_000_000, "{apart_ns}");
        let manual = ManualClock::default();
        manual.set(Instant::from_nanos(9));
        manual.set(Instant::from_nanos(3));
        assert_eq!(manual.now(), Instant::from_nanos(9));
    }
}
