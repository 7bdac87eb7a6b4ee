//! Tuple space search: the entries of one mask are a *tuple*, found by one hash of the masked words (Srinivasan, Suri, Varghese:
//! Packet Classification using Tuple Space Search, SIGCOMM 1999).
//!
//! A lookup goes through the tuples from the one with the highest priority on and ends when what it found cannot be beaten. So
//! its cost depends on how many masks there are, hardly on how many entries; masks come from controllers, never from packets. Adding
//! and removing an entry costs a hash, and a move in the order of tuples if its tuple's highest priority changes.
use super::{Classifier, EntryId, WordMatches};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use weir_packet::FlowKey;

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Tuples {
    tuples: Vec<Tuple>,
    /// Places of `tuples` that are empty.
    free: Vec<u32>,
    /// Tuples by what they look at.
    by_mask: HashMap<Vec<WordMask>, u32, RandomState>,
    /// Highest priority first: a tuple's highest priority, and its place.
    order: Vec<(u16, u32)>,
    /// Keyed anew in every process, so that nobody can aim at collisions.
    hasher: RandomState,
}

/// A word, and its bits that count.
type WordMask = (u8, u64);

/// The entries of one mask.
#[derive(Debug, Default)]
struct Tuple {
    mask: Vec<WordMask>,
    slots: HashTable<Slot>,
    /// How many entries have which priority.
    priorities: BTreeMap<u16, u32>,
}

/// The entries of one match.
#[derive(Debug)]
struct Slot {
    words: WordMatches,
    /// The one of the highest priority.
    best: (u16, EntryId),
    /// The others, highest priority first.
    others: Vec<(u16, EntryId)>,
}

impl Classifier for Tuples {
    fn insert(&mut self, id: EntryId, priority: u16, words: WordMatches) {
        let place = self.tuple_of(&words);
        let hash = hash_of_match(&self.hasher, &words);
        let tuple = &mut self.tuples[place as usize];
        let before = tuple.highest();
        *tuple.priorities.entry(priority).or_insert(0) += 1;
        match tuple.slots.find_mut(hash, |slot| slot.words == words) {
            Some(slot) => slot.add((priority, id)),
            None => {
                let slot = Slot { words, best: (priority, id), others: Vec::new() };
                let hasher = &self.hasher;
                tuple.slots.insert_unique(hash, slot, |slot| hash_of_match(hasher, &slot.words));
            }
        }
        self.reorder(place, before);
    }

    fn remove(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        let Some(&place) = self.by_mask.get(&mask_of(words)) else { return };
        let hash = hash_of_match(&self.hasher, words);
        let tuple = &mut self.tuples[place as usize];
        let before = tuple.highest();
        let Ok(mut found) = tuple.slots.find_entry(hash, |slot| slot.words == *words) else { return };
        if found.get_mut().remove(id) {
            found.remove();
        }
        if let Some(count) = tuple.priorities.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                tuple.priorities.remove(&priority);
            }
        }
        self.reorder(place, before);
    }

    // Hashing wants all registers: in line, tables of few entries would pay for saving them.
    #[inline(never)]
    fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        let mut found: Option<(u16, EntryId)> = None;
        for (highest, place) in &self.order {
            if found.is_some_and(|(priority, _)| priority >= *highest) {
                break;
            }
            let tuple = &self.tuples[*place as usize];
            let hash = hash_of_key(&self.hasher, &tuple.mask, key);
            if let Some(slot) = tuple.slots.find(hash, |slot| slot.words.matches(key))
                && found.is_none_or(|(priority, _)| slot.best.0 > priority)
            {
                found = Some(slot.best);
            }
        }
        found.map(|(_, id)| id)
    }
}

impl Tuples {
    /// The place of the tuple that a match belongs to; a new one if there is none.
    fn tuple_of(&mut self, words: &WordMatches) -> u32 {
        let mask = mask_of(words);
        if let Some(place) = self.by_mask.get(&mask) {
            return *place;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.tuples.push(Tuple::default());
            u32::try_from(self.tuples.len() - 1).expect("no more tuples than entry ids")
        });
        self.tuples[place as usize].mask.clone_from(&mask);
        self.by_mask.insert(mask, place);
        place
    }

    /// Moves a tuple whose highest priority was `before` to where it belongs now.
    fn reorder(&mut self, place: u32, before: Option<u16>) {
        let now = self.tuples[place as usize].highest();
        if now == before {
            return;
        }
        if let Some(at) = before.and_then(|priority| self.find(priority, place)) {
            self.order.remove(at);
        }
        match now {
            Some(priority) => {
                let at = self.order.partition_point(|(other, _)| *other >= priority);
                self.order.insert(at, (priority, place));
            }
            None => {
                let emptied = std::mem::take(&mut self.tuples[place as usize]);
                self.by_mask.remove(&emptied.mask);
                self.free.push(place);
            }
        }
    }

    fn find(&self, priority: u16, place: u32) -> Option<usize> {
        let first = self.order.partition_point(|(other, _)| *other > priority);
        self.order[first..].iter().position(|(_, other)| *other == place).map(|at| first + at)
    }
}

