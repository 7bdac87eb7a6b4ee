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

/// How far the packets of a burst have come.
struct Begun<R> {
    /// The tuple that is asked first, and the packet's hash there.
    first: [Option<(TupleId, u32)>; MAX_BURST],
    /// The column that it is in, 0 for the narrow one, and what else there may have to be asked after it.
    column: [u8; MAX_BURST],
    left: [R; MAX_BURST],
}

/// With more entries than this what a probe reads is seldom in the cache, so more than the first one is asked for early.
const MANY: usize = 1 << 15;

/// So many after the first.
const MOST_EARLY: usize = 4;

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

    #[inline(always)]
    pub(super) fn lookup_burst(
        &self,
        entries: &EntryHash,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        found: &mut [EntryId; MAX_BURST],
        soon: impl Fn(EntryId),
    ) {
        let (pruner, columns) = (&self.pruner, self.pruner.columns());
        if columns.wide.is_empty() {
            return self.burst(entries, keys, lanes, found, soon, |key| (0, pruner.narrow(key)));
        }
        self.burst(entries, keys, lanes, found, soon, |key| {
            let steps = pruner.steps(key);
            let narrow = columns.narrow.survivors(&steps);
            if narrow != 0 {
                return (0, Line::from(narrow));
            }
            let survivors = columns.wide.iter().map(|column| column.survivors(&steps));
            (1..).zip(survivors).find(|(_, row)| *row != Line::NONE).unwrap_or((0, Line::NONE))
        });
    }

    /// `survivors` gives the first column where any are, and these.
    #[inline(always)]
    fn burst<R: Row>(
        &self,
        entries: &EntryHash,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        found: &mut [EntryId; MAX_BURST],
        soon: impl Fn(EntryId),
        survivors: impl Fn(&FlowKey) -> (u8, R),
    ) {
        let is_large = entries.len() > MANY;
        let mut begun = Begun { first: [None; MAX_BURST], column: [0; MAX_BURST], left: [R::NONE; MAX_BURST] };
        // 1. The first tuple that each packet can match, and the bucket there.
        lanes.each(|lane| {
            let key = &keys[lane].key;
            let (column, mut left) = survivors(key);
            let first = left.take_first().and_then(|place| self.tuple(first_of(column) + place));
            begun.first[lane] = first.map(|tuple| (tuple, entries.begin(tuple, key)));
            begun.column[lane] = column;
            begun.left[lane] = left;
            if is_large {
                self.fetch_more(entries, key, left, first_of(column));
            }
        });
        // 2. The entry that it probably is.
        lanes.each(|lane| {
            if let Some(id) = begun.first[lane].and_then(|(_, hash)| entries.probable(hash)) {
                soon(id);
            }
        });
        // 3. Whether it is; and those after it which may have a higher priority.
        lanes.each(|lane| {
            let key = &keys[lane].key;
            let mut search = Search { tally: (), found: None, index: self, entries, key };
            if let Some((tuple, hash)) = begun.first[lane] {
                search.found = entries.verify(tuple, key, hash);
                search.column(&begun.left[lane], first_of(begun.column[lane]));
                search.columns_from(begun.column[lane] + 1);
            }
            search.unplaced();
            found[lane] = search.found.map_or(EntryId::NONE, |(_, id)| id);
        });
    }

    /// Begins to fetch the buckets of tuples that may be asked next.
    #[inline(never)]
    fn fetch_more<R: Row>(&self, entries: &EntryHash, key: &FlowKey, mut left: R, first: usize) {
        let places = std::iter::from_fn(|| left.take_first()).take(MOST_EARLY);
        for tuple in places.filter_map(|place| self.tuple(first + place)) {
            entries.begin(tuple, key);
        }
    }
}

/// The first place of a column, 0 being the narrow one.
fn first_of(column: u8) -> usize {
    column.checked_sub(1).map_or(0, |wide| u64::TUPLES + usize::from(wide) * Line::TUPLES)
}

impl<T: Tally> Search<'_, T> {
    /// Searches the columns from this one on.
    #[inline(always)]
    fn columns_from(&mut self, column: u8) {
        let pruner = &self.index.pruner;
        let wide = &pruner.columns().wide;
        if usize::from(column) > wide.len() || !self.can_be_beaten(first_of(column)) {
            return;
        }
        let steps = pruner.steps(self.key);
        if column == 0 {
            self.column(&pruner.columns().narrow.survivors(&steps), 0);
        }
        for (number, column) in (1..).zip(wide).skip(usize::from(column).saturating_sub(1)) {
            if !self.can_be_beaten(first_of(number)) {
                return;
            }
            self.column(&column.survivors(&steps), first_of(number));
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
