//! What changed, written down while somebody needs to know: a bundle, to take everything back if one of its messages fails, and
//! flow monitors.
//!
//! The cost is in proportion to the changes, whatever the tables hold; with nobody to know nothing is written.
use crate::chunks::Chunks;
use crate::flow_mod::Tables;
use crate::monitor::Change;
use crate::program::Program;
use crate::shape::EntryId;
use crate::table::{FlowCounter, FlowEntry, Gone, TableSettings};
use crate::{ChannelId, group, meter};
use std::sync::Arc;
use weir_openflow::model::flow::FlowFlags;
use weir_openflow::model::monitor::FlowEvent;
use weir_openflow::model::{FlowRemovedReason, PortNo};
use weir_units::Instant;

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    noted: Noted,
    /// The channel whose message is being handled, with its transaction id.
    pub(crate) by: Option<(ChannelId, u32)>,
}

/// What was written down.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// Changes since a bundle began to be carried out, oldest first.
    undo: Option<Chunks<Undo>>,
    /// What happened to entries since monitors were told, while there are some.
    changes: Option<Vec<Change>>,
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
    /// To be swapped in before a bundle changes something, and out behind it.
    pub(crate) fn for_bundle(&self) -> Noted {
        Noted { undo: Some(Chunks::default()), changes: self.noted.changes.as_ref().map(|_| Vec::new()) }
    }

    /// Goes on with what was written down elsewhere; gives what was here.
    pub(crate) fn swap(&mut self, noted: &mut Noted) {
        std::mem::swap(&mut self.noted, noted);
    }

    /// Ends writing changes down for a bundle; those that were, oldest first.
    pub(crate) fn end(&mut self) -> Chunks<Undo> {
        self.noted.undo.take().unwrap_or_default()
    }

    /// Takes the last change that was written down for a bundle.
    pub(crate) fn take_last(&mut self) -> Option<Undo> {
        self.noted.undo.as_mut()?.pop_back()
    }

    /// States whether there are monitors.
    pub(crate) fn watch(&mut self, is_on: bool) {
        self.noted.changes = is_on.then(|| self.noted.changes.take().unwrap_or_default());
    }

    /// What happened to entries since this was asked last.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        self.noted.changes.as_mut().map(std::mem::take).unwrap_or_default()
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
        if let (Some(changes), Some(entry)) = (&mut self.noted.changes, entry) {
            // What a controller did not ask for by its message is not its own.
            let is_own = reason.is_none_or(|reason| reason == FlowRemovedReason::Delete);
            let (entry, former, by) = (entry.clone(), former.cloned(), self.by.filter(|_| is_own));
            changes.push(Change { event, reason, table, entry, former, by });
        }
    }

    /// Whether changes are written down for a bundle.
    pub(crate) fn is_on(&self) -> bool {
        self.noted.undo.is_some()
    }

    /// Writes a change down, if that is wanted; `undo` is made only then.
    pub(crate) fn note(&mut self, undo: impl FnOnce() -> Undo) {
        if let Some(list) = &mut self.noted.undo {
            list.push(undo());
        }
    }
}

impl Tables<'_> {
    /// Takes a change of flow entries back; those after it have been taken back. Gives the message about an entry that there is no
    /// memory for any more, if it is to be sent: it is evicted.
    pub(crate) fn undo(&mut self, now: Instant, undo: Undo) -> Option<Gone> {
        match undo {
            Undo::Added(table, id) => {
                if let Some(entry) = self.tables[usize::from(table)].remove(id) {
                    self.timers.stop(entry.timer);
                }
            }
            Undo::Removed(table, id, was) => {
                let (entry, counter) = *was;
                let deadline = entry.deadline(counter.used).map(|(at, _)| at);
                match self.tables[usize::from(table)].put_back(id, entry) {
                    Ok(Some(replaced)) => self.timers.stop(replaced.timer),
                    Ok(None) => {}
                    Err(lost) => {
                        let is_told = lost.flags.contains(FlowFlags::SEND_FLOW_REM);
                        return is_told.then(|| lost.removed(now, table, FlowRemovedReason::Eviction, counter));
                    }
                }
                self.tables[usize::from(table)].start_counter(id, counter);
                self.start_timer(deadline, table, id);
            }
            Undo::Modified(table, id, former) => {
                self.tables[usize::from(table)].set_program(id, former.program);
                let entry = self.tables[usize::from(table)].get_mut(id)?;
                entry.cookie = former.cookie;
                self.tables[usize::from(table)].start_counter(id, former.counter);
            }
            // Not changes of entries.
            Undo::Port(..) | Undo::Groups(_) | Undo::Meters(_) | Undo::Table(..) => {}
        }
        None
    }
}
