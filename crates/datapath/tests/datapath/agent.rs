//! Messages and their answers.
use crate::bench::*;
use std::net::Ipv4Addr;
use weir_datapath::{ChannelId, PortCounters};
use weir_openflow::model::config::TableMod;
use weir_openflow::model::error::{
    BadAction, BadRequest, GroupModFailed, MeterModFailed, PortModFailed, QueueOpFailed, RoleRequestFailed,
    SwitchConfigFailed, TableFeaturesFailed, TableModFailed,
};
use weir_openflow::model::group::GroupMod;
use weir_openflow::model::meter::MeterMod;
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::port::{PortMod, PortStatusReason, bits};
use weir_openflow::model::role::{AsyncConfig, Role, RoleMessage};
use weir_openflow::model::{
    Action, BufferId, Bytes, ErrorType, FlowMod, GroupId, Match, MeterId, PacketInReason, PacketOut, PortNo,
    SwitchConfig, TableId,
};
use weir_openflow::{Body, Message, Version, codec};
use weir_packet::Field;
use weir_packet::craft::Craft;
use weir_packet::field::eth_type;

fn frame() -> Vec<u8> {
    Craft::ethernet(mac(2), mac(1)).payload(&[5; 200]).build()
}

fn packet_out(in_port: PortNo, actions: Vec<Action>, data: Vec<u8>) -> Body {
    Body::PacketOut(PacketOut { buffer_id: None, in_port, actions, data: data.into() })
}

/// The body that answers a multipart request, put together from its parts.
fn ask(bench: &mut Bench, channel: ChannelId, body: RequestBody) -> Result<Vec<ReplyBody>, ErrorType> {
    let mut parts = Vec::new();
    let answers = bench.ask(channel, Body::MultipartRequest(MultipartRequest { more: false, body }));
    let count = answers.len();
    for (number, answer) in answers.into_iter().enumerate() {
        match answer {
            Body::MultipartReply(reply) => {
                assert_eq!(reply.more, number + 1 < count);
                parts.push(reply.body);
            }
            Body::Error(error) => return Err(error.error),
            other => panic!("{other:?}"),
        }
    }
    Ok(parts)
}

#[test]
fn features_by_version() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    for (channel, ports) in [(CONTROLLER, 0), (OLD_CONTROLLER, 4)] {
        let [Body::FeaturesReply(features)] = &bench.ask(channel, Body::FeaturesRequest)[..] else { panic!() };
        assert_eq!((features.n_tables, features.n_buffers, features.ports.len()), (64, 256, ports));
    }
}

#[test]
fn a_kept_packet_is_sent_by_its_number() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), vec![Action::Output { port: PortNo::CONTROLLER, max_len: 64 }]);
    bench.receive(1, &frame());
    let [packet] = bench.packet_ins(CONTROLLER).try_into().unwrap();
    assert_eq!((packet.total_len, packet.data.0.as_slice()), (214, &frame()[..64]));
    assert_eq!(packet.reason, PacketInReason::Action);
    let out = PacketOut { buffer_id: packet.buffer_id, in_port: PortNo(1), actions: output(3), data: vec![].into() };
    assert_eq!(bench.ask(CONTROLLER, Body::PacketOut(out.clone())), []);
    assert_eq!(bench.sent(), [(PortNo(3), frame())]);
    assert_eq!(bench.error_of(CONTROLLER, Body::PacketOut(out)), Some(BadRequest::BufferEmpty.into()));
}

#[test]
fn a_flow_mod_releases_a_kept_packet_into_the_pipeline() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), vec![Action::Output { port: PortNo::CONTROLLER, max_len: 64 }]);
    bench.receive(1, &frame());
    let [packet] = bench.packet_ins(CONTROLLER).try_into().unwrap();
    let flow = FlowMod { buffer_id: packet.buffer_id, ..FlowMod::add(2, from_port(1), apply(output(4))) };
    assert_eq!(bench.ask(CONTROLLER, Body::FlowMod(flow)), []);
    assert_eq!(bench.sent(), [(PortNo(4), frame())]);
    let unknown = FlowMod { buffer_id: Some(BufferId(99)), ..FlowMod::add(3, from_port(2), apply(output(4))) };
    let error = bench.error_of(CONTROLLER, Body::FlowMod(unknown));
    assert_eq!(error, Some(BadRequest::BufferUnknown.into()));
    assert_eq!(bench.ports_of(2, &frame()), [4], "the entry is there all the same");
}

