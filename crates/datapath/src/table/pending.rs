//! What packets see of a table while a bundle changes it that is to take effect as one. Its changes are made one after the other, but until all
//! are, packets see each entry as it was before, an entry that came not at all, and one that went still there. Then, from one packet to the
//! next, they see what is there now ([`FlowTable::reveal`]), and what is left of the former is tidied up.
//!
//! Packets whose entries have not changed pay nothing: one that has has the verdict "see the program", and whoever wants to see that finds out
//! here which one, or looks for the best entry that packets see.
use super::FlowTable;
use crate::shape::EntryId;
use crate::table::{FlowEntry, Verdict};
use std::collections::BTreeMap;
use weir_packet::FlowKey;

/// What tidying an entry up costs, of what a step may.
const TIDY: usize = 8;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The entries that have changed, and those that went, which stay in their places until they are tidied up.
    changed: BTreeMap<EntryId, Changed>,
    /// How many of them are only there for packets, or for nobody.
    n_gone: usize,
    is_revealed: bool,
}

#[derive(Debug)]
struct Changed {
    /// What packets see until all is done; none where there was nothing.
    before: Option<Box<FlowEntry>>,
    /// Whether the entry is there now.
    is_there: bool,
    /// Whether what packets count until then is the former's, which is gone with its counters.
    is_new: bool,
}

impl Pending {
    /// How many entries are in their places that are not there for controllers.
    pub(super) fn n_gone(&self) -> usize {
        self.n_gone
    }

    /// Whether an entry is in its place but not there for controllers.
    pub(super) fn is_gone(&self, id: EntryId) -> bool {
        self.changed.get(&id).is_some_and(|changed| !changed.is_there)
    }

    /// A new entry came, or one to a place that another went from.
    pub(super) fn came(&mut self, id: EntryId) {
        let new = Changed { before: None, is_there: true, is_new: true };
        let changed = self.changed.entry(id).or_insert(new);
        if !std::mem::replace(&mut changed.is_there, true) {
            self.n_gone -= 1;
            changed.is_new = true;
        }
    }

    /// An entry changes that was so before.
    pub(super) fn changes(&mut self, id: EntryId, before: &FlowEntry) {
        let known = || Changed { before: Some(Box::new(before.clone())), is_there: true, is_new: false };
        self.changed.entry(id).or_insert_with(known);
    }

    /// An entry goes that was so before.
    pub(super) fn goes(&mut self, id: EntryId, before: &FlowEntry) {
        self.changes(id, before);
        if let Some(changed) = self.changed.get_mut(&id)
            && std::mem::replace(&mut changed.is_there, false)
        {
            self.n_gone += 1;
        }
    }

    /// Whether packets see an entry that is in its place.
    fn shows(&self, id: EntryId) -> bool {
        match self.changed.get(&id) {
            None => true,
            Some(changed) if self.is_revealed => changed.is_there,
            Some(changed) => changed.before.is_some(),
        }
    }

    /// An entry that packets see as they see it, where that is not as it is now.
    fn before(&self, id: EntryId) -> Option<&FlowEntry> {
        self.changed.get(&id).filter(|_| !self.is_revealed)?.before.as_deref()
    }

    /// Whether what a packet counted at an entry is not to be counted there.
    fn miscounts(&self, id: EntryId) -> bool {
        !self.shows(id) || self.changed.get(&id).is_some_and(|changed| changed.is_new && !self.is_revealed)
    }
}

impl FlowTable {
    /// From now on packets see the entries as they are at this moment, whatever becomes of them.
    pub(crate) fn hold(&mut self) {
        self.pending = Some(Box::default());
    }

    /// From now on packets see the entries as they are; [`FlowTable::tidy`] is to be called until it is done.
    pub(crate) fn reveal(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.is_revealed = true;
        }
    }

    /// Gives back what is left of entries as they were, a step that takes what it costs off `most`. Whether it is done.
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
                    let verdict = Verdict::of(&entry.program);
                    self.classifier.set_verdict(id, verdict);
                    self.reach.does(verdict);
                }
            } else {
                pending.n_gone -= 1;
                self.take_out(id);
            }
        }
        self.pending.is_none()
    }

    /// The entry that a packet sees instead of the one that was found for it.
    #[cold]
    pub(super) fn shown(&self, pending: &Pending, found: EntryId, key: &FlowKey) -> Option<(EntryId, &FlowEntry)> {
        let id =
            if pending.shows(found) { found } else { self.classifier.lookup_among(key, &|id| pending.shows(id))? };
        // What is borrowed from `pending` is borrowed from the table.
        let before = self.pending.as_deref().and_then(|pending| pending.before(id));
        Some((id, before.or_else(|| self.entries.get(id.0))?))
    }

    /// Whether a packet that was counted at the entry found is to be counted at another, or nowhere.
    pub(crate) fn miscounts(&self, found: EntryId) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.miscounts(found))
    }
}
