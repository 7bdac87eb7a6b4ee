//! Classifiers: data structures that find the highest-priority entry a packet matches.
//!
//! [`linear`] is the obvious one and the reference that every faster one must agree with; [`hash`] hashes. Tables use
//! [`adaptive`], which chooses.
pub(crate) mod adaptive;
mod counter;
pub(crate) mod describe;
pub(crate) mod hash;
pub(crate) mod linear;
pub(crate) mod prefix;
pub(crate) mod pruned;
mod words;

pub(crate) use counter::{Count, FlowCounter};
pub(crate) use words::{WordMatch, WordMatches};

use describe::Described;
use weir_memory::OutOfMemory;
use weir_packet::{FlowKey, Parsed};

/// Packets of a burst at most.
pub(crate) const MAX_BURST: usize = 64;

/// Packets of a burst: bit `n` stands for the `n`th.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lanes(pub(crate) u64);

impl Lanes {
    /// The first `count` packets, [`MAX_BURST`] at most.
    pub(crate) const fn first(count: usize) -> Lanes {
        Lanes(if count >= MAX_BURST { u64::MAX } else { (1 << count) - 1 })
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn count(self) -> u32 {
        self.0.count_ones()
    }

    pub(crate) const fn has(self, lane: usize) -> bool {
        self.0 >> lane & 1 != 0
    }

    pub(crate) fn add(&mut self, lane: usize) {
        self.0 |= 1 << lane;
    }

    /// `self` without the packets of `other`.
    pub(crate) const fn without(self, other: Lanes) -> Lanes {
        Lanes(self.0 & !other.0)
    }

    /// Does something with each packet, in their order.
    #[inline(always)]
    pub(crate) fn each(self, mut act: impl FnMut(usize)) {
        let mut left = self.0;
        while left != 0 {
            act(left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

impl IntoIterator for Lanes {
    type Item = usize;
    type IntoIter = LaneIter;

    #[inline(always)]
    fn into_iter(self) -> LaneIter {
        LaneIter(self.0)
    }
}

/// Packets of a burst one after the other, in their order.
#[derive(Debug)]
pub(crate) struct LaneIter(u64);

impl Iterator for LaneIter {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// An entry's place in its table; used again after the entry is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, zerocopy::FromZeros)]
pub(crate) struct EntryId(pub(crate) u32);

impl EntryId {
    /// No entry.
    pub(crate) const NONE: EntryId = EntryId(u32::MAX);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Finds the entry of the highest priority that a packet matches. Among several of the same priority any is right
/// (OpenFlow 1.3.5, 5.3).
pub(crate) trait Classifier {
    /// Makes sure that there is memory for adding an entry; otherwise adding it may panic.
    fn make_room(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory>;
    /// Adds an entry; `id` is not in yet, nor is an entry with its match and priority.
    fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches);
    /// Removes an entry that is in, with its priority and match.
    fn remove(&mut self, id: EntryId, priority: u16, words: &WordMatches);
    /// The entry with exactly this match and priority.
    fn find(&self, priority: u16, words: &WordMatches) -> Option<EntryId>;
    /// Begins to fetch what finding this match looks at; gives what [`Classifier::probable`] is asked with a while later.
    fn fetch(&self, _words: &WordMatches) -> Option<u32> {
        None
    }
    /// The entry that probably has the match, which it begins to fetch, too.
    fn probable(&self, _fetched: u32) -> Option<EntryId> {
        None
    }
    /// An entry's match, where it can be told; of an entry that is in, with its priority.
    fn words_of(&self, id: EntryId, priority: u16) -> Option<WordMatches>;
    /// The entries that match nothing but what `words` does too, where that can be told without looking at all.
    fn few_within(&self, _words: &WordMatches) -> Option<Vec<EntryId>> {
        None
    }
    /// Entries of this priority with which a match shares packets, where that can be told without looking at all: none if there are
    /// none.
    fn few_overlapping(&self, _priority: u16, _words: &WordMatches) -> Option<Vec<EntryId>> {
        None
    }
    /// The entry that a packet matches.
    fn lookup(&self, key: &FlowKey) -> Option<EntryId>;
    /// What it is, for people.
    fn describe(&self) -> Described {
        Described::default()
    }
    /// How many entries, hashes or nodes a lookup of a packet looks at; none if it cannot tell.
    fn probes(&self, _key: &FlowKey) -> Option<u32> {
        None
    }
    /// The same for those packets of a burst that `lanes` names: writes the entry, or [`EntryId::NONE`], to each one's place in
    /// `found`. `soon` is told of an entry as early as it is probably the one, so that what belongs to it is fetched into the
    /// cache meanwhile.
    fn lookup_burst(
        &self,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        found: &mut [EntryId; MAX_BURST],
        soon: impl Fn(EntryId),
    ) {
        lanes.each(|lane| {
            let id = self.lookup(&keys[lane].key).unwrap_or(EntryId::NONE);
            found[lane] = id;
            if id != EntryId::NONE {
                soon(id);
            }
        });
    }
}
