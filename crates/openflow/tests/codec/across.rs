//! Tests encoding a message decoded from one version in another version.
use weir_openflow::model::action::{Action, Instruction, Subfield};
use weir_openflow::model::error::{BadMatch, ErrorType};
use weir_openflow::model::flow::{FlowCommand, FlowFlags, FlowMod, TableId};
use weir_openflow::model::multipart::{FlowRequest, FlowStats, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::packet_io::{PacketIn, PacketInReason, PacketOut};
use weir_openflow::model::stats::OxsExtraStats;
use weir_openflow::model::{Body, Bytes, ErrorMessage, Experimenter, GroupId, Match, Message, PortNo, Version};
use weir_openflow::{decode, encode, split_reply};
use weir_packet::Field;
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};

/// Encodes and decodes a body. Returns what the peer decodes, or why the version cannot carry it.
fn sent(body: Body, version: Version) -> Result<Body, String> {
    let mut bytes = Vec::new();
    encode(&Message { xid: 1, body }, version, &mut bytes).map_err(|error| error.to_string())?;
    Ok(decode(&bytes).unwrap().body)
}

fn add(matching: Match, actions: Vec<Action>) -> FlowMod {
    FlowMod::add(1, matching, vec![Instruction::ApplyActions(actions)])
}

fn ipv4(proto: u8) -> Match {
    Match::any().with(Field::EthType, eth_type::IPV4).with(Field::IpProto, proto)
}

