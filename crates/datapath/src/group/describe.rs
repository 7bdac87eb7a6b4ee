//! Describes the group table: statistics, descriptions and features (OpenFlow 1.3.5, 7.3.5.9 to 7.3.5.11).
use super::{GroupCounters, GroupEntry, GroupTable};
use crate::types::duration;
use weir_openflow::model::GroupId;
use weir_openflow::model::group::{GroupDesc, GroupFeatures, GroupKind, GroupStats};
use weir_units::Instant;

/// `OFPGFC_*`: weights and liveness in select groups, groups that lead to groups, with loops refused.
const CAPABILITIES: u32 = 0b1111;

/// Position of a walk through the groups that a request selects. A group keeps its slot, so a group that exists
/// during the whole walk is visited exactly once.
#[derive(Debug)]
pub(crate) struct GroupWalk {
    /// The group requested, or [`GroupId::ALL`].
    wanted: GroupId,
    place: usize,
}

impl GroupWalk {
    /// Returns the beginning of a walk.
    pub(crate) fn new(wanted: GroupId) -> GroupWalk {
        GroupWalk { wanted, place: 0 }
    }
}

impl GroupTable {
    /// Continues a walk. Returns the statistics of the groups visited, and true if groups remain. `entries` returns
    /// the number of flow entries that send to a group.
    pub(crate) fn stats(
        &self,
        now: Instant,
        walk: &mut GroupWalk,
        most: usize,
        counters: &GroupCounters,
        entries: impl Fn(GroupId) -> u32,
    ) -> (Vec<GroupStats>, bool) {
        let (groups, more) = self.walk(walk, most);
        let stats = groups.into_iter().map(|(slot, group)| group.stats(now, counters, slot, entries(group.id)));
        (stats.collect(), more)
    }

    /// Continues a walk. Returns the descriptions of the groups visited, as requested by their group-mods, and true
    /// if groups remain.
    pub(crate) fn descs(&self, walk: &mut GroupWalk, most: usize) -> (Vec<GroupDesc>, bool) {
        let desc = |group: &GroupEntry| GroupDesc {
            kind: group.kind,
            group: group.id,
            buckets: group.asked().cloned().collect(),
            properties: group.properties.clone(),
        };
        let (groups, more) = self.walk(walk, most);
        (groups.into_iter().map(|(_, group)| desc(group)).collect(), more)
    }

    /// Returns the next groups, ordered by number, and true if groups remain. At most `most` slots and buckets are
    /// visited, except that the last group is completed.
    fn walk(&self, walk: &mut GroupWalk, most: usize) -> (Vec<(usize, &GroupEntry)>, bool) {
        if walk.wanted != GroupId::ALL {
            return (self.find(walk.wanted).into_iter().collect(), false);
        }
        let (mut groups, mut left) = (Vec::new(), most);
        while left > 0 && walk.place < self.slots.len() {
            let group = self.at(walk.place);
            left = left.saturating_sub(1 + group.map_or(0, |group| group.buckets.len()));
            groups.extend(group.map(|group| (walk.place, group)));
            walk.place += 1;
        }
        groups.sort_unstable_by_key(|(_, group)| group.id);
        (groups, walk.place < self.slots.len())
    }

    /// Returns the features of groups; `actions` is the bitmap of action types that buckets may have.
    pub(crate) fn features(&self, actions: u32) -> GroupFeatures {
        let max_groups = u32::try_from(self.limits.groups).unwrap_or(u32::MAX);
        GroupFeatures {
            types: GroupKind::NAMED.iter().fold(0, |types, kind| types | 1 << kind.number()),
            capabilities: CAPABILITIES,
            max_groups: [max_groups; 4],
            actions: [actions; 4],
        }
    }
}

impl GroupEntry {
    fn stats(&self, now: Instant, counters: &GroupCounters, slot: usize, entries: u32) -> GroupStats {
        let (duration_sec, duration_nsec) = duration(now, self.created);
        let counted = counters.of(slot);
        GroupStats {
            group: self.id,
            ref_count: entries.saturating_add(self.forwarders),
            packet_count: counted.total.0,
            byte_count: counted.total.1,
            duration_sec,
            duration_nsec,
            buckets: counted.buckets,
        }
    }
}
