//! The classifier of a table: few entries are compared one after the other, more are hashed; over the hash there are tries while all
//! entries look at prefixes of few fields, otherwise, if there are many masks, what tells which of them to ask.
use super::describe::Described;
use super::linear::Linear;
use super::prefix::Overlay;
use super::pruned::Pruned;
use super::{Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use std::ops::Range;
use weir_memory::OutOfMemory;
use weir_packet::{FlowKey, Parsed};
use weir_units::Instant;

/// With as many entries as this comparing costs as much as hashing (measured: `cargo bench -p weir-datapath`).
const MAX_LINEAR: usize = 4;

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Adaptive {
    shape: Shape,
    len: usize,
    /// Whether entries are compared one after the other however many there are.
    stays_linear: bool,
}

#[derive(Debug)]
enum Shape {
    Linear(Linear),
    Hashed(Box<Hashed>),
}

/// Many entries.
#[derive(Debug, Default)]
struct Hashed {
    tuples: Pruned,
    /// What is searched instead while it is whole.
    prefixes: Overlay,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape::Linear(Linear::default())
    }
}

impl Adaptive {
    /// A classifier that keeps to its first shape: the reference that the others agree with.
    pub(crate) fn reference() -> Adaptive {
        Adaptive { stays_linear: true, ..Adaptive::default() }
    }

    /// Whether a lookup is a few comparisons, or a hash or two.
    pub(crate) fn is_cheap(&self) -> bool {
        match &self.shape {
            Shape::Linear(_) => self.len <= MAX_LINEAR,
            Shape::Hashed(hashed) => {
                hashed.prefixes.whole().is_none() && hashed.tuples.entries().tuples().in_order().len() <= 2
            }
        }
    }

    /// Does some of what is left to do for faster lookups, some tens of microseconds at most; says when to call again, if there is more.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Instant> {
        match &mut self.shape {
            Shape::Linear(_) => None,
            Shape::Hashed(hashed) => hashed.settle(now),
        }
    }

    /// Gives back memory that entries left which have gone, some of it. Whether that was all.
    pub(crate) fn give_back(&mut self) -> bool {
        match &mut self.shape {
            Shape::Linear(_) => true,
            Shape::Hashed(hashed) => hashed.tuples.give_back(),
        }
    }

    /// Gives back memory for places where no entry is, some of it. Whether that was all.
    pub(crate) fn forget(&mut self, places: Range<usize>) -> bool {
        match &mut self.shape {
            Shape::Linear(_) => true,
            Shape::Hashed(hashed) => hashed.tuples.forget(places),
        }
    }

    /// The entry that a packet matches, of those that `shows` lets through; not in a hurry.
    pub(crate) fn lookup_among(&self, key: &FlowKey, shows: &dyn Fn(EntryId) -> bool) -> Option<EntryId> {
        match &self.shape {
            Shape::Linear(linear) => linear.lookup_among(key, shows),
            Shape::Hashed(hashed) => hashed.tuples.entries().lookup_among(key, shows),
        }
    }
}

impl Classifier for Adaptive {
    /// Changes the shape, too, if the entry asks for another.
    fn make_room(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory> {
        if let Shape::Linear(linear) = &self.shape
            && self.len >= MAX_LINEAR
            && !self.stays_linear
        {
            self.shape = Shape::Hashed(Box::new(hashed(linear)?));
        }
        match &mut self.shape {
            Shape::Linear(linear) => linear.make_room(id, words),
            Shape::Hashed(hashed) => hashed.tuples.make_room(id, words),
        }
    }

    fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.len += 1;
        match &mut self.shape {
            Shape::Linear(linear) => linear.insert(id, priority, words),
            Shape::Hashed(hashed) => hashed.insert(id, priority, words),
        }
    }

