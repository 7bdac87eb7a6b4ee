//! Measures how late due items were released.
use hdrhistogram::Histogram;
use std::time::Duration;

/// Longest lateness that is distinguished: a minute.
const LONGEST_NS: u64 = 60_000_000_000;

/// Lateness above which a release counts as late.
pub const LATE: Duration = Duration::from_micros(20);

/// Histogram of the lateness of releases.
#[derive(Debug)]
pub struct ReleaseLateness {
    by: Histogram<u64>,
    late: u64,
}

/// Summary of the lateness of releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatenessSummary {
    /// Number of releases.
    pub count: u64,
    /// Median of the lateness.
    pub p50: Duration,
    /// 99th percentile of the lateness.
    pub p99: Duration,
    /// Largest value of the lateness.
    pub most: Duration,
    /// Number of releases later than [`LATE`].
    pub late: u64,
}

impl Default for ReleaseLateness {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants that are in order")]
        let by = Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("bounds in order");
        ReleaseLateness { by, late: 0 }
    }
}

impl ReleaseLateness {
    /// Records a release that was late by `late`.
    pub fn note(&mut self, late: Duration) {
        self.late += u64::from(late > LATE);
        self.by.saturating_record(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX).clamp(1, LONGEST_NS));
    }

    /// Returns the summary of all releases.
    pub fn sum(&self) -> LatenessSummary {
        let at = |quantile| Duration::from_nanos(self.by.value_at_quantile(quantile));
        let most = Duration::from_nanos(self.by.max());
        LatenessSummary { count: self.by.len(), p50: at(0.5), p99: at(0.99), most, late: self.late }
    }
}
