//! Probing tuples in any order: what a packet is hashed and compared by, in one place per tuple.
//!
//! A search that asks another tuple for each packet cannot have code of its own for each number of words ([`super::masks`]): which of
//! them comes next cannot be foretold, and a wrong guess costs as much as the probe. So all tuples that a slot has room for are
//! hashed and compared alike, as if they looked at three words; what they do not look at has an empty mask.
use super::masks::{Masks, with_masks};
use super::pairs::Pair;
use super::slots::{NEAR, Slot};
use super::tuples::TupleId;
use super::{EntryHash, key};
use crate::shape::EntryId;
use weir_packet::FlowKey;
use weir_packet::key::WORDS;

/// A tuple as it is asked: one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Probe {
    masks: [u64; NEAR],
    seed: u64,
    /// All ones if the hash is that of three words, otherwise zero.
    third: u64,
    words: [u8; NEAR],
    /// Whether the masks above are all that the tuple looks at.
    is_plain: bool,
    tuple: TupleId,
}

const _: () = assert!(size_of::<Probe>() == 64);

impl Probe {
    pub(crate) const fn tuple(&self) -> TupleId {
        self.tuple
    }

    /// A packet's masked words.
    #[inline(always)]
    fn values(&self, key: &FlowKey) -> [u64; NEAR] {
        // A loop: `from_fn` is not always in line.
        let mut values = [0; NEAR];
        for ((value, word), mask) in values.iter_mut().zip(self.words).zip(self.masks) {
            *value = key.words[usize::from(word)] & mask;
        }
        values
    }
}

impl EntryHash {
    /// What a tuple, which has entries, is asked by.
    pub(crate) fn probe(&self, id: TupleId) -> Probe {
        let tuple = self.tuples.get(id);
        let pairs = tuple.pairs();
        let is_plain = (1..=NEAR).contains(&pairs.len()) && !tuple.has_doubles();
        let plain = if is_plain { pairs } else { &[] };
        let mut probe = Probe {
            masks: [0; NEAR],
            seed: tuple.seed,
            third: if plain.len() == NEAR { u64::MAX } else { 0 },
            words: [0; NEAR],
            is_plain,
            tuple: id,
        };
        for (at, (word, mask)) in plain.iter().map(Pair::first).enumerate() {
            assert!(usize::from(word) < WORDS, "a word of the flow key");
            (probe.words[at], probe.masks[at]) = (word, mask);
        }
        probe
    }

    /// The first step: the packet's hash in a tuple.
    #[inline(always)]
    pub(crate) fn hash(&self, probe: &Probe, key: &FlowKey) -> u32 {
        if probe.is_plain {
            self.tuples.secret().hash_padded(probe.seed, probe.values(key), probe.third)
        } else {
            self.hash_any(probe.tuple, key)
        }
    }

    /// Begins to fetch the bucket of a hash.
    #[inline(always)]
    pub(crate) fn fetch(&self, hash: u32) {
        self.directory.fetch(hash);
    }

    /// Whether some entry, of any tuple, may have this hash; if not, none has.
    #[inline(always)]
    pub(crate) fn may_have(&self, hash: u32) -> bool {
        self.directory.may_have(hash)
    }

    /// The second step: the entry that it probably is, which it begins to fetch; [`EntryId::NONE`] if there is none.
    #[inline(always)]
    pub(crate) fn probable(&self, hash: u32) -> EntryId {
        let Some(id) = self.directory.first(hash) else { return EntryId::NONE };
        self.slots.fetch(id);
        EntryId(id)
    }

    /// The third step, given the outcomes of those before: the entry that it is, and its priority.
    #[inline(always)]
    pub(crate) fn verify(&self, probe: &Probe, key: &FlowKey, hash: u32, probable: EntryId) -> Option<(u16, EntryId)> {
        if let Some(slot) = self.slots.get(probable.0).filter(|_| probe.is_plain)
            && is_match(probe, &probe.values(key), slot)
        {
            return Some((slot.priority, probable));
        }
        // Another of the same hash may be, also where the first bucket has none.
        if probable == EntryId::NONE && !self.directory.is_chained(hash) {
            return None;
        }
        self.ask(probe, key, hash)
    }

    /// All steps at once.
    #[inline(never)]
    pub(crate) fn ask(&self, probe: &Probe, key: &FlowKey, hash: u32) -> Option<(u16, EntryId)> {
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

/// Whether a packet's values are those of an entry, of which words that its tuple does not look at are zero.
#[inline(always)]
fn is_match(probe: &Probe, values: &[u64; NEAR], slot: &Slot) -> bool {
    let differences = values.iter().zip(&slot.words).fold(0, |all, (one, other)| all | one ^ other);
    differences | u64::from(slot.tuple ^ probe.tuple.0) == 0
}

impl key::Secret {
    /// [`key::Secret::hash`] of one or two words, or of three if `third` is all ones, without a branch.
    #[inline(always)]
    fn hash_padded(self, seed: u64, values: [u64; NEAR], third: u64) -> u32 {
        let two = self.mix(seed ^ values[0], values[1]);
        let three = self.mix(two ^ values[2], 0);
        self.end(two & !third | three & third)
    }
}
