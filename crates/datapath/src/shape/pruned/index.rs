//! The pruner of a table's tuples, brought up step by step: a table may have a million entries when it gets one mask too many.
use super::columns::Bit;
use super::pruner::Pruner;
use super::ranks::Ranks;
use crate::shape::hash::{EntryHash, TupleId};
use crate::shape::{EntryId, WordMatches};

/// Places of entries that are looked at in one step.
const STEP: usize = 32;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) pruner: Pruner,
    pub(super) ranks: Ranks,
    /// By tuple.
    places: Vec<Place>,
    /// By place in the columns: the tuple.
    tuples: Vec<Option<TupleId>>,
    /// How many tuples have no place.
    unplaced: usize,
    /// Entries below this are counted in, others not yet.
    counted: usize,
    is_complete: bool,
}

/// Where a tuple is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// It has no entries.
    #[default]
    None,
    /// In the pruner's columns.
    At(Bit),
    /// There was no place: it is asked after all others.
    Unplaced,
}

impl Index {
    /// For these entries; none is counted yet.
    pub(super) fn new(entries: &EntryHash) -> Index {
        let mut index = Index::default();
        entries.tuples().in_order().for_each(|(_, tuple)| index.place(entries, tuple));
        index
    }

    /// Whether all entries are counted in: before, it must not be used.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The tuple at a place in the columns.
    #[inline(always)]
    pub(super) fn tuple(&self, place: usize) -> Option<TupleId> {
        self.tuples.get(place).copied().flatten()
    }

    /// How many tuples are not pruned, because there is no place for them.
    pub(super) fn unplaced(&self) -> usize {
        self.unplaced
    }

    /// Whether the tuple is not pruned.
    pub(super) fn is_unplaced(&self, tuple: TupleId) -> bool {
        self.place_of(tuple) == Place::Unplaced
    }

    /// Notes that an entry was added.
    pub(super) fn added(&mut self, entries: &EntryHash, id: EntryId, tuple: TupleId, words: &WordMatches) {
        if self.place_of(tuple) == Place::None {
            self.place(entries, tuple);
        }
        let Place::At(bit) = self.place_of(tuple) else { return };
        self.ranks.set(usize::from(bit), entries.tuples().get(tuple).highest());
        if self.has_counted(id) {
            self.pruner.add(bit, words.iter().map(|word| word.value));
        }
    }

    /// Notes that an entry was removed.
    pub(super) fn removed(&mut self, entries: &EntryHash, id: EntryId, tuple: TupleId, words: &WordMatches) {
        let left = entries.tuples().get(tuple);
        let place = self.place_of(tuple);
        if let Place::At(bit) = place {
            if self.has_counted(id) {
                self.pruner.remove(bit, words.iter().map(|word| word.value));
            }
            self.ranks.set(usize::from(bit), if left.len() == 0 { 0 } else { left.highest() });
        }
        if left.len() > 0 || place == Place::None {
            return;
        }
        self.places[tuple.index()] = Place::None;
        match place {
            Place::At(bit) => {
                self.pruner.remove_tuple(bit);
                self.tuples[usize::from(bit)] = None;
            }
            _ => self.unplaced -= 1,
        }
    }

    fn place_of(&self, tuple: TupleId) -> Place {
        self.places.get(tuple.index()).copied().unwrap_or_default()
    }

    fn has_counted(&self, id: EntryId) -> bool {
        self.is_complete || id.index() < self.counted
    }

    /// Counts some more entries in.
    pub(super) fn step(&mut self, entries: &EntryHash) {
        if self.is_complete {
            return;
        }
        for (tuple, words) in entries.placed(self.counted, STEP) {
            if let Place::At(bit) = self.place_of(tuple) {
                self.pruner.add(bit, words);
            }
        }
        self.counted += STEP;
        self.is_complete = self.counted >= entries.n_places();
    }

    /// Gives a tuple, of which no entry is counted yet, a place if there is one.
    fn place(&mut self, entries: &EntryHash, tuple: TupleId) {
        let of = entries.tuples().get(tuple);
        if self.places.len() <= tuple.index() {
            self.places.resize(tuple.index() + 1, Place::None);
        }
        let Some(bit) = self.pruner.add_tuple(of.words().iter().copied()) else {
            self.places[tuple.index()] = Place::Unplaced;
            self.unplaced += 1;
            return;
        };
        self.places[tuple.index()] = Place::At(bit);
        if self.tuples.len() <= usize::from(bit) {
            self.tuples.resize(usize::from(bit) + 1, None);
        }
        self.tuples[usize::from(bit)] = Some(tuple);
        self.ranks.set(usize::from(bit), of.highest());
    }
}
