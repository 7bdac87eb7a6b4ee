//! Groups as specified (OpenFlow 1.3.5, 5.6.1 and 6.5).
use super::ReferencePass;
use std::collections::{BTreeMap, BTreeSet};
use weir_openflow::model::group::{Bucket, GroupKind, GroupMod};
use weir_openflow::model::{GroupId, PortNo};

/// Groups, and ports whose link is down.
#[derive(Debug, Clone)]
pub(super) struct ReferenceGroups {
    groups: BTreeMap<GroupId, GroupMod>,
    ports: u32,
    down: BTreeSet<PortNo>,
}

/// Enumerates the bucket choices of select groups: the choices for one packet in order, and all combinations one
/// after the other.
#[derive(Debug, Default)]
pub struct BucketChoices {
    /// Choices of the current combination: bucket chosen, number of buckets.
    made: Vec<(usize, usize)>,
    next: usize,
}

impl BucketChoices {
    fn choose(&mut self, of: usize) -> usize {
        if self.next == self.made.len() {
            self.made.push((0, of));
        }
        self.next += 1;
        self.made[self.next - 1].0
    }

    /// Advances to the next combination. Returns false if there is none.
    pub fn another(&mut self) -> bool {
        self.next = 0;
        while let Some((choice, of)) = self.made.last_mut() {
            *choice += 1;
            if choice < of {
                return true;
            }
            self.made.pop();
        }
        false
    }
}

impl ReferenceGroups {
    pub(super) fn new(ports: u32) -> ReferenceGroups {
        ReferenceGroups { groups: BTreeMap::new(), ports, down: BTreeSet::new() }
    }

    pub(super) fn change(&mut self, change: &GroupMod) {
        self.groups.insert(change.group, change.clone());
    }

    pub(super) fn set_link(&mut self, port: PortNo, up: bool) {
        if up {
            self.down.remove(&port);
        } else {
            self.down.insert(port);
        }
    }

    pub(super) fn lives_port(&self, port: PortNo) -> bool {
        (1..=self.ports).contains(&port.0) && !self.down.contains(&port)
    }

    fn lives(&self, bucket: &Bucket, kind: GroupKind) -> bool {
        let watches_nothing = bucket.watch_port == PortNo::ANY && bucket.watch_group == GroupId::ANY;
        let watched = self.lives_port(bucket.watch_port) || self.live_buckets(bucket.watch_group).next().is_some();
        (watches_nothing || watched) && (kind != GroupKind::Select || bucket.weight > 0)
    }

    fn live_buckets(&self, group: GroupId) -> impl Iterator<Item = &Bucket> {
        let group = self.groups.get(&group);
        group.into_iter().flat_map(|group| group.buckets.iter().filter(|bucket| self.lives(bucket, group.kind)))
    }
}

impl ReferencePass<'_> {
    /// Processes a copy of the packet in each bucket that the group selects.
    pub(super) fn group(&mut self, group: GroupId, frame: &[u8]) {
        let groups = self.groups;
        let live: Vec<&Bucket> = groups.live_buckets(group).collect();
        let taken = match (groups.groups[&group].kind, live.len()) {
            (_, 0) => {
                self.drops += 1;
                return;
            }
            (GroupKind::All, _) => &live[..],
            (GroupKind::Select, count) => {
                let chosen = self.choices.choose(count);
                &live[chosen..=chosen]
            }
            _ => &live[..1],
        };
        for bucket in taken {
            let mut copy = frame.to_vec();
            if !self.run_set(&bucket.actions, &mut copy) {
                self.drops += 1;
            }
        }
    }
}
