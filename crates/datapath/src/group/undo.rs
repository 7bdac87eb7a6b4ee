//! Taking group-mods back, when a later message of their bundle fails.
use super::counters::Counted;
use super::{Group, GroupCounters, Groups};
use crate::ports::Ports;
use weir_openflow::model::GroupId;

/// Groups as they were before a group-mod.
#[derive(Debug)]
pub(crate) struct Saved {
    /// Which group-mod: of one group or all.
    id: GroupId,
    /// Those that were there, with their places.
    groups: Vec<(usize, Group, Counted)>,
}

impl Groups {
    /// The group that a group-mod is about, or all of them, as they are.
    pub(crate) fn save(&self, id: GroupId, counters: &GroupCounters) -> Saved {
        let places = match id {
            GroupId::ALL => (0..self.slots.len()).collect(),
            id => Vec::from_iter(self.by_id.get(&id).copied()),
        };
        let groups = places.into_iter().filter_map(|slot| Some((slot, self.at(slot)?.clone(), counters.of(slot))));
        Saved { id, groups: groups.collect() }
    }

    /// Makes groups what they were before a group-mod; those after it have been taken back.
    pub(crate) fn restore(&mut self, saved: Saved, ports: &Ports, counters: &mut GroupCounters) {
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
            // Groups that came back together know already who leads to them.
            if is_one {
                self.link(&group, 1);
            }
            self.n_buckets += group.buckets.len();
            self.by_id.insert(group.id, slot);
            self.slots[slot] = Some(group);
        }
        self.free = (0..self.slots.len()).filter(|slot| self.slots[*slot].is_none()).collect();
        // As they were, so no chain is too long.
        let _ = self.level_again();
        self.follow(ports);
    }
}
