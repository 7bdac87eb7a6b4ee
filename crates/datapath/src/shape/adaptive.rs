//! Classifier of a flow table: chooses its data structure by the table's entries.
//!
//! Few entries are compared one after the other; more are hashed. In addition to the hash there are tries while all
//! entries match prefixes of a few fields. Otherwise, if there are many masks, an index tells which tuples can match.
use super::describe::ClassifierInfo;
use super::hash::EntryRows;
use super::linear::LinearClassifier;
use super::prefix::PrefixOverlay;
use super::pruned::PrunedTupleSpace;
use super::{BurstEntries, BurstHeaders, Classifier, EntryId, Lanes, WordMatches};
use weir_memory::OutOfMemory;
use weir_packet::FlowKey;
use weir_units::Instant;

/// Maximum number of entries that are compared one by one. At this number comparing costs as much as hashing
/// (measured: `cargo bench -p weir-datapath`).
const MAX_LINEAR: usize = 4;

/// Classifier of a flow table: see the [module](self).
#[derive(Debug)]
pub(crate) struct AdaptiveClassifier {
    /// Classifier for few entries. `None` from the time the table exceeded [`MAX_LINEAR`] entries until it is empty
    /// again.
    linear: Option<LinearClassifier>,
    /// Classifier for many entries. Its rows (counters, verdicts) are in use for any number of entries.
    hashed: HashClassifier,
    len: usize,
    /// True if entries are compared one by one regardless of their number.
    stays_linear: bool,
}

/// Classifier for many entries: the hash and what is built over it.
#[derive(Debug, Default)]
struct HashClassifier {
    tuples: PrunedTupleSpace,
    /// Tries that replace the hash in lookups while they contain all entries.
    prefixes: PrefixOverlay,
}

impl Default for AdaptiveClassifier {
    fn default() -> AdaptiveClassifier {
        AdaptiveClassifier {
            linear: Some(LinearClassifier::default()),
            hashed: HashClassifier::default(),
            len: 0,
            stays_linear: false,
        }
    }
}

impl AdaptiveClassifier {
    /// Creates a classifier that always compares entries one by one: the reference for the other data structures.
    pub(crate) fn reference() -> AdaptiveClassifier {
        AdaptiveClassifier { stays_linear: true, ..AdaptiveClassifier::default() }
    }

    /// Creates an empty classifier that compares entries one by one if this one does.
    pub(crate) fn another(&self) -> AdaptiveClassifier {
        AdaptiveClassifier { stays_linear: self.stays_linear, ..AdaptiveClassifier::default() }
    }

    /// Returns true if there are no entries.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the rows: the memory that packets touch of each entry.
    #[inline(always)]
    pub(crate) const fn rows(&self) -> &EntryRows {
        self.hashed.tuples.entries().rows()
    }

    /// Returns the rows for modification.
    pub(crate) const fn rows_mut(&mut self) -> &mut EntryRows {
        self.hashed.tuples.rows_mut()
    }

    /// Returns true if a lookup takes a few comparisons, or one or two hashes.
    pub(crate) fn is_cheap(&self) -> bool {
        match &self.linear {
            Some(_) => self.len <= MAX_LINEAR,
            None => {
                let HashClassifier { tuples, prefixes } = &self.hashed;
                prefixes.whole().is_none() && tuples.entries().tuples().in_order().len() <= 2
            }
        }
    }

    /// Continues deferred work that speeds up lookups, for some tens of microseconds at most. Returns the time of the
    /// next call if work is left.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Instant> {
        if self.linear.is_some() { None } else { self.hashed.settle(now) }
    }

    /// Returns the highest-priority entry that a packet matches among the entries for which `shows` returns true. Not
    /// for the fast path.
    pub(crate) fn lookup_among(&self, key: &FlowKey, shows: &dyn Fn(EntryId) -> bool) -> Option<EntryId> {
        match &self.linear {
            Some(linear) => linear.lookup_among(key, shows),
            None => self.hashed.tuples.entries().lookup_among(key, shows),
        }
    }
}

impl Classifier for AdaptiveClassifier {
    /// Reserves memory, and switches from comparing to hashing if the table becomes too large for comparing.
    fn make_room(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory> {
        if let Some(linear) = &self.linear
            && self.len >= MAX_LINEAR
            && !self.stays_linear
        {
            self.hashed.take_in(linear)?;
            self.linear = None;
        }
        match &mut self.linear {
            Some(linear) => linear.make_room(id, words),
            None => self.hashed.tuples.make_room(id, words),
        }
    }

    fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.len += 1;
        match &mut self.linear {
            Some(linear) => linear.insert(id, priority, words),
            None => self.hashed.insert(id, priority, words),
        }
    }

