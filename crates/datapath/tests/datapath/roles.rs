//! Several controllers: their permissions and notices (OpenFlow 1.3.5, 6.3.5 to 6.3.7).
use crate::bench::*;
use weir_datapath::ChannelId;
use weir_openflow::model::error::{BadRequest, RoleRequestFailed};
use weir_openflow::model::flow::FlowFlags;
use weir_openflow::model::multipart::RequestBody;
use weir_openflow::model::port::PortMod;
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{Action, BufferId, FlowMod, Match, MultipartRequest, PacketOut, PortNo, SwitchConfig};
use weir_openflow::{Body, Version};

const OTHER: ChannelId = ChannelId(14);
const AUXILIARY: ChannelId = ChannelId(15);

fn two_controllers() -> Bench {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OTHER, Version::V13);
    bench
}

fn role(role: Role, generation_id: u64) -> Body {
    Body::RoleRequest(RoleMessage { role, short_id: 0, generation_id })
}

fn held(bench: &mut Bench, channel: ChannelId) -> (Role, u64) {
    let [Body::RoleReply(reply)] = bench.ask(channel, role(Role::NoChange, 0))[..] else { panic!() };
    (reply.role, reply.generation_id)
}

fn config(flags: u16) -> Body {
    Body::SetConfig(SwitchConfig { flags, miss_send_len: 77 })
}

/// Returns a packet-out to port 2.
fn send(buffer_id: Option<BufferId>, data: Vec<u8>) -> PacketOut {
    PacketOut { buffer_id, in_port: PortNo(1), matching: Match::any(), actions: output(2), data: data.into() }
}

fn port_mod(bench: &Bench) -> Body {
    let port = &bench.datapath.ports()[0];
    let (port_no, hw_addr) = (port.port_no, port.hw_addr);
    Body::PortMod(PortMod { port_no, hw_addr, config: 0, mask: 0, advertise: 0, properties: Vec::new() })
}

#[test]
fn slaves_are_told_of_ports_only() {
    let mut bench = two_controllers();
    let flow = FlowMod {
        flags: FlowFlags::SEND_FLOW_REM,
        ..FlowMod::add(1, Match::any(), apply(vec![Action::to_controller()]))
    };
    bench.flow_mod(&flow).unwrap();
    bench.ask(OTHER, role(Role::Slave, 0));
    bench.receive(1, &frame());
    let mut told = bench.ask(CONTROLLER, Body::FlowMod(FlowMod::delete_all()));
    bench.datapath.set_link(bench.now, PortNo(1), false, 0, &mut bench.out);
    told.extend(bench.told(CONTROLLER));
    let kinds = |told: Vec<Body>| told.iter().map(|body| matches!(body, Body::PortStatus(_))).collect::<Vec<_>>();
    assert_eq!(kinds(bench.told(OTHER)), [true]);
    assert_eq!(kinds(told), [false, false, true], "packet-in, flow-removed, port-status");
}

#[test]
fn slaves_change_nothing_and_may_look_at_everything() {
    let mut bench = two_controllers();
    bench.ask(OTHER, role(Role::Slave, 0));
    let packet = send(None, frame());
    for body in [Body::FlowMod(FlowMod::delete_all()), Body::PacketOut(packet), port_mod(&bench)] {
        assert_eq!(bench.error_of(OTHER, body.clone()), Some(BadRequest::IsSlave.into()), "{body:?}");
        assert_eq!(bench.error_of(CONTROLLER, body), None);
    }
    assert_eq!(bench.sent().len(), 1, "the packet of the controller that may");
    let features =
        |tables| Body::MultipartRequest(MultipartRequest { more: false, body: RequestBody::TableFeatures(tables) });
    let [Body::MultipartReply(reply), ..] = &bench.ask(OTHER, features(Vec::new()))[..] else { panic!() };
    let weir_openflow::model::multipart::ReplyBody::TableFeatures(tables) = reply.body.clone() else { panic!() };
    assert_eq!(bench.error_of(OTHER, features(tables)), Some(BadRequest::IsSlave.into()));
    for body in [Body::FeaturesRequest, Body::GetConfigRequest, Body::BarrierRequest, Body::GetAsyncRequest] {
        assert_eq!(bench.error_of(OTHER, body), None);
    }
}

/// A slave may set its own `miss_send_len`, but not the handling of fragments, which belongs to the switch.
#[test]
fn a_slave_configures_itself_only() {
    let mut bench = two_controllers();
    bench.ask(OTHER, role(Role::Slave, 0));
    assert_eq!(bench.ask(OTHER, config(1)), []);
    let got = bench.ask(OTHER, Body::GetConfigRequest);
    assert_eq!(got, [Body::GetConfigReply(SwitchConfig { flags: 0, miss_send_len: 77 })]);
    bench.ask(CONTROLLER, config(1));
    assert_eq!(
        bench.ask(OTHER, Body::GetConfigRequest),
        [Body::GetConfigReply(SwitchConfig { flags: 1, miss_send_len: 77 })]
    );
}

