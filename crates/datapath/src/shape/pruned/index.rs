//! Index over a table's tuples: the pruner, built step by step. Building it at once would take too long: a table may
//! have a million entries when it gets one mask too many for a search without pruning, and thousands of masks when its
//! index is renewed.
//!
//! First all present tuples get places, those of the highest priority first. Then all entries are counted. Entries
//! may be inserted and removed meanwhile; changes of entries that are not counted yet are ignored.
use super::columns::ColumnPlace;
use super::probe_table::ProbeTable;
use super::pruner::TuplePruner;
use super::unpruned::UnprunedTuples;
use crate::shape::hash::{EntryHashTable, TupleId};
use crate::shape::{EntryId, WordMatches};
use std::collections::VecDeque;

/// Amount of work in one step: tuples that get places (some microseconds each), and places of entries that are
/// examined (less than a microsecond each).
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexBudget {
    pub(super) tuples: usize,
    pub(super) entries: usize,
}

/// Index over a table's tuples: see the [module](self).
#[derive(Debug, Default)]
pub(super) struct PrunerIndex {
    pub(super) pruner: TuplePruner,
    pub(super) places: ProbeTable,
    unpruned: UnprunedTuples,
    /// By tuple: its place.
    place_of: Vec<TuplePlace>,
    /// Tuples that wait for places. Some may have no entries any more, or occur twice.
    waiting: VecDeque<TupleId>,
    /// Entries below this id are counted, others are not yet.
    counted: usize,
    is_complete: bool,
}

/// Place of a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum TuplePlace {
    /// No place: the tuple has no entries, or waits for a place.
    #[default]
    None,
    /// Place in the pruner's columns.
    At(ColumnPlace),
    /// Among the unpruned tuples, filed under this highest priority.
    Unpruned(u16),
}

impl PrunerIndex {
    /// Creates an index for these entries, without any tuple in it yet.
    pub(super) fn new(entries: &EntryHashTable) -> PrunerIndex {
        let waiting = entries.tuples().in_order().map(|(_, tuple)| tuple).collect();
        PrunerIndex { waiting, ..PrunerIndex::default() }
    }

    /// Returns true if all entries are counted. The index must not be used before.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the tuples that are not in the columns.
    #[inline(always)]
    pub(super) const fn unpruned(&self) -> &UnprunedTuples {
        &self.unpruned
    }

    /// Updates the index after an entry was inserted.
    pub(super) fn added(&mut self, entries: &EntryHashTable, id: EntryId, tuple: TupleId, words: &WordMatches) {
        let highest = entries.tuples().get(tuple).highest();
        match self.place_of(tuple) {
            TuplePlace::None if self.waiting.is_empty() => self.place(entries, tuple),
            TuplePlace::None => self.waiting.push_back(tuple),
            _ => self.set_highest(tuple, highest),
        }
        if let TuplePlace::At(bit) = self.place_of(tuple)
            && self.has_counted(id)
        {
            self.pruner.add(bit, words.iter().map(|word| word.value));
        }
    }

    /// Updates the index after an entry was removed.
    pub(super) fn removed(&mut self, entries: &EntryHashTable, id: EntryId, tuple: TupleId, words: &WordMatches) {
        let left = entries.tuples().get(tuple);
        if let TuplePlace::At(bit) = self.place_of(tuple)
            && self.has_counted(id)
        {
            self.pruner.remove(bit, words.iter().map(|word| word.value));
        }
        if left.len() > 0 {
            self.set_highest(tuple, left.highest());
        } else {
            self.displace(tuple);
        }
    }

    fn place_of(&self, tuple: TupleId) -> TuplePlace {
        self.place_of.get(tuple.index()).copied().unwrap_or_default()
    }

    fn has_counted(&self, id: EntryId) -> bool {
        self.is_complete || id.index() < self.counted
    }

    /// Continues the construction; does nothing once it is complete.
    pub(super) fn step(&mut self, entries: &EntryHashTable, step: IndexBudget) {
        if self.is_complete {
            return;
        }
        for _ in 0..step.tuples {
            let Some(tuple) = self.waiting.pop_front() else { break };
            // A tuple that was removed meanwhile has no entries.
            if self.place_of(tuple) == TuplePlace::None && entries.tuples().get(tuple).len() > 0 {
                self.place(entries, tuple);
            }
        }
        if self.waiting.is_empty() {
            self.count(entries, step.entries);
        }
    }

    /// Counts the entries in the next `most` places.
    fn count(&mut self, entries: &EntryHashTable, most: usize) {
        for (tuple, words) in entries.placed(self.counted, most) {
            if let TuplePlace::At(bit) = self.place_of(tuple) {
                self.pruner.add(bit, words);
            }
        }
        self.counted += most;
        self.is_complete = self.counted >= entries.n_places();
    }

    /// Gives a tuple a place in the columns, if one is free; otherwise adds it to the unpruned tuples. No entry of
    /// the tuple may be counted yet.
    fn place(&mut self, entries: &EntryHashTable, tuple: TupleId) {
        let of = entries.tuples().get(tuple);
        let place = match of.words() {
            [] => None,
            words => self.pruner.add_tuple(words.iter().copied()),
        };
        if self.place_of.len() <= tuple.index() {
            self.place_of.resize(tuple.index() + 1, TuplePlace::None);
        }
        self.place_of[tuple.index()] = match place {
            Some(bit) => {
                self.places.put(bit.into(), entries.probe(tuple), of.highest());
                TuplePlace::At(bit)
            }
            None => {
                self.unpruned.add(of.highest(), entries.probe(tuple));
                TuplePlace::Unpruned(of.highest())
            }
        };
    }

    fn set_highest(&mut self, tuple: TupleId, highest: u16) {
        match self.place_of(tuple) {
            TuplePlace::At(bit) => self.places.set_highest(bit.into(), highest),
            TuplePlace::Unpruned(before) if before != highest => {
                if let Some(probe) = self.unpruned.remove(before, tuple) {
                    self.unpruned.add(highest, probe);
                    self.place_of[tuple.index()] = TuplePlace::Unpruned(highest);
                }
            }
            TuplePlace::Unpruned(_) | TuplePlace::None => {}
        }
    }

    /// Releases the place of a tuple that has no entries any more.
    fn displace(&mut self, tuple: TupleId) {
        match self.place_of(tuple) {
            TuplePlace::None => return,
            TuplePlace::At(bit) => {
                self.places.clear(bit.into());
                self.pruner.remove_tuple(bit);
            }
            TuplePlace::Unpruned(highest) => {
                self.unpruned.remove(highest, tuple);
            }
        }
        self.place_of[tuple.index()] = TuplePlace::None;
    }
}
