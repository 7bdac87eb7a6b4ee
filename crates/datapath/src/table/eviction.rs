//! Which entry of a full table goes to make room for another (OpenFlow 1.4.1, 6.5 and 7.3.4.1).
//!
//! The least important goes first; among those, the one whose hard time-out is up first, those without one last; among those, the
//! oldest. Idle time-outs do not count: they move with every packet. The order is kept only while a table evicts.
use super::FlowEntry;
use crate::shape::EntryId;
use std::collections::BTreeSet;
use weir_units::Instant;

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Eviction {
    order: Option<BTreeSet<Rank>>,
}

/// Where an entry comes in the order: importance, end, age; the rest tells entries apart.
type Rank = (u16, Instant, u64, EntryId);

impl Eviction {
    /// Keeps the order of these entries, the only ones there, from now on.
    pub(crate) fn start<'a>(&mut self, entries: impl Iterator<Item = (EntryId, &'a FlowEntry)>) {
        self.order = Some(entries.map(|(id, entry)| rank(id, entry)).collect());
    }

    /// An entry came.
    pub(crate) fn came(&mut self, id: EntryId, entry: &FlowEntry) {
        if let Some(order) = &mut self.order {
            order.insert(rank(id, entry));
        }
    }

    /// An entry went.
    pub(crate) fn went(&mut self, id: EntryId, entry: &FlowEntry) {
        if let Some(order) = &mut self.order {
            order.remove(&rank(id, entry));
        }
    }

    /// The entry that goes to make room for one of this importance: none that is more important.
    pub(crate) fn victim(&self, importance: u16) -> Option<EntryId> {
        let (least, .., id) = self.order.as_ref()?.first()?;
        (*least <= importance).then_some(*id)
    }
}

fn rank(id: EntryId, entry: &FlowEntry) -> Rank {
    (entry.importance, entry.hard_end().unwrap_or(Instant::FAR), entry.stamp, id)
}
