//! Generates flow entries, groups and meters, as they are set and as they are reported.
use crate::action::{action, instructions, port, stats};
use crate::matching::matching;
use proptest::collection::vec;
use proptest::prelude::*;
use weir_openflow::model::flow::FlowRemoved;
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupDesc, GroupKind, GroupMod};
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterConfig, MeterMod, flags};
use weir_openflow::model::monitor::{FlowEvent, FlowUpdateFull};
use weir_openflow::model::multipart::FlowStats;
use weir_openflow::model::property::RawProperty;
use weir_openflow::model::stats::OxsExtraStats;
use weir_openflow::model::{
    BufferId, FlowCommand, FlowFlags, FlowMod, FlowRemovedReason, GroupId, MeterId, PortNo, TableId,
};

/// Generates the usual value half of the time, otherwise any.
fn often<T: std::fmt::Debug + Clone + 'static>(usual: T, any: impl Strategy<Value = T> + 'static) -> BoxedStrategy<T> {
    prop_oneof![1 => Just(usual), 1 => any].boxed()
}

fn flow_flags() -> impl Strategy<Value = FlowFlags> {
    let emergency = prop_oneof![9 => Just(FlowFlags::default()), 1 => Just(FlowFlags::EMERG)];
    (0_u16..32, emergency).prop_map(|(bits, emergency)| FlowFlags(bits).with(emergency))
}

pub(crate) fn flow() -> impl Strategy<Value = FlowMod> {
    use FlowCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
    let command = prop_oneof![
        3 => Just(Add),
        2 => prop::sample::select(vec![Modify, ModifyStrict, Delete, DeleteStrict]),
    ];
    let numbers = (any::<u64>(), often(0, any::<u64>()), often(0, 0_u8..=254), any::<[u16; 3]>());
    let buffer = often(None, (0..u32::MAX).prop_map(|id| Some(BufferId(id))));
    let filters = (buffer, often(PortNo::ANY, port()), often(GroupId::ANY, any::<u32>().prop_map(GroupId)));
    (command, numbers, filters, flow_flags(), often(0, any::<u16>()), matching(), instructions()).prop_map(
        |(
            command,
            (cookie, cookie_mask, table, times),
            (buffer_id, out_port, out_group),
            flags,
            importance,
            matching,
            instructions,
        )| {
            FlowMod {
                cookie,
                cookie_mask,
                table: TableId(table),
                command,
                idle_timeout: times[0],
                hard_timeout: times[1],
                priority: times[2],
                buffer_id,
                out_port,
                out_group,
                flags,
                importance,
                matching,
                instructions,
            }
        },
    )
}

fn more_stats() -> impl Strategy<Value = OxsExtraStats> {
    stats().prop_map(|stats| OxsExtraStats {
        idle_time: stats.idle_time,
        flow_count: stats.flow_count,
        others: stats.others,
    })
}

/// Generates the statistics of a flow entry that a flow-mod set.
pub(crate) fn flow_stats() -> impl Strategy<Value = FlowStats> {
    (flow(), any::<[u32; 2]>(), any::<[u64; 2]>(), more_stats()).prop_map(|(flow, duration, counts, more)| FlowStats {
        table: flow.table,
        duration_sec: duration[0],
        duration_nsec: duration[1] % 1_000_000_000,
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: flow.flags,
        importance: flow.importance,
        cookie: flow.cookie,
        packet_count: counts[0],
        byte_count: counts[1],
        more,
        matching: flow.matching,
        instructions: flow.instructions,
    })
}

pub(crate) fn removed() -> impl Strategy<Value = FlowRemoved> {
    use FlowRemovedReason::{Delete, Eviction, GroupDelete, HardTimeout, IdleTimeout, MeterDelete};
    let reason = prop::sample::select(vec![IdleTimeout, HardTimeout, Delete, GroupDelete, MeterDelete, Eviction]);
    (flow_stats(), reason).prop_map(|(stats, reason)| FlowRemoved {
        cookie: stats.cookie,
        priority: stats.priority,
        reason,
        table: stats.table,
        duration_sec: stats.duration_sec,
        duration_nsec: stats.duration_nsec,
        idle_timeout: stats.idle_timeout,
        hard_timeout: stats.hard_timeout,
        packet_count: stats.packet_count,
        byte_count: stats.byte_count,
        more: stats.more,
        matching: stats.matching,
    })
}

