//! How late what was due was looked at.
use hdrhistogram::Histogram;
use std::time::Duration;

/// Longest lateness that is told apart: a minute.
const LONGEST_NS: u64 = 60_000_000_000;

/// What is done later than this after it was due is late.
pub const LATE: Duration = Duration::from_micros(20);

/// How late things were done after they were due.
#[derive(Debug)]
pub struct Lateness {
    by: Histogram<u64>,
    late: u64,
}

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
    /// Things that were more than [`LATE`] late.
    pub late: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants that are in order")]
        let by = Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("bounds in order");
        Lateness { by, late: 0 }
    }
}

impl Lateness {
    /// Something was done so long after it was due.
    pub fn note(&mut self, late: Duration) {
        self.late += u64::from(late > LATE);
        self.by.saturating_record(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX).clamp(1, LONGEST_NS));
    }

    /// In sum.
    pub fn sum(&self) -> LateBy {
        let at = |quantile| Duration::from_nanos(self.by.value_at_quantile(quantile));
        let most = Duration::from_nanos(self.by.max());
        LateBy { count: self.by.len(), p50: at(0.5), p99: at(0.99), most, late: self.late }
    }
}
