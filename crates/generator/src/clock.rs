//! Clock of the timestamps that packets carry: another process, or another machine with synchronised time, can read
//! it too.
use weir_units::{Clock, Epoch, Instant, SystemClock};

/// Number of readings of both clocks, to find the pair of readings closest to each other.
const TRIES: u32 = 16;

/// Clock of this process, with the offset from its readings to timestamps.
#[derive(Debug, Clone, Copy)]
pub struct StampClock {
    clock: SystemClock,
    offset_ns: u64,
    epoch: Epoch,
}

impl StampClock {
    /// Starts a clock and measures its offset to `epoch`.
    pub fn start(epoch: Epoch) -> StampClock {
        let clock = SystemClock::start();
        // The shortest reading is the one closest to the middle of the two readings around it.
        let read = |_| {
            let before = clock.now().as_nanos();
            let other = epoch.now_ns();
            let after = clock.now().as_nanos();
            (after - before, other.saturating_sub(before + (after - before) / 2))
        };
        let (_, offset_ns) = (0..TRIES).map(read).min().unwrap_or_default();
        StampClock { clock, offset_ns, epoch }
    }

    /// Returns this process's clock.
    pub(crate) fn clock(&self) -> SystemClock {
        self.clock
    }

    /// Returns the current time of this process's clock.
    #[inline]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Converts a time of this process's clock to a timestamp in nanoseconds.
    #[inline]
    pub fn stamp(&self, at: Instant) -> u64 {
        at.as_nanos().saturating_add(self.offset_ns)
    }

    /// Returns true if timestamps count from 1970.
    pub fn is_wall(&self) -> bool {
        self.epoch == Epoch::Wall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clocks_of_a_machine_give_the_same_stamps() {
        for epoch in [Epoch::Boot, Epoch::Wall] {
            let (one, other) = (StampClock::start(epoch), StampClock::start(epoch));
            // Timestamps read in turn decrease by at most the error of the offsets.
            let mut last = 0;
            for _ in 0..100 {
                for clock in [one, other] {
                    let stamp = clock.stamp(clock.now());
                    assert!(stamp + 2_000 > last, "{stamp} after {last}");
                    last = stamp;
                }
            }
        }
        assert!(StampClock::start(Epoch::Wall).stamp(Instant::ZERO) > 1_700_000_000_000_000_000, "since 1970");
    }
}
