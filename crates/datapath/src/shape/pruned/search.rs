//! Probing the tuples that a packet may match, until what was found cannot be beaten.
//!
//! Tuples are asked in the order of their places: that of their highest priorities when entries came in that order, otherwise
//! not quite, and some are asked that a search by priority would not have come to. Where it ends is by priority alone.
use super::index::Index;
use super::row::{Line, Row};
use crate::shape::hash::{EntryHash, TupleId};
use crate::shape::{EntryId, Lanes, MAX_BURST};
use weir_packet::{FlowKey, Parsed};

/// A search for one packet's entry.
struct Search<'a, T> {
    /// Counts the tuples that are asked, if somebody wants to know.
    tally: T,
    found: Option<(u16, EntryId)>,
    index: &'a Index,
    entries: &'a EntryHash,
    key: &'a FlowKey,
}

/// See [`Search::tally`].
trait Tally {
    fn one(&mut self);
}

impl Tally for () {
    #[inline(always)]
    fn one(&mut self) {}
}

impl Tally for u32 {
    fn one(&mut self) {
        *self += 1;
    }
}

/// How far a packet of a burst has come: the tuple that is asked first, and those that may have to be asked after it.
#[derive(Clone, Copy)]
struct Begun {
    tuple: Option<TupleId>,
    hash: u32,
    /// The column, 0 for the narrow one.
    column: usize,
    left: Line,
}

impl Index {
    #[inline(never)]
    pub(super) fn lookup(&self, entries: &EntryHash, key: &FlowKey) -> Option<EntryId> {
        let mut search = Search { tally: (), found: None, index: self, entries, key };
        search.columns_from(0);
        search.unplaced();
        search.found.map(|(_, id)| id)
    }

    /// How many tuples [`Index::lookup`] asks.
    pub(super) fn probes(&self, entries: &EntryHash, key: &FlowKey) -> u32 {
        let mut search = Search { tally: 0, found: None, index: self, entries, key };
        search.columns_from(0);
        search.unplaced();
        search.tally
    }

    #[inline(never)]
    pub(super) fn lookup_burst(
        &self,
        entries: &EntryHash,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        found: &mut [EntryId; MAX_BURST],
        soon: impl Fn(EntryId),
    ) {
        let mut begun = [Begun { tuple: None, hash: 0, column: 0, left: Line::NONE }; MAX_BURST];
        // 1. The first tuple that each packet can match, and the bucket there.
        lanes.each(|lane| self.begin(entries, &keys[lane].key, &mut begun[lane]));
        // 2. The entry that it probably is.
        lanes.each(|lane| {
            if begun[lane].tuple.is_some()
                && let Some(id) = entries.probable(begun[lane].hash)
            {
                soon(id);
            }
        });
        // 3. Whether it is; and those after it which may have a higher priority.
        lanes.each(|lane| {
            let (begun, key) = (&begun[lane], &keys[lane].key);
            let mut search = Search { tally: (), found: None, index: self, entries, key };
            if let Some(tuple) = begun.tuple {
                search.found = entries.verify(tuple, key, begun.hash);
                search.column(&begun.left, first_of(begun.column));
                search.columns_from(begun.column + 1);
            }
            search.unplaced();
            found[lane] = search.found.map_or(EntryId::NONE, |(_, id)| id);
        });
    }

    /// Finds the first tuple to ask.
    #[inline(always)]
    fn begin(&self, entries: &EntryHash, key: &FlowKey, begun: &mut Begun) {
        let columns = self.pruner.columns();
        let steps = self.pruner.steps(key);
        begun.left = Line::from(columns.narrow.survivors(&steps));
        while begun.left == Line::NONE {
            let Some(column) = columns.wide.get(begun.column) else { return };
            begun.left = column.survivors(&steps);
            begun.column += 1;
        }
        let place = begun.left.take_first();
        begun.tuple = self.tuple(first_of(begun.column) + place);
        begun.hash = begun.tuple.map_or(0, |tuple| entries.begin(tuple, key));
    }
}

/// The first place of a column, 0 being the narrow one.
const fn first_of(column: usize) -> usize {
    if column == 0 { 0 } else { u64::TUPLES + (column - 1) * Line::TUPLES }
}

impl<T: Tally> Search<'_, T> {
    /// Searches the columns from this one on.
    #[inline(always)]
    fn columns_from(&mut self, column: usize) {
        let (pruner, n_columns) = (&self.index.pruner, self.index.pruner.columns().wide.len() + 1);
        if column >= n_columns || !self.can_be_beaten(first_of(column)) {
            return;
        }
        let steps = pruner.steps(self.key);
        for column in column..n_columns {
            if !self.can_be_beaten(first_of(column)) {
                return;
            }
            match column.checked_sub(1) {
                None => self.column(&pruner.columns().narrow.survivors(&steps), 0),
                Some(wide) => self.column(&pruner.columns().wide[wide].survivors(&steps), first_of(column)),
            }
        }
    }

    /// Whether a tuple at this place (a multiple of 64) or beyond may have a higher priority than what was found.
    #[inline(always)]
    fn can_be_beaten(&self, first: usize) -> bool {
        self.found.is_none_or(|(priority, _)| priority < self.index.ranks.highest_from(first))
    }

    #[inline(always)]
    fn column<R: Row>(&mut self, survivors: &R, first: usize) {
        let mut words = survivors.occupied();
        while words != 0 {
            let number = words.trailing_zeros() as usize;
            words &= words - 1;
            let first = first + number * 64;
            if !self.can_be_beaten(first) {
                return;
            }
            self.word(survivors.words()[number], first);
        }
    }

    #[inline(always)]
    fn word(&mut self, mut word: u64, first: usize) {
        while word != 0 {
            let place = first + word.trailing_zeros() as usize;
            word &= word - 1;
            if self.found.is_none_or(|(priority, _)| priority < self.index.ranks.of(place))
                && let Some(tuple) = self.index.tuple(place)
            {
                self.probe(tuple);
            }
        }
    }

    #[inline(always)]
    fn probe(&mut self, tuple: TupleId) {
        self.tally.one();
        if let Some(found) = self.entries.get(tuple, self.key)
            && self.found.is_none_or(|(priority, _)| found.0 > priority)
        {
            self.found = Some(found);
        }
    }

    /// Asks the tuples that have no place.
    #[inline(always)]
    fn unplaced(&mut self) {
        if self.index.unplaced() > 0 {
            self.all_unplaced();
        }
    }

    #[cold]
    fn all_unplaced(&mut self) {
        for (highest, tuple) in self.entries.tuples().in_order() {
            if self.found.is_some_and(|(priority, _)| priority >= highest) {
                return;
            }
            if self.index.is_unplaced(tuple) {
                self.probe(tuple);
            }
        }
    }
}
