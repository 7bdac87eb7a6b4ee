//! Groups that lead to groups, by sending packets there or by watching them (OpenFlow 1.3.5, 6.5).
use super::{Group, Groups, MAX_CHAIN};
use foldhash::{HashSet, HashSetExt};
use std::collections::BTreeSet;
use weir_openflow::model::error::{BadAction, GroupModFailed};
use weir_openflow::model::{ErrorType, GroupId};

impl Group {
    /// The groups that its buckets send to.
    pub(super) fn forwards(&self) -> BTreeSet<GroupId> {
        self.buckets.iter().filter_map(super::Bucket::next).collect()
    }

    /// The groups that its buckets watch.
    pub(super) fn watches(&self) -> BTreeSet<GroupId> {
        self.buckets.iter().map(|bucket| bucket.asked.watch_group).filter(|group| *group != GroupId::ANY).collect()
    }

    fn leads(&self) -> impl Iterator<Item = GroupId> {
        self.forwards().into_iter().chain(self.watches())
    }
}

impl Groups {
    /// Checks that the groups that a new or changed group leads to are there, and none leads back; sets its level.
    ///
    /// # Errors
    /// `OFPGMFC_LOOP`, `OFPBAC_BAD_OUT_GROUP`, `OFPGMFC_BAD_WATCH`, and `OFPGMFC_CHAINING_UNSUPPORTED` where the chain below is too long.
    pub(super) fn check_chain(&self, group: &mut Group) -> Result<(), ErrorType> {
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
        // Nothing leads to a group that is not there yet.
        if self.by_id.contains_key(&group.id) && self.leads_to(group, group.id) {
            return Err(GroupModFailed::Loop.into());
        }
        group.level = self.level_above(group);
        check_level(group.level)
    }

    /// Whether some way from a group leads to `target`.
    fn leads_to(&self, group: &Group, target: GroupId) -> bool {
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

    /// One above the highest level that a group leads to.
    fn level_above(&self, group: &Group) -> u8 {
        group.leads().filter_map(|id| self.find(id)).map(|(_, below)| below.level + 1).max().unwrap_or(0)
    }

    /// Works out all levels anew after one changed; there are no loops.
    ///
    /// # Errors
    /// `OFPGMFC_CHAINING_UNSUPPORTED`: some chain is too long. Levels are then wrong until this is called again.
    pub(super) fn level_again(&mut self) -> Result<(), ErrorType> {
        // A round gets right what is one level above what was right.
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

    /// Notes, in the groups that a group leads to, that it does (`1`) or does no longer (`-1`).
    pub(super) fn link(&mut self, group: &Group, change: i32) {
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
