//! Limits the time for packet-ins that are read only to be dropped.
//!
//! Reading all that switches send keeps the newest packet-ins, but takes time from those that are answered. So drops
//! get a small part of the time. Once it is used up, a switch is read from only as far as its queue has room. The rest
//! waits in its socket, until the socket is full and the switch drops what it cannot send.
//!
//! Source of the rule: the generic cell rate algorithm (ITU-T I.371, annex A), with drops as cells.
use std::time::Duration;
use weir_units::Instant;

/// Time that each drop takes, in nanoseconds: to copy it out of the socket, to sort it, and to drop an older one.
const DROP_NS: u64 = 100;
/// Drops take one of so many parts of the time.
const PARTS: u64 = 50;
/// Time after which all drops so far would be within their part of the time, from which on there is none for more.
const TOLERANCE: Duration = Duration::from_millis(10);

/// Time for drops.
#[derive(Debug, Default)]
pub(super) struct DropBudget {
    /// Time at which all drops so far are within their part of the time.
    within_at: Instant,
}

impl DropBudget {
    /// Takes the time of drops.
    pub(super) fn spend(&mut self, now: Instant, drops: u64) {
        self.within_at = self.within_at.max(now) + Duration::from_nanos(drops * DROP_NS * PARTS);
    }

    /// Returns true if there is time for drops.
    pub(super) fn has_time(&self, now: Instant) -> bool {
        self.within_at < now + TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_take_a_fiftieth_of_the_time_after_a_first_burst() {
        let (mut budget, mut drops) = (DropBudget::default(), 0);
        let second = 1_000_000_000;
        for now in (0..second).step_by(10_000).map(Instant::from_nanos) {
            if budget.has_time(now) {
                budget.spend(now, 300);
                drops += 300;
            }
        }
        let burst = u64::from(TOLERANCE.subsec_nanos()) / DROP_NS / PARTS;
        let expected = second / DROP_NS / PARTS + burst;
        assert!((expected..expected + 300).contains(&drops), "{drops}, expected {expected}");
    }
}
