//! How late what was due was looked at.
use hdrhistogram::Histogram;
use std::time::Duration;

/// Longest lateness that is told apart: a minute.
const LONGEST_NS: u64 = 60_000_000_000;

/// How late things were done after they were due.
#[derive(Debug)]
pub struct Lateness(Histogram<u64>);

/// How late things were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LateBy {
    /// How many things.
    pub count: u64,
    /// Half of them were at most so late.
    pub p50: Duration,
    /// 99 of 100 were.
    pub p99: Duration,
    /// The latest.
    pub most: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants that are in order")]
        Lateness(Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("bounds in order"))
    }
}

impl Lateness {
    /// Something was done so long after it was due.
    pub fn note(&mut self, late: Duration) {
        self.0.saturating_record(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX).clamp(1, LONGEST_NS));
    }

    /// In sum.
    pub fn sum(&self) -> LateBy {
        let at = |quantile| Duration::from_nanos(self.0.value_at_quantile(quantile));
        LateBy { count: self.0.len(), p50: at(0.5), p99: at(0.99), most: Duration::from_nanos(self.0.max()) }
    }
}
