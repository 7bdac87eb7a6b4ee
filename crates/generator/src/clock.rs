//! The clock that packets carry: one that another process, or another machine with the same time, reads too.
use weir_units::{Clock, Epoch, Instant, SystemClock};

/// How often the two clocks are read, to find the pair of readings that are nearest to each other.
const TRIES: u32 = 16;

/// This process's clock, and what to add to its readings for a stamp.
#[derive(Debug, Clone, Copy)]
pub struct StampClock {
    clock: SystemClock,
    offset_ns: u64,
    epoch: Epoch,
}

impl StampClock {
    /// Looks at both clocks.
    pub fn start(epoch: Epoch) -> StampClock {
        let clock = SystemClock::start();
        // The reading that took least time is the one nearest to the middle of the two around it.
        let read = |_| {
            let before = clock.now().as_nanos();
            let other = epoch.now_ns();
            let after = clock.now().as_nanos();
            (after - before, other.saturating_sub(before + (after - before) / 2))
        };
        let (_, offset_ns) = (0..TRIES).map(read).min().unwrap_or_default();
        StampClock { clock, offset_ns, epoch }
    }

    /// This process's clock.
    pub(crate) fn clock(&self) -> SystemClock {
        self.clock
    }

    /// Now, by this process's clock.
    #[inline]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// A time of this process's clock as a stamp, in nanoseconds.
    #[inline]
    pub fn stamp(&self, at: Instant) -> u64 {
        at.as_nanos().saturating_add(self.offset_ns)
    }

    /// Whether stamps count from 1970.
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
            // Read in turn, stamps never go back by more than the offsets are off.
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
