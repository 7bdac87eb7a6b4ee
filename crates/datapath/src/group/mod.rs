//! The group table (OpenFlow 1.3.5, 5.6 and 6.5): groups of buckets, of which a packet takes all, one, or the first that is alive.
//!
//! Reading order: this page (groups, and which buckets are alive), `run` (a packet's way), `select` (which bucket a flow takes),
//! `change` (group-mods) with `compile` (what is checked) and `chain` (groups that lead to groups), `describe` (statistics).
//!
//! Packets only read the table; what they count lies in [`GroupCounters`], so that workers can share one table. Whether a bucket is
//! alive is worked out when a port or group changes, so that packets pay nothing for it.
//!
//! What holds between two group-mods: every group that a bucket sends to or watches is there, no group leads back to itself, and no
//! chain of groups is longer than [`MAX_CHAIN`].
mod chain;
mod change;
mod compile;
mod counters;
mod describe;
mod run;
mod select;
mod undo;

pub(crate) use change::Around;
pub(crate) use counters::GroupCounters;
pub(crate) use describe::GroupWalk;
pub(crate) use run::{BucketAt, MAX_BUCKETS_OF_PACKET, run, run_bucket};
pub(crate) use undo::Saved;

use crate::ports::Ports;
use foldhash::{HashMap, HashMapExt};
use select::Hashed;
use weir_openflow::model::error::BadAction;
use weir_openflow::model::group::BucketId;
use weir_openflow::model::property::Property;
use weir_openflow::model::{Action, ErrorType, GroupId, PortNo, group};
use weir_units::Instant;

/// Most groups that a packet passes on one way: a group that sends to a group that sends to a group and so on.
const MAX_CHAIN: u8 = 16;

/// How many groups and buckets there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) groups: usize,
    /// Of one group.
    pub(crate) buckets: usize,
    /// Of all groups together.
    pub(crate) buckets_in_all: usize,
}

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Groups {
    /// A group keeps its place for as long as it is there.
    slots: Vec<Option<Group>>,
    /// Places of `slots` without a group.
    free: Vec<usize>,
    by_id: HashMap<GroupId, usize>,
    n_buckets: usize,
    limits: Limits,
    /// What select groups choose by.
    hashed: Hashed,
}

/// What packets do with a group's buckets (`OFPGT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    All,
    Select,
    Indirect,
    FastFailover,
}

/// A group.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) id: GroupId,
    pub(crate) kind: Kind,
    pub(crate) buckets: Box<[Bucket]>,
    /// Its properties, as they were asked for.
    properties: Vec<Property>,
    created: Instant,
    /// Groups on the longest way from here to a group that leads to none.
    level: u8,
    /// Groups with a bucket that sends here.
    forwarders: u32,
    /// Groups with a bucket that watches this one.
    watchers: u32,
    /// Whether a packet that comes now finds a bucket.
    is_live: bool,
    /// Whether all buckets have the same weight.
    is_even: bool,
    /// What it chooses by, if a controller says.
    hashed: Option<Box<Hashed>>,
}

/// A bucket, ready to be run.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    /// As the controller wrote it.
    asked: group::Bucket,
    /// Its action set, in the order of execution.
    actions: Box<[Action]>,
    /// Whether packets may take it: what it watches is alive, and in a select group it has a share.
    is_live: bool,
    /// Tells it from other buckets when flows are shared out; stays the same while actions and watches do.
    seed: u64,
    /// One over its weight.
    inverse_weight: f64,
}

impl Groups {
    /// An empty table of a datapath.
    pub(crate) fn new(limits: Limits, datapath_id: u64) -> Groups {
        Groups {
            slots: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::new(),
            n_buckets: 0,
            limits,
            hashed: Hashed::new(datapath_id),
        }
    }

    /// A group and its place.
    #[inline]
    fn find(&self, id: GroupId) -> Option<(usize, &Group)> {
        let slot = *self.by_id.get(&id)?;
        Some((slot, self.at(slot)?))
    }

    fn at(&self, slot: usize) -> Option<&Group> {
        self.slots.get(slot)?.as_ref()
    }

    fn get_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.slots.get_mut(*self.by_id.get(&id)?)?.as_mut()
    }

    fn iter(&self) -> impl Iterator<Item = &Group> {
        self.slots.iter().flatten()
    }

    /// Checks that the groups that actions send to are there.
    ///
    /// # Errors
    /// `OFPBAC_BAD_OUT_GROUP`.
    pub(crate) fn check_actions<'a>(&self, actions: impl IntoIterator<Item = &'a Action>) -> Result<(), ErrorType> {
        let missing = |action: &Action| matches!(action, Action::Group(id) if !self.by_id.contains_key(id));
        if actions.into_iter().any(missing) { Err(BadAction::BadOutGroup.into()) } else { Ok(()) }
    }

    /// Works out anew which buckets are alive. To be called whenever a port or a watched group changed.
    pub(crate) fn follow(&mut self, ports: &Ports) {
        let deepest = self.iter().map(|group| group.level).max().unwrap_or(0);
        // Groups that lead to none first: those above look at them.
        for level in 0..=deepest {
            for slot in 0..self.slots.len() {
                if self.at(slot).is_some_and(|group| group.level == level) {
                    self.follow_one(slot, ports);
                }
            }
        }
    }

    /// The same for one group; whether it came to life or died.
    fn follow_one(&mut self, slot: usize, ports: &Ports) -> bool {
        // Out of its place meanwhile: it looks at others, never at itself.
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

impl Group {
    /// Its buckets, as the controller wrote them.
    fn asked(&self) -> impl Iterator<Item = &group::Bucket> {
        self.buckets.iter().map(|bucket| &bucket.asked)
    }
}

impl Bucket {
    /// Whether packets take it at all.
    fn has_share(&self, kind: Kind) -> bool {
        kind != Kind::Select || self.asked.weight > 0
    }

    /// A bucket that watches nothing is alive, one that watches is while the port or the group is (OpenFlow 1.3.5, 6.5).
    fn is_watched_alive(&self, ports: &Ports, is_group_live: impl Fn(GroupId) -> bool) -> bool {
        let (port, group) = (self.asked.watch_port, self.asked.watch_group);
        match (port == PortNo::ANY, group == GroupId::ANY) {
            (true, true) => true,
            (is_no_port, is_no_group) => !is_no_port && ports.is_live(port) || !is_no_group && is_group_live(group),
        }
    }

    /// The group it sends to.
    fn next(&self) -> Option<GroupId> {
        self.actions.iter().find_map(|action| if let Action::Group(id) = action { Some(*id) } else { None })
    }
}

impl Kind {
    /// From its number in messages.
    fn from_number(number: u8) -> Option<Kind> {
        [Kind::All, Kind::Select, Kind::Indirect, Kind::FastFailover].get(usize::from(number)).copied()
    }

    /// Its number in messages.
    fn number(self) -> u8 {
        self as u8
    }

    /// Its name in text.
    pub(crate) fn name(self) -> &'static str {
        ["all", "select", "indirect", "ff"][usize::from(self.number())]
    }
}
