//! The tuples of a table: which masks its entries have, and for each the highest priority among them.
use super::key::Secret;
use super::pairs::{Packed, Pair, pair_up};
use crate::shape::{WordMatch, WordMatches};
use hashbrown::HashTable;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A tuple, from 1 on; used again after its last entry is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TupleId(pub(super) u32);

impl TupleId {
    /// A number from 0 on, used again too.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize - 1
    }
}

/// A word of the flow key, and its bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WordMask {
    pub(crate) word: u8,
    pub(crate) mask: u64,
}

/// The entries of one mask.
#[derive(Debug, Default)]
pub(crate) struct Tuple {
    words: Box<[WordMask]>,
    /// The same as they are hashed and compared, and in which of these each of `words` is.
    pairs: Box<[Pair]>,
    places: Box<[u8]>,
    /// What the hashes of its entries begin with.
    pub(super) seed: u64,
    len: u32,
    highest: u16,
    /// How many entries have which priority.
    priorities: BTreeMap<u16, u32>,
}

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Tuples {
    tuples: Vec<Tuple>,
    free: Vec<TupleId>,
    by_mask: HashTable<TupleId>,
    /// Those with entries, highest priority first.
    order: Vec<(Reverse<u16>, TupleId)>,
    secret: Secret,
}

impl Tuple {
    /// What its entries look at, ascending.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[WordMask] {
        &self.words
    }

    /// The same as they are hashed and compared.
    #[inline(always)]
    pub(super) fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Whether some of them are of two words.
    #[inline(always)]
    pub(super) fn has_doubles(&self) -> bool {
        self.pairs.len() != self.words.len()
    }

    /// A match's values as they are hashed and compared.
    #[inline]
    pub(super) fn pack(&self, words: &WordMatches) -> Packed {
        let mut packed = Packed::new(self.pairs.len());
        words.iter().zip(&self.places).for_each(|(word, place)| packed.add(*place, word.value));
        packed
    }

    /// The values of [`Tuple::words`], given those of pairs.
    pub(super) fn unpack(&self, pair: impl Fn(usize) -> u64) -> impl Iterator<Item = u64> {
        self.words.iter().zip(&self.places).map(move |(one, place)| pair(usize::from(*place)) & one.mask)
    }

    /// Number of its entries.
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// The highest priority of its entries.
    pub(crate) const fn highest(&self) -> u16 {
        self.highest
    }

    /// Whether it has entries of a priority.
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

impl Tuples {
    /// A tuple; one without entries if there is none of this number any more.
    #[inline(always)]
    pub(crate) fn get(&self, id: TupleId) -> &Tuple {
        &self.tuples[id.index()]
    }

    /// The tuples' highest priorities, and the tuples; highest first.
    #[inline]
    pub(crate) fn in_order(&self) -> impl ExactSizeIterator<Item = (u16, TupleId)> {
        self.order.iter().map(|(Reverse(highest), id)| (*highest, *id))
    }

    /// The tuple that a match belongs to, if it has entries.
    pub(crate) fn find(&self, words: &WordMatches) -> Option<TupleId> {
        self.by_mask.find(self.hash(words), |id| self.get(*id).has_mask_of(words)).copied()
    }

    pub(super) const fn secret(&self) -> Secret {
        self.secret
    }

    /// Counts a new entry.
    pub(super) fn add(&mut self, priority: u16, words: &WordMatches) -> TupleId {
        let id = self.find(words).unwrap_or_else(|| self.make(words));
        let tuple = &mut self.tuples[id.index()];
        *tuple.priorities.entry(priority).or_insert(0) += 1;
        tuple.len += 1;
        self.reorder(id);
        id
    }

    /// Counts an entry no longer.
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

    /// Puts a tuple where it belongs after its priorities changed; gives it up if it has none.
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
            self.tuples.push(Tuple::default());
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
            *self = Tuples { secret: self.secret, ..Tuples::default() };
        }
    }

    fn hash(&self, words: &WordMatches) -> u64 {
        hash_of_mask(self.secret, words.iter().map(WordMask::from))
    }
}

fn hash_of_mask(secret: Secret, words: impl Iterator<Item = WordMask>) -> u64 {
    let words = words.flat_map(|one| [one.word.into(), one.mask]);
    // The table of masks wants its own bits on top.
    u64::from(secret.hash(1, words)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