#[test]
fn packet_outs() {
    let mut bench = Bench::controlled();
    bench.add(1, from_port(2), output(4));
    let table = vec![Action::Output { port: PortNo::TABLE, max_len: 0 }];
    assert_eq!(bench.ask(CONTROLLER, packet_out(PortNo(2), table, frame())), []);
    assert_eq!(bench.sent(), [(PortNo(4), frame())]);
    let flood = vec![Action::output(PortNo::FLOOD)];
    bench.ask(CONTROLLER, packet_out(PortNo::CONTROLLER, flood.clone(), frame()));
    assert_eq!(bench.sent().len(), 4);
    bench.ask(CONTROLLER, packet_out(PortNo(3), flood, frame()));
    assert_eq!(bench.sent().len(), 3);
    let back = bench.ask(CONTROLLER, packet_out(PortNo::CONTROLLER, vec![Action::to_controller()], frame()));
    let [Body::PacketIn(packet)] = &back[..] else { panic!("{back:?}") };
    assert_eq!((&packet.data.0, packet.in_port()), (&frame(), Some(PortNo::CONTROLLER)));
    let wrong = [
        (packet_out(PortNo::FLOOD, output(1), frame()), ErrorType::from(BadRequest::BadPort)),
        (packet_out(PortNo(1), output(0), frame()), BadAction::BadOutPort.into()),
        (packet_out(PortNo(1), output(2), vec![1; 13]), BadRequest::BadPacket.into()),
        (packet_out(PortNo(1), vec![Action::DecNwTtl], frame()), BadAction::MatchInconsistent.into()),
    ];
    for (body, error) in wrong {
        assert_eq!(bench.error_of(CONTROLLER, body.clone()), Some(error), "{body:?}");
    }
    assert_eq!(bench.sent(), []);
}

#[test]
fn an_expired_ttl_is_told_to_those_who_ask() {
    let mut bench = Bench::controlled();
    let ipv4 = Match::any().with(Field::EthType, eth_type::IPV4);
    bench.add(1, ipv4, vec![Action::DecNwTtl, Action::output(PortNo(2))]);
    let craft = Craft::ethernet(mac(2), mac(1)).ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let last_hop = craft.ttl(1).udp(1, 2).build();
    assert_eq!(bench.ports_of(1, &last_hop), [0_u32; 0]);
    assert_eq!(bench.packet_ins(CONTROLLER), []);
    assert_eq!(bench.datapath.drops().ttl_expired, 1);
    let [Body::GetAsyncReply(config)] = bench.ask(CONTROLLER, Body::GetAsyncRequest)[..] else { panic!() };
    let config = AsyncConfig { packet_in: [0b100, 0], ..config };
    assert_eq!(bench.ask(CONTROLLER, Body::SetAsync(config)), []);
    bench.receive(1, &last_hop);
    let [packet] = bench.packet_ins(CONTROLLER).try_into().unwrap();
    assert_eq!((packet.reason, packet.data.0), (PacketInReason::InvalidTtl, last_hop));
    // Only that was asked for.
    bench.add(2, Match::any(), vec![Action::to_controller()]);
    bench.receive(1, &frame());
    assert_eq!(bench.packet_ins(CONTROLLER), []);
    assert_eq!(bench.datapath.drops().total(), 2);
}

