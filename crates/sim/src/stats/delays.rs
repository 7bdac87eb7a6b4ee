//! Collects delays in memory that does not grow with their number.
use hdrhistogram::Histogram;
use serde::Serialize;

/// Significant digits kept of percentiles.
const DIGITS: u8 = 3;

/// Delays: exact sum, and a distribution to three significant digits.
#[derive(Debug, Clone, Default)]
pub struct DelayTally {
    /// Histogram of ns; made with the first sample.
    histogram: Option<Box<Histogram<u64>>>,
    sum_ns: u128,
    count: u64,
}

/// Summary of delays, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs, reason = "named by their statistics")]
pub struct DelaySummary {
    pub samples: u64,
    pub mean_s: f64,
    pub min_s: f64,
    pub p50_s: f64,
    pub p90_s: f64,
    pub p99_s: f64,
    pub p999_s: f64,
    pub max_s: f64,
}

impl DelayTally {
    /// Adds a delay in ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        self.count += 1;
        let histogram = self.histogram.get_or_insert_with(|| {
            Box::new(Histogram::new(DIGITS).expect("three digits are within the library's limits"))
        });
        // Fails only for delays of more than about 146 years.
        let _ = histogram.record(ns);
    }

    /// Adds all delays of `other`.
    pub fn merge(&mut self, other: &DelayTally) {
        self.sum_ns += other.sum_ns;
        self.count += other.count;
        match (&mut self.histogram, &other.histogram) {
            // Both histograms resize themselves, so no value is out of range.
            (Some(own), Some(others)) => drop(own.add(&**others)),
            (own @ None, Some(others)) => *own = Some(others.clone()),
            (_, None) => {}
        }
    }

    /// Returns the number of delays.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean in seconds; `None` without samples.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e9)
    }

    /// Returns the delay in seconds that a share (`0.0..=1.0`) of the samples does not exceed; `None` without
    /// samples.
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        self.histogram.as_ref().map(|histogram| histogram.value_at_quantile(share) as f64 / 1e9)
    }

    /// Returns a summary; `None` without samples.
    pub fn summary(&self) -> Option<DelaySummary> {
        let histogram = self.histogram.as_ref()?;
        let quantile = |share: f64| histogram.value_at_quantile(share) as f64 / 1e9;
        Some(DelaySummary {
            samples: self.count,
            mean_s: self.mean_s()?,
            min_s: histogram.min() as f64 / 1e9,
            p50_s: quantile(0.5),
            p90_s: quantile(0.9),
            p99_s: quantile(0.99),
            p999_s: quantile(0.999),
            max_s: histogram.max() as f64 / 1e9,
        })
    }

    /// Returns the distribution as (upper end in seconds, samples), with ten bins for each power of ten. Empty bins
    /// are left out.
    pub fn bins(&self) -> Vec<(f64, u64)> {
        let Some(histogram) = &self.histogram else { return Vec::new() };
        let mut bins: Vec<(f64, u64)> = Vec::new();
        for value in histogram.iter_recorded() {
            let ns = value.value_iterated_to().max(1) as f64;
            let end = 10f64.powf((ns.log10() * 10.0).ceil() / 10.0) / 1e9;
            match bins.last_mut() {
                Some((last, count)) if *last >= end => *count += value.count_at_value(),
                _ => bins.push((end, value.count_at_value())),
            }
        }
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_summed_up() {
        let (mut one, mut other) = (DelayTally::default(), DelayTally::default());
        assert!(one.summary().is_none() && one.bins().is_empty());
        (1..=500).for_each(|us| one.record(us * 1000));
        (501..=1000).for_each(|us| other.record(us * 1000));
        one.merge(&other);
        let summary = one.summary().unwrap();
        assert_eq!((summary.samples, summary.mean_s), (1000, 500.5e-6));
        for (found, expected) in [(summary.p50_s, 500e-6), (summary.p99_s, 990e-6), (summary.max_s, 1e-3)] {
            assert!((found / expected - 1.0).abs() < 0.002, "{summary:?}");
        }
        assert_eq!(one.bins().iter().map(|(_, count)| count).sum::<u64>(), 1000);
        assert!(one.bins().is_sorted_by(|a, b| a.0 < b.0));
    }
}
