//! Tuple space search: looks up one tuple after the other (Srinivasan, Suri, Varghese: Packet Classification using
//! Tuple Space Search, SIGCOMM 1999). It starts with the tuple of the highest priority and stops when no further
//! tuple can have a higher priority than the entry found.
//!
//! The cost depends on the number of masks and hardly on the number of entries. Masks come from controllers, never
//! from packets.
use super::EntryHashTable;
use crate::shape::describe::ClassifierInfo;
use crate::shape::{BurstEntries, BurstHeaders, Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use weir_memory::OutOfMemory;
use weir_packet::FlowKey;

/// Tuple space search over the entries of a table: see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct TupleSpace {
    entries: EntryHashTable,
}

impl TupleSpace {
    /// Returns the entries for modification.
    pub(crate) const fn entries_mut(&mut self) -> &mut EntryHashTable {
        &mut self.entries
    }

    /// Returns the entries.
    pub(crate) const fn entries(&self) -> &EntryHashTable {
        &self.entries
    }
}

impl Classifier for TupleSpace {
    fn make_room(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory> {
        self.entries.make_room(id, words)
    }

    fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.entries.insert(id, priority, words);
    }

    fn remove(&mut self, id: EntryId, _priority: u16, _words: &WordMatches) {
        self.entries.remove(id);
    }

    fn find(&self, priority: u16, words: &WordMatches) -> Option<EntryId> {
        self.entries.find(priority, words)
    }

    fn words_of(&self, id: EntryId, _priority: u16) -> Option<WordMatches> {
        self.entries.words_of(id)
    }

    fn describe(&self) -> ClassifierInfo {
        ClassifierInfo {
            shape: "tuple space",
            masks: Some(self.entries.tuples().in_order().len()),
            bytes: Some(self.entries.held()),
        }
    }

    fn probes(&self, key: &FlowKey) -> Option<u32> {
        let (mut found, mut probes) = (None::<u16>, 0);
        for (highest, tuple) in self.entries.tuples().in_order() {
            if found.is_some_and(|priority| priority >= highest) {
                break;
            }
            probes += 1;
            found = found.max(self.entries.get(tuple, key).map(|(priority, _)| priority));
        }
        Some(probes)
    }

    // Not inlined: hashing needs all registers, and saving them would slow down tables of few entries.
    #[inline(never)]
    fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        let mut found: Option<(u16, EntryId)> = None;
        for (highest, tuple) in self.entries.tuples().in_order() {
            if found.is_some_and(|(priority, _)| priority >= highest) {
                break;
            }
            // A later entry of equal priority does not replace the first.
            let one = self.entries.get(tuple, key);
            found = one.filter(|(priority, _)| found.is_none_or(|(best, _)| *priority > best)).or(found);
        }
        found.map(|(_, id)| id)
    }

    #[inline(always)]
    fn lookup_burst(&self, keys: &BurstHeaders, lanes: Lanes, found: &mut BurstEntries, _soon: impl Fn(EntryId)) {
        lanes.each(|lane| found[lane] = EntryId::NONE);
        let mut order = self.entries.tuples().in_order();
        if order.len() == 1
            && let Some((_, only)) = order.next()
        {
            return self.entries.get_burst(only, keys, lanes, |lane, _, id| found[lane] = id);
        }
        let (mut left, mut hits, mut best) = (lanes, Lanes::default(), [0; MAX_BURST]);
        for (highest, tuple) in order {
            // Packets whose entry cannot be beaten by this tuple or a later one are done.
            Lanes(left.0 & hits.0).each(|lane| left.0 &= !(u64::from(best[lane] >= highest) << lane));
            if left.is_empty() {
                break;
            }
            self.entries.get_burst(tuple, keys, left, |lane, priority, id| {
                if !hits.has(lane) || priority > best[lane] {
                    (found[lane], best[lane]) = (id, priority);
                    hits.add(lane);
                }
            });
        }
    }
}
