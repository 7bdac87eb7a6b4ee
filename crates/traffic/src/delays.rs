//! Histogram of measured times, in memory that does not grow with their number.
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Measured times in nanoseconds, to three significant digits.
#[derive(Debug, Clone)]
pub struct TimeHistogram(Histogram<u64>);

/// Statistics of measured times, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named by their statistics")]
pub struct TimeStatistics {
    pub samples: u64,
    pub min_us: f64,
    pub mean_us: f64,
    pub sd_us: f64,
    pub p50_us: f64,
    pub p95_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

impl TimeStatistics {
    /// Returns true if there are enough samples to tell the time that a share (`0.0..=1.0`) of them does not exceed: at
    /// least one sample is above it. Of ten samples, the 95th percentile is no more than the largest of them.
    pub fn has_percentile(&self, share: f64) -> bool {
        has_percentile(self.samples, share)
    }
}

/// Returns true if so many samples can tell the time that a share (`0.0..=1.0`) of them does not exceed.
pub fn has_percentile(samples: u64, share: f64) -> bool {
    // A little more, because 1 - 0.95 is not exactly a twentieth.
    samples as f64 * (1.0 - share) > 1.0 - 1e-9
}

/// Returns the shares at which distributions are tabulated: every hundredth, and two near the tail.
pub fn shares() -> impl Iterator<Item = f64> {
    (1..100).map(|hundredths| f64::from(hundredths) / 100.0).chain([0.995, 0.999])
}

/// Significant digits kept.
const DIGITS: u8 = 3;

impl Default for TimeHistogram {
    fn default() -> Self {
        TimeHistogram(Histogram::new(DIGITS).expect("three digits are within the library's limits"))
    }
}

impl TimeHistogram {
    /// Adds a time.
    pub fn record(&mut self, delay: Duration) {
        self.record_ns(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds a time in nanoseconds.
    pub fn record_ns(&mut self, delay_ns: u64) {
        // The histogram grows automatically, so recording cannot fail.
        let _ = self.0.record(delay_ns);
    }

    /// Adds a time in nanoseconds `times` times.
    pub fn record_many_ns(&mut self, delay_ns: u64, times: u64) {
        let _ = self.0.record_n(delay_ns, times);
    }

    /// Adds all times of another histogram.
    pub fn merge(&mut self, other: &TimeHistogram) {
        // Both histograms grow automatically, so no value can be out of range.
        let _ = self.0.add(&other.0);
    }

    /// Returns these times without those of `part`, which were recorded here, too.
    #[must_use]
    pub fn without(&self, part: &TimeHistogram) -> TimeHistogram {
        let mut rest = self.clone();
        // Fails only for times that were not recorded here; then all stay.
        let _ = rest.0.subtract(&part.0);
        rest
    }

    /// Returns the number of recorded times.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Removes all recorded times.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Returns the share, `0.0..=1.0`, of times above `limit`; `None` without samples.
    pub fn share_above(&self, limit: Duration) -> Option<f64> {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        (!self.0.is_empty()).then(|| 1.0 - self.0.count_between(0, limit) as f64 / self.0.len() as f64)
    }

    /// Returns the time in microseconds that a share (`0.0..=1.0`) of the samples does not exceed; `None` without
    /// samples.
    pub fn quantile_us(&self, share: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(share) as f64 / 1000.0)
    }

    /// Returns the distribution as pairs of a share and the time in microseconds that this share does not exceed;
    /// empty without samples.
    pub fn quantiles_us(&self) -> Vec<(f64, f64)> {
        let of = |share: f64| (share, self.0.value_at_quantile(share) as f64 / 1000.0);
        if self.0.is_empty() { Vec::new() } else { shares().map(of).collect() }
    }

    /// Returns the statistics; `None` without samples.
    pub fn summary(&self) -> Option<TimeStatistics> {
        let microseconds = |ns: u64| ns as f64 / 1000.0;
        let quantile = |q: f64| microseconds(self.0.value_at_quantile(q));
        (!self.0.is_empty()).then(|| TimeStatistics {
            samples: self.0.len(),
            min_us: microseconds(self.0.min()),
            mean_us: self.0.mean() / 1000.0,
            sd_us: self.0.stdev() / 1000.0,
            p50_us: quantile(0.5),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: microseconds(self.0.max()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_do_not_tell_high_percentiles() {
        for (share, least) in [(0.5, 2), (0.95, 20), (0.99, 100), (0.999, 1000)] {
            assert!(has_percentile(least, share) && !has_percentile(least - 1, share), "{share}");
        }
    }

    #[test]
    fn delays_are_summed_up() {
        let mut delays = TimeHistogram::default();
        assert!(delays.summary().is_none() && delays.share_above(Duration::ZERO).is_none());
        for us in 1..=100 {
            delays.record(Duration::from_micros(us));
        }
        let summary = delays.summary().unwrap();
        assert_eq!(summary.samples, 100);
        for (found, expected) in [
            (summary.min_us, 1.0),
            (summary.mean_us, 50.5),
            (summary.sd_us, 28.866),
            (summary.p50_us, 50.0),
            (summary.p95_us, 95.0),
            (summary.p99_us, 99.0),
            (summary.p999_us, 100.0),
            (summary.max_us, 100.0),
        ] {
            assert!((found - expected).abs() < expected / 500.0, "{summary:?}");
        }
        let above = delays.share_above(Duration::from_micros(70)).unwrap();
        assert!((above - 0.3).abs() < 1e-9, "{above}");
        let quantiles = delays.quantiles_us();
        assert!(quantiles.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1) && quantiles.len() == 101, "{quantiles:?}");
        assert!((quantiles[24].1 - 25.0).abs() < 0.1, "a quarter is not above 25 us: {quantiles:?}");
        let mut part = TimeHistogram::default();
        (91..=100).for_each(|us| part.record(Duration::from_micros(us)));
        let rest = delays.without(&part).summary().unwrap();
        assert!(rest.samples == 90 && (rest.max_us - 90.0).abs() < 0.2, "{rest:?}");
        delays.clear();
        assert_eq!(delays.count(), 0);
    }
}
