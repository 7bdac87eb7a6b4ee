//! Masks the words of a flow key that a tuple's mask covers, with specialized code for each small number of words.
use super::key::HashSecret;
use super::pairs::{MaskedPair, MergedWords, PairReader};
use super::slots::{EntryRows, EntrySlot, NEAR};
use weir_packet::FlowKey;

/// Masks of a tuple.
pub(super) trait TupleMasks {
    /// Returns true if the tuple has more words than a slot can hold.
    fn is_far(&self) -> bool;
    /// Returns the hash of a packet's masked words.
    fn hash(&self, secret: HashSecret, seed: u64, key: &FlowKey) -> u32;
    /// Returns true if a packet's masked words equal those of an entry of this tuple.
    fn is_match(&self, key: &FlowKey, slot: &EntrySlot, slots: &EntryRows) -> bool;
}

/// Masks of exactly `N` pairs of words.
pub(super) struct FixedMasks<K, const N: usize>([K; N]);

/// Masks of any number of pairs, more than a slot can hold.
pub(super) struct ListedMasks<'a>(pub(super) &'a [MaskedPair]);

impl<K: PairReader, const N: usize> FixedMasks<K, N> {
    /// Creates the masks from `pairs`, which must have length `N`.
    #[inline(always)]
    pub(super) fn new(pairs: &[MaskedPair]) -> FixedMasks<K, N> {
        FixedMasks(std::array::from_fn(|at| K::new(pairs[at])))
    }

    #[inline(always)]
    fn values(&self, key: &FlowKey) -> [u64; N] {
        // A loop, because `map` of an array is not always inlined.
        let mut values = [0; N];
        values.iter_mut().zip(&self.0).for_each(|(value, one)| *value = one.of(key));
        values
    }
}

impl<K: PairReader, const N: usize> TupleMasks for FixedMasks<K, N> {
    #[inline(always)]
    fn is_far(&self) -> bool {
        N > NEAR
    }

    #[inline(always)]
    fn hash(&self, secret: HashSecret, seed: u64, key: &FlowKey) -> u32 {
        secret.hash(seed, self.values(key).into_iter())
    }

    #[inline(always)]
    fn is_match(&self, key: &FlowKey, slot: &EntrySlot, slots: &EntryRows) -> bool {
        let values = self.values(key).into_iter();
        if N > NEAR { is_entry(values, N, slot, slots) } else { differences(values, &slot.words) == 0 }
    }
}

impl TupleMasks for ListedMasks<'_> {
    #[inline(always)]
    fn is_far(&self) -> bool {
        true
    }

    #[inline(always)]
    fn hash(&self, secret: HashSecret, seed: u64, key: &FlowKey) -> u32 {
        secret.hash(seed, self.0.iter().map(|pair| MergedWords::new(*pair).of(key)))
    }

    #[inline(always)]
    fn is_match(&self, key: &FlowKey, slot: &EntrySlot, slots: &EntryRows) -> bool {
        is_entry(self.0.iter().map(|pair| MergedWords::new(*pair).of(key)), self.0.len(), slot, slots)
    }
}

/// Returns true if `values` are those of an entry that has more words than its slot can hold.
#[inline(always)]
fn is_entry(mut values: impl Iterator<Item = u64>, count: usize, slot: &EntrySlot, slots: &EntryRows) -> bool {
    let far = slots.far_words(slot, count);
    let near = differences(values.by_ref().take(NEAR - 1), &slot.words);
    far.len() == count - (NEAR - 1) && near | differences(values, far) == 0
}

/// Compares values pair by pair. Returns the bits that differ in at least one pair: 0 if all pairs are equal. The
/// caller thus needs a single branch.
#[inline(always)]
fn differences(values: impl Iterator<Item = u64>, others: &[u64]) -> u64 {
    values.zip(others).fold(0, |differences, (one, other)| differences | one ^ other)
}

/// Evaluates `$run` with `$masks` bound to the [`TupleMasks`] of a tuple.
macro_rules! with_masks {
    ($tuple:expr, $masks:ident => $run:expr) => {{
        use $crate::shape::hash::masks::{FixedMasks, ListedMasks};
        use $crate::shape::hash::pairs::{MergedWords, SingleWord};
        let (pairs, has_doubles) = ($tuple.pairs(), $tuple.has_doubles());
        match (pairs.len(), has_doubles) {
            (0, _) => with_masks!(@ FixedMasks::<SingleWord, 0>::new(pairs), $masks => $run),
            (1, false) => with_masks!(@ FixedMasks::<SingleWord, 1>::new(pairs), $masks => $run),
            (2, false) => with_masks!(@ FixedMasks::<SingleWord, 2>::new(pairs), $masks => $run),
            (3, false) => with_masks!(@ FixedMasks::<SingleWord, 3>::new(pairs), $masks => $run),
            (1, true) => with_masks!(@ FixedMasks::<MergedWords, 1>::new(pairs), $masks => $run),
            (2, true) => with_masks!(@ FixedMasks::<MergedWords, 2>::new(pairs), $masks => $run),
            (3, true) => with_masks!(@ FixedMasks::<MergedWords, 3>::new(pairs), $masks => $run),
            (4, _) => with_masks!(@ FixedMasks::<MergedWords, 4>::new(pairs), $masks => $run),
            _ => with_masks!(@ ListedMasks(pairs), $masks => $run),
        }
    }};
    (@ $value:expr, $masks:ident => $run:expr) => {{
        let $masks = $value;
        $run
    }};
}
pub(super) use with_masks;