fn actions_sent(matching: Match, actions: Vec<Action>, version: Version) -> Result<Vec<Action>, String> {
    match sent(Body::FlowMod(add(matching, actions)), version)? {
        Body::FlowMod(FlowMod { instructions, .. }) => match &instructions[..] {
            [Instruction::ApplyActions(actions)] => Ok(actions.clone()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn set(field: Field, value: u32) -> Action {
    Action::SetField { field, value: value.into() }
}

#[test]
fn actions_of_1_0_are_set_fields_in_1_3() {
    let old = vec![
        Action::SetVlanVid(100),
        Action::SetVlanPcp(5),
        Action::SetNwSrc(1),
        Action::SetNwDst(2),
        Action::SetNwTos(46 << 2),
        Action::SetTpSrc(3),
        Action::SetTpDst(4),
        Action::Enqueue { port: PortNo(7), queue: 9 },
    ];
    for (proto, source, destination) in [
        (ip_proto::TCP, Field::TcpSrc, Field::TcpDst),
        (ip_proto::UDP, Field::UdpSrc, Field::UdpDst),
        (ip_proto::SCTP, Field::SctpSrc, Field::SctpDst),
    ] {
        let new = vec![
            set(Field::VlanVid, 100 | u32::from(VLAN_PRESENT)),
            set(Field::VlanPcp, 5),
            set(Field::Ipv4Src, 1),
            set(Field::Ipv4Dst, 2),
            set(Field::IpDscp, 46),
            set(source, 3),
            set(destination, 4),
            Action::SetQueue(9),
            Action::output(PortNo(7)),
        ];
        assert_eq!(actions_sent(ipv4(proto), old.clone(), Version::V13), Ok(new.clone()));
        // The way back is exact, too, except for the queue.
        let back = actions_sent(ipv4(proto), new[..7].to_vec(), Version::V10);
        assert_eq!(back, Ok(old[..7].to_vec()));
    }
}

#[test]
fn what_1_0_lacks_is_refused_by_name() {
    let tagged = Match::any().with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
    let write = FlowMod::add(1, Match::any(), vec![Instruction::WriteActions(vec![Action::PopVlan])]);
    let request = |request| Body::MultipartRequest(MultipartRequest { more: false, body: RequestBody::Flow(request) });
    let cases: [(Body, &str); 14] = [
        (Body::GetAsyncRequest, "asynchronous configuration"),
        (Body::FlowMod(write), "instructions other than apply-actions, write-metadata and goto-table"),
        (Body::FlowMod(FlowMod { table: TableId(1), ..add(Match::any(), vec![]) }), "a flow-mod of table 1"),
        (Body::FlowMod(FlowMod { flags: FlowFlags(8), ..add(Match::any(), vec![]) }), "the flow flags 0x8"),
        (Body::FlowMod(FlowMod { cookie_mask: 1, ..FlowMod::delete_all() }), "a flow-mod of the entries with a cookie"),
        (
            Body::FlowMod(FlowMod { out_group: GroupId(1), ..FlowMod::delete_all() }),
            "a delete of the entries that output to a group",
        ),
        (Body::FlowMod(add(tagged, vec![])), "a match on any VLAN tag without its priority"),
        (Body::FlowMod(add(Match::any().with(Field::Metadata, 1_u8), vec![])), "a match on metadata"),
        (
            Body::FlowMod(add(Match::any().with_masked(Field::EthDst, 0_u8, 1_u8), vec![])),
            "a match on eth_dst 0x0, mask 0x1",
        ),
        (
            Body::FlowMod(add(ipv4(6).with_masked(Field::Ipv4Dst, 1_u32, 0xff_u32), vec![])),
            "a match on ipv4_dst 0x1, mask 0xff",
        ),
        (
            Body::FlowMod(add(Match::any().with(Field::TcpDst, 80_u8), vec![])),
            "a match that is not valid: BadMatch(BadPrereq)",
        ),
        (Body::FlowMod(add(Match::any(), vec![Action::PushVlan(0x8100)])), "the action PushVlan(33024)"),
        (Body::FlowMod(add(Match::any(), vec![Action::output(PortNo(0x1_0000))])), "port 65536: ports end at 65280"),
        (
            request(FlowRequest { cookie_mask: 1, ..FlowRequest::all() }),
            "a request for the entries with a cookie or a group",
        ),
    ];
    for (body, what) in cases {
        let error = sent(body, Version::V10).unwrap_err();
        assert!(error.starts_with(&format!("OpenFlow 1.0 cannot carry {what}")), "{error}");
    }
}

#[test]
fn what_1_3_lacks_is_refused_by_name() {
    let emergency = FlowMod { flags: FlowFlags::EMERG, ..add(Match::any(), vec![]) };
    let vendor = Experimenter { id: 1, kind: None, data: Bytes(vec![1, 2, 3]) };
    for (body, what) in [
        (Body::FlowMod(emergency), "an emergency flow entry, which only 1.0 has"),
        (Body::Experimenter(vendor), "an experimenter message without a type number"),
        (Body::FlowMod(add(Match::any(), vec![set(Field::VlanPcp, 8)])), "0x8 in vlan_pcp, which has 3 bits"),
    ] {
        let error = sent(body, Version::V13).unwrap_err();
        assert_eq!(error, format!("OpenFlow 1.3 cannot carry {what}"));
    }
}

#[test]
fn a_refused_message_leaves_nothing_behind() {
    let mut out = b"before".to_vec();
    let message = Message { xid: 1, body: Body::FlowMod(add(Match::any(), vec![Action::PushVlan(0x8100)])) };
    encode(&message, Version::V10, &mut out).unwrap_err();
    assert_eq!(out, b"before");
    let message = Message { xid: 1, body: Body::EchoRequest(Bytes(vec![0; 65528])) };
    encode(&message, Version::V13, &mut out).unwrap_err();
    assert_eq!(out, b"before");
}

#[test]
fn deletes_of_1_0_mean_every_table() {
    for command in [FlowCommand::Delete, FlowCommand::DeleteStrict] {
        for table in [TableId(0), TableId::ALL] {
            let delete = FlowMod { command, table, ..FlowMod::delete_all() };
            let Ok(Body::FlowMod(flow)) = sent(Body::FlowMod(delete), Version::V10) else { panic!("not sent") };
            assert_eq!(flow.table, TableId::ALL);
        }
    }
}

#[test]
fn packet_in_of_1_0_keeps_the_port() {
    let packet = PacketIn {
        buffer_id: None,
        total_len: 4,
        reason: PacketInReason::InvalidTtl,
        table: TableId(3),
        cookie: 5,
        matching: Match::any().with(Field::InPort, 7_u32).with(Field::Metadata, 9_u32),
        data: Bytes(vec![1, 2, 3, 4]),
    };
    let Ok(Body::PacketIn(packet)) = sent(Body::PacketIn(packet), Version::V10) else { panic!("not sent") };
    assert_eq!((packet.in_port(), packet.reason), (Some(PortNo(7)), PacketInReason::Action));
    assert_eq!(packet.matching, Match::any().with(Field::InPort, 7_u32));
}

#[test]
fn an_error_of_1_3_is_the_nearest_in_1_0() {
    let error = ErrorMessage { error: BadMatch::BadField.into(), data: Bytes(vec![1]) };
    let Ok(Body::Error(error)) = sent(Body::Error(error), Version::V10) else { panic!("not sent") };
    assert!(matches!(error.error, ErrorType::BadAction(_)), "{error:?}");
    assert_eq!(error.data, Bytes(vec![1]));
}

/// Fields whose prerequisites are not matched are ignored, whatever their values (OpenFlow 1.0.1, 3.4).
#[test]
fn a_match_of_1_0_ignores_what_lacks_prerequisites() {
    let mut bytes = Vec::new();
    encode(&Message { xid: 1, body: Body::FlowMod(add(Match::any(), vec![])) }, Version::V10, &mut bytes).unwrap();
    // No wildcards and every byte set, with an EtherType for which 1.0 has no further fields.
    bytes[8..48].fill(0xff);
    bytes[8..12].fill(0);
    bytes[30..32].copy_from_slice(&[0x88, 0xcc]);
    let Ok(Message { body: Body::FlowMod(flow), .. }) = decode(&bytes) else { panic!("not understood") };
    let mac = 0xffff_ffff_ffff_u64;
    let expected = Match::any()
        .with(Field::InPort, PortNo::ANY.0)
        .with(Field::EthDst, mac)
        .with(Field::EthSrc, mac)
        .with(Field::EthType, 0x88cc_u16)
        .with(Field::VlanVid, 0_u16);
    assert_eq!(flow.matching, expected);
}

#[test]
fn flow_statistics_of_1_0_leave_out_what_it_cannot_say() {
    let entry = |table, instructions| FlowStats {
        table: TableId(table),
        duration_sec: 0,
        duration_nsec: 0,
        priority: 1,
        idle_timeout: 0,
        hard_timeout: 0,
        flags: FlowFlags::default(),
        importance: 0,
        cookie: 0,
        packet_count: 0,
        byte_count: 0,
        more: OxsExtraStats::default(),
        matching: Match::any(),
        instructions,
    };
    let write = entry(0, vec![Instruction::WriteActions(vec![Action::PopVlan])]);
    let output = entry(1, vec![Instruction::ApplyActions(vec![Action::output(PortNo(1))])]);
    let all = ReplyBody::Flow(vec![write, output.clone()]);
    let replies = split_reply(all.clone(), Version::V10);
    assert_eq!(replies.into_iter().map(|reply| reply.body).collect::<Vec<_>>(), [ReplyBody::Flow(vec![output])]);
    let replies = split_reply(all.clone(), Version::V13);
    assert_eq!(replies.into_iter().map(|reply| reply.body).collect::<Vec<_>>(), [all]);
}

/// Hello and error messages are decoded regardless of the header's version (OpenFlow 1.3.5, 7.5.1).
#[test]
fn hello_and_error_have_no_version() {
    for version in [0, 1, 2, 3, 4, 5, 6, 255] {
        assert!(decode(&[version, 0, 0, 8, 0, 0, 0, 1]).is_ok());
        assert!(decode(&[version, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0]).is_ok());
        assert_eq!(decode(&[version, 2, 0, 8, 0, 0, 0, 1]).is_ok(), [1, 4, 5, 6].contains(&version));
    }
}

/// 1.5 can name bits that no field has. Found by fuzzing.
#[test]
fn bits_beyond_a_field_do_no_harm_in_other_versions() {
    let beyond = Subfield { field: Field::InPort, offset: u16::MAX, bits: 8 };
    let copy = Action::Move { src: beyond, dst: Subfield { field: Field::Reg0, offset: 0, bits: 8 } };
    let out = PacketOut {
        buffer_id: None,
        in_port: PortNo(1),
        actions: vec![copy],
        data: vec![].into(),
        matching: Match::any(),
    };
    let body = Body::PacketOut(out);
    assert_eq!(sent(body.clone(), Version::V15), Ok(body.clone()), "a switch refuses it by name");
    for version in Version::ALL {
        // Encoded or refused: Nicira's form has fewer bits for the offset.
        let _ = encode(&Message { xid: 1, body: body.clone() }, version, &mut Vec::new());
    }
}
