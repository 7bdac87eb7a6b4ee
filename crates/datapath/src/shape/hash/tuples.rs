//! Keeps the tuples of a table: the masks of its entries, and the highest priority for each mask.
use super::key::HashSecret;
use super::pairs::{MaskedPair, PairValues, pair_up};
use crate::shape::{WordMatch, WordMatches};
use hashbrown::HashTable;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Number of a tuple, from 1 on. Reused after the tuple's last entry is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TupleId(pub(super) u32);

impl TupleId {
    /// Returns the tuple's index, from 0 on.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize - 1
    }
}

/// Index of a word in the flow key, and the bits of it that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WordMask {
    pub(crate) word: u8,
    pub(crate) mask: u64,
}

/// Entries of one mask.
#[derive(Debug, Default)]
pub(crate) struct MaskTuple {
    words: Box<[WordMask]>,
    /// Words as they are hashed and compared. `places` has the index of the pair for each of `words`.
    pairs: Box<[MaskedPair]>,
    places: Box<[u8]>,
    /// Initial state of the hashes of this tuple's entries.
    pub(super) seed: u64,
    len: u32,
    highest: u16,
    /// Number of entries of each priority.
    priorities: BTreeMap<u16, u32>,
}

/// Tuples of a table.
#[derive(Debug, Default)]
pub(crate) struct MaskTuples {
    tuples: Vec<MaskTuple>,
    free: Vec<TupleId>,
    by_mask: HashTable<TupleId>,
    /// Tuples with entries, highest priority first.
    order: Vec<(Reverse<u16>, TupleId)>,
    secret: HashSecret,
}

impl MaskTuple {
    /// Returns the words that the tuple's mask covers, in ascending order.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[WordMask] {
        &self.words
    }

    /// Returns the words in pairs, as they are hashed and compared.
    #[inline(always)]
    pub(super) fn pairs(&self) -> &[MaskedPair] {
        &self.pairs
    }

    /// Returns true if some pairs have two words.
    #[inline(always)]
    pub(super) fn has_doubles(&self) -> bool {
        self.pairs.len() != self.words.len()
    }

    /// Returns a match's values by pair, as they are hashed and compared.
    #[inline]
    pub(super) fn pack(&self, words: &WordMatches) -> PairValues {
        let mut packed = PairValues::new(self.pairs.len());
        words.iter().zip(&self.places).for_each(|(word, place)| packed.add(*place, word.value));
        packed
    }

    /// Iterates over the values of [`MaskTuple::words`]; `pair` returns the value of the pair with an index.
    pub(super) fn unpack(&self, pair: impl Fn(usize) -> u64) -> impl Iterator<Item = u64> {
        self.words.iter().zip(&self.places).map(move |(one, place)| pair(usize::from(*place)) & one.mask)
    }

    /// Returns the number of entries.
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// Returns the highest priority of the entries.
    pub(crate) const fn highest(&self) -> u16 {
        self.highest
    }

    /// Returns true if an entry has this priority.
    pub(super) fn has_priority(&self, priority: u16) -> bool {
        self.priorities.contains_key(&priority)
    }

    fn has_mask_of(&self, words: &WordMatches) -> bool {
        self.words.iter().copied().eq(words.iter().map(WordMask::from))
    }
}

impl From<&WordMatch> for WordMask {
    fn from(word: &WordMatch) -> WordMask {
        WordMask { word: word.word, mask: word.mask }
    }
}

impl MaskTuples {
    /// Returns a tuple. A number that is no longer in use gives a tuple without entries.
    #[inline(always)]
    pub(crate) fn get(&self, id: TupleId) -> &MaskTuple {
        &self.tuples[id.index()]
    }

    /// Iterates over the tuples with their highest priority, highest first.
    #[inline]
    pub(crate) fn in_order(&self) -> impl ExactSizeIterator<Item = (u16, TupleId)> {
        self.order.iter().map(|(Reverse(highest), id)| (*highest, *id))
    }

    /// Returns the tuple that a match belongs to, if it has entries.
    pub(crate) fn find(&self, words: &WordMatches) -> Option<TupleId> {
        self.by_mask.find(self.hash(words), |id| self.get(*id).has_mask_of(words)).copied()
    }

    pub(super) const fn secret(&self) -> HashSecret {
        self.secret
    }

    /// Counts a new entry; creates its tuple if needed. Returns the tuple.
    pub(super) fn add(&mut self, priority: u16, words: &WordMatches) -> TupleId {
        let id = self.find(words).unwrap_or_else(|| self.make(words));
        let tuple = &mut self.tuples[id.index()];
        *tuple.priorities.entry(priority).or_insert(0) += 1;
        tuple.len += 1;
        self.reorder(id);
        id
    }

    /// Stops counting an entry; removes its tuple if it was the last.
    pub(super) fn subtract(&mut self, id: TupleId, priority: u16) {
        let tuple = &mut self.tuples[id.index()];
        if let Some(count) = tuple.priorities.get_mut(&priority) {
            *count -= 1;
            tuple.len -= 1;
            if *count == 0 {
                tuple.priorities.remove(&priority);
                self.reorder(id);
            }
        }
    }

    /// Moves a tuple to its place in the order after its priorities changed; removes the tuple if it has no entries.
    fn reorder(&mut self, id: TupleId) {
        let tuple = &mut self.tuples[id.index()];
        let (before, now) = (tuple.highest, tuple.priorities.last_key_value().map(|(priority, _)| *priority));
        let at = self.order.binary_search(&(Reverse(before), id));
        if at.is_ok() && now == Some(before) {
            return;
        }
        if let Ok(at) = at {
            self.order.remove(at);
        }
        let Some(highest) = now else { return self.give_up(id) };
        tuple.highest = highest;
        if let Err(at) = self.order.binary_search(&(Reverse(highest), id)) {
            self.order.insert(at, (Reverse(highest), id));
        }
    }

    fn make(&mut self, words: &WordMatches) -> TupleId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.tuples.push(MaskTuple::default());
            TupleId(u32::try_from(self.tuples.len()).expect("no more tuples than entry ids"))
        });
        let tuple = &mut self.tuples[id.index()];
        tuple.words = words.iter().map(WordMask::from).collect();
        (tuple.pairs, tuple.places) = pair_up(&tuple.words);
        tuple.seed = self.secret.seed(id.0);
        let (secret, tuples) = (self.secret, &self.tuples);
        let hash = |id: &TupleId| hash_of_mask(secret, tuples[id.index()].words.iter().copied());
        self.by_mask.insert_unique(hash(&id), id, hash);
        id
    }

    fn give_up(&mut self, id: TupleId) {
        let emptied = std::mem::take(&mut self.tuples[id.index()]);
        let hash = hash_of_mask(self.secret, emptied.words.iter().copied());
        if let Ok(found) = self.by_mask.find_entry(hash, |other| *other == id) {
            found.remove();
        }
        self.free.push(id);
        if self.by_mask.is_empty() {
            *self = MaskTuples { secret: self.secret, ..MaskTuples::default() };
        }
    }

    fn hash(&self, words: &WordMatches) -> u64 {
        hash_of_mask(self.secret, words.iter().map(WordMask::from))
    }
}

fn hash_of_mask(secret: HashSecret, words: impl Iterator<Item = WordMask>) -> u64 {
    let words = words.flat_map(|one| [one.word.into(), one.mask]);
    // `HashTable` uses the top bits of a hash, so the 32 bits are spread.
    u64::from(secret.hash(1, words)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
