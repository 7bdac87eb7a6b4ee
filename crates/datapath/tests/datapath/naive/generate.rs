//! Generates random entries, groups and packets from few fields and values, so that packets match entries.
use super::TABLES;
use crate::bench::*;
use crate::frames::frame;
use proptest::prelude::*;
use std::ops::RangeInclusive;
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::{Action, FlowCommand, FlowMod, GroupId, Instruction, Match, PortNo, TableId};
use weir_packet::Field;

/// Number of groups used, numbered from 1.
pub(super) const GROUPS: u32 = 4;

/// Generates a match on a few fields with few values, so that packets and flow-mods match.
pub(super) fn matching() -> impl Strategy<Value = Match> {
    let fields = (
        proptest::option::of(1..=3_u32),
        proptest::option::of((0..4_u64, prop::sample::select(vec![0xffff_ffff_ffff_u64, 1, 2, 3]))),
        proptest::option::of(0..3_u64),
        proptest::option::of(prop::sample::select(vec![0_u16, 0x1005, 0x1006])),
        proptest::option::of((0..4_u64, 1..4_u64)),
    );
    fields.prop_map(|(in_port, destination, source, vid, metadata)| {
        let mut matching = Match::any();
        if let Some((value, mask)) = metadata {
            matching = matching.with_masked(Field::Metadata, value & mask, mask);
        }
        if let Some(port) = in_port {
            matching = matching.with(Field::InPort, port);
        }
        if let Some((number, mask)) = destination {
            matching = matching.with_masked(Field::EthDst, mac(number).to_bits() & mask, mask);
        }
        if let Some(number) = source {
            matching = matching.with(Field::EthSrc, mac(number).to_bits());
        }
        if let Some(vid) = vid {
            matching = matching.with(Field::VlanVid, vid);
        }
        matching
    })
}

/// Generates actions of entries.
fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        3 => (1..=PORTS + 1).prop_map(|port| Action::output(PortNo(port))),
        1 => (0..4_u64).prop_map(|number| Action::set_mac(Field::EthDst, mac(number))),
        1 => (0..4_u64).prop_map(|number| Action::set_mac(Field::EthSrc, mac(number))),
        1 => Just(Action::PushVlan(0x8100)),
        1 => (1..=GROUPS).prop_map(|group| Action::Group(GroupId(group))),
    ];
    proptest::collection::vec(action, 0..4)
}

fn instructions(table: u8) -> impl Strategy<Value = Vec<Instruction>> {
    let goto = if table + 1 < TABLES { (table + 1..TABLES).boxed() } else { Just(table).boxed() };
    let parts = (
        proptest::option::of(actions().prop_map(Instruction::ApplyActions)),
        proptest::option::weighted(0.1, Just(Instruction::ClearActions)),
        proptest::option::of(actions().prop_map(Instruction::WriteActions)),
        proptest::option::of(
            (any::<u64>(), 0..4_u64).prop_map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask }),
        ),
        proptest::option::weighted(0.7, goto.prop_map(|table| Instruction::GotoTable(TableId(table)))),
    );
    parts.prop_map(move |(apply, clear, write, metadata, goto)| {
        let goto = goto.filter(|goto| *goto != Instruction::GotoTable(TableId(table)));
        // Goto first, because the order of instructions in a message does not matter.
        [goto, apply, metadata, clear, write].into_iter().flatten().collect()
    })
}

pub(super) fn flow_mod() -> impl Strategy<Value = FlowMod> {
    use FlowCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
    let commands = prop_oneof![8 => Just(Add), 1 => Just(Modify), 1 => Just(ModifyStrict), 1 => Just(Delete), 1 => Just(DeleteStrict)];
    (0..TABLES, commands, 0..6_u16, matching()).prop_flat_map(|(table, command, priority, matching)| {
        instructions(table).prop_map(move |instructions| FlowMod {
            table: TableId(table),
            command,
            ..FlowMod::add(priority, matching.clone(), instructions)
        })
    })
}

pub(super) fn packet() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let tags = prop::sample::select(vec!["", "vlan 5 / ", "vlan 6 pcp 2 / ", "vlan 5 / vlan 6 / "]);
    (1..=PORTS, 0..4, 0..3, tags).prop_map(|(port, destination, source, tags)| {
        (port, frame(&format!("eth {source}>{destination} / {tags}ipv4 10.0.0.1>10.0.0.2 / udp 1>2")))
    })
}

/// Generates an entry that matches every packet and sends it to a group.
pub(super) fn to_group() -> impl Strategy<Value = FlowMod> {
    (actions(), 1..=GROUPS, actions(), any::<bool>()).prop_map(|(mut list, group, behind, writes)| {
        list.push(Action::Group(GroupId(group)));
        list.extend(behind);
        let instruction = if writes { Instruction::WriteActions } else { Instruction::ApplyActions };
        FlowMod::add(0, Match::any(), vec![instruction(list)])
    })
}

/// Generates all groups; each leads only to groups before it.
pub(super) fn groups() -> impl Strategy<Value = Vec<GroupMod>> {
    (1..=GROUPS).map(|number| group(number..=number)).collect::<Vec<_>>()
}

/// Generates a group with one of the given numbers, which leads only to groups of lower numbers.
pub(super) fn group(numbers: RangeInclusive<u32>) -> impl Strategy<Value = GroupMod> {
    numbers.prop_flat_map(|number| (Just(number), 0..4_u8, proptest::collection::vec(bucket(number), 0..4))).prop_map(
        |(number, kind, mut buckets)| {
            let kind = GroupKind::from_number(kind);
            // Adjusts the buckets to the group's type.
            buckets.truncate(if kind == GroupKind::Indirect { 1 } else { 3 });
            for (id, bucket) in (0..).map(BucketId).zip(&mut buckets) {
                bucket.id = id;
                bucket.weight *= kind.default_weight();
                if kind == GroupKind::FastFailover
                    && bucket.watch_group == GroupId::ANY
                    && bucket.watch_port == PortNo::ANY
                {
                    bucket.watch_port = PortNo(1);
                }
            }
            let (group, command_bucket) = (GroupId(number), BucketId::ALL);
            GroupMod { command: GroupCommand::Add, kind, group, command_bucket, buckets, properties: vec![] }
        },
    )
}

fn bucket(number: u32) -> impl Strategy<Value = Bucket> {
    let lower = move || {
        let group = proptest::option::weighted(0.4, 0..number);
        group.prop_map(|group| group.filter(|group| *group > 0).map(GroupId))
    };
    let edits = actions()
        .prop_map(|list| list.into_iter().filter(|action| !matches!(action, Action::Group(_))).collect::<Vec<_>>());
    let watch_port = proptest::option::weighted(0.4, (1..=PORTS + 1).prop_map(PortNo));
    (edits, lower(), 0..3_u16, watch_port, lower()).prop_map(|(mut actions, next, weight, port, group)| {
        actions.extend(next.map(Action::Group));
        Bucket {
            weight,
            watch_port: port.unwrap_or(PortNo::ANY),
            watch_group: group.unwrap_or(GroupId::ANY),
            ..Bucket::new(BucketId(0), actions)
        }
    })
}
