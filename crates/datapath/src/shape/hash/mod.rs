//! Stores flow entries by hash: the basis of every exact lookup.
//!
//! One hash holds the entries of all tuples of a table (a *tuple*: the entries of one mask). The hash covers the tuple
//! and the words under its mask. An entry takes 13 bytes in the [`directory`] and 64 in the [`slots`], which hold the
//! words it is compared with and its counters, and more if its mask covers more than three words. The store grows and
//! shrinks by one bucket at a time and releases its memory.
//!
//! A lookup reads one bucket, which yields the one candidate entry (a second one in one of fifty cases), and then
//! that entry. The lookup of a burst goes in passes ([`burst`]); each prefetches the memory that the next one reads.
//! The worst case for a packet is the longest chain of buckets. The secret key of the hash prevents anyone from
//! making chains longer on purpose.
//!
//! [`space`] searches the tuples one after the other. The classifier for many tuples only probes those that can
//! match.
mod bucket;
mod burst;
mod candidates;
mod directory;
mod key;
mod masks;
mod pairs;
mod probe;
mod slots;
mod space;
#[cfg(test)]
mod tests;
mod tuples;

pub(crate) use key::HashSecret;
pub(crate) use pairs::{MergedWords, PairReader, pair_up};
pub(crate) use probe::TupleProbe;
pub(crate) use space::TupleSpace;
use tuples::MaskTuple;
pub(crate) use tuples::{MaskTuples, TupleId, WordMask};

use super::{EntryId, WordMatch, WordMatches};
use directory::HashDirectory;
use foldhash::HashMap;
use masks::{TupleMasks, with_masks};
pub(crate) use slots::EntryRows;
use slots::EntrySlot;
use std::collections::BTreeMap;
use weir_memory::OutOfMemory;
use weir_packet::FlowKey;

/// Entries of a table by hash: see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct EntryHashTable {
    tuples: MaskTuples,
    directory: HashDirectory,
    slots: EntryRows,
    /// By entry: the entries with the same match and lower priorities. No packet finds them while the entry is
    /// present.
    hidden: HashMap<EntryId, BTreeMap<u16, EntryId>>,
    len: usize,
}

impl EntryHashTable {
    /// Returns the number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the memory that entries take here, in bytes.
    pub(crate) fn held(&self) -> usize {
        self.directory.held() + self.slots.held()
    }

    /// Returns the rows: the memory that packets touch of each entry. Rows also exist for ids that are not inserted.
    #[inline(always)]
    pub(crate) const fn rows(&self) -> &EntryRows {
        &self.slots
    }

    /// Returns the rows for modification.
    pub(crate) const fn rows_mut(&mut self) -> &mut EntryRows {
        &mut self.slots
    }

    /// Returns the tuples and their order.
    pub(crate) const fn tuples(&self) -> &MaskTuples {
        &self.tuples
    }

    /// Reserves memory for inserting this entry.
    pub(crate) fn make_room(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory> {
        self.directory.make_room()?;
        self.slots.make_room(id, words.iter().len())
    }

    /// Inserts an entry and returns its tuple. Neither `id` nor an entry with the same match and priority may be
    /// present; [`EntryHashTable::make_room`] must have been called.
    pub(crate) fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches) -> TupleId {
        let tuple = self.tuples.add(priority, words);
        let packed = self.tuples.get(tuple).pack(words);
        let (hash, best) = self.best_of_match(tuple, packed.values());
        self.slots.occupy(id, tuple, priority, packed.values());
        self.len += 1;
        match best {
            Some((highest, best)) if highest >= priority => {
                self.slots.set_hidden(id, true);
                self.hidden.entry(best).or_default().insert(priority, id);
            }
            Some((lower, best)) => {
                let mut hidden = self.hidden.remove(&best).unwrap_or_default();
                hidden.insert(lower, best);
                self.hidden.insert(id, hidden);
                self.slots.set_hidden(best, true);
                self.directory.replace(hash, best.0, id.0);
            }
            None => {
                let (tuples, slots) = (&self.tuples, &self.slots);
                self.directory.insert(hash, id.0, |id| hash_of_entry(tuples, slots, id), |id| slots.fetch(id));
            }
        }
        tuple
    }

    /// Removes an entry. Returns the tuple that it belonged to, which may be empty now; `None` if the entry was not
    /// present.
    pub(crate) fn remove(&mut self, id: EntryId) -> Option<TupleId> {
        let slot = *self.slots.get(id.0).filter(|slot| slot.tuple != 0)?;
        let (tuple, hash) = (TupleId(slot.tuple), hash_of_entry(&self.tuples, &self.slots, id.0));
        if slot.is_hidden() {
            self.unhide(tuple, hash, &slot);
        } else if let Some(hidden) = self.hidden.remove(&id) {
            self.reveal(hash, id, hidden);
        } else {
            self.directory.remove(hash, id.0);
        }
        self.slots.vacate(id);
        self.tuples.subtract(tuple, slot.priority);
        self.len -= 1;
        if self.len == 0 {
            self.slots.clear();
            self.hidden = HashMap::default();
        }
        Some(tuple)
    }

    /// Removes a hidden entry from the list of the entry that hides it.
    fn unhide(&mut self, tuple: TupleId, hash: u32, slot: &EntrySlot) {
        let Some((_, best)) = self.best_of(tuple, hash, |other| self.slots.words(other).eq(self.slots.words(slot)))
        else {
            return;
        };
        let Some(hidden) = self.hidden.get_mut(&best) else { return };
        hidden.remove(&slot.priority);
        if hidden.is_empty() {
            self.hidden.remove(&best);
        }
    }

