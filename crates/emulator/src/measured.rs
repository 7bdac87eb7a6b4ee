//! What the ends of one item of traffic measured.
use hdrhistogram::Histogram;
use std::time::Duration;

/// What one end of an item of traffic measured; the ends' are put together with [`Measured::merge`].
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Packets (TCP: bytes) that the sender was to send.
    pub asked: u64,
    /// Packets (TCP: bytes) sent.
    pub sent: u64,
    /// Answers to pings, datagrams, or bytes of TCP received.
    pub received: u64,
    /// Payload bytes received.
    pub payload_bytes: u64,
    /// Time from the first to the last of them.
    pub span: Duration,
    /// Round trips of pings; one-way times of datagrams.
    pub delays: Delays,
    /// What went wrong, for people.
    pub problem: Option<String>,
}

impl Measured {
    /// Adds what the other end measured.
    pub fn merge(&mut self, other: Measured) {
        self.asked += other.asked;
        self.sent += other.sent;
        self.received += other.received;
        self.payload_bytes += other.payload_bytes;
        self.span = self.span.max(other.span);
        self.delays.merge(&other.delays);
        self.problem = self.problem.take().or(other.problem);
    }
}

/// Times in nanoseconds, to three digits, in memory that does not grow with their number.
#[derive(Debug, Clone)]
pub struct Delays(Histogram<u64>);

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
    pub(crate) fn record(&mut self, delay: Duration) {
        // Half of the largest number is refused: 146 years.
        let _ = self.0.record(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
    }

    fn merge(&mut self, other: &Delays) {
        // Both grow as needed: nothing can be out of range.
        let _ = self.0.add(&other.0);
    }

    /// Their distribution: shares of them, and what they do not exceed, in microseconds; nothing without samples.
    pub fn quantiles_us(&self) -> Vec<(f64, f64)> {
        let of = |share: f64| (share, self.0.value_at_quantile(share) as f64 / 1000.0);
        if self.0.is_empty() { Vec::new() } else { shares().map(of).collect() }
    }

    /// Their spread; none without samples.
    pub fn summary(&self) -> Option<crate::result::Delay> {
        let microseconds = |ns: u64| ns as f64 / 1000.0;
        let quantile = |q: f64| microseconds(self.0.value_at_quantile(q));
        (!self.0.is_empty()).then(|| crate::result::Delay {
            samples: self.0.len(),
            min_us: microseconds(self.0.min()),
            mean_us: self.0.mean() / 1000.0,
            p50_us: quantile(0.5),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
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
        assert!(delays.summary().is_none());
        for us in 1..=100 {
            delays.record(Duration::from_micros(us));
        }
        let summary = delays.summary().unwrap();
        assert_eq!(summary.samples, 100);
        for (found, expected) in [
            (summary.min_us, 1.0),
            (summary.mean_us, 50.5),
            (summary.p50_us, 50.0),
            (summary.p95_us, 95.0),
            (summary.p99_us, 99.0),
            (summary.max_us, 100.0),
        ] {
            assert!((found - expected).abs() < expected / 500.0, "{summary:?}");
        }
        let quantiles = delays.quantiles_us();
        assert!(quantiles.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1) && quantiles.len() == 101, "{quantiles:?}");
        assert!((quantiles[24].1 - 25.0).abs() < 0.1, "a quarter is not above 25 us: {quantiles:?}");
    }

    #[test]
    fn two_ends_make_one_whole() {
        let mut sender = Measured { asked: 10, sent: 9, ..Measured::default() };
        let mut receiver = Measured { received: 8, problem: Some("late".into()), ..Measured::default() };
        receiver.delays.record(Duration::from_millis(1));
        sender.merge(receiver);
        assert_eq!((sender.asked, sender.sent, sender.received), (10, 9, 8));
        assert_eq!((sender.delays.summary().unwrap().samples, sender.problem.as_deref()), (1, Some("late")));
    }
}
