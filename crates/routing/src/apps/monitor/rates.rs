//! Rates from counters that are read again and again.
use std::time::Duration;
use weir_units::Instant;

/// Last reading of a counter of bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ByteReading {
    bytes: u64,
    /// Age of the counter by the switch's clock; zero if the switch does not tell.
    age: Duration,
    /// Time at which the reading arrived.
    at: Instant,
}

impl ByteReading {
    /// Returns a reading; `None` if the switch does not count bytes.
    pub(super) fn new(bytes: u64, age: (u32, u32), at: Instant) -> Option<ByteReading> {
        let age = Duration::from_secs(age.0.into()) + Duration::from_nanos(age.1.into());
        (bytes != u64::MAX).then_some(ByteReading { bytes, age, at })
    }

    /// Returns the bytes since an earlier reading and the time in between; `None` if the counter began anew or no time
    /// has passed. The time is the switch's, if it tells, because replies are late when a switch is busy.
    pub(super) fn since(&self, earlier: &ByteReading) -> Option<(u64, Duration)> {
        let bytes = self.bytes.checked_sub(earlier.bytes)?;
        let span = match self.age.checked_sub(earlier.age)? {
            Duration::ZERO if self.age.is_zero() => self.at.since(earlier.at),
            span => span,
        };
        (!span.is_zero()).then_some((bytes, span))
    }
}

/// Returns a rate in bit/s.
pub(super) fn bps((bytes, span): (u64, Duration)) -> f64 {
    bytes as f64 * 8.0 / span.as_secs_f64()
}

/// Returns the next value of an exponentially weighted mean. The first measurement is the first value.
pub(super) fn smoothed(former: Option<f64>, measured: f64, weight: f64) -> f64 {
    former.map_or(measured, |former| former + weight * (measured - former))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(bytes: u64, age_ms: u32, at_ms: u64) -> ByteReading {
        let age = (age_ms / 1000, age_ms % 1000 * 1_000_000);
        ByteReading::new(bytes, age, Instant::from_nanos(at_ms * 1_000_000)).unwrap()
    }

    #[test]
    fn rates_take_the_time_of_the_switch() {
        let first = reading(1000, 10_000, 0);
        assert_eq!(reading(2000, 11_000, 1500).since(&first).map(bps), Some(8000.0));
        assert_eq!(reading(2000, 0, 2000).since(&reading(1000, 0, 1000)).map(bps), Some(8000.0), "no age: the arrival");
        assert_eq!(reading(500, 11_000, 1000).since(&first).map(bps), None, "a new counter");
        assert_eq!(reading(2000, 500, 1000).since(&first).map(bps), None, "a new port");
        assert_eq!(reading(1000, 10_000, 1000).since(&first).map(bps), None, "the same reading again");
        assert_eq!(ByteReading::new(u64::MAX, (1, 0), Instant::ZERO), None);
    }

    #[test]
    fn means_follow_the_measurements() {
        assert_eq!(smoothed(None, 8.0, 0.5), 8.0);
        assert_eq!(smoothed(Some(8.0), 4.0, 0.5), 6.0);
        assert_eq!(smoothed(Some(8.0), 4.0, 1.0), 4.0);
    }
}
