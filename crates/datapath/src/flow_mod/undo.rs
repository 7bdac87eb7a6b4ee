//! Undoes changes of flow entries that a journal recorded, for a bundle that fails.
use super::TableEditor;
use crate::journal::UndoRecord;
use crate::table::FlowRemovedNotice;
use weir_openflow::model::FlowRemovedReason;
use weir_openflow::model::flow::FlowFlags;
use weir_units::Instant;

impl TableEditor<'_> {
    /// Undoes a change of flow entries; later changes must have been undone already. If there is no memory to restore
    /// a removed entry, the entry is evicted, and its flow-removed message is returned if the entry asked for one.
    pub(crate) fn undo(&mut self, now: Instant, undo: UndoRecord) -> Option<FlowRemovedNotice> {
        match undo {
            UndoRecord::Added(table, id) => {
                if let Some(entry) = self.tables[usize::from(table)].remove(id) {
                    self.timers.stop(entry.timer);
                }
            }
            UndoRecord::Removed(table, id, was) => {
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
            UndoRecord::Modified(table, id, former) => {
                self.tables[usize::from(table)].set_program(id, former.program);
                let entry = self.tables[usize::from(table)].get_mut(id)?;
                entry.cookie = former.cookie;
                self.tables[usize::from(table)].start_counter(id, former.counter);
            }
            // Changes of other state are undone by the caller.
            UndoRecord::Port(..) | UndoRecord::Groups(_) | UndoRecord::Meters(_) | UndoRecord::Table(..) => {}
        }
        None
    }
}