impl Tuple {
    fn highest(&self) -> Option<u16> {
        self.priorities.last_key_value().map(|(priority, _)| *priority)
    }
}

impl Slot {
    fn add(&mut self, entry: (u16, EntryId)) {
        let lower = if entry.0 > self.best.0 { std::mem::replace(&mut self.best, entry) } else { entry };
        let at = self.others.partition_point(|(priority, _)| *priority > lower.0);
        self.others.insert(at, lower);
    }

    /// Removes an entry; whether none is left.
    fn remove(&mut self, id: EntryId) -> bool {
        if self.best.1 != id {
            self.others.retain(|(_, other)| *other != id);
            return false;
        }
        if self.others.is_empty() {
            return true;
        }
        self.best = self.others.remove(0);
        false
    }
}

fn mask_of(words: &WordMatches) -> Vec<WordMask> {
    words.iter().map(|word| (word.word, word.mask)).collect()
}

fn hash_of_match(state: &RandomState, words: &WordMatches) -> u64 {
    let mut hasher = state.build_hasher();
    words.iter().for_each(|word| hasher.write_u64(word.value));
    hasher.finish()
}

#[inline]
fn hash_of_key(state: &RandomState, mask: &[WordMask], key: &FlowKey) -> u64 {
    let mut hasher = state.build_hasher();
    mask.iter().for_each(|(word, mask)| hasher.write_u64(key.words[usize::from(*word)] & mask));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::linear::Linear;
    use proptest::prelude::*;
    use weir_packet::{Field, FlowMask};

    fn words(fields: &[(Field, u128, u128)]) -> WordMatches {
        let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
        for (field, value, bits) in fields {
            key.set(*field, value & bits);
            mask.set(*field, *bits);
        }
        WordMatches::new(&key, &mask)
    }

    /// Matches with few values and masks, so that they meet.
    fn any_words() -> impl Strategy<Value = WordMatches> {
        let bits = || prop::sample::select(vec![0_u128, 1, 2, 3, 6, 7]);
        (0..8_u128, bits(), 0..8_u128, bits(), 0..8_u128, bits()).prop_map(|(a, am, b, bm, c, cm)| {
            words(&[(Field::EthDst, a, am), (Field::Ipv4Src, b, bm), (Field::TcpDst, c, cm)])
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        /// Adding, removing and looking up in any order finds entries of the priority that the reference finds.
        #[test]
        fn it_agrees_with_the_reference(
            changes in proptest::collection::vec((any::<bool>(), 0..6_u16, any_words(), any::<prop::sample::Index>()), 1..60),
            packets in proptest::collection::vec((0..8_u128, 0..8_u128, 0..8_u128), 8),
        ) {
            let (mut linear, mut tuples) = (Linear::default(), Tuples::default());
            let mut there: Vec<(EntryId, u16, WordMatches)> = Vec::new();
            for (number, (adds, priority, words, which)) in (0..).zip(changes) {
                if adds || there.is_empty() {
                    // Tables replace an entry of the same match and priority.
                    if there.iter().any(|(_, p, w)| (p, w) == (&priority, &words)) {
                        continue;
                    }
                    let id = EntryId(number);
                    linear.insert(id, priority, words.clone());
                    tuples.insert(id, priority, words.clone());
                    there.push((id, priority, words));
                } else {
                    let (id, priority, words) = there.swap_remove(which.index(there.len()));
                    linear.remove(id, priority, &words);
                    tuples.remove(id, priority, &words);
                }
                let priority_of = |id: EntryId| there.iter().find(|(other, ..)| *other == id).map(|(_, priority, _)| *priority);
                for (a, b, c) in &packets {
                    let mut key = FlowKey::EMPTY;
                    key.set(Field::EthDst, *a);
                    key.set(Field::Ipv4Src, *b);
                    key.set(Field::TcpDst, *c);
                    let expected = linear.lookup(&key).map(priority_of);
                    prop_assert_eq!(tuples.lookup(&key).map(priority_of), expected);
                }
            }
            for (id, priority, words) in there {
                tuples.remove(id, priority, &words);
            }
            prop_assert!(tuples.order.is_empty() && tuples.by_mask.is_empty(), "nothing stays of what is gone");
        }
    }
}
