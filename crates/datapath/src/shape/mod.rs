//! Classifiers: data structures that find the highest-priority flow entry a packet matches.
//!
//! [`linear`] compares entry by entry; it is the reference that every faster classifier must agree with. [`hash`]
//! hashes masked words. [`prefix`] and [`pruned`] speed up tables with many masks. [`adaptive`] chooses between them.
//! Flow tables use [`packet_types`], which keeps entries for packets without an Ethernet header apart.
pub(crate) mod adaptive;
mod counter;
pub(crate) mod describe;
pub(crate) mod hash;
pub(crate) mod linear;
pub(crate) mod packet_types;
pub(crate) mod prefix;
pub(crate) mod pruned;
mod words;

pub(crate) use counter::{AtomicFlowCounter, FlowCounter};
pub(crate) use words::{WordMatch, WordMatches};

use describe::ClassifierInfo;
use weir_memory::OutOfMemory;
use weir_packet::{FlowKey, ParsedHeaders};

/// Maximum number of packets in a burst.
pub(crate) const MAX_BURST: usize = 64;

/// Parsed headers of the packets of a burst, by lane.
pub(crate) type BurstHeaders = [ParsedHeaders; MAX_BURST];

/// Entries that the packets of a burst match, by lane; [`EntryId::NONE`] for none.
pub(crate) type BurstEntries = [EntryId; MAX_BURST];

/// Set of packets of a burst: bit `n` stands for packet `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lanes(pub(crate) u64);

impl Lanes {
    /// Returns the set of the first `count` packets (of all [`MAX_BURST`] if `count` is larger).
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

    /// Returns `self` without the packets of `other`.
    pub(crate) const fn without(self, other: Lanes) -> Lanes {
        Lanes(self.0 & !other.0)
    }

    /// Calls `act` with each packet's index, in ascending order.
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

/// Iterator over the packet indices of a [`Lanes`], in ascending order.
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

/// Index of an entry's place in its table. Reused after the entry is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, zerocopy::FromZeros)]
pub(crate) struct EntryId(pub(crate) u32);

impl EntryId {
    /// Marks the absence of an entry.
    pub(crate) const NONE: EntryId = EntryId(u32::MAX);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Finds the highest-priority entry that a packet matches. If several matching entries share that priority, any of
/// them may be returned (OpenFlow 1.3.5, 5.3).
pub(crate) trait Classifier {
    /// Reserves memory for inserting this entry. Without this call [`Classifier::insert`] may panic.
    fn make_room(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory>;
    /// Inserts an entry. Neither `id` nor an entry with the same match and priority may be present.
    fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches);
    /// Removes an entry that is present, given its priority and match.
    fn remove(&mut self, id: EntryId, priority: u16, words: &WordMatches);
    /// Returns the entry with exactly this match and priority.
    fn find(&self, priority: u16, words: &WordMatches) -> Option<EntryId>;
    /// Starts to prefetch the memory that finding this match reads. Returns a value to pass to
    /// [`Classifier::probable`] a little later.
    fn fetch(&self, _words: &WordMatches) -> Option<u32> {
        None
    }
    /// Returns the entry that probably has the match of a [`Classifier::fetch`], and starts to prefetch that entry.
    fn probable(&self, _fetched: u32) -> Option<EntryId> {
        None
    }
    /// Returns the match of an entry that is present and has this priority; `None` if the classifier does not keep
    /// it.
    fn words_of(&self, id: EntryId, priority: u16) -> Option<WordMatches>;
    /// Returns the entries whose match lies within `words`; `None` if that would require looking at all entries.
    fn few_within(&self, _words: &WordMatches) -> Option<Vec<EntryId>> {
        None
    }
    /// Returns the entries of this priority that share packets with `words` (an empty list if no entry does); `None`
    /// if that would require looking at all entries.
    fn few_overlapping(&self, _priority: u16, _words: &WordMatches) -> Option<Vec<EntryId>> {
        None
    }
    /// Returns the entry that a packet matches.
    fn lookup(&self, key: &FlowKey) -> Option<EntryId>;
    /// Describes the classifier's kind and size, for display.
    fn describe(&self) -> ClassifierInfo {
        ClassifierInfo::default()
    }
    /// Returns how many entries, hashes or nodes a lookup of this packet examines; `None` if unknown.
    fn probes(&self, _key: &FlowKey) -> Option<u32> {
        None
    }
    /// Looks up those packets of a burst that are in `lanes`. Writes each one's entry, or [`EntryId::NONE`], to its
    /// place in `found`. Calls `soon` with an entry as soon as that entry is the probable result, so that the caller
    /// can prefetch what belongs to it.
    fn lookup_burst(&self, keys: &BurstHeaders, lanes: Lanes, found: &mut BurstEntries, soon: impl Fn(EntryId)) {
        lanes.each(|lane| {
            let id = self.lookup(&keys[lane].key).unwrap_or(EntryId::NONE);
            found[lane] = id;
            if id != EntryId::NONE {
                soon(id);
            }
        });
    }
}