    fn remove(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.len -= 1;
        match &mut self.shape {
            // A table that was large once may be again: it goes back only when it is empty, with its memory.
            Shape::Hashed(_) if self.len == 0 => self.shape = Shape::default(),
            Shape::Hashed(hashed) => hashed.remove(id, priority, words),
            Shape::Linear(linear) => linear.remove(id, priority, words),
        }
    }

    fn find(&self, priority: u16, words: &WordMatches) -> Option<EntryId> {
        match &self.shape {
            Shape::Linear(linear) => linear.find(priority, words),
            Shape::Hashed(hashed) => hashed.tuples.find(priority, words),
        }
    }

    fn fetch(&self, words: &WordMatches) -> Option<u32> {
        match &self.shape {
            Shape::Linear(_) => None,
            Shape::Hashed(hashed) => hashed.tuples.entries().fetch_match(words),
        }
    }

    fn probable(&self, fetched: u32) -> Option<EntryId> {
        match &self.shape {
            Shape::Linear(_) => None,
            Shape::Hashed(hashed) => Some(hashed.tuples.entries().probable(fetched)).filter(|id| *id != EntryId::NONE),
        }
    }

    fn words_of(&self, id: EntryId, priority: u16) -> Option<WordMatches> {
        match &self.shape {
            Shape::Linear(linear) => linear.words_of(id, priority),
            Shape::Hashed(hashed) => hashed.tuples.words_of(id, priority),
        }
    }

    fn few_within(&self, words: &WordMatches) -> Option<Vec<EntryId>> {
        match &self.shape {
            Shape::Linear(_) => None,
            Shape::Hashed(hashed) => hashed.tuples.entries().few_within(words),
        }
    }

    fn few_overlapping(&self, priority: u16, words: &WordMatches) -> Option<Vec<EntryId>> {
        match &self.shape {
            Shape::Linear(_) => None,
            Shape::Hashed(hashed) => hashed.tuples.entries().few_overlapping(priority, words),
        }
    }

    #[inline]
    fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        match &self.shape {
            Shape::Linear(linear) => linear.lookup(key),
            Shape::Hashed(hashed) => match hashed.prefixes.whole() {
                Some(prefixes) => prefixes.lookup(key),
                None => hashed.tuples.lookup(key),
            },
        }
    }

    fn describe(&self) -> Described {
        match &self.shape {
            Shape::Linear(linear) => linear.describe(),
            Shape::Hashed(hashed) => hashed.describe(),
        }
    }

    fn probes(&self, key: &FlowKey) -> Option<u32> {
        match &self.shape {
            Shape::Linear(linear) => linear.probes(key),
            Shape::Hashed(hashed) => match hashed.prefixes.whole() {
                Some(prefixes) => Some(prefixes.probes(key)),
                None => hashed.tuples.probes(key),
            },
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
        match &self.shape {
            Shape::Linear(linear) => linear.lookup_burst(keys, lanes, found, soon),
            Shape::Hashed(hashed) => match hashed.prefixes.whole() {
                Some(prefixes) => prefixes.lookup_burst(keys, lanes, found, soon),
                None => hashed.tuples.lookup_burst(keys, lanes, found, soon),
            },
        }
    }
}

impl Hashed {
    fn describe(&self) -> Described {
        let Described { shape, masks, bytes } = self.tuples.describe();
        let shape = if self.prefixes.whole().is_some() { "prefix tries over a tuple space" } else { shape };
        Described { shape, masks, bytes: bytes.map(|bytes| bytes + self.prefixes.held()) }
    }

    fn settle(&mut self, now: Instant) -> Option<Instant> {
        if self.prefixes.settle(self.tuples.entries()) {
            return Some(now);
        }
        // Tries that are whole are searched alone.
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

/// The same entries, by hash.
fn hashed(linear: &Linear) -> Result<Hashed, OutOfMemory> {
    let mut hashed = Hashed::default();
    for (id, priority, words) in linear.entries() {
        hashed.tuples.make_room(id, words)?;
        hashed.insert(id, priority, words);
    }
    Ok(hashed)
}
