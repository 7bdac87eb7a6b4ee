//! Masking the words of a flow key that a tuple looks at: code of its own for each small number of words.
use super::key::Secret;
use super::slots::{NEAR, Slot, Slots};
use super::tuples::WordMask;
use weir_packet::FlowKey;
use weir_packet::key::WORDS;

/// What a tuple looks at.
pub(super) trait Masks {
    /// Words beyond what a slot has room for.
    fn is_far(&self) -> bool;
    /// The hash of a packet's masked words.
    fn hash(&self, secret: Secret, seed: u64, key: &FlowKey) -> u32;
    /// Whether a packet's masked words are those of an entry of this tuple.
    fn is_match(&self, key: &FlowKey, slot: &Slot, slots: &Slots) -> bool;
}

/// This many words.
pub(super) struct Few<const N: usize>([(usize, u64); N]);

/// Any number of words.
pub(super) struct Many<'a>(pub(super) &'a [WordMask]);

impl<const N: usize> Few<N> {
    /// `words` has `N` of them.
    #[inline(always)]
    pub(super) fn new(words: &[WordMask]) -> Few<N> {
        Few(std::array::from_fn(|at| {
            let word = usize::from(words[at].word);
            // Said once here, each packet's words are taken without asking.
            assert!(word < WORDS, "a word of the flow key");
            (word, words[at].mask)
        }))
    }

    #[inline(always)]
    fn masked(&self, key: &FlowKey) -> [u64; N] {
        self.0.map(|(word, mask)| key.words[word] & mask)
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
        if N > NEAR {
            return self.masked(key).into_iter().eq(slots.words(slot));
        }
        // All differences at once: one branch.
        let words = self.masked(key).into_iter().zip(slot.words);
        words.fold(0, |differences, (one, other)| differences | one ^ other) == 0
    }
}

impl Masks for Many<'_> {
    #[inline(always)]
    fn is_far(&self) -> bool {
        self.0.len() > NEAR
    }

    #[inline(always)]
    fn hash(&self, secret: Secret, seed: u64, key: &FlowKey) -> u32 {
        secret.hash(seed, masked(self.0, key))
    }

    #[inline(always)]
    fn is_match(&self, key: &FlowKey, slot: &Slot, slots: &Slots) -> bool {
        masked(self.0, key).eq(slots.words(slot))
    }
}

#[inline(always)]
fn masked(masks: &[WordMask], key: &FlowKey) -> impl Iterator<Item = u64> {
    masks.iter().map(|one| key.words[usize::from(one.word)] & one.mask)
}

/// Runs an expression with the [`Masks`] for some words.
macro_rules! with_masks {
    ($words:expr, $masks:ident => $run:expr) => {{
        use $crate::shape::hash::masks::{Few, Many};
        let words = $words;
        match words.len() {
            0 => with_masks!(@ Few::<0>::new(words), $masks => $run),
            1 => with_masks!(@ Few::<1>::new(words), $masks => $run),
            2 => with_masks!(@ Few::<2>::new(words), $masks => $run),
            3 => with_masks!(@ Few::<3>::new(words), $masks => $run),
            4 => with_masks!(@ Few::<4>::new(words), $masks => $run),
            _ => with_masks!(@ Many(words), $masks => $run),
        }
    }};
    (@ $value:expr, $masks:ident => $run:expr) => {{
        let $masks = $value;
        $run
    }};
}
pub(super) use with_masks;
