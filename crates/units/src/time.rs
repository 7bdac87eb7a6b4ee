//! Represents points in time, counted from the engine's start.
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time: nanoseconds since the engine's start, in real or virtual time.
///
/// 64 bits of nanoseconds last for 584 years; arithmetic saturates instead of wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// Start of the engine.
    pub const ZERO: Instant = Instant(0);
    /// Latest point in time, after every event.
    pub const FAR: Instant = Instant(u64::MAX);

    /// Returns the point `ns` nanoseconds after the engine's start.
    pub const fn from_nanos(ns: u64) -> Self {
        Instant(ns)
    }

    /// Returns the nanoseconds since the engine's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the engine's start, for display and for rates.
    pub fn as_secs_f64(self) -> f64 {
        Duration::from_nanos(self.0).as_secs_f64()
    }

    /// Returns the duration since `earlier`; zero if `self` is not after it.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Returns the nanoseconds of `d`, at most `u64::MAX`.
fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(d)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, d: Duration) -> Instant {
        Instant(self.0.saturating_sub(nanos(d)))
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let t = Instant::from_nanos(5);
        assert_eq!(t - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::FAR + Duration::from_secs(1), Instant::FAR);
        assert_eq!(Instant::ZERO - t, Duration::ZERO);
        assert_eq!(t + Duration::from_nanos(3) - t, Duration::from_nanos(3));
    }
}
