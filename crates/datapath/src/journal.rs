//! Records changes of the tables while they are needed: for a bundle, to undo everything if one of its messages
//! fails, and for flow monitors.
//!
//! The cost is proportional to the number of changes, not to the size of the tables. Without a bundle or monitor
//! nothing is recorded.
use crate::chunked_queue::ChunkedQueue;
use crate::monitor::MonitoredChange;
use crate::program::EntryProgram;
use crate::shape::EntryId;
use crate::table::{FlowCounter, FlowEntry, TableSettings};
use crate::{ChannelId, group, meter};
use std::sync::Arc;
use weir_openflow::model::monitor::FlowEvent;
use weir_openflow::model::{FlowRemovedReason, PortNo};

/// The changes recorded for the bundle being committed and for flow monitors.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    noted: RecordedChanges,
    /// Channel whose message is being handled, and the message's transaction id.
    pub(crate) by: Option<(ChannelId, u32)>,
}

/// The recorded changes.
#[derive(Debug, Default)]
pub(crate) struct RecordedChanges {
    /// Changes since the bundle's commit began, oldest first.
    undo: Option<ChunkedQueue<UndoRecord>>,
    /// Changes of entries not yet reported to monitors; `None` without monitors.
    changes: Option<Vec<MonitoredChange>>,
}

/// A change, with the state needed to undo it.
#[derive(Debug)]
pub(crate) enum UndoRecord {
    /// An entry was added.
    Added(u8, EntryId),
    /// An entry was removed or replaced; holds the old entry.
    Removed(u8, EntryId, Box<(FlowEntry, FlowCounter)>),
    /// An entry was modified; holds its former values.
    Modified(u8, EntryId, FormerEntryState),
    /// A port was configured; holds its former configuration bits.
    Port(PortNo, u32),
    /// Groups were changed; holds their former state.
    Groups(Box<group::SavedGroups>),
    /// Meters were changed; holds their former state.
    Meters(meter::SavedMeters),
    /// A table was configured; holds its former settings.
    Table(u8, Box<TableSettings>),
}

/// Former values of the parts of an entry that a modify changes.
#[derive(Debug)]
pub(crate) struct FormerEntryState {
    pub(crate) program: Arc<EntryProgram>,
    pub(crate) cookie: u64,
    pub(crate) counter: FlowCounter,
}

impl Journal {
    /// Returns an empty record for a bundle, to be swapped in before the bundle changes something and swapped out
    /// afterwards.
    pub(crate) fn for_bundle(&self) -> RecordedChanges {
        RecordedChanges {
            undo: Some(ChunkedQueue::default()),
            changes: self.noted.changes.as_ref().map(|_| Vec::new()),
        }
    }

    /// Exchanges the current record with another.
    pub(crate) fn swap(&mut self, noted: &mut RecordedChanges) {
        std::mem::swap(&mut self.noted, noted);
    }

    /// Ends recording for a bundle. Returns the recorded changes, oldest first.
    pub(crate) fn end(&mut self) -> ChunkedQueue<UndoRecord> {
        self.noted.undo.take().unwrap_or_default()
    }

    /// Removes the latest change recorded for a bundle and returns it.
    pub(crate) fn take_last(&mut self) -> Option<UndoRecord> {
        self.noted.undo.as_mut()?.pop_back()
    }

    /// Switches recording for monitors on or off.
    pub(crate) fn watch(&mut self, is_on: bool) {
        self.noted.changes = is_on.then(|| self.noted.changes.take().unwrap_or_default());
    }

    /// Returns the changes of entries since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<MonitoredChange> {
        self.noted.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records a change of an entry if there are monitors.
    pub(crate) fn changed(
        &mut self,
        event: FlowEvent,
        reason: Option<FlowRemovedReason>,
        table: u8,
        entry: Option<&FlowEntry>,
        former: Option<&Arc<EntryProgram>>,
    ) {
        if let (Some(changes), Some(entry)) = (&mut self.noted.changes, entry) {
            // A removal that the message did not ask for (for example an eviction) is not attributed to its channel.
            let is_own = reason.is_none_or(|reason| reason == FlowRemovedReason::Delete);
            let (entry, former, by) = (entry.clone(), former.cloned(), self.by.filter(|_| is_own));
            changes.push(MonitoredChange { event, reason, table, entry, former, by });
        }
    }

    /// Returns true if changes are recorded for a bundle.
    pub(crate) fn is_on(&self) -> bool {
        self.noted.undo.is_some()
    }

    /// Records a change for a bundle, if there is one. `undo` runs only then.
    pub(crate) fn note(&mut self, undo: impl FnOnce() -> UndoRecord) {
        if let Some(list) = &mut self.noted.undo {
            list.push(undo());
        }
    }
}
