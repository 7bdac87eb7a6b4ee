//! When entries end: a heap of deadlines, so that expiring one entry never looks at all of them.
//!
//! An idle time-out moves with every packet; its timer does not. When it is up, the entry's last use says when to look
//! again, so packets pay nothing. Timers of entries that are gone stay until they are up or make up most of the heap.
use crate::shape::EntryId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_units::Instant;

/// Looks at an entry at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub(crate) at: Instant,
    pub(crate) stamp: u64,
    pub(crate) table: u8,
    pub(crate) id: EntryId,
}

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
    /// Timers whose entry is gone, at most: an entry may go between its timer's end and renewal.
    stale: usize,
    last_stamp: u64,
}

/// Stale timers that are always borne, so that small tables never sweep.
const STALE_BORNE: usize = 1024;

impl Timers {
    /// A stamp for a new entry.
    pub(crate) fn stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }

    /// Starts a timer.
    pub(crate) fn start(&mut self, timer: Timer) {
        self.heap.push(Reverse(timer));
    }

    /// Says that an entry with a timer is gone; `is_live` tells whether a timer's entry is still there.
    pub(crate) fn gone(&mut self, is_live: impl Fn(&Timer) -> bool) {
        self.stale += 1;
        if self.stale > STALE_BORNE && self.stale * 2 > self.heap.len() {
            self.sweep(is_live);
        }
    }

    /// Forgets the timers of all entries that are gone.
    pub(crate) fn sweep(&mut self, is_live: impl Fn(&Timer) -> bool) {
        self.heap.retain(|Reverse(timer)| is_live(timer));
        self.stale = 0;
    }

    /// Takes the next timer that is up.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(timer)| timer)
    }

    /// When the next timer is up.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(timer)| timer.at)
    }

    /// Says that a timer taken was of an entry that is gone.
    pub(crate) fn was_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_of_entries_that_are_gone_do_not_pile_up() {
        let mut timers = Timers::default();
        let timer = |stamp| Timer { at: Instant::from_nanos(u64::MAX - stamp), stamp, table: 0, id: EntryId(0) };
        timers.start(timer(0));
        for _ in 0..100_000 {
            let stamp = timers.stamp();
            timers.start(timer(stamp));
            timers.gone(|timer| timer.stamp == 0);
        }
        assert!(timers.heap.len() <= 2 * STALE_BORNE + 2, "{}", timers.heap.len());
        timers.heap.retain(|Reverse(timer)| timer.stamp == 0);
        assert_eq!(timers.pop_due(Instant::FAR), Some(timer(0)));
    }
}