#[test]
fn port_mods_take_effect() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), vec![Action::output(PortNo::FLOOD)]);
    let change = |number, config| {
        let desc = port(number);
        let mask = bits::PORT_DOWN | bits::NO_RECV | bits::NO_FWD | bits::NO_PACKET_IN;
        Body::PortMod(PortMod { port_no: desc.port_no, hw_addr: desc.hw_addr, config, mask, advertise: 0 })
    };
    let [Body::PortStatus(status)] = &bench.ask(CONTROLLER, change(2, bits::NO_FWD))[..] else { panic!() };
    assert_eq!((status.reason, status.desc.config), (PortStatusReason::Modify, bits::NO_FWD));
    assert_eq!(bench.ask(CONTROLLER, change(2, bits::NO_FWD)), [], "nothing changed");
    bench.ask(CONTROLLER, change(3, bits::PORT_DOWN));
    assert_eq!(bench.out.port_admin, [(PortNo(3), false)]);
    bench.ask(CONTROLLER, change(4, bits::NO_RECV));
    assert_eq!(bench.ports_of(1, &frame()), [4]);
    assert_eq!(bench.ports_of(2, &frame()), [1, 4]);
    assert_eq!(bench.ports_of(3, &frame()), [0_u32; 0]);
    assert_eq!(bench.ports_of(4, &frame()), [0_u32; 0]);
    bench.add(2, Match::any(), [output(2), output(3)].concat());
    assert_eq!(bench.ports_of(1, &frame()), [0_u32; 0]);
    let drops = bench.datapath.drops();
    assert_eq!((drops.port_down, drops.no_recv, drops.no_fwd), (2, 1, 1));
    bench.add(3, Match::any(), vec![Action::to_controller()]);
    bench.ask(CONTROLLER, change(1, bits::NO_PACKET_IN));
    bench.receive(1, &frame());
    assert_eq!((bench.packet_ins(CONTROLLER).len(), bench.datapath.drops().no_packet_in), (0, 1));
    bench.ask(CONTROLLER, change(3, 0));
    assert_eq!(bench.out.port_admin, [(PortNo(3), false), (PortNo(3), true)]);
}

#[test]
fn wrong_port_mods() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    let right = PortMod { port_no: PortNo(1), hw_addr: port(1).hw_addr, config: 0, mask: 0, advertise: 0 };
    let no_flood = PortMod { config: bits::NO_FLOOD, mask: bits::NO_FLOOD, ..right.clone() };
    let cases = [
        (CONTROLLER, PortMod { port_no: PortNo(9), ..right.clone() }, Some(PortModFailed::BadPort)),
        (CONTROLLER, PortMod { hw_addr: mac(9), ..right.clone() }, Some(PortModFailed::BadHwAddr)),
        (CONTROLLER, PortMod { advertise: 1, ..right }, Some(PortModFailed::BadAdvertise)),
        (CONTROLLER, no_flood.clone(), Some(PortModFailed::BadConfig)),
        (OLD_CONTROLLER, no_flood, None),
    ];
    for (channel, change, error) in cases {
        let found = bench.error_of(channel, Body::PortMod(change.clone()));
        assert_eq!(found, error.map(ErrorType::from), "{change:?}");
    }
    bench.add(1, Match::any(), vec![Action::output(PortNo::FLOOD)]);
    assert_eq!(bench.ports_of(2, &frame()), [3, 4]);
    bench.add(1, Match::any(), vec![Action::output(PortNo::ALL)]);
    assert_eq!(bench.ports_of(2, &frame()), [1, 3, 4]);
}

#[test]
fn ports_come_and_go() {
    let mut bench = Bench::controlled();
    let reasons = |bench: &mut Bench| -> Vec<(PortStatusReason, u32)> {
        let told = bench.told(CONTROLLER).into_iter();
        told.map(|b| if let Body::PortStatus(s) = b { (s.reason, s.desc.state) } else { panic!("{b:?}") }).collect()
    };
    bench.datapath.add_port(bench.now, port(5), &mut bench.out).unwrap();
    assert_eq!(reasons(&mut bench), [(PortStatusReason::Add, bits::LIVE)]);
    let taken = bench.datapath.add_port(bench.now, port(5), &mut bench.out).unwrap_err();
    assert_eq!(taken, "port p5: number 5 is taken by p5; use another number");
    let mut any = port(6);
    any.port_no = PortNo::ANY;
    bench.datapath.add_port(bench.now, any, &mut bench.out).unwrap_err();
    bench.datapath.set_link(bench.now, PortNo(5), false, 0, &mut bench.out);
    bench.datapath.set_link(bench.now, PortNo(5), false, 0, &mut bench.out);
    assert_eq!(reasons(&mut bench), [(PortStatusReason::Modify, bits::LINK_DOWN)]);
    bench.add(1, Match::any(), vec![Action::output(PortNo::ALL)]);
    assert_eq!(bench.ports_of(1, &frame()), [2, 3, 4]);
    bench.datapath.set_link(bench.now, PortNo(5), true, 10_000_000, &mut bench.out);
    assert_eq!(bench.ports_of(1, &frame()), [2, 3, 4, 5]);
    assert_eq!(bench.datapath.ports()[4].curr_speed, 10_000_000);
    assert!(bench.datapath.remove_port(bench.now, PortNo(5), &mut bench.out));
    assert!(!bench.datapath.remove_port(bench.now, PortNo(5), &mut bench.out));
    assert_eq!(reasons(&mut bench).len(), 2);
    assert_eq!(bench.ports_of(1, &frame()), [2, 3, 4]);
}

