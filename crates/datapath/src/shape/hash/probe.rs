//! Probes tuples in any order: keeps the masks and the seed that a packet is hashed and compared with in one place
//! per tuple.
//!
//! A search that probes a different tuple for each packet cannot use the specialized code for each number of words
//! ([`super::masks`]): the next tuple cannot be predicted, and a mispredicted branch costs as much as the probe. All
//! tuples whose words fit in a slot are therefore hashed and compared alike, as if they looked at three words. Unused
//! words have an empty mask.
use super::masks::{TupleMasks, with_masks};
use super::pairs::MaskedPair;
use super::slots::{EntrySlot, NEAR};
use super::tuples::TupleId;
use super::{EntryHashTable, key};
use crate::shape::EntryId;
use weir_packet::FlowKey;
use weir_packet::key::WORDS;

/// Masks and seed for probing one tuple, in one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct TupleProbe {
    masks: [u64; NEAR],
    seed: u64,
    /// All ones if the hash covers three words, otherwise zero.
    third: u64,
    words: [u8; NEAR],
    /// True if `masks` holds the tuple's whole mask.
    is_plain: bool,
    tuple: TupleId,
}

const _: () = assert!(size_of::<TupleProbe>() == 64);

impl TupleProbe {
    pub(crate) const fn tuple(&self) -> TupleId {
        self.tuple
    }

    /// Returns a packet's masked words.
    #[inline(always)]
    fn values(&self, key: &FlowKey) -> [u64; NEAR] {
        // A loop, because `from_fn` is not always inlined.
        let mut values = [0; NEAR];
        for ((value, word), mask) in values.iter_mut().zip(self.words).zip(self.masks) {
            *value = key.words[usize::from(word)] & mask;
        }
        values
    }
}

impl EntryHashTable {
    /// Creates the probe of a tuple, which must have entries.
    pub(crate) fn probe(&self, id: TupleId) -> TupleProbe {
        let tuple = self.tuples.get(id);
        let pairs = tuple.pairs();
        let is_plain = (1..=NEAR).contains(&pairs.len()) && !tuple.has_doubles();
        let plain = if is_plain { pairs } else { &[] };
        let mut probe = TupleProbe {
            masks: [0; NEAR],
            seed: tuple.seed,
            third: if plain.len() == NEAR { u64::MAX } else { 0 },
            words: [0; NEAR],
            is_plain,
            tuple: id,
        };
        for (at, (word, mask)) in plain.iter().map(MaskedPair::first).enumerate() {
            assert!(usize::from(word) < WORDS, "a word of the flow key");
            (probe.words[at], probe.masks[at]) = (word, mask);
        }
        probe
    }

    /// First step: returns the packet's hash in a tuple.
    #[inline(always)]
    pub(crate) fn hash(&self, probe: &TupleProbe, key: &FlowKey) -> u32 {
        if probe.is_plain {
            self.tuples.secret().hash_padded(probe.seed, probe.values(key), probe.third)
        } else {
            self.hash_any(probe.tuple, key)
        }
    }

    /// Prefetches the bucket of a hash.
    #[inline(always)]
    pub(crate) fn fetch(&self, hash: u32) {
        self.directory.fetch(hash);
    }

    /// Returns false if no entry of any tuple has this hash, true if one may.
    #[inline(always)]
    pub(crate) fn may_have(&self, hash: u32) -> bool {
        self.directory.may_have(hash)
    }

    /// Second step: returns the probable entry for a hash and prefetches its slot; [`EntryId::NONE`] if the bucket
    /// has none.
    #[inline(always)]
    pub(crate) fn probable(&self, hash: u32) -> EntryId {
        let Some(id) = self.directory.first(hash) else { return EntryId::NONE };
        self.slots.fetch(id);
        EntryId(id)
    }

    /// Third step: verifies the outcome of the previous steps. Returns the matching entry, with its priority first.
    #[inline(always)]
    pub(crate) fn verify(
        &self,
        probe: &TupleProbe,
        key: &FlowKey,
        hash: u32,
        probable: EntryId,
    ) -> Option<(u16, EntryId)> {
        if let Some(slot) = self.slots.get(probable.0).filter(|_| probe.is_plain)
            && is_match(probe, &probe.values(key), slot)
        {
            return Some((slot.priority, probable));
        }
        // Another entry with the same hash may match, even if the first bucket has no candidate.
        if probable == EntryId::NONE && !self.directory.is_chained(hash) {
            return None;
        }
        self.ask(probe, key, hash)
    }

    /// Looks up a packet with a known hash in one step, without prefetching.
    #[inline(never)]
    pub(crate) fn ask(&self, probe: &TupleProbe, key: &FlowKey, hash: u32) -> Option<(u16, EntryId)> {
        if !probe.is_plain {
            return self.ask_any(probe.tuple, key, hash);
        }
        let values = probe.values(key);
        self.directory.candidates(hash).find_map(|id| {
            let slot = self.slots.get(id).filter(|slot| is_match(probe, &values, slot))?;
            Some((slot.priority, EntryId(id)))
        })
    }

    #[inline(never)]
    fn hash_any(&self, tuple: TupleId, key: &FlowKey) -> u32 {
        let of = self.tuples.get(tuple);
        with_masks!(of, masks => masks.hash(self.tuples.secret(), of.seed, key))
    }

    fn ask_any(&self, tuple: TupleId, key: &FlowKey, hash: u32) -> Option<(u16, EntryId)> {
        with_masks!(self.tuples.get(tuple), masks => self.candidate(&masks, tuple, key, hash))
    }
}

/// Returns true if a packet's values equal those of an entry. Words that its tuple's mask does not cover are zero in
/// the slot.
#[inline(always)]
fn is_match(probe: &TupleProbe, values: &[u64; NEAR], slot: &EntrySlot) -> bool {
    let differences = values.iter().zip(&slot.words).fold(0, |all, (one, other)| all | one ^ other);
    differences | u64::from(slot.tuple ^ probe.tuple.0) == 0
}

impl key::HashSecret {
    /// Computes [`key::HashSecret::hash`] of one or two words, or of three words if `third` is all ones, without a
    /// branch.
    #[inline(always)]
    fn hash_padded(self, seed: u64, values: [u64; NEAR], third: u64) -> u32 {
        let two = self.mix(seed ^ values[0], values[1]);
        let three = self.mix(two ^ values[2], 0);
        self.end(two & !third | three & third)
    }
}
