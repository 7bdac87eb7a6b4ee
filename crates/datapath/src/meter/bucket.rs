//! An exact token bucket. It gains `rate` tokens per nanosecond, so nothing is rounded and nothing drifts.
//!
//! A token is 10^-9 of a packet if packets are counted, and 10^-6 of a bit if bits are counted. Then a rate in
//! packets/s or in kbit/s equals the number of tokens per nanosecond, and a burst of one packet or one kbit equals
//! 10^9 tokens.
//!
//! A packet conforms if the bucket is not empty. It then takes its whole cost, going into debt if necessary. So a
//! packet longer than the burst (a 64 KiB super-frame through a slow meter) passes and is paid for afterwards, and a
//! stream of long packets has the same chances as one of short packets. During any time `t` at most
//! `rate * t + burst` and one packet pass.
use weir_units::Instant;

/// Number of tokens of a packet, or of a kbit.
const PER_UNIT: i64 = 1_000_000_000;
/// Number of tokens of a byte.
const PER_BYTE: u64 = 8_000_000;
/// Default burst, as time at the rate, equal to Open vSwitch's. A sender or switch that did not run for some hundred
/// milliseconds catches up afterwards. With a smaller burst that time would be lost and the rate would not be
/// reached.
const DEFAULT_BURST_NS: i64 = 1_000_000_000;

/// A token bucket with its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    /// Tokens gained per nanosecond.
    rate: u32,
    /// Maximum number of tokens.
    capacity: i64,
    /// Number of tokens at the time `at`; negative if in debt.
    level: i64,
    /// Time of the last update of `level`.
    at: Instant,
}

/// Cost of a packet, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenCost(i64);

impl TokenCost {
    /// Returns the cost of packets, for meters that count packets.
    pub(crate) fn of_packets(packets: u32) -> TokenCost {
        TokenCost(i64::from(packets) * PER_UNIT)
    }

    /// Returns the cost of bytes, for meters that count bits.
    pub(crate) fn of_bytes(bytes: u64) -> TokenCost {
        TokenCost(i64::try_from(bytes.saturating_mul(PER_BYTE)).unwrap_or(i64::MAX))
    }
}

impl TokenBucket {
    /// Returns a full bucket. `rate` and `burst` are in packets/s and packets, or in kbit/s and kbit. Without a burst
    /// it holds one second of its rate.
    pub(crate) fn new(now: Instant, rate: u32, burst: Option<u32>) -> TokenBucket {
        let capacity = match burst {
            Some(burst) => i64::from(burst) * PER_UNIT,
            None => i64::from(rate) * DEFAULT_BURST_NS,
        };
        TokenBucket { rate, capacity, level: capacity, at: now }
    }

    /// Returns the bucket with another rate and burst. The tokens stay, because otherwise frequent changes of the
    /// rate would each give a burst.
    pub(crate) fn with(mut self, now: Instant, rate: u32, burst: Option<u32>) -> TokenBucket {
        self.fill(now);
        let new = TokenBucket::new(now, rate, burst);
        TokenBucket { level: self.level.min(new.capacity), ..new }
    }

