//! Combines pairs of flow-key words whose masks have no bit in common into one word, so that both are hashed and
//! compared together: for example the words of the Ethernet type and of the input port. An IPv4 5-tuple with the input
//! port thus takes three words instead of four and fits in a slot.
use super::slots::NEAR;
use super::tuples::WordMask;
use weir_packet::FlowKey;
use weir_packet::key::WORDS;

/// Unit of hashing and comparison: one masked word of the flow key, or the union of two masked words that have no bit
/// in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaskedPair {
    /// Indices of the two words in the flow key; equal for a single word.
    words: [u8; 2],
    /// Masks of the two words. The second is zero for a single word.
    masks: [u64; 2],
}

/// Masked values of a match, one for each [`MaskedPair`].
#[derive(Debug)]
pub(super) struct PairValues {
    values: [u64; WORDS],
    len: usize,
}

/// A [`MaskedPair`] in the form that lookups use: its word indices are known to be below [`WORDS`].
pub(crate) trait PairReader: Copy {
    fn new(pair: MaskedPair) -> Self;
    /// Returns the masked value of a packet's flow key, which is compared with the values of a match.
    fn of(self, key: &FlowKey) -> u64;
}

/// A pair of a single word: the index of the word in the flow key, and its mask.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleWord(usize, u64);

/// A pair of one or two words, each with its index in the flow key and its mask; the mask of an absent second word is
/// zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergedWords(SingleWord, SingleWord);

impl MaskedPair {
    /// Returns the index and the mask of the first word.
    pub(super) const fn first(&self) -> (u8, u64) {
        (self.words[0], self.masks[0])
    }
}

impl SingleWord {
    #[inline(always)]
    fn known(word: u8, mask: u64) -> SingleWord {
        // Checked here once, so that the compiler can omit the bounds check for each packet.
        assert!(usize::from(word) < WORDS, "a word of the flow key");
        SingleWord(word.into(), mask)
    }
}

impl PairReader for SingleWord {
    #[inline(always)]
    fn new(pair: MaskedPair) -> SingleWord {
        SingleWord::known(pair.words[0], pair.masks[0])
    }

    #[inline(always)]
    fn of(self, key: &FlowKey) -> u64 {
        key.words[self.0] & self.1
    }
}

impl PairReader for MergedWords {
    #[inline(always)]
    fn new(pair: MaskedPair) -> MergedWords {
        MergedWords(SingleWord::new(pair), SingleWord::known(pair.words[1], pair.masks[1]))
    }

    #[inline(always)]
    fn of(self, key: &FlowKey) -> u64 {
        self.0.of(key) | self.1.of(key)
    }
}

impl PairValues {
    pub(super) const fn new(len: usize) -> PairValues {
        PairValues { values: [0; WORDS], len }
    }

    /// Adds the masked value of one word to the value of the pair with index `pair`.
    pub(super) const fn add(&mut self, pair: u8, value: u64) {
        self.values[pair as usize] |= value;
    }

    pub(super) fn values(&self) -> &[u64] {
        &self.values[..self.len]
    }
}

/// Groups the words of a mask into pairs if they are more than a slot can hold ([`NEAR`]); otherwise each word is a
/// pair of its own. Returns the pairs, and for each word the index of its pair.
pub(crate) fn pair_up(words: &[WordMask]) -> (Box<[MaskedPair]>, Box<[u8]>) {
    let mut pairs: Vec<MaskedPair> = Vec::with_capacity(words.len());
    let places = words.iter().map(|one| {
        let fits = |pair: &MaskedPair| words.len() > NEAR && pair.masks[1] == 0 && pair.masks[0] & one.mask == 0;
        let place = pairs.iter().position(fits);
        match place {
            Some(place) => (pairs[place].words[1], pairs[place].masks[1]) = (one.word, one.mask),
            None => pairs.push(MaskedPair { words: [one.word, one.word], masks: [one.mask, 0] }),
        }
        u8::try_from(place.unwrap_or(pairs.len() - 1)).expect("a flow key has fewer words")
    });
    let places = places.collect();
    (pairs.into(), places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_common_bits_are_paired() {
        let words =
            [(0, 0xffff), (2, u64::MAX), (3, 0xffff_ffff_ff00_0000), (4, 0xffff_ffff_0000_0000), (5, 0xff_0000)];
        let words = words.map(|(word, mask)| WordMask { word, mask });
        let (pairs, places) = pair_up(&words);
        assert_eq!(*places, [0, 1, 0, 2, 2]);
        let mut key = FlowKey::EMPTY;
        key.words[..6].copy_from_slice(&[0x1234_0800, 7, 8, 0x0001_0002_11ff_ffff, 3 << 32 | 1, 0x1234_5678]);
        let values: Vec<u64> = pairs.iter().map(|pair| MergedWords::new(*pair).of(&key)).collect();
        let (unpaired, _) = pair_up(&words[..3]);
        let values_of_three: Vec<u64> = unpaired.iter().map(|pair| SingleWord::new(*pair).of(&key)).collect();
        assert_eq!(values_of_three, [0x0800, 8, 0x0001_0002_1100_0000], "a slot has room for three");
        assert_eq!(values, [0x0001_0002_1100_0800, 8, 0x0000_0003_0034_0000]);
    }
}
