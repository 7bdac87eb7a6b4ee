//! Controllers' messages, and the agent's answers and errors.
use crate::bench::*;
use std::net::Ipv4Addr;
use weir_datapath::ChannelId;
use weir_openflow::model::config::TableMod;
use weir_openflow::model::error::{BadRequest, QueueOpFailed, RoleRequestFailed, SwitchConfigFailed, TableModFailed};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{Action, Bytes, ErrorType, FlowMod, Match, PortNo, SwitchConfig, TableId};
use weir_openflow::{Body, Message, Version, codec};
use weir_packet::craft::FrameBuilder;

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
fn configuration_is_kept_and_fragments_dropped() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), output(2));
    let config = SwitchConfig { flags: 1, miss_send_len: 40 };
    assert_eq!(bench.ask(CONTROLLER, Body::SetConfig(config)), []);
    assert_eq!(bench.ask(CONTROLLER, Body::GetConfigRequest), [Body::GetConfigReply(config)]);
    let whole = FrameBuilder::ethernet(mac(2), mac(1)).ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
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
    let role = |role, generation_id| Body::RoleRequest(RoleMessage { role, short_id: 0, generation_id });
    let reply = |role, generation_id| vec![Body::RoleReply(RoleMessage { role, short_id: 0, generation_id })];
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
    let table = |table, config| Body::TableMod(TableMod::new(table, config));
    let experimenter = weir_openflow::model::Experimenter { id: 1, kind: Some(2), data };
    let cases: [(Body, Option<ErrorType>); 6] = [
        (table(TableId::ALL, 3), None),
        (table(TableId(64), 0), Some(TableModFailed::BadTable.into())),
        (table(TableId(0), 4), Some(TableModFailed::BadConfig.into())),
        (Body::Experimenter(experimenter.clone()), Some(BadRequest::BadExperimenter.into())),
        (Body::QueueGetConfigRequest(PortNo(9)), Some(QueueOpFailed::BadPort.into())),
        (Body::BarrierReply, Some(BadRequest::BadType.into())),
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
