//! What changed, written down while somebody needs to know: a bundle, to take everything back if one of its messages fails, and
//! flow monitors.
//!
//! The cost is in proportion to the changes, whatever the tables hold; with nobody to know nothing is written.
use crate::flow_mod::Tables;
use crate::monitor::Change;
use crate::program::Program;
use crate::shape::EntryId;
use crate::table::{FlowCounter, FlowEntry, TableSettings};
use crate::{ChannelId, group, meter};
use std::sync::Arc;
use weir_openflow::model::monitor::FlowEvent;
use weir_openflow::model::{FlowRemovedReason, PortNo};

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Changes since a bundle began to be carried out, oldest first.
    undo: Option<Vec<Undo>>,
    /// What happened to entries since monitors were told, while there are some.
    changes: Option<Vec<Change>>,
    /// The channel whose message is being handled, with its transaction id.
    pub(crate) by: Option<(ChannelId, u32)>,
}

/// A change, with what it takes to undo it.
#[derive(Debug)]
pub(crate) enum Undo {
    /// An entry was added.
    Added(u8, EntryId),
    /// An entry was removed, or another put in its place.
    Removed(u8, EntryId, Box<(FlowEntry, FlowCounter)>),
    /// An entry was changed.
    Modified(u8, EntryId, Former),
    /// A port was configured; these were its bits.
    Port(PortNo, u32),
    /// Groups were changed.
    Groups(Box<group::Saved>),
    /// Meters were changed.
    Meters(meter::Saved),
    /// A table was configured.
    Table(u8, Box<TableSettings>),
}

/// What a modify changes of an entry, as it was.
#[derive(Debug)]
pub(crate) struct Former {
    pub(crate) program: Arc<Program>,
    pub(crate) cookie: u64,
    pub(crate) counter: FlowCounter,
}

impl Journal {
    /// Begins to write changes down for a bundle.
    pub(crate) fn begin(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// Ends it; the changes, oldest first.
    pub(crate) fn end(&mut self) -> Vec<Undo> {
        self.undo.take().unwrap_or_default()
    }

    /// States whether there are monitors.
    pub(crate) fn watch(&mut self, is_on: bool) {
        self.changes = is_on.then(|| self.changes.take().unwrap_or_default());
    }

    /// What happened to entries since this was asked last.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Writes down what happened to an entry, if there are monitors.
    pub(crate) fn changed(
        &mut self,
        event: FlowEvent,
        reason: Option<FlowRemovedReason>,
        table: u8,
        entry: Option<&FlowEntry>,
        former: Option<&Arc<Program>>,
    ) {
        if let (Some(changes), Some(entry)) = (&mut self.changes, entry) {
            // What a controller did not ask for by its message is not its own.
            let is_own = reason.is_none_or(|reason| reason == FlowRemovedReason::Delete);
            let (entry, former, by) = (entry.clone(), former.cloned(), self.by.filter(|_| is_own));
            changes.push(Change { event, reason, table, entry, former, by });
        }
    }

    /// Whether changes are written down for a bundle.
    pub(crate) fn is_on(&self) -> bool {
        self.undo.is_some()
    }

    /// Writes a change down, if that is wanted; `undo` is made only then.
    pub(crate) fn note(&mut self, undo: impl FnOnce() -> Undo) {
        if let Some(list) = &mut self.undo {
            list.push(undo());
        }
    }
}

impl Tables<'_> {
    /// Takes a change of flow entries back; those after it have been taken back.
    pub(crate) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Added(table, id) => {
                let entry = self.tables[usize::from(table)].remove(id);
                self.forget_timer(entry.as_ref());
            }
            Undo::Removed(table, id, was) => {
                let (mut entry, counter) = *was;
                // Its timer may be gone: it gets another, which the stamp tells from the former.
                entry.stamp = self.timers.stamp();
                let timer = entry.deadline(counter.used).map(|(at, _)| (at, entry.stamp));
                let replaced = self.tables[usize::from(table)].put_back(id, entry);
                self.forget_timer(replaced.as_ref());
                self.tables[usize::from(table)].counts.start(id, counter);
                self.start_timer(timer, table, id);
            }
            Undo::Modified(table, id, former) => {
                self.tables[usize::from(table)].set_program(id, former.program);
                let Some(entry) = self.tables[usize::from(table)].get_mut(id) else { return };
                entry.cookie = former.cookie;
                self.tables[usize::from(table)].counts.start(id, former.counter);
            }
            // Not changes of entries.
            Undo::Port(..) | Undo::Groups(_) | Undo::Meters(_) | Undo::Table(..) => {}
        }
    }
}
