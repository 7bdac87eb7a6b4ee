//! Probes the tuples that a packet may match, until no further one can have a higher priority than the entry found.
//!
//! Tuples are probed in the order of their places. After a renewal of the index this is the order of their highest
//! priorities. Before, it is only similar, and some tuples are probed that a search by priority would have skipped.
//! The end of the search depends on priorities alone.
use super::index::PrunerIndex;
use super::tuple_set::{TupleSet, WideTupleSet};
use crate::shape::hash::{EntryHashTable, TupleProbe};
use crate::shape::{BurstEntries, BurstHeaders, EntryId, Lanes, MAX_BURST};
use weir_packet::FlowKey;

/// Search for the entry that one packet matches.
struct PrunedSearch<'a, T> {
    /// Counter of the tuples probed, if needed.
    tally: T,
    found: Option<(u16, EntryId)>,
    index: &'a PrunerIndex,
    entries: &'a EntryHashTable,
    key: &'a FlowKey,
}

/// Counter of probes; `()` counts nothing. See [`PrunedSearch::tally`].
trait ProbeCounter {
    fn one(&mut self);
}

impl ProbeCounter for () {
    #[inline(always)]
    fn one(&mut self) {}
}

impl ProbeCounter for u32 {
    fn one(&mut self) {
        *self += 1;
    }
}

/// Set of tuples that a packet may match, in one column or two.
trait TupleCandidates: Copy {
    const NONE: Self;
    /// Removes the lowest place from the set and returns it.
    fn take_first(&mut self) -> Option<usize>;
}

/// Tuples of the narrow column.
impl TupleCandidates for u64 {
    const NONE: u64 = 0;

    #[inline(always)]
    fn take_first(&mut self) -> Option<usize> {
        let first = self.trailing_zeros() as usize;
        *self &= self.wrapping_sub(1);
        (first < 64).then_some(first)
    }
}

/// Tuples of the narrow column and of the first wide one.
#[derive(Debug, Clone, Copy)]
struct TwoColumnTuples {
    narrow: u64,
    wide: IndexedTupleSet,
}

impl TupleCandidates for TwoColumnTuples {
    const NONE: TwoColumnTuples =
        TwoColumnTuples { narrow: 0, wide: IndexedTupleSet { line: WideTupleSet::NONE, words: 0 } };

    #[inline(always)]
    fn take_first(&mut self) -> Option<usize> {
        self.narrow.take_first().or_else(|| Some(u64::TUPLES + self.wide.take_first()?))
    }
}

/// Set of tuples of a wide column, with an index of the words that are not empty: bit `n` of `words` is set if word `n`
/// of `line` is not zero. Taking the tuples out thus skips empty words.
#[derive(Debug, Clone, Copy)]
struct IndexedTupleSet {
    line: WideTupleSet,
    words: u32,
}

impl IndexedTupleSet {
    #[inline(always)]
    fn new(line: WideTupleSet) -> IndexedTupleSet {
        IndexedTupleSet { words: line.occupied(), line }
    }

    #[inline(always)]
    fn take_first(&mut self) -> Option<usize> {
        let number = self.words.trailing_zeros() as usize;
        let word = self.line.words_mut().get_mut(number)?;
        let first = word.trailing_zeros() as usize;
        *word &= word.wrapping_sub(1);
        self.words &= !(u32::from(*word == 0) << number);
        Some(number * 64 + first)
    }
}

/// Intermediate results for the packets of a burst.
struct BurstSearch<S> {
    /// Place of the first tuple to probe; [`NO_PLACE`] if there is none.
    place: [u16; MAX_BURST],
    hash: [u32; MAX_BURST],
    /// Probable entry in that tuple.
    probable: [EntryId; MAX_BURST],
    /// Remaining tuples to probe after it.
    left: [S; MAX_BURST],
}

const NO_PLACE: u16 = u16::MAX;

