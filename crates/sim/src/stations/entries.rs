//! Which flows of a source have an entry at which switch.
use super::plan::{Flow, Stage};
use super::station::Item;

/// Entries of the flows of one source, by the flow's place among those of its time and the switch's on the way.
///
/// What is kept is the number of the last flow that got one: flows of a place follow each other, and so do their entries.
pub(super) struct Entries {
    last: Vec<u32>,
    /// Places on the way.
    stages: usize,
}

impl Entries {
    /// None yet; `None` if packets are not told apart by flow.
    pub(super) fn of(flow: &Flow) -> Option<Entries> {
        let places = flow.flows? as usize;
        let stages = flow.way.iter().rposition(|stage| matches!(stage, Stage::Switch(_)))? + 1;
        Some(Entries { last: vec![0; places * stages], stages })
    }

    fn at(&self, item: &Item) -> usize {
        usize::from(item.place) * self.stages + usize::from(item.stage)
    }

    /// Whether the packet's flow has no entry where the packet is.
    pub(super) fn lacks(&self, item: &Item) -> bool {
        self.last.get(self.at(item)).is_some_and(|last| item.number > *last)
    }

    /// The packet's flow has an entry now where the packet is.
    pub(super) fn write(&mut self, item: &Item) {
        let at = self.at(item);
        if let Some(last) = self.last.get_mut(at) {
            *last = item.number.max(*last);
        }
    }
}
