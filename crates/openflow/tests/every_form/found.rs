//! Tests for the defects that the generated tests found.
use weir_openflow::model::action::NO_BUFFER;
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupDesc, GroupKind, GroupMod};
use weir_openflow::model::meter::MeterCommand;
use weir_openflow::model::nicira::{BundleAction, HashFields, MultipathAction, MultipathAlgorithm};
use weir_openflow::model::property::RawProperty;
use weir_openflow::model::stats::{OxsStats, RawStat};
use weir_openflow::model::{
    Action, Body, FlowCommand, FlowMod, GroupId, Instruction, Match, Message, MeterId, NxAction, NxMessage, PortNo,
    Subfield, Version,
};
use weir_openflow::{decode, encode, text};
use weir_packet::Field;

/// Versions before 1.5.
const BEFORE: [Version; 3] = [Version::V10, Version::V13, Version::V14];

fn sent(body: Body, version: Version) -> Result<Body, String> {
    let mut bytes = Vec::new();
    encode(&Message { xid: 1, body }, version, &mut bytes).map_err(|error| error.to_string())?;
    decode(&bytes).map(|message| message.body).map_err(|error| format!("not understood: {error}"))
}

fn add(matching: Match, actions: Vec<Action>) -> FlowMod {
    FlowMod::add(1, matching, vec![Instruction::ApplyActions(actions)])
}

/// Parses the text of a flow entry, as printed in a listing.
fn reread(flow: &FlowMod) -> FlowMod {
    let written = text::format_flow(flow, Version::V13);
    text::parse_flow(&written, flow.command).unwrap_or_else(|error| panic!("{written}: {error}"))
}

#[test]
fn an_importance_is_refused_where_there_is_no_place_for_it() {
    let flow = FlowMod { importance: 7, ..add(Match::any(), vec![]) };
    let expected =
        |version: Version| Err(format!("OpenFlow {} cannot carry a flow-mod of importance 7", version.name()));
    for version in [Version::V10, Version::V13] {
        assert_eq!(sent(Body::FlowMod(flow.clone()), version), expected(version));
    }
    let nicira = Body::Nx(Box::new(NxMessage::FlowMod(flow.clone())));
    assert_eq!(sent(nicira, Version::V10), expected(Version::V10));
    assert!(sent(Body::FlowMod(flow), Version::V14).is_ok());
}

/// Without the group, the delete would remove every entry.
#[test]
fn a_delete_by_group_is_refused_in_niciras_form() {
    let delete = FlowMod { out_group: GroupId(5), ..FlowMod::delete_all() };
    let error = sent(Body::Nx(Box::new(NxMessage::FlowMod(delete))), Version::V10).unwrap_err();
    assert_eq!(error, "OpenFlow 1.0 cannot carry a delete of the entries that output to a group");
}

#[test]
fn what_only_1_5_says_of_groups_is_refused_before() {
    let bucket = |id| Bucket::new(BucketId(id), vec![]);
    let property = RawProperty { kind: 0xffff, data: vec![1; 8].into() };
    let group = GroupMod {
        command: GroupCommand::Add,
        kind: GroupKind::All,
        group: GroupId(1),
        command_bucket: BucketId::ALL,
        buckets: vec![bucket(0), bucket(1)],
        properties: vec![],
    };
    let propertied = Bucket { properties: vec![property.clone()], ..bucket(0) };
    let newer = [
        GroupMod { command: GroupCommand::InsertBucket, command_bucket: BucketId::LAST, ..group.clone() },
        GroupMod { command: GroupCommand::RemoveBucket, buckets: vec![], ..group.clone() },
        GroupMod { command_bucket: BucketId(1), ..group.clone() },
        GroupMod { buckets: vec![bucket(9)], ..group.clone() },
        GroupMod { buckets: vec![propertied], ..group.clone() },
        GroupMod { properties: vec![property], ..group.clone() },
    ];
    for newer in newer {
        for version in BEFORE {
            let error = sent(Body::GroupMod(newer.clone()), version);
            assert!(error.as_ref().is_err_and(|error| error.contains("cannot carry")), "{newer:?}: {error:?}");
        }
        assert_eq!(sent(Body::GroupMod(newer.clone()), Version::V15), Ok(Body::GroupMod(newer)));
    }
    assert_eq!(sent(Body::GroupMod(group.clone()), Version::V13), Ok(Body::GroupMod(group)));
}

