//! Timers for the time-outs of flow entries: a hierarchical timing wheel (Varghese and Lauck: Hashed and Hierarchical
//! Timing Wheels, SOSP 1987). Starting, stopping and ending a timer has a constant cost, whatever the number of
//! timers.
//!
//! Time is divided into ticks of about 17 ms. Each of four levels has 256 slots, of 1, 256, 65,536 and 16,777,216
//! ticks. A timer lies in the lowest level whose slots separate its tick from the present one, and moves down a level
//! when the present tick reaches its slot. Timers whose tick has come are ordered by deadline in a heap. The caller
//! bounds the number of steps done at once.
//!
//! An idle time-out moves with every packet, but its timer does not move. When the timer ends, the entry's last use
//! gives the time of the next check. So packets do no work for timers.
use crate::shape::EntryId;
use crate::slab::ChunkedSlab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_units::Instant;

/// Bits of a time in nanoseconds below a tick.
const TICK_BITS: u32 = 24;
const LEVELS: usize = 4;
/// Bits of a tick's number that select a slot within a level.
const SLOT_BITS: usize = 8;
const SLOTS: usize = 1 << SLOT_BITS;
/// Number of ticks that the wheel covers: two years.
const REACH: u64 = 1 << (LEVELS * SLOT_BITS);
/// Maximum number of timers of a slot that are searched for the earliest deadline. With more timers the wake-up is
/// when the slot begins.
const LOOKED_AT: usize = 16;
/// Capacity of the heap of due timers that is kept when the heap is empty.
const KEPT: usize = 4096;

/// A timer that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimerId(u32);

impl TimerId {
    /// The id of no timer, for entries without time-outs.
    pub(crate) const NONE: TimerId = TimerId(u32::MAX);
}

/// The timers of all flow entries.
#[derive(Debug)]
pub(crate) struct TimeoutWheel {
    timers: ChunkedSlab<EntryTimer>,
    /// The present tick. All timers outside `due` have a later or equal tick.
    tick: u64,
    /// First timer of each slot's list.
    slots: [[u32; SLOTS]; LEVELS],
    /// A bit per slot, set if the slot has timers.
    taken: [[u64; SLOTS / 64]; LEVELS],
    /// Timers whose tick has come, earliest first.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    last_stamp: u64,
}

#[derive(Debug)]
struct EntryTimer {
    at: Instant,
    id: EntryId,
    next: u32,
    previous: u32,
    place: TimerLocation,
    table: u8,
}

/// Location of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimerLocation {
    Slot {
        level: u8,
        slot: u8,
    },
    Due,
    /// Among the due timers, but stopped.
    Stopped,
}

/// End of a slot's list.
const END: u32 = u32::MAX;

impl Default for TimeoutWheel {
    fn default() -> TimeoutWheel {
        TimeoutWheel {
            timers: ChunkedSlab::default(),
            tick: 0,
            slots: [[END; SLOTS]; LEVELS],
            taken: [[0; SLOTS / 64]; LEVELS],
            due: BinaryHeap::new(),
            last_stamp: 0,
        }
    }
}

