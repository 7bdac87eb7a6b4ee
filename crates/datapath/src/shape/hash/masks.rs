//! Masking the words of a flow key that a tuple looks at: code of its own for each small number of them.
use super::key::Secret;
use super::pairs::{KnownPair, Pair};
use super::slots::{NEAR, Slot, Slots};
use weir_packet::FlowKey;

/// What a tuple looks at.
pub(super) trait Masks {
    /// Words beyond what a slot has room for.
    fn is_far(&self) -> bool;
    /// The hash of a packet's masked words.
    fn hash(&self, secret: Secret, seed: u64, key: &FlowKey) -> u32;
    /// Whether a packet's masked words are those of an entry of this tuple.
    fn is_match(&self, key: &FlowKey, slot: &Slot, slots: &Slots) -> bool;
}

/// This many pairs of words.
pub(super) struct Few<const N: usize>([KnownPair; N]);

/// Any number of them.
pub(super) struct Many<'a>(pub(super) &'a [Pair]);

impl<const N: usize> Few<N> {
    /// `pairs` has `N` of them.
    #[inline(always)]
    pub(super) fn new(pairs: &[Pair]) -> Few<N> {
        Few(std::array::from_fn(|at| pairs[at].known()))
    }

    #[inline(always)]
    fn masked(&self, key: &FlowKey) -> [u64; N] {
        self.0.map(|pair| pair.of(key))
    }
}

impl<const N: usize> Masks for Few<N> {
    #[inline(always)]
    fn is_far(&self) -> bool {
        N > NEAR
    }

    #[inline(always)]
    fn hash(&self, secret: Secret, seed: u64, key: &FlowKey) -> u32 {
        secret.hash(seed, self.masked(key).into_iter())
    }

    #[inline(always)]
    fn is_match(&self, key: &FlowKey, slot: &Slot, slots: &Slots) -> bool {
        let words = self.masked(key);
        if N > NEAR { is_entry(&words, slot, slots.far_words(slot, N)) } else { differences(&words, &slot.words) == 0 }
    }
}

impl Masks for Many<'_> {
    #[inline(always)]
    fn is_far(&self) -> bool {
        self.0.len() > NEAR
    }

    #[inline(always)]
    fn hash(&self, secret: Secret, seed: u64, key: &FlowKey) -> u32 {
        secret.hash(seed, self.0.iter().map(|pair| pair.known().of(key)))
    }

    #[inline(always)]
    fn is_match(&self, key: &FlowKey, slot: &Slot, slots: &Slots) -> bool {
        self.0.iter().map(|pair| pair.known().of(key)).eq(slots.words(slot))
    }
}

/// Whether words are an entry's, of which the slot has not all.
#[inline(always)]
fn is_entry<const N: usize>(words: &[u64; N], slot: &Slot, far: &[u64]) -> bool {
    far.len() == N - (NEAR - 1)
        && differences(words, &slot.words[..NEAR - 1]) | differences(&words[NEAR - 1..], far) == 0
}

/// The bits that differ in some pair of words: one branch for all.
#[inline(always)]
fn differences(words: &[u64], others: &[u64]) -> u64 {
    words.iter().zip(others).fold(0, |differences, (one, other)| differences | one ^ other)
}

/// Runs an expression with the [`Masks`] for some pairs of words.
macro_rules! with_masks {
    ($pairs:expr, $masks:ident => $run:expr) => {{
        use $crate::shape::hash::masks::{Few, Many};
        let pairs = $pairs;
        match pairs.len() {
            0 => with_masks!(@ Few::<0>::new(pairs), $masks => $run),
            1 => with_masks!(@ Few::<1>::new(pairs), $masks => $run),
            2 => with_masks!(@ Few::<2>::new(pairs), $masks => $run),
            3 => with_masks!(@ Few::<3>::new(pairs), $masks => $run),
            4 => with_masks!(@ Few::<4>::new(pairs), $masks => $run),
            _ => with_masks!(@ Many(pairs), $masks => $run),
        }
    }};
    (@ $value:expr, $masks:ident => $run:expr) => {{
        let $masks = $value;
        $run
    }};
}
pub(super) use with_masks;
