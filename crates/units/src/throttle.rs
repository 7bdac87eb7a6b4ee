//! Messages that may come in floods, one of them at a time.
use crate::Instant;
use std::time::Duration;

/// Lets one of many through per interval, and counts the others: for log lines that a peer could cause without end.
#[derive(Debug)]
pub struct Throttle {
    every: Duration,
    next: Instant,
    held_back: u64,
}

impl Throttle {
    /// Lets one through in `every`.
    pub fn new(every: Duration) -> Throttle {
        Throttle { every, next: Instant::ZERO, held_back: 0 }
    }

    /// Whether this one may pass; if so, how many were held back since the last that did.
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
        let mut throttle = Throttle::new(Duration::from_secs(1));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let passed: Vec<_> = [0, 1, 2, 999, 1000, 1500, 5000].map(|ms| throttle.pass(at(ms))).into();
        assert_eq!(passed, [Some(0), None, None, None, Some(3), None, Some(1)]);
    }
}
