//! Keeps a table's former entries visible to packets while a bundle changes the table atomically. The changes are
//! made one by one. Until the last is made, packets see each entry as it was before: new entries are invisible, and
//! removed ones still visible. Then packets switch to the new state at once ([`FlowTable::reveal`]), and the former
//! entries are released.
//!
//! Packets that match unchanged entries pay nothing. A changed entry has the verdict [`EntryVerdict::Program`]. Code
//! that runs the program asks here for the entry that packets see, which may require a search for the best visible
//! entry.
use super::FlowTable;
use crate::shape::EntryId;
use crate::table::FlowEntry;
use std::collections::BTreeMap;
use weir_packet::FlowKey;

/// Cost of releasing one entry, in the units of a step's budget.
const TIDY: usize = 8;

/// Changes of a table that packets do not see yet: see the [module](self).
#[derive(Debug, Default)]
pub(super) struct PendingEntries {
    /// Changed entries, and removed ones, which stay in their places until they are released.
    changed: BTreeMap<EntryId, PendingEntry>,
    /// Number of entries in `changed` that are removed.
    n_gone: usize,
    is_revealed: bool,
}

#[derive(Debug)]
struct PendingEntry {
    /// Entry that packets see until the switch; `None` if the place was empty.
    before: Option<Box<FlowEntry>>,
    /// True if the entry is present in the new state.
    is_there: bool,
    /// True if packets that match before the switch belong to a former entry whose counters are gone, or to none.
    is_new: bool,
}

impl PendingEntries {
    /// Returns the number of removed entries that are still in their places.
    pub(super) fn n_gone(&self) -> usize {
        self.n_gone
    }

    /// Returns true if an entry is removed but still in its place.
    pub(super) fn is_gone(&self, id: EntryId) -> bool {
        self.changed.get(&id).is_some_and(|changed| !changed.is_there)
    }

    /// Records a new entry, also one at the place of a removed entry.
    pub(super) fn note_hidden_insert(&mut self, id: EntryId) {
        let new = PendingEntry { before: None, is_there: true, is_new: true };
        let changed = self.changed.entry(id).or_insert(new);
        if !std::mem::replace(&mut changed.is_there, true) {
            self.n_gone -= 1;
            changed.is_new = true;
        }
    }

    /// Records the state of an entry before its change.
    pub(super) fn changes(&mut self, id: EntryId, before: &FlowEntry) {
        let known = || PendingEntry { before: Some(Box::new(before.clone())), is_there: true, is_new: false };
        self.changed.entry(id).or_insert_with(known);
    }

    /// Records the removal of an entry, with its state before.
    pub(super) fn note_hidden_removal(&mut self, id: EntryId, before: &FlowEntry) {
        self.changes(id, before);
        if let Some(changed) = self.changed.get_mut(&id)
            && std::mem::replace(&mut changed.is_there, false)
        {
            self.n_gone += 1;
        }
    }

    /// Returns true if packets see an entry that is in its place.
    fn shows(&self, id: EntryId) -> bool {
        match self.changed.get(&id) {
            None => true,
            Some(changed) if self.is_revealed => changed.is_there,
            Some(changed) => changed.before.is_some(),
        }
    }

    /// Returns the entry that packets see at this place, if it differs from the present one.
    fn before(&self, id: EntryId) -> Option<&FlowEntry> {
        self.changed.get(&id).filter(|_| !self.is_revealed)?.before.as_deref()
    }

    /// Returns true if a packet that was counted at this entry must not be counted there.
    fn miscounts(&self, id: EntryId) -> bool {
        !self.shows(id) || self.changed.get(&id).is_some_and(|changed| changed.is_new && !self.is_revealed)
    }
}

impl FlowTable {
    /// Makes packets see the entries as they are now, regardless of later changes.
    pub(crate) fn hold(&mut self) {
        self.pending = Some(Box::default());
    }

    /// Makes packets see the present entries. [`FlowTable::tidy`] must then be called until it returns true.
    pub(crate) fn reveal(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.is_revealed = true;
        }
    }

    /// Releases former entries, and reduces the budget `most` by the cost. Returns true when all are released.
    pub(crate) fn tidy(&mut self, most: &mut usize) -> bool {
        while *most > 0
            && let Some(pending) = &mut self.pending
        {
            let Some((id, changed)) = pending.changed.pop_first() else {
                self.pending = None;
                return true;
            };
            *most = most.saturating_sub(TIDY);
            if changed.is_there {
                if let Some(entry) = self.entries.get(id.0) {
                    let verdict = entry.program.verdict();
                    self.classifier.set_verdict(id, verdict);
                    self.reach.on_modify(verdict);
                }
            } else {
                pending.n_gone -= 1;
                self.take_out(id);
            }
        }
        self.pending.is_none()
    }

    /// Returns the entry that a packet sees instead of the one found for it.
    #[cold]
    pub(super) fn shown(
        &self,
        pending: &PendingEntries,
        found: EntryId,
        key: &FlowKey,
    ) -> Option<(EntryId, &FlowEntry)> {
        let id =
            if pending.shows(found) { found } else { self.classifier.lookup_among(key, &|id| pending.shows(id))? };
        // Borrowed from `self.pending` instead of `pending`, so that the result has the lifetime of the table.
        let before = self.pending.as_deref().and_then(|pending| pending.before(id));
        Some((id, before.or_else(|| self.entries.get(id.0))?))
    }

    /// Returns true if a packet that was counted at this entry must be counted at another one, or not at all.
    pub(crate) fn miscounts(&self, found: EntryId) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.miscounts(found))
    }
}
