//! Pruned tuple space search: uses a packet's values to find the tuples that can match it before any tuple is probed.
//!
//! Tuple space search probes every tuple until no further tuple can have a higher priority than the entry found, which
//! costs a hash for each mask. Here the flow key is cut into slices of 16 bits. For each slice that the masks of tuples
//! cover, a packet's value selects the set of tuples that have an entry with that value (or whose mask does not cover
//! the slice). Only tuples in all these sets are probed, those of the highest priority first (after Srinivasan, Suri,
//! Varghese: Packet Classification using Tuple Space Search, SIGCOMM 1999, 5; Baboescu, Varghese: Scalable Packet
//! Classification, SIGCOMM 2001, 3).
//!
//! The sets may contain too many tuples, never too few. What would take too long or too much memory is therefore left
//! out, without changing the entries found. The cost stays linear in the number of masks if tuples pass every slice,
//! each slice because of a different entry, without any entry that matches as a whole. Packets cannot cause this; a
//! controller can.
mod column;
mod columns;
mod counts;
mod index;
mod index_rebuild;
mod probe_table;
mod pruner;
mod search;
mod sets;
mod slice;
#[cfg(test)]
mod tests;
mod tuple_set;
mod unpruned;

use super::describe::ClassifierInfo;
use super::hash::{EntryHashTable, EntryRows, TupleSpace};
use super::{BurstEntries, BurstHeaders, Classifier, EntryId, Lanes, WordMatches};
use index::{IndexBudget, PrunerIndex};
use index_rebuild::IndexRebuild;
use weir_memory::OutOfMemory;
use weir_packet::FlowKey;
use weir_units::Instant;

/// Maximum number of slices in use. Further slices do not distinguish tuples. A 5-tuple of IPv6 has 19. Each slice
/// takes 128 KiB, and 16 KiB per wide column.
const MAX_SLICES: usize = 32;

/// Maximum number of different sets of tuples. Each takes one byte for every eight places in the columns.
const MAX_SETS: usize = 65_535;

/// Maximum number of tuples that are searched one after the other (measured: a tuple then costs about 6 ns, pruning
/// 25 ns and more).
const MAX_UNPRUNED: usize = 6;

/// Work done when the index is created. For a small table this completes the index.
const FIRST_STEP: IndexBudget = IndexBudget { tuples: 8, entries: 128 };

/// Work done with each change of the table.
const STEP_OF_CHANGE: IndexBudget = IndexBudget { tuples: 2, entries: 16 };

/// Work done in each call of [`PrunedTupleSpace::settle`].
const STEP_OF_TIME: IndexBudget = IndexBudget { tuples: 4, entries: 32 };

/// Pruned tuple space search over a table's entries: see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct PrunedTupleSpace {
    space: TupleSpace,
    /// Index of the tuples. Present from the time there were too many tuples to search one after the other until all
    /// entries are gone.
    index: Option<Box<PrunerIndex>>,
    /// Rebuild of the index, which sorts the tuples by priority again.
    renewal: IndexRebuild,
    /// True while another classifier serves the lookups.
    is_idle: bool,
}

impl PrunedTupleSpace {
    /// Returns the entries.
    pub(crate) const fn entries(&self) -> &EntryHashTable {
        self.space.entries()
    }

    /// Returns the rows (the memory that packets touch of each entry) for modification.
    pub(crate) const fn rows_mut(&mut self) -> &mut EntryRows {
        self.space.entries_mut().rows_mut()
    }

    /// States whether this classifier serves lookups. While it does not, it creates no index.
    pub(crate) fn want_index(&mut self, wants: bool) {
        self.is_idle = !wants;
    }

    /// Returns the index if a search is faster with it.
    #[inline(always)]
    fn index(&self) -> Option<&PrunerIndex> {
        let index = self.index.as_deref()?;
        (index.is_complete() && self.entries().tuples().in_order().len() > MAX_UNPRUNED).then_some(index)
    }

    /// Continues deferred work on the index. Returns the time of the next call if work is left.
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

    /// Continues the construction of the index after a change.
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
            let mut index = Box::new(PrunerIndex::new(entries));
            index.step(entries, FIRST_STEP);
            self.index = Some(index);
        }
    }

    /// Continues a renewal, if there is one. When it is complete, its result replaces the index.
    fn renew(&mut self, step: IndexBudget) {
        if let Some(renewed) = self.renewal.step(self.space.entries(), step) {
            self.index = Some(renewed);
        }
    }
}

impl Classifier for PrunedTupleSpace {
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
            (self.index, self.renewal) = (None, IndexRebuild::default());
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

    fn describe(&self) -> ClassifierInfo {
        let described = self.space.describe();
        if self.index().is_some() { ClassifierInfo { shape: "pruned tuple space", ..described } } else { described }
    }

    fn probes(&self, key: &FlowKey) -> Option<u32> {
        match self.index() {
            Some(index) => Some(index.probes(self.entries(), key)),
            None => self.space.probes(key),
        }
    }

    #[inline(always)]
    fn lookup_burst(&self, keys: &BurstHeaders, lanes: Lanes, found: &mut BurstEntries, soon: impl Fn(EntryId)) {
        match self.index() {
            Some(index) => index.lookup_burst(self.entries(), keys, lanes, found),
            None => self.space.lookup_burst(keys, lanes, found, soon),
        }
    }
}
