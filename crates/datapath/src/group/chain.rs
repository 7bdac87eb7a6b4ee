//! Maintains the chains of groups that lead to groups, by sending packets there or by watching them (OpenFlow 1.3.5,
//! 6.5).
use super::{GroupEntry, GroupTable, MAX_CHAIN};
use foldhash::{HashSet, HashSetExt};
use std::collections::BTreeSet;
use weir_openflow::model::error::{BadAction, GroupModFailed};
use weir_openflow::model::{ErrorType, GroupId};

impl GroupEntry {
    /// Returns the groups that the buckets send to.
    pub(super) fn forwards(&self) -> BTreeSet<GroupId> {
        self.buckets.iter().filter_map(super::CompiledBucket::next).collect()
    }

    /// Returns the groups that the buckets watch.
    pub(super) fn watches(&self) -> BTreeSet<GroupId> {
        self.buckets.iter().map(|bucket| bucket.asked.watch_group).filter(|group| *group != GroupId::ANY).collect()
    }

    fn leads(&self) -> impl Iterator<Item = GroupId> {
        self.forwards().into_iter().chain(self.watches())
    }
}

impl GroupTable {
    /// Checks that the groups that a new or changed group leads to exist and do not lead back to it. Sets the group's
    /// level.
    ///
    /// # Errors
    /// `OFPGMFC_LOOP`, `OFPBAC_BAD_OUT_GROUP`, `OFPGMFC_BAD_WATCH`, and `OFPGMFC_CHAINING_UNSUPPORTED` if the chain
    /// below is too long.
    pub(super) fn check_chain(&self, group: &mut GroupEntry) -> Result<(), ErrorType> {
        if group.leads().any(|id| id == group.id) {
            return Err(GroupModFailed::Loop.into());
        }
        let missing = |id: &GroupId| !self.by_id.contains_key(id);
        if group.forwards().iter().any(missing) {
            return Err(BadAction::BadOutGroup.into());
        }
        if group.watches().iter().any(missing) {
            return Err(GroupModFailed::BadWatch.into());
        }
        // No group leads to a group that does not exist yet, so a new group cannot close a loop.
        if self.by_id.contains_key(&group.id) && self.leads_to(group, group.id) {
            return Err(GroupModFailed::Loop.into());
        }
        group.level = self.level_above(group);
        check_level(group.level)
    }

    /// Returns true if a chain leads from a group to `target`.
    fn leads_to(&self, group: &GroupEntry, target: GroupId) -> bool {
        let mut seen = HashSet::new();
        let mut ways: Vec<GroupId> = group.leads().collect();
        while let Some(id) = ways.pop() {
            if id == target {
                return true;
            }
            if seen.insert(id)
                && let Some((_, group)) = self.find(id)
            {
                ways.extend(group.leads());
            }
        }
        false
    }

    /// Returns a group's level: one more than the highest level among the groups it leads to, or 0 if it leads to
    /// none.
    fn level_above(&self, group: &GroupEntry) -> u8 {
        group.leads().filter_map(|id| self.find(id)).map(|(_, below)| below.level + 1).max().unwrap_or(0)
    }

    /// Computes all levels anew after one changed. The chains must have no loop.
    ///
    /// # Errors
    /// `OFPGMFC_CHAINING_UNSUPPORTED`: some chain is too long. The levels are then wrong until this is called again.
    pub(super) fn level_again(&mut self) -> Result<(), ErrorType> {
        // Each round corrects the level above those that are already correct.
        for _ in 0..=MAX_CHAIN {
            let levels: Vec<(usize, u8)> = (0..)
                .zip(&self.slots)
                .filter_map(|(slot, group)| {
                    let group = group.as_ref()?;
                    let level = self.level_above(group).min(MAX_CHAIN);
                    (level != group.level).then_some((slot, level))
                })
                .collect();
            if levels.is_empty() {
                break;
            }
            for (slot, level) in levels {
                if let Some(group) = &mut self.slots[slot] {
                    group.level = level;
                }
            }
        }
        self.iter().try_for_each(|group| check_level(group.level))
    }

    /// Adds `change` to the reference counts in the groups that a group leads to: `1` for a new group, `-1` for a
    /// removed one.
    pub(super) fn link(&mut self, group: &GroupEntry, change: i32) {
        for id in group.forwards() {
            if let Some(below) = self.get_mut(id) {
                below.forwarders = below.forwarders.saturating_add_signed(change);
            }
        }
        for id in group.watches() {
            if let Some(below) = self.get_mut(id) {
                below.watchers = below.watchers.saturating_add_signed(change);
            }
        }
    }
}

fn check_level(level: u8) -> Result<(), ErrorType> {
    if level < MAX_CHAIN { Ok(()) } else { Err(GroupModFailed::ChainingUnsupported.into()) }
}