#[test]
fn statistics() {
    let mut bench = Bench::controlled();
    bench.add(1, from_port(1), output(2));
    bench.receive(1, &frame());
    bench.receive(2, &frame());
    let counters = PortCounters { rx_packets: 8, tx_dropped: 2, ..PortCounters::default() };
    bench.datapath.set_port_counters(PortNo(1), counters);
    let ports = ask(&mut bench, CONTROLLER, RequestBody::PortStats(PortNo(1))).unwrap();
    let [ReplyBody::PortStats(ports)] = &ports[..] else { panic!() };
    assert_eq!((ports[0].rx_packets, ports[0].tx_dropped), (8, 2));
    let tables = ask(&mut bench, CONTROLLER, RequestBody::Table).unwrap();
    let [ReplyBody::Table(tables)] = &tables[..] else { panic!() };
    assert_eq!((tables.len(), tables[0].active_count, tables[0].lookup_count, tables[0].matched_count), (64, 1, 2, 1));
    let sums = ask(&mut bench, CONTROLLER, RequestBody::Aggregate(FlowRequest::all())).unwrap();
    let [ReplyBody::Aggregate(sum)] = sums[..] else { panic!() };
    assert_eq!((sum.packet_count, sum.byte_count, sum.flow_count), (1, 214, 1));
    let descs = ask(&mut bench, CONTROLLER, RequestBody::PortDesc).unwrap();
    let [ReplyBody::PortDesc(descs)] = &descs[..] else { panic!() };
    assert_eq!(descs.len(), 4);
    let errors: [(RequestBody, ErrorType); 4] = [
        (RequestBody::PortStats(PortNo(9)), BadRequest::BadPort.into()),
        (RequestBody::Queue { port: PortNo(1), queue: 3 }, QueueOpFailed::BadQueue.into()),
        (RequestBody::Meter(MeterId(1)), MeterModFailed::UnknownMeter.into()),
        (RequestBody::Flow(FlowRequest { table: TableId(64), ..FlowRequest::all() }), BadRequest::BadTableId.into()),
    ];
    for (body, error) in errors {
        assert_eq!(ask(&mut bench, CONTROLLER, body), Err(error));
    }
}

