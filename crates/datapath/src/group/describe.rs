//! What the group table says of itself (OpenFlow 1.3.5, 7.3.5.9 to 7.3.5.11).
use super::{Count, Group, GroupCounters, Groups, Kind};
use crate::table::duration;
use weir_openflow::model::GroupId;
use weir_openflow::model::group::{GroupDesc, GroupFeatures, GroupStats};
use weir_units::Instant;

/// `OFPGFC_*`: weights and dead buckets in select groups, groups that lead to groups, with loops refused.
const CAPABILITIES: u32 = 0b1111;

impl Groups {
    /// Statistics of one group, or of all, in order of their numbers. `ref_count` says how many flow entries send to a group.
    pub(crate) fn stats(
        &self,
        now: Instant,
        wanted: GroupId,
        counters: &GroupCounters,
        ref_count: impl Fn(GroupId) -> u32,
    ) -> Vec<GroupStats> {
        self.in_order(wanted)
            .into_iter()
            .map(|(slot, group)| group.stats(now, counters, slot, ref_count(group.id)))
            .collect()
    }

    /// One group as it was asked for, or all, in order of their numbers.
    pub(crate) fn descs(&self, wanted: GroupId) -> Vec<GroupDesc> {
        let desc = |group: &Group| GroupDesc {
            kind: group.kind.number(),
            group: group.id,
            buckets: group.asked().cloned().collect(),
            properties: group.properties.clone(),
        };
        self.in_order(wanted).into_iter().map(|(_, group)| desc(group)).collect()
    }

    /// What groups can do; `actions` is the bitmap of action types that buckets may have.
    pub(crate) fn features(&self, actions: u32) -> GroupFeatures {
        let max_groups = u32::try_from(self.limits.groups).unwrap_or(u32::MAX);
        let kinds = [Kind::All, Kind::Select, Kind::Indirect, Kind::FastFailover];
        GroupFeatures {
            types: kinds.into_iter().fold(0, |types, kind| types | 1 << kind.number()),
            capabilities: CAPABILITIES,
            max_groups: [max_groups; 4],
            actions: [actions; 4],
        }
    }

    fn in_order(&self, wanted: GroupId) -> Vec<(usize, &Group)> {
        if wanted != GroupId::ALL {
            return self.find(wanted).into_iter().collect();
        }
        let mut groups: Vec<_> =
            (0..).zip(&self.slots).filter_map(|(slot, group)| Some((slot, group.as_ref()?))).collect();
        groups.sort_unstable_by_key(|(_, group)| group.id);
        groups
    }
}

impl Group {
    fn stats(&self, now: Instant, counters: &GroupCounters, slot: usize, entries: u32) -> GroupStats {
        let (duration_sec, duration_nsec) = duration(now, self.created);
        let counter = counters.0.get(slot).cloned().unwrap_or_default();
        let pair = |count: Count| (count.packets, count.bytes);
        GroupStats {
            group: self.id,
            ref_count: entries.saturating_add(self.forwarders),
            packet_count: counter.total.packets,
            byte_count: counter.total.bytes,
            duration_sec,
            duration_nsec,
            buckets: counter.buckets.into_iter().map(pair).collect(),
        }
    }
}