/// Number of entries above which a bucket is seldom in the cache, so that filters are checked before buckets are
/// fetched.
const MANY: usize = 1 << 15;

/// Maximum number of buckets prefetched for a packet after the bucket of its first tuple.
const MOST_EARLY: usize = 2;

/// Index of the first wide column.
const FIRST: usize = 0;

impl PrunerIndex {
    #[inline(never)]
    pub(super) fn lookup(&self, entries: &EntryHashTable, key: &FlowKey) -> Option<EntryId> {
        let mut search = PrunedSearch { tally: (), found: None, index: self, entries, key };
        search.all();
        search.found.map(|(_, id)| id)
    }

    /// Returns how many tuples [`PrunerIndex::lookup`] probes.
    pub(super) fn probes(&self, entries: &EntryHashTable, key: &FlowKey) -> u32 {
        let mut search = PrunedSearch { tally: 0, found: None, index: self, entries, key };
        search.all();
        search.tally
    }

    #[inline(always)]
    pub(super) fn lookup_burst(
        &self,
        entries: &EntryHashTable,
        keys: &BurstHeaders,
        lanes: Lanes,
        found: &mut BurstEntries,
    ) {
        if self.pruner.columns().wide.is_empty() {
            self.burst(entries, keys, lanes, found, |key| self.pruner.narrow(key));
        } else {
            self.burst(entries, keys, lanes, found, |key| self.both(key));
        }
    }

    /// Returns the tuples of the narrow column and of the first wide one that a packet may match.
    #[inline(always)]
    fn both(&self, key: &FlowKey) -> TwoColumnTuples {
        let (steps, columns) = (self.pruner.steps(key), self.pruner.columns());
        // Not `map_or`, because its closure is not always inlined.
        let wide = match columns.wide.first() {
            Some(column) => column.survivors(&steps),
            None => WideTupleSet::NONE,
        };
        TwoColumnTuples { narrow: columns.narrow.survivors(&steps), wide: IndexedTupleSet::new(wide) }
    }

    #[inline(always)]
    fn burst<S: TupleCandidates>(
        &self,
        entries: &EntryHashTable,
        keys: &BurstHeaders,
        lanes: Lanes,
        found: &mut BurstEntries,
        survivors: impl Fn(&FlowKey) -> S,
    ) {
        let is_large = entries.len() > MANY;
        let mut begun = BurstSearch {
            place: [NO_PLACE; MAX_BURST],
            hash: [0; MAX_BURST],
            probable: [EntryId::NONE; MAX_BURST],
            left: [S::NONE; MAX_BURST],
        };
        // Pass 1: prefetch what each packet's values select.
        lanes.each(|lane| self.pruner.fetch(&keys[lane].key));
        // Pass 2: find the first tuple that each packet can match, and prefetch its bucket.
        lanes.each(|lane| {
            let key = &keys[lane].key;
            // Stored first: splitting the set before storing it would stall on the write of its parts.
            begun.left[lane] = survivors(key);
            let left = &mut begun.left[lane];
            while let Some(place) = left.take_first()
                && let Some(probe) = self.places.probe(place)
            {
                let hash = entries.hash(probe, key);
                if is_large && !entries.may_have(hash) {
                    continue;
                }
                entries.fetch(hash);
                begun.hash[lane] = hash;
                begun.place[lane] = u16::try_from(place).unwrap_or(NO_PLACE);
                break;
            }
            if is_large {
                self.fetch_more(entries, key, *left);
            }
        });
        // Pass 3: find the probable entry.
        lanes.each(|lane| {
            if begun.place[lane] != NO_PLACE {
                begun.probable[lane] = entries.probable(begun.hash[lane]);
            }
        });
        // Pass 4: verify the probable entry, and probe the later tuples that may have a higher priority.
        lanes.each(|lane| {
            let key = &keys[lane].key;
            let mut search = PrunedSearch { tally: (), found: None, index: self, entries, key };
            if let Some(probe) = self.places.probe(begun.place[lane].into()) {
                search.found = entries.verify(probe, key, begun.hash[lane], begun.probable[lane]);
            }
            search.each(|| begun.left[lane].take_first());
            search.wide_from(FIRST + 1);
            search.unpruned();
            found[lane] = search.found.map_or(EntryId::NONE, |(_, id)| id);
        });
    }

