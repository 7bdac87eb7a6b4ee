//! Pruned tuple space search: before tuples are probed, the packet's values tell which of them can match at all.
//!
//! Tuple space search asks every tuple until what was found cannot be beaten, which costs a hash for each mask. Here the key is
//! cut into slices of 16 bits. For each slice that tuples look at, a packet's value selects the set of tuples that have an entry with
//! that value (or do not look); only tuples that are in all these sets are probed, those of the highest priority first (after
//! Srinivasan, Suri, Varghese: Packet Classification using Tuple Space Search, SIGCOMM 1999, 5; Baboescu, Varghese: Scalable
//! Packet Classification, SIGCOMM 2001, 3).
//!
//! Which tuples a packet passes may be too many, never too few: so whatever would take too long or too much memory is
//! left out, and the same entries are found. What stays linear in the masks is entries that pass every slice, each because of
//! another entry of its tuple, and fail together; packets cannot bring that about, a controller can.
mod column;
mod columns;
mod counts;
mod index;
mod places;
mod pruner;
mod renewal;
mod row;
mod search;
mod sets;
mod slice;
#[cfg(test)]
mod tests;
mod unpruned;

use super::describe::Described;
use super::hash::{EntryHash, Slots, TupleSpace};
use super::{Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use index::{Index, Step};
use renewal::Renewal;
use weir_memory::OutOfMemory;
use weir_packet::{FlowKey, Parsed};
use weir_units::Instant;

/// Slices that are looked at; tuples are not told apart by others. A 5-tuple of IPv6 has 19. Each takes 128 KiB, and 16 KiB per wide
/// column.
const MAX_SLICES: usize = 32;

/// Sets of tuples that can be told apart. Each takes a byte for each eight tuples that there is room for.
const MAX_SETS: usize = 65_535;

/// Up to so many tuples are searched one after the other (measured: a tuple costs about 6 ns then, pruning 25 ns and more).
const MAX_UNPRUNED: usize = 6;

/// What is done when the index is made: that of a small table is complete then.
const FIRST_STEP: Step = Step { tuples: 8, entries: 128 };

/// What is done with each change of the table.
const STEP_OF_CHANGE: Step = Step { tuples: 2, entries: 16 };

/// What is done each time that [`Pruned::settle`] is called.
const STEP_OF_TIME: Step = Step { tuples: 4, entries: 32 };

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    space: TupleSpace,
    /// Present once there were too many tuples to search one after the other, until all entries are gone.
    index: Option<Box<Index>>,
    /// What brings its tuples back into order.
    renewal: Renewal,
    /// Somebody else searches for the time being.
    is_idle: bool,
}

impl Pruned {
    /// The entries.
    pub(crate) const fn entries(&self) -> &EntryHash {
        self.space.entries()
    }

    /// What packets touch of entries, to be changed.
    pub(crate) const fn rows_mut(&mut self) -> &mut Slots {
        self.space.entries_mut().rows_mut()
    }

    /// Says whether this classifier is searched; while it is not, it makes no index.
    pub(crate) fn want_index(&mut self, wants: bool) {
        self.is_idle = !wants;
    }

    /// The index, if a search is better off with it.
    #[inline(always)]
    fn index(&self) -> Option<&Index> {
        let index = self.index.as_deref()?;
        (index.is_complete() && self.entries().tuples().in_order().len() > MAX_UNPRUNED).then_some(index)
    }

    /// Does some of what is left to do for an index that a table without changes is searched best with; says when to call again, if
    /// there is more to do.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Instant> {
        let entries = self.space.entries();
        let index = self.index.as_deref_mut()?;
        if !index.is_complete() {
            index.step(entries, STEP_OF_TIME);
            return Some(now);
        }
        let at = self.renewal.begin_if_quiet(now, entries, index);
        self.renew(STEP_OF_TIME);
        at
    }

    /// Brings the index up a little further after a change.
    fn step(&mut self) {
        let entries = self.space.entries();
        if let Some(index) = &mut self.index {
            if index.is_complete() {
                self.renewal.begin_if_much_has_changed(entries, index);
                self.renew(STEP_OF_CHANGE);
            } else {
                index.step(entries, STEP_OF_CHANGE);
            }
        } else if !self.is_idle && entries.tuples().in_order().len() > MAX_UNPRUNED {
            let mut index = Box::new(Index::new(entries));
            index.step(entries, FIRST_STEP);
            self.index = Some(index);
        }
    }

    /// Goes on with a renewal, if there is one; puts what comes of it in the index's place.
    fn renew(&mut self, step: Step) {
        if let Some(renewed) = self.renewal.step(self.space.entries(), step) {
            self.index = Some(renewed);
        }
    }
}

impl Classifier for Pruned {
    fn make_room(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory> {
        self.space.make_room(id, words)
    }

    fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        let tuple = self.space.entries_mut().insert(id, priority, words);
        if let Some(index) = &mut self.index {
            index.added(self.space.entries(), id, tuple, words);
            self.renewal.added(self.space.entries(), id, tuple, words);
        }
        self.step();
    }

    fn remove(&mut self, id: EntryId, _priority: u16, words: &WordMatches) {
        let tuple = self.space.entries_mut().remove(id);
        let entries = self.space.entries();
        if entries.len() == 0 {
            (self.index, self.renewal) = (None, Renewal::default());
        } else if let (Some(index), Some(tuple)) = (&mut self.index, tuple) {
            index.removed(entries, id, tuple, words);
            self.renewal.removed(entries, id, tuple, words);
        }
        self.step();
    }

    fn find(&self, priority: u16, words: &WordMatches) -> Option<EntryId> {
        self.space.find(priority, words)
    }

    fn words_of(&self, id: EntryId, priority: u16) -> Option<WordMatches> {
        self.space.words_of(id, priority)
    }

    fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        match self.index() {
            Some(index) => index.lookup(self.entries(), key),
            None => self.space.lookup(key),
        }
    }

    fn describe(&self) -> Described {
        let described = self.space.describe();
        if self.index().is_some() { Described { shape: "pruned tuple space", ..described } } else { described }
    }

    fn probes(&self, key: &FlowKey) -> Option<u32> {
        match self.index() {
            Some(index) => Some(index.probes(self.entries(), key)),
            None => self.space.probes(key),
        }
    }

    #[inline(always)]
    fn lookup_burst(
        &self,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        found: &mut [EntryId; MAX_BURST],
        soon: impl Fn(EntryId),
    ) {
        match self.index() {
            Some(index) => index.lookup_burst(self.entries(), keys, lanes, found),
            None => self.space.lookup_burst(keys, lanes, found, soon),
        }
    }
}