#[test]
fn every_statistics_reply_encodes_however_long() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    for number in 0..3000_u32 {
        bench.add(1, Match::any().with(Field::EthDst, mac(number.into()).to_bits()), output(2));
    }
    let asked = [
        RequestBody::Desc,
        RequestBody::Flow(FlowRequest::all()),
        RequestBody::Aggregate(FlowRequest::all()),
        RequestBody::Table,
        RequestBody::PortStats(PortNo::ANY),
        RequestBody::PortDesc,
        RequestBody::Queue { port: PortNo::ANY, queue: u32::MAX },
        RequestBody::Group(GroupId::ALL),
        RequestBody::GroupDesc,
        RequestBody::GroupFeatures,
        RequestBody::Meter(MeterId::ALL),
        RequestBody::MeterConfig(MeterId::ALL),
        RequestBody::MeterFeatures,
        RequestBody::TableFeatures(vec![]),
    ];
    for body in asked {
        let is_in_v10 = !matches!(
            body,
            RequestBody::PortDesc
                | RequestBody::Group(_)
                | RequestBody::GroupDesc
                | RequestBody::GroupFeatures
                | RequestBody::Meter(_)
                | RequestBody::MeterConfig(_)
                | RequestBody::MeterFeatures
                | RequestBody::TableFeatures(_)
        );
        let channels = [(CONTROLLER, Version::V13, true), (OLD_CONTROLLER, Version::V10, is_in_v10)];
        for (channel, version, _) in channels.into_iter().filter(|(.., has)| *has) {
            let parts = ask(&mut bench, channel, body.clone()).unwrap();
            let mut flows = 0;
            for part in parts {
                flows += if let ReplyBody::Flow(entries) = &part { entries.len() } else { 0 };
                let reply = weir_openflow::model::MultipartReply { more: false, body: part };
                codec::encode(&Message { xid: 1, body: Body::MultipartReply(reply) }, version, &mut Vec::new())
                    .unwrap();
            }
            assert_eq!(flows, if matches!(body, RequestBody::Flow(_)) { 3000 } else { 0 });
        }
    }
}

#[test]
fn groups_and_meters_have_no_room_but_deletes_succeed() {
    let mut bench = Bench::controlled();
    let group = |command, group| Body::GroupMod(GroupMod { command, kind: 0, group, buckets: vec![] });
    let meter = |command, meter| Body::MeterMod(MeterMod { command, flags: 1, meter, bands: vec![] });
    let cases: [(Body, Option<ErrorType>); 8] = [
        (group(0, GroupId(1)), Some(GroupModFailed::OutOfGroups.into())),
        (group(0, GroupId::ALL), Some(GroupModFailed::InvalidGroup.into())),
        (group(1, GroupId(1)), Some(GroupModFailed::UnknownGroup.into())),
        (group(2, GroupId::ALL), None),
        (group(9, GroupId(1)), Some(GroupModFailed::BadCommand.into())),
        (meter(0, MeterId(1)), Some(MeterModFailed::OutOfMeters.into())),
        (meter(1, MeterId(1)), Some(MeterModFailed::UnknownMeter.into())),
        (meter(2, MeterId::ALL), None),
    ];
    for (body, error) in cases {
        assert_eq!(bench.error_of(CONTROLLER, body.clone()), error, "{body:?}");
    }
}

#[test]
fn configuration_is_kept_and_fragments_dropped() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), output(2));
    let config = SwitchConfig { flags: 1, miss_send_len: 40 };
    assert_eq!(bench.ask(CONTROLLER, Body::SetConfig(config)), []);
    assert_eq!(bench.ask(CONTROLLER, Body::GetConfigRequest), [Body::GetConfigReply(config)]);
    let whole = Craft::ethernet(mac(2), mac(1)).ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let whole = whole.udp(1, 2).build();
    let mut fragment = whole.clone();
    fragment[20] |= 0x20;
    assert_eq!(bench.ports_of(1, &whole), [2]);
    assert_eq!(bench.ports_of(1, &fragment), [0_u32; 0]);
    assert_eq!(bench.datapath.drops().fragment, 1);
    let reassemble = Body::SetConfig(SwitchConfig { flags: 2, miss_send_len: 40 });
    assert_eq!(bench.error_of(CONTROLLER, reassemble), Some(SwitchConfigFailed::BadFlags.into()));
    bench.ask(CONTROLLER, Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 40 }));
    assert_eq!(bench.ports_of(1, &fragment), [2]);
}

