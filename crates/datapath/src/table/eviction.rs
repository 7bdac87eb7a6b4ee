//! Selects the entry of a full table to evict for another one (OpenFlow 1.4.1, 6.5 and 7.3.4.1).
//!
//! The least important entry is evicted first; among equals, the one with the earliest hard time-out (those without
//! one last); among those, the oldest. Idle time-outs are ignored, because every packet moves them. The order is kept
//! only while the table evicts.
use super::FlowEntry;
use crate::shape::EntryId;
use std::collections::BTreeSet;
use weir_units::Instant;

/// Order of eviction: see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct EvictionOrder {
    order: Option<BTreeSet<EvictionRank>>,
}

/// Position of an entry in the order: importance, hard time-out, age. The id makes it unique.
type EvictionRank = (u16, Instant, u64, EntryId);

impl EvictionOrder {
    /// Starts keeping the order. `entries` are all present entries.
    pub(crate) fn start<'a>(&mut self, entries: impl Iterator<Item = (EntryId, &'a FlowEntry)>) {
        self.order = Some(entries.map(|(id, entry)| rank(id, entry)).collect());
    }

    /// Adds an entry to the order.
    pub(crate) fn insert_ranked(&mut self, id: EntryId, entry: &FlowEntry) {
        if let Some(order) = &mut self.order {
            order.insert(rank(id, entry));
        }
    }

    /// Removes an entry from the order.
    pub(crate) fn remove_ranked(&mut self, id: EntryId, entry: &FlowEntry) {
        if let Some(order) = &mut self.order {
            order.remove(&rank(id, entry));
        }
    }

    /// Returns the entry to evict for a new one of this importance; never a more important one.
    pub(crate) fn victim(&self, importance: u16) -> Option<EntryId> {
        let (least, .., id) = self.order.as_ref()?.first()?;
        (*least <= importance).then_some(*id)
    }
}

fn rank(id: EntryId, entry: &FlowEntry) -> EvictionRank {
    (entry.importance, entry.hard_end().unwrap_or(Instant::FAR), entry.stamp, id)
}