    fn remove(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.len -= 1;
        match &mut self.linear {
            Some(linear) => linear.remove(id, priority, words),
            None => {
                self.hashed.remove(id, priority, words);
                // Switches back only when the table is empty (and releases the hash's memory), because a table that
                // was large once may become large again.
                if self.len == 0 {
                    self.hashed.empty();
                    self.linear = Some(LinearClassifier::default());
                }
            }
        }
    }

    fn find(&self, priority: u16, words: &WordMatches) -> Option<EntryId> {
        match &self.linear {
            Some(linear) => linear.find(priority, words),
            None => self.hashed.tuples.find(priority, words),
        }
    }

    fn fetch(&self, words: &WordMatches) -> Option<u32> {
        match &self.linear {
            Some(_) => None,
            None => self.hashed.tuples.entries().fetch_match(words),
        }
    }

    fn probable(&self, fetched: u32) -> Option<EntryId> {
        match &self.linear {
            Some(_) => None,
            None => Some(self.hashed.tuples.entries().probable(fetched)).filter(|id| *id != EntryId::NONE),
        }
    }

    fn words_of(&self, id: EntryId, priority: u16) -> Option<WordMatches> {
        match &self.linear {
            Some(linear) => linear.words_of(id, priority),
            None => self.hashed.tuples.words_of(id, priority),
        }
    }

    fn few_within(&self, words: &WordMatches) -> Option<Vec<EntryId>> {
        match &self.linear {
            Some(_) => None,
            None => self.hashed.tuples.entries().few_within(words),
        }
    }

    fn few_overlapping(&self, priority: u16, words: &WordMatches) -> Option<Vec<EntryId>> {
        match &self.linear {
            Some(_) => None,
            None => self.hashed.tuples.entries().few_overlapping(priority, words),
        }
    }

    #[inline]
    fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        match &self.linear {
            Some(linear) => linear.lookup(key),
            None => match self.hashed.prefixes.whole() {
                Some(prefixes) => prefixes.lookup(key),
                None => self.hashed.tuples.lookup(key),
            },
        }
    }

    fn describe(&self) -> ClassifierInfo {
        match &self.linear {
            Some(linear) => linear.describe(),
            None => self.hashed.describe(),
        }
    }

    fn probes(&self, key: &FlowKey) -> Option<u32> {
        match &self.linear {
            Some(linear) => linear.probes(key),
            None => match self.hashed.prefixes.whole() {
                Some(prefixes) => Some(prefixes.probes(key)),
                None => self.hashed.tuples.probes(key),
            },
        }
    }

    #[inline(always)]
    fn lookup_burst(&self, keys: &BurstHeaders, lanes: Lanes, found: &mut BurstEntries, soon: impl Fn(EntryId)) {
        match &self.linear {
            Some(linear) => linear.lookup_burst(keys, lanes, found, soon),
            None => match self.hashed.prefixes.whole() {
                Some(prefixes) => prefixes.lookup_burst(keys, lanes, found, soon),
                None => self.hashed.tuples.lookup_burst(keys, lanes, found, soon),
            },
        }
    }
}

impl HashClassifier {
    /// Inserts all entries of `linear`. On failure removes those inserted so far.
    fn take_in(&mut self, linear: &LinearClassifier) -> Result<(), OutOfMemory> {
        for (done, (id, priority, words)) in linear.entries().enumerate() {
            if let Err(none) = self.tuples.make_room(id, words) {
                linear.entries().take(done).for_each(|(id, priority, words)| self.remove(id, priority, words));
                return Err(none);
            }
            self.insert(id, priority, words);
        }
        Ok(())
    }

    /// Releases all memory except the rows: the counters of the last entry removed are still to be read.
    fn empty(&mut self) {
        let rows = std::mem::take(self.tuples.rows_mut());
        *self = HashClassifier::default();
        *self.tuples.rows_mut() = rows;
    }

    fn describe(&self) -> ClassifierInfo {
        let ClassifierInfo { shape, masks, bytes } = self.tuples.describe();
        let shape = if self.prefixes.whole().is_some() { "prefix tries over a tuple space" } else { shape };
        ClassifierInfo { shape, masks, bytes: bytes.map(|bytes| bytes + self.prefixes.held()) }
    }

    fn settle(&mut self, now: Instant) -> Option<Instant> {
        if self.prefixes.settle(self.tuples.entries()) {
            return Some(now);
        }
        // Complete tries serve all lookups, so the index over the tuples is not needed.
        if self.prefixes.whole().is_some() { None } else { self.tuples.settle(now) }
    }

    fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.tuples.want_index(self.prefixes.whole().is_none());
        self.tuples.insert(id, priority, words);
        self.prefixes.added(self.tuples.entries(), id, priority, words);
    }

    fn remove(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.tuples.want_index(self.prefixes.whole().is_none());
        self.tuples.remove(id, priority, words);
        self.prefixes.removed(self.tuples.entries(), id, priority, words);
    }
}