#[test]
fn there_is_one_master_and_slaves_change_nothing() {
    let mut bench = Bench::controlled();
    let other = ChannelId(14);
    bench.datapath.channel_up(bench.now, other, Version::V13);
    let role = |role, generation_id| Body::RoleRequest(RoleMessage { role, generation_id });
    let reply = |role, generation_id| vec![Body::RoleReply(RoleMessage { role, generation_id })];
    assert_eq!(bench.ask(CONTROLLER, role(Role::NoChange, 0)), reply(Role::Equal, u64::MAX));
    assert_eq!(bench.ask(CONTROLLER, role(Role::Master, 5)), reply(Role::Master, 5));
    assert_eq!(bench.ask(other, role(Role::Master, 6)), reply(Role::Master, 6));
    assert_eq!(bench.ask(CONTROLLER, role(Role::NoChange, 0)), reply(Role::Slave, 6));
    let stale = bench.error_of(CONTROLLER, role(Role::Master, 5));
    assert_eq!(stale, Some(RoleRequestFailed::Stale.into()));
    assert_eq!(bench.error_of(CONTROLLER, role(Role::Unknown(9), 7)), Some(RoleRequestFailed::BadRole.into()));
    let flow = Body::FlowMod(FlowMod::add(0, Match::any(), apply(vec![Action::to_controller()])));
    assert_eq!(bench.error_of(CONTROLLER, flow.clone()), Some(BadRequest::IsSlave.into()));
    assert_eq!(bench.error_of(other, flow), None);
    bench.receive(1, &frame());
    assert_eq!((bench.packet_ins(other).len(), bench.packet_ins(CONTROLLER).len()), (1, 0));
}

#[test]
fn tools_are_told_nothing_until_they_ask() {
    let mut bench = Bench::controlled();
    bench.add(0, Match::any(), vec![Action::to_controller()]);
    let tool = ChannelId::FIRST_PASSIVE;
    bench.datapath.channel_up(bench.now, tool, Version::V13);
    bench.receive(1, &frame());
    bench.datapath.set_link(bench.now, PortNo(1), false, 0, &mut bench.out);
    assert_eq!((bench.told(tool).len(), bench.told(CONTROLLER).len()), (0, 2));
    bench.ask(tool, Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 128 }));
    bench.receive(1, &frame());
    assert_eq!((bench.packet_ins(tool).len(), bench.packet_ins(CONTROLLER).len()), (1, 1));
}

#[test]
fn other_messages() {
    let mut bench = Bench::controlled();
    assert_eq!(bench.ask(CONTROLLER, Body::BarrierRequest), [Body::BarrierReply]);
    let data = Bytes(vec![1, 2]);
    assert_eq!(bench.ask(CONTROLLER, Body::EchoRequest(data.clone())), [Body::EchoReply(data.clone())]);
    let table = |table, config| Body::TableMod(TableMod { table, config });
    let experimenter = weir_openflow::model::Experimenter { id: 1, kind: Some(2), data };
    let features = ask(&mut bench, CONTROLLER, RequestBody::TableFeatures(vec![])).unwrap();
    let Some(ReplyBody::TableFeatures(features)) = features.into_iter().next() else { panic!() };
    let set = RequestBody::TableFeatures(features);
    let cases: [(Body, Option<ErrorType>); 7] = [
        (table(TableId::ALL, 3), None),
        (table(TableId(64), 0), Some(TableModFailed::BadTable.into())),
        (table(TableId(0), 4), Some(TableModFailed::BadConfig.into())),
        (Body::Experimenter(experimenter.clone()), Some(BadRequest::BadExperimenter.into())),
        (Body::QueueGetConfigRequest(PortNo(9)), Some(QueueOpFailed::BadPort.into())),
        (Body::BarrierReply, Some(BadRequest::BadType.into())),
        (Body::MultipartRequest(MultipartRequest { more: false, body: set }), Some(TableFeaturesFailed::Eperm.into())),
    ];
    for (body, error) in cases {
        assert_eq!(bench.error_of(CONTROLLER, body.clone()), error, "{body:?}");
    }
    assert_eq!(bench.ask(ChannelId(99), Body::BarrierRequest), [], "a channel that is not up");
}

#[test]
fn an_error_carries_the_start_of_its_message() {
    let mut bench = Bench::controlled();
    let body = Body::FlowMod(FlowMod { table: TableId(100), ..FlowMod::add(1, from_port(1), apply(output(2))) });
    let [Body::Error(error)] = &bench.ask(CONTROLLER, body.clone())[..] else { panic!() };
    let mut encoded = Vec::new();
    codec::encode(&Message { xid: 77, body }, Version::V13, &mut encoded).unwrap();
    assert_eq!(error.data.0, encoded[..64]);
}
