//! Times that were measured: their spread, in memory that does not grow with their number.
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Times in nanoseconds, to three digits, in memory that does not grow with their number.
#[derive(Debug, Clone)]
pub struct Delays(Histogram<u64>);

/// Spread of measured times, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named by their statistics")]
pub struct Delay {
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

/// Shares of delays that distributions are told by: every hundredth, and two of the rare ones.
pub fn shares() -> impl Iterator<Item = f64> {
    (1..100).map(|hundredths| f64::from(hundredths) / 100.0).chain([0.995, 0.999])
}

/// Digits that are kept.
const DIGITS: u8 = 3;

impl Default for Delays {
    fn default() -> Self {
        Delays(Histogram::new(DIGITS).expect("three digits are within the library's limits"))
    }
}

impl Delays {
    /// Adds one.
    pub fn record(&mut self, delay: Duration) {
        self.record_ns(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds one, in nanoseconds.
    pub fn record_ns(&mut self, delay_ns: u64) {
        // Half of the largest number is refused: 146 years.
        let _ = self.0.record(delay_ns);
    }

    /// Adds one as often as said, in nanoseconds.
    pub fn record_many_ns(&mut self, delay_ns: u64, times: u64) {
        let _ = self.0.record_n(delay_ns, times);
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Delays) {
        // Both grow as needed: nothing can be out of range.
        let _ = self.0.add(&other.0);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// The share, `0.0..=1.0`, of those that are longer than `limit`; none without samples.
    pub fn share_above(&self, limit: Duration) -> Option<f64> {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        (!self.0.is_empty()).then(|| 1.0 - self.0.count_between(0, limit) as f64 / self.0.len() as f64)
    }

    /// What a share (`0.0..=1.0`) of them do not exceed, in microseconds; none without samples.
    pub fn quantile_us(&self, share: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(share) as f64 / 1000.0)
    }

    /// Their distribution: shares of them, and what they do not exceed, in microseconds; nothing without samples.
    pub fn quantiles_us(&self) -> Vec<(f64, f64)> {
        let of = |share: f64| (share, self.0.value_at_quantile(share) as f64 / 1000.0);
        if self.0.is_empty() { Vec::new() } else { shares().map(of).collect() }
    }

    /// Their spread; none without samples.
    pub fn summary(&self) -> Option<Delay> {
        let microseconds = |ns: u64| ns as f64 / 1000.0;
        let quantile = |q: f64| microseconds(self.0.value_at_quantile(q));
        (!self.0.is_empty()).then(|| Delay {
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
    fn delays_are_summed_up() {
        let mut delays = Delays::default();
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
        delays.clear();
        assert_eq!(delays.count(), 0);
    }
}
