//! The group table (OpenFlow 1.3.5, 5.6 and 6.5): groups of buckets. A packet runs through all buckets of a group,
//! one of them, or the first live one.
//!
//! Reading order: this module (groups, and which buckets are live), `run` (a packet's way), `select` (which bucket a
//! flow takes), `change` (group-mods) with `compile` (checks) and `chain` (groups that lead to groups), `describe`
//! (statistics).
//!
//! Packets only read the table. Their counts are in [`GroupCounters`], so that workers can share one table. The
//! liveness of buckets is computed when a port or group changes, so packets do no work for it.
//!
//! Invariants between two group-mods: every group that a bucket sends to or watches exists, no group leads back to
//! itself, and no chain of groups is longer than [`MAX_CHAIN`].
mod chain;
mod change;
mod compile;
mod counters;
mod describe;
mod run;
mod select;
mod undo;

pub(crate) use change::GroupModContext;
pub(crate) use counters::GroupCounters;
pub(crate) use describe::GroupWalk;
pub(crate) use run::{run, run_bucket};
pub(crate) use undo::SavedGroups;

use crate::ports::Ports;
use foldhash::{HashMap, HashMapExt};
use select::SelectHash;
use weir_openflow::model::error::BadAction;
use weir_openflow::model::group::{BucketId, GroupKind};
use weir_openflow::model::property::RawProperty;
use weir_openflow::model::{Action, ErrorType, GroupId, PortNo, group};
use weir_units::Instant;

/// Maximum length of a chain of groups that send to each other.
const MAX_CHAIN: u8 = 16;

/// Maximum numbers of groups and buckets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupLimits {
    pub(crate) groups: usize,
    /// Maximum number of buckets per group.
    pub(crate) buckets: usize,
    /// Maximum number of buckets of all groups together.
    pub(crate) buckets_in_all: usize,
}

/// The groups of a datapath.
#[derive(Debug)]
pub(crate) struct GroupTable {
    /// The groups. A group keeps its slot as long as it exists.
    slots: Vec<Option<GroupEntry>>,
    /// Indexes of the slots without a group.
    free: Vec<usize>,
    by_id: HashMap<GroupId, usize>,
    n_buckets: usize,
    limits: GroupLimits,
    /// Hash of packets in select groups that do not state their own.
    hashed: SelectHash,
}

/// A group, ready to run.
#[derive(Debug, Clone)]
pub(crate) struct GroupEntry {
    pub(crate) id: GroupId,
    /// Type of the group, never an unknown one.
    pub(crate) kind: GroupKind,
    pub(crate) buckets: Box<[CompiledBucket]>,
    /// Properties, as requested.
    properties: Vec<RawProperty>,
    created: Instant,
    /// Length of the longest chain of groups below this one.
    level: u8,
    /// Number of groups with a bucket that sends to this one.
    forwarders: u32,
    /// Number of groups with a bucket that watches this one.
    watchers: u32,
    /// True if at least one bucket is live.
    is_live: bool,
    /// True if all buckets (except those of weight 0) have the same weight.
    is_even: bool,
    /// Hash of packets, if a controller set it for this group.
    hashed: Option<Box<SelectHash>>,
}

/// A bucket, ready to run.
#[derive(Debug, Clone)]
pub(crate) struct CompiledBucket {
    /// The bucket as requested.
    asked: group::Bucket,
    /// The bucket's action set, in the order of execution.
    actions: Box<[Action]>,
    /// True if packets may take the bucket: what it watches is live, and in a select group its weight is not 0.
    is_live: bool,
    /// Seed that distinguishes buckets when flows are distributed. It depends only on actions and watches.
    seed: u64,
    /// Reciprocal of the weight.
    inverse_weight: f64,
}