/// A controller of 1.4 gets another controller's 1.5 request with the parts that 1.4 can carry.
#[test]
fn a_request_in_1_5_is_forwarded_in_1_4() {
    let forwarded = |id, properties| {
        let body = Body::GroupMod(GroupMod {
            command: GroupCommand::Add,
            kind: GroupKind::All,
            group: GroupId(1),
            command_bucket: BucketId::ALL,
            buckets: vec![Bucket::new(BucketId(id), vec![])],
            properties,
        });
        Body::RequestForward(Box::new(Message { xid: 5, body }))
    };
    let newer = forwarded(9, vec![RawProperty { kind: 99, data: vec![].into() }]);
    assert_eq!(sent(newer.clone(), Version::V14), Ok(forwarded(0, vec![])));
    assert_eq!(sent(newer.clone(), Version::V15), Ok(newer));
}

/// A load has four bytes for a header that takes eight; as in Open vSwitch, a set-field replaces it.
#[test]
fn bits_of_fields_with_long_headers_are_loaded() {
    let load = |bits| {
        let dst = Subfield { field: Field::NshSi, offset: 8 - bits, bits };
        vec![NxAction::Load { dst, value: 3 }.into_action()]
    };
    for (bits, expected) in [
        (4, Action::SetFieldMasked { field: Field::NshSi, value: 0x30, mask: 0xf0 }),
        (8, Action::SetField { field: Field::NshSi, value: 3 }),
    ] {
        for version in Version::ALL {
            let read = sent(Body::FlowMod(add(Match::any(), load(bits))), version);
            assert_eq!(read, Ok(Body::FlowMod(add(Match::any(), vec![expected.clone()]))), "{version:?}");
        }
    }
}

#[test]
fn a_link_for_a_field_with_a_long_header_is_refused() {
    let dst = Subfield { field: Field::NshC1, offset: 0, bits: 16 };
    let (fields, algorithm) = (HashFields::EthSrc, MultipathAlgorithm::Hrw);
    let actions = [
        NxAction::Multipath(MultipathAction { fields, basis: 0, algorithm, max_link: 3, arg: 0, dst }),
        NxAction::Bundle(BundleAction { is_hrw: true, fields, basis: 0, members: vec![PortNo(1)], dst: Some(dst) }),
    ];
    for action in actions {
        for version in Version::ALL {
            let error = sent(Body::FlowMod(add(Match::any(), vec![action.clone().into_action()])), version);
            assert!(error.as_ref().is_err_and(|error| error.contains("whose header is too long")), "{error:?}");
        }
    }
}

/// Without the packet type, the entry would also match packets without Ethernet header.
#[test]
fn the_type_of_ethernet_packets_is_listed() {
    let flow = add(Match::any().with(Field::PacketType, 0_u8), vec![Action::PopVlan]);
    assert_eq!(text::format_match(&flow.matching), "packet_type=(0,0)");
    assert_eq!(reread(&flow), flow);
}

#[test]
fn some_bits_of_a_tag_are_listed_and_read() {
    let tci = |value: u16, mask: u16| Match::any().with_masked(Field::VlanTci, value, mask);
    for matching in [tci(0x2000, 0x2000), tci(0x4000, 0xe000), tci(0x0005, 0x1fff), tci(0x4205, 0x570d)] {
        let flow = add(matching, vec![Action::PopVlan]);
        assert_eq!(reread(&flow), flow);
    }
    // Bits of the tag under both names.
    let both =
        Match::any().with_masked(Field::VlanVid, 0x5_u8, 0xd_u8).with_masked(Field::VlanTci, 0x4000_u16, 0x4000_u16);
    assert_eq!(text::format_match(&both), "vlan_tci=0x4005/0x400d");
    assert_eq!(text::parse_match("vlan_tci=0x4005/0x400d"), Ok(tci(0x4005, 0x400d)));
    let error = text::parse_match("vlan_tci=0x4000/0x4000,vlan_vid=0x5/0xd").unwrap_err().to_string();
    assert!(error.contains("no other field of the VLAN tag"), "{error}");
}

#[test]
fn all_bits_of_a_vlan_id_are_copied() {
    let all = Subfield::all(Field::VlanVid);
    assert_eq!(all.bits, 13);
    let flow =
        add(Match::any(), vec![Action::Move { src: all, dst: Subfield { field: Field::Reg0, offset: 0, bits: 13 } }]);
    assert_eq!(reread(&flow), flow);
}

