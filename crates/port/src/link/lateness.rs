//! Histogram of the lateness of frames, counted by one thread and read by others.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Significant binary digits of a time that the histogram distinguishes: an error of at most 3 %.
const DIGITS: u32 = 6;
/// Times with at most this many binary digits share the first bucket: a quarter of a microsecond.
const LEAST_DIGITS: u32 = 8;
/// Times with more binary digits share the last bucket: 18 minutes.
const MOST_DIGITS: u32 = 40;
const HALF: usize = 1 << (DIGITS - 1);
const BUCKETS: usize = 1 + (MOST_DIGITS - LEAST_DIGITS) as usize * HALF;

/// Histogram of lateness in fixed memory. One thread counts, without a lock; any thread reads.
#[derive(Debug)]
pub struct LinkLatenessHistogram {
    counts: Box<[AtomicU64]>,
    most_ns: AtomicU64,
}

impl Default for LinkLatenessHistogram {
    fn default() -> Self {
        LinkLatenessHistogram { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), most_ns: AtomicU64::new(0) }
    }
}

impl LinkLatenessHistogram {
    /// Counts a frame that came `late` after it was due. Only one thread may call this.
    #[inline]
    pub fn note(&self, late: Duration) {
        let ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        let count = &self.counts[bucket(ns)];
        // Only one thread writes, so no count is lost between the load and the store.
        count.store(count.load(Relaxed) + 1, Relaxed);
        if ns > self.most_ns.load(Relaxed) {
            self.most_ns.store(ns, Relaxed);
        }
    }

    /// Iterates over the non-empty buckets: lateness in nanoseconds, at most 3 % too long, and number of frames.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let most = self.most_ns.load(Relaxed);
        let counts = self.counts.iter().enumerate().map(|(bucket, count)| (bucket, count.load(Relaxed)));
        counts.filter(|(_, count)| *count > 0).map(move |(bucket, count)| (longest_of(bucket).min(most), count))
    }
}

/// Returns the bucket of a time.
fn bucket(ns: u64) -> usize {
    let digits = u64::BITS - ns.leading_zeros();
    if digits <= LEAST_DIGITS {
        return 0;
    }
    if digits > MOST_DIGITS {
        return BUCKETS - 1;
    }
    // The first of the digits is always one and is left out.
    let rest = usize::try_from(ns >> (digits - DIGITS)).unwrap_or(0) & (HALF - 1);
    1 + (digits - LEAST_DIGITS - 1) as usize * HALF + rest
}

/// Returns the longest time in ns that a bucket counts.
fn longest_of(bucket: usize) -> u64 {
    let Some(place) = bucket.checked_sub(1) else { return (1 << LEAST_DIGITS) - 1 };
    let digits = LEAST_DIGITS + 1 + u32::try_from(place / HALF).unwrap_or(0);
    let first = (HALF + place % HALF) as u64;
    ((first + 1) << (digits - DIGITS)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bucket_whose_longest_is_near() {
        for shift in 0..40 {
            for ns in [1u64 << shift, (1 << shift) + (1 << shift) / 3, (2 << shift) - 1] {
                let longest = longest_of(bucket(ns));
                assert!(longest >= ns.min((1 << MOST_DIGITS) - 1), "{ns}: {longest}");
                assert!(ns < 256 || longest as f64 <= ns as f64 * 1.04, "{ns}: {longest}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        let starts: Vec<u64> = (0..BUCKETS).map(longest_of).collect();
        assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
        assert!((0..BUCKETS).all(|at| bucket(longest_of(at)) == at));
    }

    #[test]
    fn what_is_noted_is_read() {
        let late = LinkLatenessHistogram::default();
        assert_eq!(late.counts().count(), 0);
        for us in [0, 20, 20, 1000] {
            late.note(Duration::from_micros(us));
        }
        let counts: Vec<(u64, u64)> = late.counts().collect();
        assert_eq!(counts.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 2, 1]);
        assert!((20_000..21_000).contains(&counts[1].0));
        assert_eq!(counts[2].0, 1_000_000, "never more than the longest that there was");
    }
}
