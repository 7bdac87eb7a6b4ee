//! Undoes group-mods when a later message of their bundle fails.
use super::counters::GroupTotals;
use super::{GroupCounters, GroupEntry, GroupTable};
use crate::ports::Ports;
use weir_openflow::model::GroupId;

/// Groups as they were before a group-mod.
#[derive(Debug)]
pub(crate) struct SavedGroups {
    /// The group-mod's group, or [`GroupId::ALL`].
    id: GroupId,
    /// The groups that existed, with their slots and counters.
    groups: Vec<(usize, GroupEntry, GroupTotals)>,
}

impl GroupTable {
    /// Saves the group that a group-mod concerns, or all groups.
    pub(crate) fn save(&self, id: GroupId, counters: &GroupCounters) -> SavedGroups {
        let places = match id {
            GroupId::ALL => (0..self.slots.len()).collect(),
            id => Vec::from_iter(self.by_id.get(&id).copied()),
        };
        let groups = places.into_iter().filter_map(|slot| Some((slot, self.at(slot)?.clone(), counters.of(slot))));
        SavedGroups { id, groups: groups.collect() }
    }

    /// Restores the groups as they were before a group-mod. Later group-mods must have been undone already.
    pub(crate) fn restore(&mut self, saved: SavedGroups, ports: &Ports, counters: &mut GroupCounters) {
        let is_one = saved.id != GroupId::ALL;
        if is_one
            && let Some(slot) = self.by_id.remove(&saved.id)
            && let Some(group) = self.slots[slot].take()
        {
            self.link(&group, -1);
            self.n_buckets -= group.buckets.len();
        }
        for (slot, group, counted) in saved.groups {
            if self.slots.len() <= slot {
                self.slots.resize_with(slot + 1, || None);
            }
            counters.put_back(slot, &counted);
            // After undoing a delete-all, restored groups already hold their reference counts.
            if is_one {
                self.link(&group, 1);
            }
            self.n_buckets += group.buckets.len();
            self.by_id.insert(group.id, slot);
            self.slots[slot] = Some(group);
        }
        self.free = (0..self.slots.len()).filter(|slot| self.slots[*slot].is_none()).collect();
        // The former chains are restored, so none is too long.
        let _ = self.level_again();
        self.follow(ports);
    }
}