#[test]
fn no_bits_of_tcp_flags_are_set() {
    let flow = add(Match::any(), vec![Action::SetFieldMasked { field: Field::TcpFlags, value: 0, mask: 0 }]);
    assert_eq!(reread(&flow), flow);
}

/// A meter action of 1.5 applies at its position. Alone it would be parsed as the instruction, which runs first.
#[test]
fn meters_and_metadata_keep_their_places_among_actions() {
    let (meter, port) = (|id| Action::Meter(MeterId(id)), Action::output(PortNo(1)));
    let metadata = NxAction::WriteMetadata { metadata: 5, mask: 7 }.into_action();
    for actions in [
        vec![port.clone(), meter(3)],
        vec![metadata.clone(), port.clone()],
        vec![NxAction::Clone(vec![meter(3), metadata.clone()]).into_action()],
    ] {
        let flow = add(Match::any(), actions);
        assert_eq!(reread(&flow), flow);
    }
    let write = vec![Instruction::Meter(MeterId(1)), Instruction::WriteActions(vec![meter(3), metadata])];
    let flow = FlowMod::add(1, Match::any(), write);
    assert_eq!(reread(&flow), flow);
    let both = add(Match::any(), vec![meter(3), port.clone(), meter(4)]);
    let rest = vec![Instruction::Meter(MeterId(3)), Instruction::ApplyActions(vec![port.clone(), meter(4)])];
    assert_eq!(reread(&both).instructions, rest);
    // Of several spellings with the same meaning, the shortest is printed.
    let first = add(Match::any(), vec![meter(3), port]);
    assert_eq!(text::format_instructions(&first.instructions, Version::V15), "meter:3,output:1");
    assert_eq!(
        text::parse_instructions("apply_actions(meter:3,output:1)"),
        text::parse_instructions("meter:3,output:1")
    );
}

#[test]
fn a_meter_without_bands_is_read() {
    let written = text::format_meter(MeterId(7), 8, &[]);
    assert_eq!(written, "meter=7 stats bands=\n");
    let read = text::parse_meter(&written, MeterCommand::Add).unwrap();
    assert_eq!((read.meter, read.flags, read.bands), (MeterId(7), 8, vec![]));
}

#[test]
fn triggers_of_statistics_are_read() {
    let thresholds = OxsStats {
        duration: Some((1, 500_000_000)),
        idle_time: Some((0, 1)),
        flow_count: Some(3),
        packet_count: Some(u64::MAX),
        byte_count: Some(0),
        others: vec![RawStat { class: 0x7001, number: 3, payload: vec![1, 2].into() }],
    };
    let flow = FlowMod::add(1, Match::any(), vec![Instruction::StatTrigger { flags: 3, thresholds }]);
    assert_eq!(reread(&flow), flow);
    for wrong in ["flags=x", "duration=1s", "duration=1.5s", "stat=1", "packets=3", "flow_count"] {
        let text = format!("actions=stat_trigger({wrong})");
        assert!(text::parse_flow(&text, FlowCommand::Add).is_err(), "{text}");
    }
}

#[test]
fn numbers_and_properties_of_buckets_are_listed_and_read() {
    let property = |kind| RawProperty { kind, data: vec![0x15, 0x4d].into() };
    let bucket = Bucket {
        watch_group: GroupId::ALL,
        properties: vec![property(99), property(100)],
        ..Bucket::new(
            BucketId(9),
            vec![Action::Meter(MeterId(1)), Action::Output { port: PortNo::CONTROLLER, max_len: NO_BUFFER }],
        )
    };
    let group = GroupDesc {
        kind: GroupKind::All,
        group: GroupId(1),
        buckets: vec![bucket, Bucket::new(BucketId(1), vec![])],
        properties: vec![property(0xffff), property(0xffff)],
    };
    let written = text::format_group(&group);
    assert_eq!(
        written,
        "group_id=1,type=all,property(0xffff,154d),property(0xffff,154d),\
         bucket=bucket_id:9,watch_group:ALL,property(0x63,154d),property(0x64,154d),actions=meter:1,CONTROLLER:65535,\
         bucket=actions=drop"
    );
    let read = text::parse_group(&written, GroupCommand::Add).unwrap();
    assert_eq!((read.buckets, read.properties), (group.buckets, group.properties));
    assert!(text::parse_group("group_id=1,type=all,property(1)", GroupCommand::Add).is_err());
}