    /// Takes a packet's cost if the packet conforms. Returns true if it does.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant, cost: TokenCost) -> bool {
        self.fill(now);
        // With a burst of zero the level is never above zero. Then a packet conforms if there is no debt, provided
        // that debts are ever paid (rate above zero).
        let conforms = self.level > 0 || self.level == 0 && self.capacity == 0 && self.rate > 0;
        if conforms {
            self.level = self.level.saturating_sub(cost.0);
        }
        conforms
    }

    fn fill(&mut self, now: Instant) {
        let elapsed_ns = now.as_nanos().saturating_sub(self.at.as_nanos());
        // A saturated product exceeds the room of any bucket.
        let gained = elapsed_ns.saturating_mul(self.rate.into());
        let room = self.level.abs_diff(self.capacity);
        self.level = self.level.saturating_add_unsigned(gained.min(room));
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const START: Instant = Instant::from_nanos(7_000_000_000);

    fn after(ns: u64) -> Instant {
        START + Duration::from_nanos(ns)
    }

    /// Offers a packet of `cost` every `gap_ns` during `span_ns`. Returns the number of packets that conform.
    fn accepted(bucket: &mut TokenBucket, cost: TokenCost, gap_ns: u64, span_ns: u64) -> u64 {
        (0..span_ns / gap_ns).map(|at| u64::from(bucket.take(after(at * gap_ns), cost))).sum()
    }

    const SPAN_NS: u64 = 100_000_000_000;

    #[test]
    fn bytes_accepted_in_a_hundred_seconds_are_exact() {
        // (kbit/s, burst in kbit, bytes); the offered load is twice the rate.
        for (rate, burst, bytes) in [
            (1000, Some(0), 64),
            (1000, None, 1500),
            (10_007, Some(1000), 1500),
            (33, Some(12), 60),
            (100_000, None, 9000),
        ] {
            let mut bucket = TokenBucket::new(START, rate, burst);
            let gap_ns = bytes * 8_000_000 / u64::from(rate) / 2;
            let passed = accepted(&mut bucket, TokenCost::of_bytes(bytes), gap_ns, SPAN_NS) * bytes * 8;
            let burst_bits = burst.map_or(u64::from(rate) * 1000, |kbit| u64::from(kbit) * 1000);
            let due = u64::from(rate) * 1000 * 100 + burst_bits;
            assert!(passed.abs_diff(due) <= bytes * 8, "{rate} kbit/s, {bytes} bytes: passed {passed}, due {due}");
        }
    }

    #[test]
    fn packets_accepted_in_a_hundred_seconds_are_exact() {
        for (rate, burst) in [(1, Some(0)), (7, Some(3)), (100, None), (9973, Some(500))] {
            let mut bucket = TokenBucket::new(START, rate, burst);
            let passed = accepted(&mut bucket, TokenCost::of_packets(1), 500_000_000 / u64::from(rate), SPAN_NS);
            let due = u64::from(rate) * 100 + burst.map_or(u64::from(rate), u64::from);
            assert!(passed.abs_diff(due) <= 1, "{rate}/s, burst {burst:?}: passed {passed}, due {due}");
        }
    }

    #[test]
    fn odd_nanoseconds_are_not_lost() {
        const DAY: u64 = 86_400;
        let passed = |gap_ns: u64| {
            let mut bucket = TokenBucket::new(START, 1, Some(0));
            (0..DAY).filter(|packet| bucket.take(after(packet * gap_ns), TokenCost::of_packets(1))).count() as u64
        };
        assert_eq!(passed(1_000_000_001), DAY);
        assert_eq!(passed(999_999_999), DAY / 2, "every other one comes just too early");
    }

    #[test]
    fn a_long_idle_time_gives_one_burst() {
        let mut bucket = TokenBucket::new(START, u32::MAX, Some(3));
        for idle_ns in [u64::MAX / 2, u64::MAX - 8_000_000_000] {
            let now = after(idle_ns);
            assert_eq!((0..100).filter(|_| bucket.take(now, TokenCost::of_packets(1))).count(), 3);
        }
    }

    #[test]
    fn extremes_neither_overflow_nor_stick() {
        let zero = |burst| TokenBucket::new(START, 0, burst);
        assert!(!zero(None).take(Instant::FAR, TokenCost::of_packets(1)));
        assert!(!zero(Some(0)).take(Instant::FAR, TokenCost::of_packets(1)));
        let mut burst_only = zero(Some(2));
        assert_eq!((0..9).filter(|_| burst_only.take(Instant::FAR, TokenCost::of_packets(1))).count(), 2);
        let mut huge = TokenBucket::new(START, u32::MAX, Some(u32::MAX));
        for _ in 0..1000 {
            assert!(huge.take(Instant::FAR, TokenCost::of_bytes(65_599)));
        }
        assert!(
            huge.take(Instant::ZERO, TokenCost::of_bytes(u64::MAX)),
            "time that goes back gives nothing and takes nothing"
        );
        assert!(!huge.take(Instant::ZERO, TokenCost::of_packets(u32::MAX)));
        assert!(!huge.take(START, TokenCost::of_packets(1)), "what was paid into the future is not gained again");
    }

    #[test]
    fn a_packet_longer_than_the_burst_passes_and_is_paid_for() {
        // 1 Mbit/s, 1500 bytes of burst; 64 KiB take 524 ms.
        let mut bucket = TokenBucket::new(START, 1000, Some(12));
        assert!(bucket.take(START, TokenCost::of_bytes(65_536)));
        let paid_ns = (65_536 * 8 - 12_000) * 1000;
        assert!(!bucket.take(after(paid_ns), TokenCost::of_bytes(60)));
        assert!(bucket.take(after(paid_ns + 1), TokenCost::of_bytes(60)));
    }

    #[test]
    fn a_changed_rate_gives_no_burst() {
        let mut bucket = TokenBucket::new(START, 10, Some(10));
        assert_eq!((0..20).filter(|_| bucket.take(START, TokenCost::of_packets(1))).count(), 10);
        for rate in 1..100 {
            bucket = bucket.with(START, rate, Some(1000));
        }
        assert!(!bucket.take(START, TokenCost::of_packets(1)));
        let small = TokenBucket::new(START, 10, Some(10)).with(START, 10, Some(1));
        assert_eq!(small.level, PER_UNIT);
    }

    proptest::proptest! {
        /// The bucket agrees with its definition in numbers too wide to saturate.
        #[test]
        fn agrees_with_plain_arithmetic(
            rate in 0_u32..100_000,
            burst in proptest::option::of(0_u32..100),
            packets in proptest::collection::vec((0_u64..50_000_000, 1_u32..4), 1..200),
        ) {
            let mut bucket = TokenBucket::new(START, rate, burst);
            // In units of 10^-9 packets.
            let full = burst.map_or(i128::from(rate) * 1_000_000_000, |burst| i128::from(burst) * 1_000_000_000);
            let (mut now, mut level) = (0_u64, full);
            for (gap_ns, count) in packets {
                now += gap_ns;
                level = (level + i128::from(rate) * i128::from(gap_ns)).min(full);
                let conforms = level > 0 || level == 0 && full == 0 && rate > 0;
                proptest::prop_assert_eq!(bucket.take(after(now), TokenCost::of_packets(count)), conforms);
                if conforms {
                    level -= i128::from(count) * 1_000_000_000;
                }
            }
        }
    }
}
