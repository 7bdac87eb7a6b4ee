//! Limits the rate of messages that may come in floods.
use crate::Instant;
use std::time::Duration;

/// Lets one message pass in each interval, and counts the others. For log lines that a peer could cause without
/// limit.
#[derive(Debug)]
pub struct LogThrottle {
    every: Duration,
    next: Instant,
    held_back: u64,
}

impl LogThrottle {
    /// Creates a throttle that lets one message pass per `every`.
    pub fn new(every: Duration) -> LogThrottle {
        LogThrottle { every, next: Instant::ZERO, held_back: 0 }
    }

    /// Returns `None` if the message must be suppressed. Otherwise returns the number of messages suppressed since
    /// the last one that passed.
    pub fn pass(&mut self, now: Instant) -> Option<u64> {
        if now < self.next {
            self.held_back += 1;
            return None;
        }
        self.next = now + self.every;
        Some(std::mem::take(&mut self.held_back))
    }
}

/// Lets a number of things a second happen, and a tenth of them at once (the generic cell rate algorithm, ITU-T I.371,
/// annex A).
#[derive(Debug)]
pub struct RateLimit {
    every: Duration,
    at_once: Duration,
    /// Time at which the next thing is due if all come evenly.
    due: Instant,
}

impl RateLimit {
    /// Creates a limit of `per_s` things a second; of 0, nothing may happen.
    pub fn new(per_s: u32) -> RateLimit {
        let every = Duration::from_secs(1).checked_div(per_s).unwrap_or(Duration::MAX);
        let at_once = every.saturating_mul(per_s.div_ceil(10).saturating_sub(1));
        RateLimit { every, at_once, due: Instant::ZERO }
    }

    /// Returns true if one more thing may happen now, and counts it.
    pub fn take(&mut self, now: Instant) -> bool {
        let due = self.due.max(now);
        let allowed = self.every < Duration::MAX && due.since(now) <= self.at_once;
        if allowed {
            self.due = due + self.every;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_passes_per_interval_and_says_how_many_did_not() {
        let mut throttle = LogThrottle::new(Duration::from_secs(1));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let passed: Vec<_> = [0, 1, 2, 999, 1000, 1500, 5000].map(|ms| throttle.pass(at(ms))).into();
        assert_eq!(passed, [Some(0), None, None, None, Some(3), None, Some(1)]);
    }

    #[test]
    fn a_rate_is_kept_and_a_tenth_of_it_may_come_at_once() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut limit = RateLimit::new(100);
        let taken = |limit: &mut RateLimit, ms| (0..50).filter(|_| limit.take(at(ms))).count();
        assert_eq!([0, 0, 10, 1000].map(|ms| taken(&mut limit, ms)), [10, 0, 1, 10]);
        let per_s = (1000..3000).filter(|ms| limit.take(at(*ms))).count();
        assert_eq!(per_s, 199);
        assert_eq!((taken(&mut RateLimit::new(0), 5), taken(&mut RateLimit::new(1), 5)), (0, 1));
    }
}
