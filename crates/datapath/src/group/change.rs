//! Applies group-mods (OpenFlow 1.3.5, 6.5 and 7.3.4.2; 1.5.1, 6.7). A refused group-mod changes nothing.
use super::compile::ReplacedGroup;
use super::{GroupCounters, GroupEntry, GroupTable};
use crate::ports::Ports;
use weir_openflow::Version;
use weir_openflow::model::error::GroupModFailed;
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupMod};
use weir_openflow::model::{ErrorType, GroupId};
use weir_units::Instant;

/// State besides the groups that a group-mod needs.
pub(crate) struct GroupModContext<'a> {
    pub(crate) now: Instant,
    pub(crate) version: Version,
    pub(crate) ports: &'a Ports,
    pub(crate) counters: &'a mut GroupCounters,
}

impl GroupTable {
    /// Applies a group-mod. Returns the deleted group, or [`GroupId::ALL`] if all were deleted: the caller must
    /// remove the flow entries that send to it.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn apply(
        &mut self,
        change: &GroupMod,
        around: GroupModContext<'_>,
    ) -> Result<Option<GroupId>, ErrorType> {
        let names_bucket = matches!(change.command, GroupCommand::InsertBucket | GroupCommand::RemoveBucket);
        if change.command_bucket != BucketId::ALL && !names_bucket {
            return Err(GroupModFailed::BadBucket.into());
        }
        match change.command {
            GroupCommand::Add => self.add(change, around).map(|()| None),
            GroupCommand::Modify => self.modify(change, around, false).map(|()| None),
            GroupCommand::Delete => self.delete(change.group, around),
            GroupCommand::InsertBucket | GroupCommand::RemoveBucket if around.version >= Version::V15 => {
                let whole = self.with_changed_buckets(change)?;
                self.modify(&whole, around, true).map(|()| None)
            }
            GroupCommand::InsertBucket | GroupCommand::RemoveBucket | GroupCommand::Unknown(_) => {
                Err(GroupModFailed::BadCommand.into())
            }
        }
    }

    fn add(&mut self, change: &GroupMod, around: GroupModContext<'_>) -> Result<(), ErrorType> {
        if change.group > GroupId::MAX {
            return Err(GroupModFailed::InvalidGroup.into());
        }
        if self.by_id.contains_key(&change.group) {
            return Err(GroupModFailed::GroupExists.into());
        }
        if self.by_id.len() >= self.limits.groups {
            return Err(GroupModFailed::OutOfGroups.into());
        }
        let group = self.compile(change, around.version, ReplacedGroup::nothing(around.now))?;
        self.link(&group, 1);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.n_buckets += group.buckets.len();
        self.by_id.insert(group.id, slot);
        around.counters.start(slot, group.buckets.len());
        self.slots[slot] = Some(group);
        self.follow_one(slot, around.ports);
        Ok(())
    }

    /// Replaces a group's buckets. The group's statistics continue. Those of its buckets restart, unless
    /// `keeps_counters` keeps them for buckets that remain.
    fn modify(
        &mut self,
        change: &GroupMod,
        around: GroupModContext<'_>,
        keeps_counters: bool,
    ) -> Result<(), ErrorType> {
        if change.group > GroupId::MAX {
            return Err(GroupModFailed::InvalidGroup.into());
        }
        let (slot, old) = self.find(change.group).ok_or(GroupModFailed::UnknownGroup)?;
        let group = self.compile(change, around.version, ReplacedGroup::of(old))?;
        let (level, is_watched) = (group.level, group.watchers > 0);
        let Some(old) = self.slots[slot].replace(group) else { return Ok(()) };
        if level != old.level
            && let Err(error) = self.level_again()
        {
            self.slots[slot] = Some(old);
            // Restores the former levels, which cannot fail.
            let _ = self.level_again();
            return Err(error);
        }
        self.replaced(slot, &old, around.counters, keeps_counters);
        if self.follow_one(slot, around.ports) && is_watched {
            self.follow(around.ports);
        }
        Ok(())
    }

    /// Updates links and counters after a group replaced another in its slot.
    fn replaced(&mut self, slot: usize, old: &GroupEntry, counters: &mut GroupCounters, keeps_counters: bool) {
        self.link(old, -1);
        // The new group is moved out meanwhile. It leads to other groups, never to itself.
        let Some(new) = self.slots[slot].take() else { return };
        self.link(&new, 1);
        self.n_buckets = self.n_buckets - old.buckets.len() + new.buckets.len();
        counters.replace_buckets(slot, old, &new, keeps_counters);
        self.slots[slot] = Some(new);
    }

    /// Deletes a group or all groups. A single group that others lead to cannot be deleted.
    fn delete(&mut self, id: GroupId, around: GroupModContext<'_>) -> Result<Option<GroupId>, ErrorType> {
        if id == GroupId::ALL {
            (self.slots, self.free, self.n_buckets) = (Vec::new(), Vec::new(), 0);
            self.by_id.clear();
            around.counters.clear();
            return Ok(Some(id));
        }
        // Deleting a group that does not exist is no error (OpenFlow 1.3.5, 6.5).
        let Some((slot, group)) = self.find(id) else { return Ok(None) };
        if group.forwarders + group.watchers > 0 {
            return Err(GroupModFailed::ChainedGroup.into());
        }
        self.by_id.remove(&id);
        self.free.push(slot);
        if let Some(group) = self.slots[slot].take() {
            self.link(&group, -1);
            self.n_buckets -= group.buckets.len();
        }
        around.counters.start(slot, 0);
        Ok(Some(id))
    }

    /// Returns the group-mod that replaces a group by itself with buckets inserted or removed. Type and properties
    /// stay (OpenFlow 1.5.1, 6.7).
    fn with_changed_buckets(&self, change: &GroupMod) -> Result<GroupMod, ErrorType> {
        let (_, group) = self.find(change.group).ok_or(GroupModFailed::UnknownGroup)?;
        let mut buckets: Vec<Bucket> = group.asked().cloned().collect();
        if change.command == GroupCommand::InsertBucket {
            insert(&mut buckets, change)?;
        } else {
            remove(&mut buckets, change.command_bucket)?;
        }
        let (kind, properties) = (group.kind, group.properties.clone());
        let command_bucket = BucketId::ALL;
        Ok(GroupMod { command: GroupCommand::Modify, kind, group: group.id, command_bucket, buckets, properties })
    }
}

/// Inserts the buckets of a group-mod after the bucket that it names.
fn insert(buckets: &mut Vec<Bucket>, change: &GroupMod) -> Result<(), ErrorType> {
    let at = match change.command_bucket {
        BucketId::FIRST => 0,
        BucketId::LAST => buckets.len(),
        named => place(buckets, named)? + 1,
    };
    buckets.splice(at..at, change.buckets.iter().cloned());
    Ok(())
}

fn remove(buckets: &mut Vec<Bucket>, named: BucketId) -> Result<(), ErrorType> {
    match named {
        BucketId::ALL => buckets.clear(),
        // Without buckets there is no first and no last one, so nothing is removed.
        BucketId::FIRST => drop(buckets.drain(..1.min(buckets.len()))),
        BucketId::LAST => drop(buckets.pop()),
        named => drop(buckets.remove(place(buckets, named)?)),
    }
    Ok(())
}

fn place(buckets: &[Bucket], named: BucketId) -> Result<usize, ErrorType> {
    if named > BucketId::MAX {
        return Err(GroupModFailed::BadBucket.into());
    }
    let place = buckets.iter().position(|bucket| bucket.id == named);
    place.ok_or_else(|| GroupModFailed::UnknownBucket.into())
}
