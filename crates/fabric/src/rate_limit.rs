//! Rate limits in exact time: computes when the next packet may be sent.
use std::time::Duration;
use weir_units::{Bps, Instant};

/// Bits of a nanosecond's fraction. Rounding each packet to nanoseconds would lose 1.5 % of 10 Gbit/s with small
/// packets.
const FRACTION_BITS: u32 = 32;

/// Rate limit that holds over any time span, except for a slack: the generic cell rate algorithm (ITU-T I.371, annex
/// A).
#[derive(Debug, Clone, Copy)]
pub(crate) struct GcraLimiter {
    /// Time per byte, in fractions of a nanosecond.
    per_byte: u128,
    /// Time at which all bytes sent so far would be through at the rate, in fractions.
    theoretical_arrival: u128,
    /// Time before `theoretical_arrival` at which the next packet may already be sent, in fractions.
    slack: u128,
    /// Bytes of each packet that do not count.
    uncounted: u32,
}

impl GcraLimiter {
    pub(crate) fn new(rate: Bps, slack: Duration) -> GcraLimiter {
        let per_byte = (8_000_000_000u128 << FRACTION_BITS).div_ceil(u128::from(rate.0.max(1)));
        // The slack is at most one hour, so that sums cannot overflow.
        let slack = slack.min(Duration::from_secs(3600)).as_nanos() << FRACTION_BITS;
        GcraLimiter { per_byte, theoretical_arrival: 0, slack, uncounted: 0 }
    }

    /// Returns this rate limit, for packets of which so many bytes do not count.
    pub(crate) fn not_counting(self, uncounted: u32) -> GcraLimiter {
        GcraLimiter { uncounted, ..self }
    }

    /// Returns when the next packet may be sent, rounded up to a nanosecond.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        nanos_up(self.theoretical_arrival.saturating_sub(self.slack))
    }

    /// Returns true if the next packet may be sent now.
    #[inline]
    pub(crate) fn may_go(&self, now: Instant) -> bool {
        self.theoretical_arrival <= fractions(now) + self.slack
    }

    /// Counts a packet sent now.
    #[inline]
    pub(crate) fn charge(&mut self, now: Instant, bytes: u32) {
        let now = fractions(now);
        // An idle time below one nanosecond comes from the rounding in `next`.
        let start = if now < self.theoretical_arrival + (1 << FRACTION_BITS) { self.theoretical_arrival } else { now };
        self.theoretical_arrival = start + self.per_byte * u128::from(bytes.saturating_sub(self.uncounted));
    }

    /// Returns this rate limit with the history of another one.
    pub(crate) fn with_history_of(self, before: Option<GcraLimiter>) -> GcraLimiter {
        GcraLimiter {
            theoretical_arrival: before.map_or(self.theoretical_arrival, |before| before.theoretical_arrival),
            ..self
        }
    }
}

#[inline]
fn fractions(at: Instant) -> u128 {
    u128::from(at.as_nanos()) << FRACTION_BITS
}

#[inline]
fn nanos_up(fractions: u128) -> Instant {
    let ns = (fractions + (1 << FRACTION_BITS) - 1) >> FRACTION_BITS;
    Instant::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// An output's line: sends one packet after the other, each for its time at the rate.
///
/// Times are computed from the rate, not from when the caller runs. `catch_up` bounds how much a late caller makes up
/// for: a late line immediately sends what it should have sent, up to that time's worth, and so loses no rate. In
/// virtual time `catch_up` is zero.
#[derive(Debug, Clone)]
pub struct OutputLine {
    pace: GcraLimiter,
}

impl OutputLine {
    /// Creates a free line. `catch_up` is capped at one hour.
    pub fn new(rate: Bps, catch_up: Duration) -> OutputLine {
        OutputLine { pace: GcraLimiter::new(rate, catch_up) }
    }

    /// Returns true if the next packet may start now.
    #[inline]
    pub fn is_free(&self, now: Instant) -> bool {
        self.pace.may_go(now)
    }

    /// Returns when the next packet may start, rounded up to a nanosecond.
    #[inline]
    pub fn free_at(&self) -> Instant {
        self.pace.next()
    }

    /// Counts a packet that starts now. Returns when the next one may start.
    #[inline]
    pub fn send(&mut self, now: Instant, bytes: u32) -> Instant {
        self.pace.charge(now, bytes);
        self.free_at()
    }

    /// Changes the rate from the next packet on.
    pub fn set_rate(&mut self, rate: Bps) {
        let slack = Duration::from_nanos(nanos_up(self.pace.slack).as_nanos());
        self.pace = GcraLimiter::new(rate, slack).with_history_of(Some(self.pace));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_one_after_the_other() {
        let mut line = OutputLine::new(Bps(1_000_000_000), Duration::ZERO);
        assert!(line.is_free(Instant::ZERO));
        assert_eq!(line.send(Instant::from_nanos(10), 100), Instant::from_nanos(810));
        assert!(!line.is_free(Instant::from_nanos(809)) && line.is_free(Instant::from_nanos(810)));
        assert_eq!(line.send(Instant::from_nanos(900), 1), Instant::from_nanos(908), "idle time is gone");
    }

    #[test]
    fn small_packets_get_the_whole_rate() {
        let mut line = OutputLine::new(Bps(10_000_000_000), Duration::ZERO);
        for _ in 0..1000 {
            let now = line.free_at();
            line.send(now, 64);
        }
        // A byte's time is rounded up by a fraction, so that no rate is exceeded.
        assert_eq!(line.free_at(), Instant::from_nanos(51_201));
    }

    #[test]
    fn a_late_question_costs_no_rate() {
        let mut line = OutputLine::new(Bps(1_000_000_000), Duration::from_micros(50));
        let (mut now, mut sent) = (Instant::ZERO, 0);
        while now < Instant::from_nanos(10_000_000) {
            while line.is_free(now) {
                line.send(now, 1500);
                sent += 1500;
            }
            now += Duration::from_micros(40);
        }
        // 10 ms of 1 Gbit/s, and at most 50 us and one packet more.
        assert!((1_250_000..=1_250_000 + 6250 + 1500).contains(&sent), "{sent}");
    }
}
