//! Groups of a switch: entries whose hops need the same choice share a group.
use super::route::{Hop, HopKind, HopOutput};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupDesc, GroupKind, GroupMod};
use weir_openflow::model::{Action, Body, GroupId, PortNo};

/// Content of a group: its type and its buckets by weight, watched port and actions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GroupContent {
    kind: GroupKind,
    buckets: Vec<(u16, PortNo, Vec<Action>)>,
}

/// Groups of one switch.
#[derive(Debug, Default)]
pub(super) struct SharedGroups {
    by_content: HashMap<GroupContent, GroupId>,
    groups: BTreeMap<GroupId, GroupUse>,
    /// Groups that no entry leads to.
    unused: BTreeSet<GroupId>,
}

#[derive(Debug)]
struct GroupUse {
    content: GroupContent,
    /// Entries that lead to the group.
    entries: usize,
}

impl GroupContent {
    /// Returns the group that a hop needs; `None` if its actions can be in the entry itself.
    pub(super) fn of(hop: &Hop) -> Option<GroupContent> {
        let kind = match hop.kind {
            _ if hop.outputs.len() < 2 => return None,
            HopKind::All => return None,
            HopKind::Select => GroupKind::Select,
            HopKind::FastFailover => GroupKind::FastFailover,
        };
        let bucket = |output: &HopOutput| match kind {
            GroupKind::FastFailover => (0, output.watch.unwrap_or(output.port), actions(output)),
            _ => (output.weight.max(1), PortNo::ANY, actions(output)),
        };
        Some(GroupContent { kind, buckets: hop.outputs.iter().map(bucket).collect() })
    }

    fn described(desc: &GroupDesc) -> GroupContent {
        let bucket = |bucket: &Bucket| (bucket.weight, bucket.watch_port, bucket.actions.clone());
        GroupContent { kind: desc.kind, buckets: desc.buckets.iter().map(bucket).collect() }
    }

    fn to_mod(&self, group: GroupId) -> Body {
        let bucket = |(id, (weight, watch_port, actions)): (u32, &(u16, PortNo, Vec<Action>))| Bucket {
            weight: *weight,
            watch_port: *watch_port,
            ..Bucket::new(BucketId(id), actions.clone())
        };
        Body::GroupMod(GroupMod {
            command: GroupCommand::Add,
            kind: self.kind,
            group,
            command_bucket: BucketId::ALL,
            buckets: (0..).zip(&self.buckets).map(bucket).collect(),
            properties: Vec::new(),
        })
    }
}

/// Returns the actions of an output.
pub(super) fn actions(output: &HopOutput) -> Vec<Action> {
    let send = match output.port {
        PortNo::CONTROLLER => Action::to_controller(),
        port => Action::output(port),
    };
    output.actions.iter().cloned().chain([send]).collect()
}

impl SharedGroups {
    /// Replaces all groups by those that the switch has. They are unused until entries use them.
    pub(super) fn adopt(&mut self, found: &[GroupDesc]) {
        *self = SharedGroups::default();
        for desc in found {
            let content = GroupContent::described(desc);
            self.by_content.entry(content.clone()).or_insert(desc.group);
            self.groups.insert(desc.group, GroupUse { content, entries: 0 });
            self.unused.insert(desc.group);
        }
    }

    /// Returns the group with this content, if there is one.
    pub(super) fn find(&self, content: &GroupContent) -> Option<GroupId> {
        self.by_content.get(content).copied()
    }

    /// Counts one more entry that uses a group with this content. The message that adds it is appended if it is new.
    pub(super) fn acquire(&mut self, content: GroupContent, messages: &mut Vec<Body>) -> GroupId {
        let group = self.find(&content).unwrap_or_else(|| {
            let group = self.free_number();
            messages.push(content.to_mod(group));
            self.by_content.insert(content.clone(), group);
            self.groups.insert(group, GroupUse { content, entries: 0 });
            group
        });
        self.acquire_existing(group);
        group
    }

    /// Counts one more entry that uses a group.
    pub(super) fn acquire_existing(&mut self, group: GroupId) {
        if let Some(known) = self.groups.get_mut(&group) {
            known.entries += 1;
            self.unused.remove(&group);
        }
    }

    /// Counts an entry less that uses a group.
    pub(super) fn release(&mut self, group: GroupId) {
        if let Some(known) = self.groups.get_mut(&group) {
            known.entries = known.entries.saturating_sub(1);
            if known.entries == 0 {
                self.unused.insert(group);
            }
        }
    }

    /// Forgets a group that the switch has refused.
    pub(super) fn forget(&mut self, group: GroupId) {
        self.unused.remove(&group);
        if let Some(known) = self.groups.remove(&group)
            && self.by_content.get(&known.content) == Some(&group)
        {
            self.by_content.remove(&known.content);
        }
    }

    /// Appends the messages that delete unused groups.
    pub(super) fn delete_unused(&mut self, messages: &mut Vec<Body>) {
        for group in std::mem::take(&mut self.unused) {
            self.forget(group);
            messages.push(Body::GroupMod(GroupMod {
                command: GroupCommand::Delete,
                kind: GroupKind::All,
                group,
                command_bucket: BucketId::ALL,
                buckets: Vec::new(),
                properties: Vec::new(),
            }));
        }
    }

    /// Returns true if a group is unused.
    pub(super) fn has_unused(&self) -> bool {
        !self.unused.is_empty()
    }

    fn free_number(&self) -> GroupId {
        let last = self.groups.last_key_value().map_or(0, |(id, _)| id.0);
        if last < GroupId::MAX.0 {
            return GroupId(last + 1);
        }
        (1..GroupId::MAX.0).map(GroupId).find(|id| !self.groups.contains_key(id)).unwrap_or(GroupId::MAX)
    }
}
