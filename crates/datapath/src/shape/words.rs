//! Matches as tables compare them: masked values of the words of the flow key.
use super::{BurstHeaders, Lanes};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use weir_packet::field::FlowKeyPosition;
use weir_packet::{Field, FlowKey, FlowMask};

/// Number of words that a match stores inline. Most matches need no more.
const NEAR: usize = 3;

/// Condition that a match sets for one word of the flow key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct WordMatch {
    /// Index of the word in the flow key.
    pub(crate) word: u8,
    /// Bits that count; not zero.
    pub(crate) mask: u64,
    /// Required value of these bits; all other bits are zero.
    pub(crate) value: u64,
}

/// A match: conditions on words of the flow key, in ascending order of the words. Two matches are equal if their
/// conditions are.
#[derive(Debug, Clone)]
pub(crate) struct WordMatches(WordMatchList);

#[derive(Debug, Clone)]
enum WordMatchList {
    Near {
        len: u8,
        words: [WordMatch; NEAR],
    },
    /// More than [`NEAR`] words, on the heap.
    Far(Arc<[WordMatch]>),
}

impl WordMatches {
    /// Creates a match from the words of `key` that `mask` has bits in.
    pub(crate) fn new(key: &FlowKey, mask: &FlowMask) -> WordMatches {
        let words = (0_u8..).zip(key.words.iter().zip(&mask.words));
        let counting = words.filter(|(_, (_, mask))| **mask != 0);
        WordMatches::of(counting.map(|(word, (value, mask))| WordMatch { word, mask: *mask, value: value & mask }))
    }

    /// Creates a match from conditions in ascending order of their words.
    pub(crate) fn of(mut words: impl Iterator<Item = WordMatch>) -> WordMatches {
        let (mut near, mut len) = ([WordMatch::default(); NEAR], 0);
        for word in words.by_ref() {
            if usize::from(len) == NEAR {
                return WordMatches(WordMatchList::Far(near.into_iter().chain([word]).chain(words).collect()));
            }
            near[usize::from(len)] = word;
            len += 1;
        }
        WordMatches(WordMatchList::Near { len, words: near })
    }

    #[inline(always)]
    fn words(&self) -> &[WordMatch] {
        match &self.0 {
            WordMatchList::Near { len, words } => words.get(..usize::from(*len)).unwrap_or_default(),
            WordMatchList::Far(words) => words,
        }
    }

    /// Iterates over the conditions, in ascending order of their words.
    #[inline]
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &WordMatch> {
        self.words().iter()
    }

    /// Returns the key and mask that these conditions came from: the inverse of [`WordMatches::new`].
    pub(crate) fn key_and_mask(&self) -> (FlowKey, FlowMask) {
        let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
        for one in self.iter() {
            let word = usize::from(one.word);
            (key.words[word], mask.words[word]) = (one.value, one.mask);
        }
        (key, mask)
    }

    /// Returns true if a packet with this flow key matches.
    #[inline]
    pub(crate) fn matches(&self, key: &FlowKey) -> bool {
        self.iter().all(|m| key.words[usize::from(m.word)] & m.mask == m.value)
    }

    /// Returns those packets of `lanes` that match.
    #[inline(always)]
    pub(crate) fn matches_of(&self, keys: &BurstHeaders, lanes: Lanes) -> Lanes {
        let mut hits = lanes;
        for one in self.iter() {
            let word = usize::from(one.word);
            let mut equal = 0;
            hits.each(|lane| equal |= u64::from(keys[lane].key.words[word] & one.mask == one.value) << lane);
            hits = Lanes(equal);
        }
        hits
    }

    /// Returns true if the match has no packet type, so that it is about Ethernet packets (OpenFlow 1.5.1, 7.2.3.11).
    pub(crate) fn is_of_ethernet(&self) -> bool {
        const TYPE: FlowKeyPosition = Field::PacketType.key_position();
        const BITS: u64 = u64::MAX >> (64 - TYPE.bits) << TYPE.shift;
        !self.iter().any(|one| usize::from(one.word) == TYPE.word && one.mask & BITS != 0)
    }

    /// Returns true if every packet matches.
    pub(crate) fn is_any(&self) -> bool {
        self.words().is_empty()
    }

    /// Returns true if some packet matches both `self` and `other`.
    pub(crate) fn overlaps(&self, other: &WordMatches) -> bool {
        // Two types other than Ethernet are compared like any field.
        let is_one_type = self.is_of_ethernet() == other.is_of_ethernet();
        let agrees = |a: &WordMatch| {
            let same_word = other.iter().find(|b| b.word == a.word);
            same_word.is_none_or(|b| (a.value ^ b.value) & a.mask & b.mask == 0)
        };
        is_one_type && self.iter().all(agrees)
    }

    /// Returns true if every packet that matches `self` also matches `wider`, compared field by field (OpenFlow
    /// 1.3.5, 6.4: non-strict).
    pub(crate) fn is_within(&self, wider: &WordMatches) -> bool {
        wider
            .iter()
            .all(|w| self.iter().any(|m| m.word == w.word && m.mask & w.mask == w.mask && m.value & w.mask == w.value))
    }
}

impl PartialEq for WordMatches {
    fn eq(&self, other: &WordMatches) -> bool {
        self.words() == other.words()
    }
}

impl Eq for WordMatches {}

impl Hash for WordMatches {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().hash(state);
    }
}