impl TimeoutWheel {
    /// Returns a stamp for a new entry, unique in this datapath.
    pub(crate) fn stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }

    /// Starts a timer for an entry that ends at `at`.
    pub(crate) fn start(&mut self, at: Instant, table: u8, id: EntryId) -> TimerId {
        let timer = EntryTimer { at, id, next: END, previous: END, place: TimerLocation::Due, table };
        let number = self.timers.insert(timer);
        self.put(number, at);
        TimerId(number)
    }

    /// Stops a timer. Does nothing for [`TimerId::NONE`].
    pub(crate) fn stop(&mut self, timer: TimerId) {
        match self.timers.get_mut(timer.0) {
            Some(there) if there.place == TimerLocation::Due => there.place = TimerLocation::Stopped,
            Some(_) => {
                self.unlink(timer.0);
                self.timers.remove(timer.0);
            }
            None => {}
        }
    }

    /// Removes the next timer that has ended and returns its entry's table and id. Each step decrements `most`; at
    /// zero the search stops.
    pub(crate) fn pop_due(&mut self, now: Instant, most: &mut usize) -> Option<(u8, EntryId)> {
        while *most > 0 && self.turn(now) {
            *most -= 1;
        }
        while *most > 0 && self.due.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            *most -= 1;
            let Reverse((_, number)) = self.due.pop()?;
            let timer = self.timers.remove(number)?;
            if timer.place == TimerLocation::Due {
                return Some((timer.table, timer.id));
            }
        }
        None
    }

    /// Frees some of the memory of ended timers. Returns true if no more is left to free.
    pub(crate) fn give_back(&mut self) -> bool {
        if self.due.is_empty() && self.due.capacity() > KEPT {
            self.due = BinaryHeap::new();
        }
        self.timers.give_back()
    }

    /// Returns the time of the next [`TimeoutWheel::pop_due`] at the latest, if there are timers.
    pub(crate) fn next(&self) -> Option<Instant> {
        let due = self.due.peek().map(|Reverse((at, _))| *at);
        due.into_iter().chain(self.next_of_wheel()).min()
    }

    /// Does one step of advancing the wheel to `now`. Returns false if no step is left.
    fn turn(&mut self, now: Instant) -> bool {
        for level in (0..LEVELS).rev() {
            let number = self.slots[level][slot_of(self.tick, level)];
            if let Some(timer) = self.timers.get(number) {
                let at = timer.at;
                self.unlink(number);
                self.put(number, at);
                return true;
            }
        }
        let present = now.as_nanos() >> TICK_BITS;
        match self.next_slot() {
            Some((_, _, start)) if start <= present => {
                self.tick = start;
                true
            }
            // No later slot with timers begins before the present tick, so all timers stay on their level.
            _ => {
                self.tick = self.tick.max(present);
                false
            }
        }
    }

    /// Inserts a timer into its slot, or into the heap if its tick has come.
    fn put(&mut self, number: u32, at: Instant) {
        let tick = (at.as_nanos() >> TICK_BITS).min(self.tick | (REACH - 1));
        let Some(timer) = self.timers.get_mut(number) else { return };
        if tick <= self.tick {
            timer.place = TimerLocation::Due;
            self.due.push(Reverse((at, number)));
            return;
        }
        let level = (63 - (tick ^ self.tick).leading_zeros() as usize) / SLOT_BITS;
        let slot = slot_of(tick, level);
        let first = std::mem::replace(&mut self.slots[level][slot], number);
        (timer.next, timer.previous) = (first, END);
        timer.place = TimerLocation::Slot { level: level.to_le_bytes()[0], slot: slot.to_le_bytes()[0] };
        if let Some(first) = self.timers.get_mut(first) {
            first.previous = number;
        }
        self.taken[level][slot / 64] |= 1 << (slot % 64);
    }

    /// Removes a timer from its slot.
    fn unlink(&mut self, number: u32) {
        let Some(&EntryTimer { next, previous, place: TimerLocation::Slot { level, slot }, .. }) =
            self.timers.get(number)
        else {
            return;
        };
        if let Some(timer) = self.timers.get_mut(next) {
            timer.previous = previous;
        }
        if let Some(timer) = self.timers.get_mut(previous) {
            timer.next = next;
            return;
        }
        let (level, slot) = (usize::from(level), usize::from(slot));
        self.slots[level][slot] = next;
        if next == END {
            self.taken[level][slot / 64] &= !(1 << (slot % 64));
        }
    }

    /// Returns the first slot after the present ones that has timers: level, slot, and its first tick.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        (0..LEVELS).find_map(|level| {
            let slot = first_after(&self.taken[level], slot_of(self.tick, level))?;
            let below = level * SLOT_BITS;
            let block = self.tick >> below >> SLOT_BITS << SLOT_BITS;
            Some((level, slot, (block | slot as u64) << below))
        })
    }

    fn next_of_wheel(&self) -> Option<Instant> {
        if (0..LEVELS).any(|level| self.slots[level][slot_of(self.tick, level)] != END) {
            // The present slot is only partly emptied, so the next step is due at once.
            return Some(Instant::from_nanos(self.tick << TICK_BITS));
        }
        let (level, slot, start) = self.next_slot()?;
        let mut earliest = Instant::FAR;
        let mut number = self.slots[level][slot];
        for _ in 0..LOOKED_AT {
            let Some(timer) = self.timers.get(number) else { return Some(earliest) };
            earliest = earliest.min(timer.at);
            number = timer.next;
        }
        Some(Instant::from_nanos(start << TICK_BITS))
    }
}

