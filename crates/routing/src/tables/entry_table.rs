//! Entries of one switch, by handles that are quick to look up and by their keys.
use super::RouteId;
use super::entry::{EntryContent, EntryKey};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use weir_openflow::model::GroupId;

/// Handle of an entry. It is found without its key, and is never that of another entry: the number of the table, the
/// place in it, and how often the place was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryHandle {
    table: u32,
    place: u32,
    generation: u32,
}

/// An entry that is wanted, that the switch has, or that is being deleted.
#[derive(Debug)]
pub(super) struct TrackedEntry {
    pub(super) key: Arc<EntryKey>,
    pub(super) desired: Option<Desired>,
    pub(super) present: Option<Present>,
    pub(super) leaving: Option<Leaving>,
    /// True while it waits to be compared with what is desired.
    pub(super) is_queued: bool,
}

#[derive(Debug)]
pub(super) struct Desired {
    pub(super) content: Arc<EntryContent>,
    pub(super) route: Option<RouteId>,
    /// True if the switch has refused it.
    pub(super) is_refused: bool,
}

/// Entry that was sent, or found.
#[derive(Debug)]
pub(super) struct Present {
    /// Content; `None` if it is not known, because a change was refused or another controller wrote it.
    pub(super) content: Option<Arc<EntryContent>>,
    pub(super) group: Option<GroupId>,
    pub(super) serial: u64,
    /// Number of the batch that brought it.
    pub(super) batch: u64,
}

/// Entry that was withdrawn, until the switch has confirmed that it is gone.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) route: Option<RouteId>,
    /// Number of the batch; `None` before it is sent.
    pub(super) batch: Option<u64>,
}

/// Entries of one switch.
#[derive(Debug, Default)]
pub(super) struct EntryTable {
    number: u32,
    places: Vec<(u32, Option<TrackedEntry>)>,
    free: Vec<u32>,
    by_key: HashMap<Arc<EntryKey>, u32, RandomState>,
}

impl TrackedEntry {
    /// Returns true if the switch has the entry as it is desired, as far as it was sent.
    pub(super) fn is_as_desired(&self) -> bool {
        let (Some(desired), Some(present)) = (&self.desired, &self.present) else { return false };
        // Mostly both are the one content that was sent.
        let is_same =
            |content: &Arc<EntryContent>| Arc::ptr_eq(content, &desired.content) || *content == desired.content;
        present.content.as_ref().is_some_and(is_same)
    }

    fn is_idle(&self) -> bool {
        self.desired.is_none() && self.present.is_none() && self.leaving.is_none() && !self.is_queued
    }
}

impl EntryTable {
    /// Returns an empty table with a number that no other has.
    pub(super) fn new(number: u32) -> EntryTable {
        EntryTable { number, ..EntryTable::default() }
    }

    /// Returns the handle of the entry with a key, if it is tracked.
    pub(super) fn find(&self, key: &EntryKey) -> Option<EntryHandle> {
        self.by_key.get(key).map(|place| self.handle(*place))
    }

    /// Returns the handle of the entry with a key, which is tracked from now on.
    pub(super) fn track(&mut self, key: EntryKey) -> EntryHandle {
        if let Some(known) = self.find(&key) {
            return known;
        }
        let key = Arc::new(key);
        let entry =
            TrackedEntry { key: Arc::clone(&key), desired: None, present: None, leaving: None, is_queued: false };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some((_, content)) = self.places.get_mut(place as usize) {
            *content = Some(entry);
        }
        self.by_key.insert(key, place);
        self.handle(place)
    }

    fn handle(&self, place: u32) -> EntryHandle {
        let generation = self.places.get(place as usize).map_or(0, |(generation, _)| *generation);
        EntryHandle { table: self.number, place, generation }
    }

    pub(super) fn get(&self, handle: EntryHandle) -> Option<&TrackedEntry> {
        let (generation, entry) = self.places.get(handle.place as usize)?;
        entry.as_ref().filter(|_| *generation == handle.generation && self.number == handle.table)
    }

    pub(super) fn get_mut(&mut self, handle: EntryHandle) -> Option<&mut TrackedEntry> {
        let number = self.number;
        let (generation, entry) = self.places.get_mut(handle.place as usize)?;
        entry.as_mut().filter(|_| *generation == handle.generation && number == handle.table)
    }

    /// Forgets an entry if nothing is known or wanted of it.
    pub(super) fn forget_if_idle(&mut self, handle: EntryHandle) {
        let Some(key) = self.get(handle).filter(|entry| entry.is_idle()).map(|entry| Arc::clone(&entry.key)) else {
            return;
        };
        self.by_key.remove(&key);
        if let Some((generation, entry)) = self.places.get_mut(handle.place as usize) {
            *entry = None;
            *generation += 1;
            self.free.push(handle.place);
        }
    }

    /// Returns the handles of all entries.
    pub(super) fn handles(&self) -> Vec<EntryHandle> {
        let there = (0..).zip(&self.places).filter(|(_, (_, entry))| entry.is_some());
        there.map(|(place, _)| self.handle(place)).collect()
    }

    /// Returns all entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = &TrackedEntry> + '_ {
        self.places.iter().filter_map(|(_, entry)| entry.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::Match;

    #[test]
    fn a_handle_is_never_that_of_another_entry() {
        let key = |priority| EntryKey { table: 3, priority, matching: Match::any() };
        let mut table = EntryTable::new(7);
        let first = table.track(key(1));
        assert_eq!((table.track(key(1)), table.find(&key(1)), table.find(&key(2))), (first, Some(first), None));
        table.forget_if_idle(first);
        assert!(table.get(first).is_none() && table.find(&key(1)).is_none() && table.handles().is_empty());
        let second = table.track(key(2));
        assert_ne!(first, second, "the place is used again");
        assert!(table.get(first).is_none() && table.get_mut(first).is_none() && table.get(second).is_some());
        table.get_mut(second).unwrap().is_queued = true;
        table.forget_if_idle(second);
        assert!(table.get(second).is_some() && EntryTable::new(8).get(second).is_none());
    }
}
