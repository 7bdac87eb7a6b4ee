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
}