/// Generation ids count for master and slave only, wrap around, and survive the connection (6.3.6).
#[test]
fn generations_order_elections() {
    let mut bench = two_controllers();
    let stale = Some(RoleRequestFailed::Stale.into());
    assert_eq!(bench.error_of(CONTROLLER, role(Role::Master, u64::MAX - 1)), None);
    assert_eq!(bench.error_of(OTHER, role(Role::Slave, u64::MAX - 2)), stale, "a slave's, too");
    assert_eq!(bench.error_of(OTHER, role(Role::Equal, 5)), None, "equal has none");
    assert_eq!(held(&mut bench, OTHER), (Role::Equal, u64::MAX - 1));
    assert_eq!(bench.error_of(OTHER, role(Role::Master, 3)), None, "5 further, around the end");
    assert_eq!(bench.error_of(CONTROLLER, role(Role::Master, u64::MAX)), stale);
    bench.datapath.channel_down(bench.now, OTHER);
    bench.datapath.channel_up(bench.now, OTHER, Version::V13);
    assert_eq!(held(&mut bench, OTHER), (Role::Equal, 3), "a new connection is equal, the generation stays");
    assert_eq!(bench.error_of(OTHER, role(Role::Master, 2)), stale);
    assert_eq!(held(&mut bench, CONTROLLER), (Role::Slave, 3));
    assert_eq!(bench.error_of(CONTROLLER, role(Role::Master, 3)), None, "the same election again");
}

/// Fail-over: the entries stay, and only the new master gets notices.
#[test]
fn a_master_that_goes_leaves_its_entries_to_the_next() {
    let mut bench = two_controllers();
    bench.ask(OTHER, role(Role::Slave, 1));
    bench.ask(CONTROLLER, role(Role::Master, 1));
    bench.ask(CONTROLLER, Body::FlowMod(FlowMod::add(5, from_port(1), apply(output(2)))));
    bench.ask(CONTROLLER, Body::FlowMod(FlowMod::add(0, Match::any(), apply(vec![Action::to_controller()]))));
    bench.datapath.channel_down(bench.now, CONTROLLER);
    assert_eq!(bench.ports_of(1, &frame()), [2]);
    bench.receive(3, &frame());
    assert_eq!(bench.packet_ins(OTHER).len(), 0, "still a slave");
    bench.ask(OTHER, role(Role::Master, 2));
    assert_eq!(bench.ports_of(1, &frame()), [2]);
    bench.receive(3, &frame());
    assert_eq!(bench.packet_ins(OTHER).len(), 1);
}

#[test]
fn an_auxiliary_connection_is_the_same_controller() {
    let mut bench = two_controllers();
    assert!(bench.datapath.auxiliary_up(bench.now, AUXILIARY, OTHER, 4));
    let [Body::FeaturesReply(features)] = &bench.ask(AUXILIARY, Body::FeaturesRequest)[..] else { panic!() };
    assert_eq!(features.auxiliary_id, 4);
    bench.ask(AUXILIARY, role(Role::Slave, 0));
    assert_eq!(held(&mut bench, OTHER), (Role::Slave, 0));
    assert_eq!(bench.error_of(AUXILIARY, Body::FlowMod(FlowMod::delete_all())), Some(BadRequest::IsSlave.into()));
    bench.ask(OTHER, role(Role::Master, 0));
    assert_eq!(held(&mut bench, AUXILIARY), (Role::Master, 0));
    assert_eq!(held(&mut bench, CONTROLLER), (Role::Equal, 0), "only masters become slaves");
    // A packet buffered for the controller can be sent over either of its connections, but over no other
    // controller's.
    let punt = Action::Output { port: PortNo::CONTROLLER, max_len: 20 };
    bench.add(9, Match::any(), vec![punt]);
    bench.receive(1, &frame());
    let [packet] = &bench.packet_ins(AUXILIARY)[..] else { panic!("packet-ins go over the auxiliary connection") };
    assert_eq!(bench.packet_ins(OTHER).len(), 0);
    let send = Body::PacketOut(send(packet.buffer_id, Vec::new()));
    assert_eq!(bench.error_of(CONTROLLER, send.clone()), Some(BadRequest::BufferUnknown.into()));
    assert_eq!(bench.error_of(OTHER, send), None);
    assert_eq!(bench.sent().len(), 1);
    // Other notices use the main connection. When it ends, the auxiliary connections end.
    bench.datapath.set_link(bench.now, PortNo(1), false, 0, &mut bench.out);
    assert_eq!((bench.told(OTHER).len(), bench.told(AUXILIARY).len()), (1, 0));
    bench.datapath.channel_down(bench.now, OTHER);
    assert_eq!(bench.ask(AUXILIARY, Body::BarrierRequest), [], "not up any more");
    assert!(!bench.datapath.auxiliary_up(bench.now, AUXILIARY, OTHER, 4), "there is nothing to join");
}
