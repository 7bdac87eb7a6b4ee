//! The way from the entries that a switch has to those that it should have.
use crate::entries::{RouterEntry, RouterEntryKey};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Entries by their keys.
pub type EntryMap = HashMap<RouterEntryKey, RouterEntry>;

/// Changes of the entries of a router, in the order in which they lose no packet: each table decides about each packet
/// either as before or as afterwards, and no packet comes to a table that is not ready for it.
///
/// 1. Entries are added and replaced, the last table first. In a table those of high priority come first: whatever of
///    them is there already decides as all of them will.
/// 2. Entries are deleted, the first table first, those of low priority first: as long as an entry is there, none of
///    lower priority takes its packets.
///
/// Between both, the table holds old and new entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntryChanges {
    /// Entries to add or replace, in order.
    pub added: Vec<RouterEntry>,
    /// Entries to delete, in order.
    pub deleted: Vec<RouterEntry>,
}

impl EntryChanges {
    /// Returns what leads from some entries to others.
    pub fn between(present: &EntryMap, wanted: &EntryMap) -> EntryChanges {
        let is_same = |entry: &&RouterEntry| present.get(&entry.key) == Some(*entry);
        let mut added: Vec<RouterEntry> = wanted.values().filter(|entry| !is_same(entry)).cloned().collect();
        added.sort_by_key(|entry| Reverse((entry.key.table, entry.key.priority)));
        let gone = present.values().filter(|entry| !wanted.contains_key(&entry.key));
        let mut deleted: Vec<RouterEntry> = gone.cloned().collect();
        deleted.sort_by_key(|entry| (entry.key.table, entry.key.priority));
        EntryChanges { added, deleted }
    }

    /// Returns true if nothing has to change.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.deleted.is_empty()
    }
}

/// Returns entries by their keys.
pub fn by_key(entries: impl IntoIterator<Item = RouterEntry>) -> EntryMap {
    entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::{Match, TableId};
    use weir_packet::Field;

    fn entry(table: u8, priority: u16, port: u32, cookie: u64) -> RouterEntry {
        let key = RouterEntryKey::new(TableId(table), priority, Match::any().with(Field::InPort, port));
        RouterEntry { key, cookie, instructions: Vec::new() }
    }

    #[test]
    fn added_backwards_deleted_forwards() {
        let present = by_key([entry(0, 5, 1, 0), entry(1, 7, 1, 0), entry(1, 6, 1, 0), entry(2, 1, 1, 0)]);
        let wanted = by_key([entry(0, 6, 2, 0), entry(0, 5, 2, 0), entry(1, 9, 2, 0), entry(2, 1, 1, 7)]);
        let changes = EntryChanges::between(&present, &wanted);
        let places = |entries: &[RouterEntry]| {
            entries.iter().map(|entry| (entry.key.table.0, entry.key.priority)).collect::<Vec<_>>()
        };
        assert_eq!(places(&changes.added), [(2, 1), (1, 9), (0, 6), (0, 5)]);
        assert_eq!(places(&changes.deleted), [(0, 5), (1, 6), (1, 7)]);
        assert!(EntryChanges::between(&wanted, &wanted).is_empty());
    }
}