/// Returns the slot of a tick on a level.
fn slot_of(tick: u64, level: usize) -> usize {
    usize::from((tick >> (level * SLOT_BITS)).to_le_bytes()[0])
}

/// Returns the first set bit after bit `after`.
fn first_after(bits: &[u64; SLOTS / 64], after: usize) -> Option<usize> {
    let from = after + 1;
    (from / 64..bits.len()).find_map(|word| {
        let mask = if word == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
        let found = bits[word] & mask;
        (found != 0).then(|| word * 64 + found.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// Runs all timers that have ended, a few steps at a time. Returns the ids of their entries.
    fn due(timers: &mut TimeoutWheel, now: Instant) -> Vec<u32> {
        let mut ended = Vec::new();
        while timers.next().is_some_and(|at| at <= now) {
            let mut most = 3;
            while let Some((_, id)) = timers.pop_due(now, &mut most) {
                ended.push(id.0);
            }
        }
        ended
    }

    #[test]
    fn a_timer_that_lies_far_ahead_is_found_in_time() {
        let mut timers = TimeoutWheel::default();
        for (number, seconds) in [(0, 65_535), (1, 1), (2, 400), (3, 1_000_000_000)] {
            timers.start(Instant::ZERO + Duration::from_secs(seconds), 0, EntryId(number));
        }
        assert_eq!(timers.next(), Some(Instant::ZERO + Duration::from_secs(1)));
        assert_eq!(due(&mut timers, Instant::ZERO + Duration::from_secs(399)), [1]);
        assert_eq!(timers.next(), Some(Instant::ZERO + Duration::from_secs(400)));
        assert_eq!(due(&mut timers, Instant::ZERO + Duration::from_secs(65_535)), [2, 0]);
        assert_eq!(due(&mut timers, Instant::ZERO + Duration::from_secs(999_999_999)), []);
        assert_eq!(due(&mut timers, Instant::ZERO + Duration::from_secs(1_000_000_000)), [3]);
        assert_eq!((timers.next(), timers.timers.n_places()), (None, 0));
    }

    #[test]
    fn one_that_is_stopped_leaves_nothing() {
        let mut timers = TimeoutWheel::default();
        for number in 0..100_000_u64 {
            let timer = timers.start(Instant::from_nanos(number * 40_000_000_000), 0, EntryId(0));
            timers.stop(timer);
        }
        due(&mut timers, Instant::ZERO);
        assert_eq!((timers.next(), timers.timers.n_places(), timers.due.len()), (None, 0, 0));
        timers.stop(TimerId::NONE);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// Timers end at the same times as in a sorted list, whatever is started and stopped in between.
        #[test]
        fn it_does_what_a_sorted_list_does(
            steps in proptest::collection::vec((0..4_u8, 0..40_u32, any::<u32>(), any::<prop::sample::Index>()), 1..200),
        ) {
            let (mut timers, mut list, mut started) = (TimeoutWheel::default(), BTreeSet::new(), Vec::new());
            let mut now = Instant::from_nanos(1 << 40);
            for (number, (kind, magnitude, low, which)) in (0..).zip(steps) {
                let span = Duration::from_nanos((1 << magnitude) | u64::from(low) >> 8);
                match kind {
                    0 | 1 => {
                        started.push((now + span, number, timers.start(now + span, 0, EntryId(number))));
                        list.insert((now + span, number));
                    }
                    2 if !started.is_empty() => {
                        let (at, number, timer) = started.swap_remove(which.index(started.len()));
                        timers.stop(timer);
                        list.remove(&(at, number));
                    }
                    _ => {
                        now += span;
                        let mut ended = due(&mut timers, now);
                        let mut expected: Vec<u32> = list.iter().filter(|(at, _)| *at <= now).map(|(_, n)| *n).collect();
                        list.retain(|(at, _)| *at > now);
                        started.retain(|(at, ..)| *at > now);
                        ended.sort_unstable();
                        expected.sort_unstable();
                        prop_assert_eq!(ended, expected);
                    }
                }
                // A wake-up may be early but never late.
                if let Some((at, _)) = list.first() {
                    prop_assert!(timers.next().is_some_and(|next| next <= *at));
                }
            }
        }
    }
}
