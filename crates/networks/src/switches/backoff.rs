//! Spaces the attempts to reach a switch that does not answer.
use std::time::Duration;
use weir_units::Instant;

/// Wait after the first failure; each further one doubles it.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait.
const LONGEST: Duration = Duration::from_secs(60);

/// Failed attempts to reach a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchBackoff {
    failures: u32,
    /// Time of the next attempt.
    next: Instant,
    /// Reason of the last failure.
    problem: String,
}

impl SwitchBackoff {
    /// Notes a failure at `now`.
    pub fn failed(&mut self, now: Instant, problem: String) {
        let wait = FIRST.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        (self.failures, self.next, self.problem) = (self.failures + 1, now + wait, problem);
    }

    /// Returns the time of the next attempt.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Returns true if it is too early for another attempt at `now`. A clock that went back does not prolong the wait.
    pub fn is_waiting(&self, now: Instant) -> bool {
        now < self.next && self.next - now <= LONGEST
    }

    /// Returns the reason of the last failure.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}