    /// Replaces a removed entry by the highest-priority entry that it hid.
    fn reveal(&mut self, hash: u32, id: EntryId, mut hidden: BTreeMap<u16, EntryId>) {
        let Some((_, next)) = hidden.pop_last() else { return };
        self.directory.replace(hash, id.0, next.0);
        self.slots.set_hidden(next, false);
        if !hidden.is_empty() {
            self.hidden.insert(next, hidden);
        }
    }

    /// Returns the entry with exactly this match and priority.
    pub(crate) fn find(&self, priority: u16, words: &WordMatches) -> Option<EntryId> {
        let tuple = self.tuples.find(words)?;
        let packed = self.tuples.get(tuple).pack(words);
        let (highest, best) = self.best_of_match(tuple, packed.values()).1?;
        if highest == priority { Some(best) } else { self.hidden.get(&best)?.get(&priority).copied() }
    }

    /// Prefetches the bucket that finding this match reads first. Returns the hash to pass to
    /// [`EntryHashTable::probable`]; `None` if no entry has this mask.
    pub(crate) fn fetch_match(&self, words: &WordMatches) -> Option<u32> {
        let tuple = self.tuples.get(self.tuples.find(words)?);
        let hash = self.tuples.secret().hash(tuple.seed, tuple.pack(words).values().iter().copied());
        self.directory.fetch_all(hash);
        Some(hash)
    }

    /// Returns the upper bound of places: all entries have ids below it.
    pub(crate) fn n_places(&self) -> usize {
        self.slots.n_places()
    }

    /// Iterates over the entries in the places `from..from + most`, with their priority and match.
    pub(crate) fn entries(&self, from: usize, most: usize) -> impl Iterator<Item = (EntryId, u16, WordMatches)> {
        let places = (u32::try_from(from).unwrap_or(u32::MAX)..).map(EntryId).zip(self.slots.range(from, most));
        places.filter(|(_, slot)| slot.tuple != 0).map(|(id, slot)| (id, slot.priority, self.match_of(slot)))
    }

    /// Returns an entry's match.
    pub(crate) fn words_of(&self, id: EntryId) -> Option<WordMatches> {
        self.slots.get(id.0).filter(|slot| slot.tuple != 0).map(|slot| self.match_of(slot))
    }

    fn match_of(&self, slot: &EntrySlot) -> WordMatches {
        let words = self.tuples.get(TupleId(slot.tuple)).words().iter().zip(self.values(slot));
        WordMatches::of(words.map(|(one, value)| WordMatch { word: one.word, mask: one.mask, value }))
    }

    /// Iterates over the entries in the places `from..from + most`, including hidden ones: the tuple of each, and its
    /// values of the words that the tuple's mask covers.
    pub(crate) fn placed(
        &self,
        from: usize,
        most: usize,
    ) -> impl Iterator<Item = (TupleId, impl Iterator<Item = u64>)> {
        let places = self.slots.range(from, most).filter(|slot| slot.tuple != 0);
        places.map(|slot| (TupleId(slot.tuple), self.values(slot)))
    }

    /// Iterates over an entry's values of the words that its tuple's mask covers.
    fn values<'a>(&'a self, slot: &'a EntrySlot) -> impl Iterator<Item = u64> + 'a {
        self.tuples.get(TupleId(slot.tuple)).unpack(|pair| self.slots.word(slot, pair))
    }

    /// Returns the highest-priority entry of a tuple that a packet matches, with its priority first.
    #[inline]
    pub(crate) fn get(&self, tuple: TupleId, key: &FlowKey) -> Option<(u16, EntryId)> {
        with_masks!(self.tuples.get(tuple), masks => {
            let hash = masks.hash(self.tuples.secret(), self.tuples.get(tuple).seed, key);
            self.candidate(&masks, tuple, key, hash)
        })
    }

    #[inline(always)]
    fn candidate(&self, masks: &impl TupleMasks, tuple: TupleId, key: &FlowKey, hash: u32) -> Option<(u16, EntryId)> {
        self.best_of(tuple, hash, |slot| masks.is_match(key, slot, &self.slots))
    }

    /// Returns the visible entry of a tuple that has this hash and for which `is_it` holds, with its priority first.
    #[inline(always)]
    fn best_of(&self, tuple: TupleId, hash: u32, is_it: impl Fn(&EntrySlot) -> bool) -> Option<(u16, EntryId)> {
        self.directory.candidates(hash).find_map(|id| {
            let slot = self.slots.get(id).filter(|slot| slot.tuple == tuple.0 && is_it(slot))?;
            Some((slot.priority, EntryId(id)))
        })
    }

    /// Returns the hash of a match's values, and the visible entry with these values (its priority first).
    fn best_of_match(&self, tuple: TupleId, values: &[u64]) -> (u32, Option<(u16, EntryId)>) {
        let hash = self.tuples.secret().hash(self.tuples.get(tuple).seed, values.iter().copied());
        (hash, self.best_of(tuple, hash, |slot| self.slots.words(slot).eq(values.iter().copied())))
    }
}

fn hash_of_entry(tuples: &MaskTuples, slots: &EntryRows, id: u32) -> u32 {
    let Some(slot) = slots.get(id) else { return 0 };
    let tuple = tuples.get(TupleId(slot.tuple));
    tuples.secret().hash(tuple.seed, slots.words(slot))
}