pub(crate) fn update() -> impl Strategy<Value = FlowUpdateFull> {
    use FlowEvent::{Added, Initial, Modified, Removed};
    let event = prop::sample::select(vec![Initial, Added, Removed, Modified]);
    (removed(), event, instructions()).prop_map(|(removed, event, instructions)| FlowUpdateFull {
        event,
        reason: (event == Removed).then_some(removed.reason),
        table: removed.table,
        idle_timeout: removed.idle_timeout,
        hard_timeout: removed.hard_timeout,
        priority: removed.priority,
        cookie: removed.cookie,
        matching: removed.matching,
        instructions,
    })
}

fn property() -> impl Strategy<Value = RawProperty> {
    let kind = prop::sample::select(vec![99_u16, 0x7000, RawProperty::EXPERIMENTER]);
    (kind, vec(any::<u8>(), 8..20)).prop_map(|(kind, data)| RawProperty { kind, data: data.into() })
}

fn properties() -> impl Strategy<Value = Vec<RawProperty>> {
    prop_oneof![4 => Just(vec![]), 1 => vec(property(), 1..3)]
}

/// Generates buckets that are numbered by their index, or have any numbers.
fn buckets() -> impl Strategy<Value = Vec<Bucket>> {
    let watch_group = often(GroupId::ANY, any::<u32>().prop_map(GroupId));
    let bucket = (any::<u16>(), often(PortNo::ANY, port()), watch_group, vec(action(), 0..4), properties());
    (any::<bool>(), vec((0..=BucketId::MAX.0, bucket), 0..4)).prop_map(|(by_place, drawn)| {
        let numbered = (0..).zip(drawn).map(|(place, (id, (weight, watch_port, watch_group, actions, properties)))| {
            let id = BucketId(if by_place { place } else { id });
            Bucket { id, weight, watch_port, watch_group, actions, properties }
        });
        numbered.collect()
    })
}

pub(crate) fn group() -> impl Strategy<Value = GroupMod> {
    use GroupCommand as G;
    let command = prop::sample::select(G::NAMED);
    let special = prop::sample::select(vec![BucketId::FIRST, BucketId::LAST, BucketId::ALL]);
    let at = prop_oneof![special, (0..=BucketId::MAX.0).prop_map(BucketId)];
    (command, prop::sample::select(GroupKind::NAMED), 0..=GroupId::MAX.0, at, buckets(), properties()).prop_map(
        |(command, kind, group, at, buckets, properties)| {
            let names_buckets = matches!(command, G::InsertBucket | G::RemoveBucket);
            let has_buckets = !matches!(command, G::Delete | G::RemoveBucket);
            GroupMod {
                command,
                kind,
                group: GroupId(group),
                command_bucket: if names_buckets { at } else { BucketId::ALL },
                buckets: if has_buckets { buckets } else { Vec::new() },
                properties: if has_buckets { properties } else { Vec::new() },
            }
        },
    )
}

pub(crate) fn group_desc() -> impl Strategy<Value = GroupDesc> {
    (prop::sample::select(GroupKind::NAMED), 0..=GroupId::MAX.0, buckets(), properties())
        .prop_map(|(kind, group, buckets, properties)| GroupDesc { kind, group: GroupId(group), buckets, properties })
}

fn band() -> impl Strategy<Value = Band> {
    let data = || vec(any::<u8>(), 0..9);
    let kind = prop_oneof![
        3 => Just(BandKind::Drop),
        3 => any::<u8>().prop_map(|prec_level| BandKind::DscpRemark { prec_level }),
        1 => (any::<u32>(), data()).prop_map(|(id, data)| BandKind::Experimenter { id, data: data.into() }),
        1 => (3_u16..0xffff, data()).prop_map(|(kind, data)| BandKind::Unknown { kind, data: data.into() }),
    ];
    (any::<u32>(), any::<u32>(), kind).prop_map(|(rate, burst_size, kind)| Band { rate, burst_size, kind })
}

fn meter_id() -> impl Strategy<Value = MeterId> {
    let special = prop::sample::select(vec![MeterId::CONTROLLER, MeterId::SLOWPATH]);
    prop_oneof![4 => (1..=MeterId::MAX.0).prop_map(MeterId), 1 => special]
}

pub(crate) fn meter() -> impl Strategy<Value = MeterMod> {
    let command = prop::sample::select(MeterCommand::NAMED);
    (command, 0..=flags::ALL, meter_id(), vec(band(), 0..4)).prop_map(|(command, flags, meter, bands)| MeterMod {
        command,
        flags,
        meter,
        bands,
    })
}

pub(crate) fn meter_config() -> impl Strategy<Value = MeterConfig> {
    meter().prop_map(|meter| MeterConfig { flags: meter.flags, meter: meter.meter, bands: meter.bands })
}
