//! Probing the tuples that a packet may match, until what was found cannot be beaten.
//!
//! Tuples are asked in the order of their places: that of their highest priorities once the index has been renewed, before not quite,
//! and some are asked that a search by priority would not have come to. Where it ends is by priority alone.
use super::index::Index;
use super::row::{Line, Row};
use crate::shape::hash::{EntryHash, Probe};
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

/// Tuples that a packet may match: those of one column, or of two.
trait Survivors: Copy {
    const NONE: Self;
    /// Takes the lowest place out, if there is one.
    fn take_first(&mut self) -> Option<usize>;
}

/// Those of the narrow column.
impl Survivors for u64 {
    const NONE: u64 = 0;

    #[inline(always)]
    fn take_first(&mut self) -> Option<usize> {
        let first = self.trailing_zeros() as usize;
        *self &= self.wrapping_sub(1);
        (first < 64).then_some(first)
    }
}

/// Those of the narrow column and the first wide one.
#[derive(Debug, Clone, Copy)]
struct Both {
    narrow: u64,
    wide: Occupied,
}

impl Survivors for Both {
    const NONE: Both = Both { narrow: 0, wide: Occupied { line: Line::NONE, words: 0 } };

    #[inline(always)]
    fn take_first(&mut self) -> Option<usize> {
        self.narrow.take_first().or_else(|| Some(u64::TUPLES + self.wide.take_first()?))
    }
}

/// Those of a wide column, and which of its words have any.
#[derive(Debug, Clone, Copy)]
struct Occupied {
    line: Line,
    words: u32,
}

impl Occupied {
    #[inline(always)]
    fn new(line: Line) -> Occupied {
        Occupied { words: line.occupied(), line }
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

/// How far the packets of a burst have come.
struct Begun<S> {
    /// The tuple that is asked first, as its place, [`NO_PLACE`] if none is.
    place: [u16; MAX_BURST],
    hash: [u32; MAX_BURST],
    /// The entry that it probably is there.
    probable: [EntryId; MAX_BURST],
    /// What else there may have to be asked after it.
    left: [S; MAX_BURST],
}

const NO_PLACE: u16 = u16::MAX;

/// With more entries than this a bucket is seldom in the cache, so filters are asked before.
const MANY: usize = 1 << 15;

/// So many buckets are fetched early after the first.
const MOST_EARLY: usize = 2;

/// The first wide column's number.
const FIRST: usize = 0;

impl Index {
    #[inline(never)]
    pub(super) fn lookup(&self, entries: &EntryHash, key: &FlowKey) -> Option<EntryId> {
        let mut search = Search { tally: (), found: None, index: self, entries, key };
        search.all();
        search.found.map(|(_, id)| id)
    }

    /// How many tuples [`Index::lookup`] asks.
    pub(super) fn probes(&self, entries: &EntryHash, key: &FlowKey) -> u32 {
        let mut search = Search { tally: 0, found: None, index: self, entries, key };
        search.all();
        search.tally
    }

    #[inline(always)]
    pub(super) fn lookup_burst(
        &self,
        entries: &EntryHash,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        found: &mut [EntryId; MAX_BURST],
    ) {
        if self.pruner.columns().wide.is_empty() {
            self.burst(entries, keys, lanes, found, |key| self.pruner.narrow(key));
        } else {
            self.burst(entries, keys, lanes, found, |key| self.both(key));
        }
    }

    /// The tuples of the narrow column and the first wide one that a packet may match.
    #[inline(always)]
    fn both(&self, key: &FlowKey) -> Both {
        let (steps, columns) = (self.pruner.steps(key), self.pruner.columns());
        // Not `map_or`: what it is given is not always in line.
        let wide = match columns.wide.first() {
            Some(column) => column.survivors(&steps),
            None => Line::NONE,
        };
        Both { narrow: columns.narrow.survivors(&steps), wide: Occupied::new(wide) }
    }

    #[inline(always)]
    fn burst<S: Survivors>(
        &self,
        entries: &EntryHash,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        found: &mut [EntryId; MAX_BURST],
        survivors: impl Fn(&FlowKey) -> S,
    ) {
        let is_large = entries.len() > MANY;
        let mut begun = Begun {
            place: [NO_PLACE; MAX_BURST],
            hash: [0; MAX_BURST],
            probable: [EntryId::NONE; MAX_BURST],
            left: [S::NONE; MAX_BURST],
        };
        // 1. What each packet's values select.
        lanes.each(|lane| self.pruner.fetch(&keys[lane].key));
        // 2. The first tuple that each packet can match, and the bucket there.
        lanes.each(|lane| {
            let key = &keys[lane].key;
            // In its place first: taken apart before, it would have to wait for its parts to be written.
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
        // 3. The entry that it probably is.
        lanes.each(|lane| {
            if begun.place[lane] != NO_PLACE {
                begun.probable[lane] = entries.probable(begun.hash[lane]);
            }
        });
        // 4. Whether it is; and those after it which may have a higher priority.
        lanes.each(|lane| {
            let key = &keys[lane].key;
            let mut search = Search { tally: (), found: None, index: self, entries, key };
            if let Some(probe) = self.places.probe(begun.place[lane].into()) {
                search.found = entries.verify(probe, key, begun.hash[lane], begun.probable[lane]);
            }
            search.each(|| begun.left[lane].take_first());
            search.wide_from(FIRST + 1);
            search.unpruned();
            found[lane] = search.found.map_or(EntryId::NONE, |(_, id)| id);
        });
    }

    /// Begins to fetch the buckets of tuples that may be asked after the first.
    #[inline(always)]
    fn fetch_more<S: Survivors>(&self, entries: &EntryHash, key: &FlowKey, mut left: S) {
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

/// The first place of a wide column.
const fn first_of(wide: usize) -> usize {
    u64::TUPLES + wide * Line::TUPLES
}

impl<T: Tally> Search<'_, T> {
    /// Searches everything.
    fn all(&mut self) {
        let pruner = &self.index.pruner;
        let mut narrow = pruner.columns().narrow.survivors(&pruner.steps(self.key));
        self.each(|| narrow.take_first());
        self.wide_from(FIRST);
        self.unpruned();
    }

    /// Whether a tuple of this highest priority may have something better than what was found.
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

    // In line: otherwise it is not compiled with wide instructions.
    #[inline(always)]
    fn each_wide_from(&mut self, number: usize) {
        let pruner = &self.index.pruner;
        let steps = pruner.steps(self.key);
        for (number, column) in pruner.columns().wide.iter().enumerate().skip(number) {
            let first = first_of(number);
            if !self.may_improve(self.index.places.highest_from(first)) {
                return;
            }
            let mut left = Occupied::new(column.survivors(&steps));
            self.each(|| Some(first + left.take_first()?));
        }
    }

    /// Searches the tuples at these ascending places.
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
    fn ask(&mut self, probe: &Probe) {
        self.tally.one();
        let hash = self.entries.hash(probe, self.key);
        if self.entries.may_have(hash)
            && let Some(found) = self.entries.ask(probe, self.key, hash)
            && self.found.is_none_or(|(priority, _)| found.0 > priority)
        {
            self.found = Some(found);
        }
    }

    /// Asks the tuples that cannot be pruned, or have no place.
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