impl GroupTable {
    /// Returns an empty table; the datapath id seeds the hash.
    pub(crate) fn new(limits: GroupLimits, datapath_id: u64) -> GroupTable {
        GroupTable {
            slots: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::new(),
            n_buckets: 0,
            limits,
            hashed: SelectHash::new(datapath_id),
        }
    }

    /// Returns a group and its slot.
    #[inline]
    pub(crate) fn find(&self, id: GroupId) -> Option<(usize, &GroupEntry)> {
        let slot = *self.by_id.get(&id)?;
        Some((slot, self.at(slot)?))
    }

    fn at(&self, slot: usize) -> Option<&GroupEntry> {
        self.slots.get(slot)?.as_ref()
    }

    fn get_mut(&mut self, id: GroupId) -> Option<&mut GroupEntry> {
        self.slots.get_mut(*self.by_id.get(&id)?)?.as_mut()
    }

    fn iter(&self) -> impl Iterator<Item = &GroupEntry> {
        self.slots.iter().flatten()
    }

    /// Checks that the groups that actions send to exist.
    ///
    /// # Errors
    /// `OFPBAC_BAD_OUT_GROUP`.
    pub(crate) fn check_actions<'a>(&self, actions: impl IntoIterator<Item = &'a Action>) -> Result<(), ErrorType> {
        let missing = |action: &Action| matches!(action, Action::Group(id) if !self.by_id.contains_key(id));
        if actions.into_iter().any(missing) { Err(BadAction::BadOutGroup.into()) } else { Ok(()) }
    }

    /// Computes anew which buckets are live. Must be called whenever a port or a watched group changes.
    pub(crate) fn follow(&mut self, ports: &Ports) {
        let deepest = self.iter().map(|group| group.level).max().unwrap_or(0);
        // Groups of low levels first, because groups above depend on them.
        for level in 0..=deepest {
            for slot in 0..self.slots.len() {
                if self.at(slot).is_some_and(|group| group.level == level) {
                    self.follow_one(slot, ports);
                }
            }
        }
    }

    /// Computes which buckets of one group are live. Returns true if the group's own liveness changed.
    fn follow_one(&mut self, slot: usize, ports: &Ports) -> bool {
        // The group is moved out meanwhile. Its buckets watch other groups, never itself.
        let Some(mut group) = self.slots.get_mut(slot).and_then(Option::take) else { return false };
        let watched = |id: GroupId| self.find(id).is_some_and(|(_, group)| group.is_live);
        for bucket in &mut group.buckets {
            bucket.is_live = bucket.has_share(group.kind) && bucket.is_watched_alive(ports, watched);
        }
        let is_live = group.buckets.iter().any(|bucket| bucket.is_live);
        let changed = std::mem::replace(&mut group.is_live, is_live) != is_live;
        self.slots[slot] = Some(group);
        changed
    }
}

impl GroupEntry {
    /// Returns the buckets as requested.
    fn asked(&self) -> impl Iterator<Item = &group::Bucket> {
        self.buckets.iter().map(|bucket| &bucket.asked)
    }
}

impl CompiledBucket {
    /// Returns true if the bucket gets packets when it is live.
    fn has_share(&self, kind: GroupKind) -> bool {
        kind != GroupKind::Select || self.asked.weight > 0
    }

    /// Returns true if the bucket watches nothing, or if the port or group it watches is live (OpenFlow 1.3.5, 6.5).
    fn is_watched_alive(&self, ports: &Ports, is_group_live: impl Fn(GroupId) -> bool) -> bool {
        let (port, group) = (self.asked.watch_port, self.asked.watch_group);
        match (port == PortNo::ANY, group == GroupId::ANY) {
            (true, true) => true,
            (is_no_port, is_no_group) => !is_no_port && ports.is_live(port) || !is_no_group && is_group_live(group),
        }
    }

    /// Returns the group that the bucket sends to.
    fn next(&self) -> Option<GroupId> {
        self.actions.iter().find_map(|action| if let Action::Group(id) = action { Some(*id) } else { None })
    }
}
