//! Keeps the service's time from going back when the machine's clock does.
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_units::Instant;

/// Shortest step back of the machine's clock that is reported.
const REPORTED: Duration = Duration::from_secs(1);

/// Time of the service: the machine's, in nanoseconds since 1970, except that it never goes back.
///
/// When the machine's clock goes back, the service's time stays ahead of it by as much from then on. So lifetimes and
/// stages keep their durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceClock {
    latest_ns: u64,
    ahead_ns: u64,
}

impl ServiceClock {
    /// Returns the time at the machine's time `wall`, and by how much the machine's clock went back if it did.
    pub(super) fn advance(&mut self, wall: Instant) -> (Instant, Option<Duration>) {
        let time = wall.as_nanos().saturating_add(self.ahead_ns);
        let back = self.latest_ns.saturating_sub(time);
        self.ahead_ns = self.ahead_ns.saturating_add(back);
        self.latest_ns = self.latest_ns.max(time);
        let back = Duration::from_nanos(back);
        (Instant::from_nanos(self.latest_ns), (back >= REPORTED).then_some(back))
    }

    /// Returns the latest time that was given.
    pub fn latest(&self) -> Instant {
        Instant::from_nanos(self.latest_ns)
    }

    /// Returns the machine's time at a time of the service.
    pub(super) fn wall(&self, time: Instant) -> Instant {
        Instant::from_nanos(time.as_nanos().saturating_sub(self.ahead_ns))
    }
}
