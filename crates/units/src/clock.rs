//! Where `now` comes from: only engines own a clock.
use crate::Instant;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Gives the current time. Logic never owns one: it is handed `now`.
pub trait Clock {
    /// Time since the clock's start; never goes back.
    fn now(&self) -> Instant;
}

/// The machine's monotonic clock, counted from when it was made. Copies share the start.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: std::time::Instant,
    /// The same in nanoseconds of [`Epoch::Boot`].
    start_boot_ns: u64,
}

/// How often the machine's two ways to say the time are read at the start, one between two of the other: the pair that is closest together counts.
const READINGS: u32 = 4;
/// Readings that are no farther apart are not tried again.
const CLOSE: Duration = Duration::from_nanos(500);

impl SystemClock {
    /// Starts counting now.
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

    /// Now, and the same in nanoseconds of an epoch, read so close together that whoever stops the thread does not come between them.
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

    /// Its start in nanoseconds of [`Epoch::Boot`]: what two clocks of one machine are apart. The same for all copies.
    pub fn start_boot_ns(&self) -> u64 {
        self.start_boot_ns
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }
}

/// From when stamps count that a [`SystemClock`] of another process, or the kernel, is to agree with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Epoch {
    /// The start of this machine: the same for all processes on it, never set.
    #[default]
    Boot,
    /// 1970: the same for machines whose clocks are kept together, by PTP for example.
    Wall,
}

impl Epoch {
    /// Now, in nanoseconds.
    pub fn now_ns(self) -> u64 {
        let time = clock_gettime(match self {
            Epoch::Boot => ClockId::Monotonic,
            Epoch::Wall => ClockId::Realtime,
        });
        let part = |part: i64| u64::try_from(part).unwrap_or(0);
        part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec))
    }
}

/// A clock that a test or a simulation moves by hand.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Moves the clock to `now`; earlier points are ignored.
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