    /// Prefetches the buckets of tuples that may be probed after the first.
    #[inline(always)]
    fn fetch_more<S: TupleCandidates>(&self, entries: &EntryHashTable, key: &FlowKey, mut left: S) {
        let mut most = MOST_EARLY;
        while most > 0
            && let Some(place) = left.take_first()
            && let Some(probe) = self.places.probe(place)
        {
            let hash = entries.hash(probe, key);
            if entries.may_have(hash) {
                entries.fetch(hash);
                most -= 1;
            }
        }
    }
}

/// Returns the first place of a wide column.
const fn first_of(wide: usize) -> usize {
    u64::TUPLES + wide * WideTupleSet::TUPLES
}

impl<T: ProbeCounter> PrunedSearch<'_, T> {
    /// Searches all tuples that the packet may match.
    fn all(&mut self) {
        let pruner = &self.index.pruner;
        let mut narrow = pruner.columns().narrow.survivors(&pruner.steps(self.key));
        self.each(|| narrow.take_first());
        self.wide_from(FIRST);
        self.unpruned();
    }

    /// Returns true if a tuple with this highest priority may have a better entry than the one found.
    #[inline(always)]
    fn may_improve(&self, highest: u16) -> bool {
        self.found.is_none_or(|(priority, _)| priority < highest)
    }

    /// Searches the wide columns from this one on.
    #[inline(always)]
    fn wide_from(&mut self, number: usize) {
        if number < self.index.pruner.columns().wide.len()
            && self.may_improve(self.index.places.highest_from(first_of(number)))
        {
            self.each_wide_from(number);
        }
    }

    // Inlined, because it is otherwise not compiled with wide instructions.
    #[inline(always)]
    fn each_wide_from(&mut self, number: usize) {
        let pruner = &self.index.pruner;
        let steps = pruner.steps(self.key);
        for (number, column) in pruner.columns().wide.iter().enumerate().skip(number) {
            let first = first_of(number);
            if !self.may_improve(self.index.places.highest_from(first)) {
                return;
            }
            let mut left = IndexedTupleSet::new(column.survivors(&steps));
            self.each(|| Some(first + left.take_first()?));
        }
    }

    /// Probes the tuples at the places that `next` returns, which must ascend, until no later tuple can have a better
    /// entry.
    #[inline(always)]
    fn each(&mut self, mut next: impl FnMut() -> Option<usize>) {
        while let Some(place) = next()
            && self.may_improve(self.index.places.highest_from(place))
        {
            if self.may_improve(self.index.places.highest(place))
                && let Some(probe) = self.index.places.probe(place)
            {
                self.ask(probe);
            }
        }
    }

    #[inline(always)]
    fn ask(&mut self, probe: &TupleProbe) {
        self.tally.one();
        let hash = self.entries.hash(probe, self.key);
        if self.entries.may_have(hash)
            && let Some(found) = self.entries.ask(probe, self.key, hash)
            && self.found.is_none_or(|(priority, _)| found.0 > priority)
        {
            self.found = Some(found);
        }
    }

    /// Probes the tuples that have no place in the columns.
    #[inline(always)]
    fn unpruned(&mut self) {
        if self.index.unpruned().best().is_some_and(|highest| self.may_improve(highest)) {
            self.all_unpruned();
        }
    }

    #[inline(never)]
    fn all_unpruned(&mut self) {
        for (highest, probe) in self.index.unpruned().iter() {
            if !self.may_improve(highest) {
                return;
            }
            self.ask(probe);
        }
    }
}
