//! The classifier of a table: few entries are compared one after the other, more are hashed; over the hash there are tries while all
//! entries look at prefixes of few fields, otherwise, if there are many masks, what tells which of them to ask.
use super::describe::Described;
use super::hash::Slots;
use super::linear::Linear;
use super::prefix::Overlay;
use super::pruned::Pruned;
use super::{Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use weir_memory::OutOfMemory;
use weir_packet::{FlowKey, Parsed};
use weir_units::Instant;

/// With as many entries as this comparing costs as much as hashing (measured: `cargo bench -p weir-datapath`).
const MAX_LINEAR: usize = 4;

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Adaptive {
    /// Few entries; none once there were many.
    linear: Option<Linear>,
    /// Many; and what packets touch of entries, however many there are.
    hashed: Hashed,
    len: usize,
    /// Whether entries are compared one after the other however many there are.
    stays_linear: bool,
}

/// Many entries.
#[derive(Debug, Default)]
struct Hashed {
    tuples: Pruned,
    /// What is searched instead while it is whole.
    prefixes: Overlay,
}

impl Default for Adaptive {
    fn default() -> Adaptive {
        Adaptive { linear: Some(Linear::default()), hashed: Hashed::default(), len: 0, stays_linear: false }
    }
}

impl Adaptive {
    /// A classifier that keeps to its first shape: the reference that the others agree with.
    pub(crate) fn reference() -> Adaptive {
        Adaptive { stays_linear: true, ..Adaptive::default() }
    }

    /// What packets touch of entries.
    #[inline(always)]
    pub(crate) const fn rows(&self) -> &Slots {
        self.hashed.tuples.entries().rows()
    }

    /// The same, to be changed.
    pub(crate) const fn rows_mut(&mut self) -> &mut Slots {
        self.hashed.tuples.rows_mut()
    }

    /// Whether a lookup is a few comparisons, or a hash or two.
    pub(crate) fn is_cheap(&self) -> bool {
        match &self.linear {
            Some(_) => self.len <= MAX_LINEAR,
            None => {
                let Hashed { tuples, prefixes } = &self.hashed;
                prefixes.whole().is_none() && tuples.entries().tuples().in_order().len() <= 2
            }
        }
    }

    /// Does some of what is left to do for faster lookups, some tens of microseconds at most; says when to call again, if there is more.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Instant> {
        if self.linear.is_some() { None } else { self.hashed.settle(now) }
    }

    /// The entry that a packet matches, of those that `shows` lets through; not in a hurry.
    pub(crate) fn lookup_among(&self, key: &FlowKey, shows: &dyn Fn(EntryId) -> bool) -> Option<EntryId> {
        match &self.linear {
            Some(linear) => linear.lookup_among(key, shows),
            None => self.hashed.tuples.entries().lookup_among(key, shows),
        }
    }
}

impl Classifier for Adaptive {
    /// Changes the shape, too, if the entry asks for another.
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
                // A table that was large once may be again: it goes back only when it is empty, with its memory.
                if self.len == 0 {
                    self.hashed.empty();
                    self.linear = Some(Linear::default());
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

    fn describe(&self) -> Described {
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
    fn lookup_burst(
        &self,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        found: &mut [EntryId; MAX_BURST],
        soon: impl Fn(EntryId),
    ) {
        match &self.linear {
            Some(linear) => linear.lookup_burst(keys, lanes, found, soon),
            None => match self.hashed.prefixes.whole() {
                Some(prefixes) => prefixes.lookup_burst(keys, lanes, found, soon),
                None => self.hashed.tuples.lookup_burst(keys, lanes, found, soon),
            },
        }
    }
}

impl Hashed {
    /// Takes entries in, or none of them.
    fn take_in(&mut self, linear: &Linear) -> Result<(), OutOfMemory> {
        for (done, (id, priority, words)) in linear.entries().enumerate() {
            if let Err(none) = self.tuples.make_room(id, words) {
                linear.entries().take(done).for_each(|(id, priority, words)| self.remove(id, priority, words));
                return Err(none);
            }
            self.insert(id, priority, words);
        }
        Ok(())
    }

    /// Gives up all memory but what packets touch of entries: the last one's is still asked for.
    fn empty(&mut self) {
        let rows = std::mem::take(self.tuples.rows_mut());
        *self = Hashed::default();
        *self.tuples.rows_mut() = rows;
    }

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
