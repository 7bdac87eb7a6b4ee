//! Keeps which flows of a source have an entry at which switch.
use super::plan::{FlowPlan, PathStage};
use super::station::StationPacket;

/// Entries of the flows of one source, by slot among concurrent flows and by stage on the path.
///
/// Flows of a slot follow each other, and so do their entries. It is therefore enough to keep the number of the last
/// flow that got an entry.
pub(super) struct InstalledEntries {
    last: Vec<u32>,
    /// Stages on the path that have a place in `last`.
    stages: usize,
}

impl InstalledEntries {
    /// Returns an empty set of entries; `None` if packets are not told apart by flow, or no switch takes time.
    pub(super) fn of(flow: &FlowPlan) -> Option<InstalledEntries> {
        let places = flow.flows? as usize;
        let stages = flow.stages.iter().rposition(|stage| matches!(stage, PathStage::Switch(_)))? + 1;
        Some(InstalledEntries { last: vec![0; places * stages], stages })
    }

    fn at(&self, item: &StationPacket) -> usize {
        usize::from(item.place) * self.stages + usize::from(item.stage)
    }

    /// Returns true if the packet's flow has no entry at the packet's current switch.
    pub(super) fn lacks(&self, item: &StationPacket) -> bool {
        self.last.get(self.at(item)).is_some_and(|last| item.number > *last)
    }

    /// Records an entry for the packet's flow at the packet's current switch.
    pub(super) fn write(&mut self, item: &StationPacket) {
        let at = self.at(item);
        if let Some(last) = self.last.get_mut(at) {
            *last = item.number.max(*last);
        }
    }
}
