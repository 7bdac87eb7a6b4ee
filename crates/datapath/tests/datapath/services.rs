//! Network service headers, packets without an Ethernet header, and tunnels: matches, edits, and the ports that take
//! such packets.
use crate::bench::*;
use weir_openflow::model::error::{BadAction, BadMatch};
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::role::AsyncConfig;
use weir_openflow::model::{
    Action, EncapHeader, FlowCommand, FlowFlags, FlowMod, Instruction, Match, NshHeader, PacketInReason, PortNo,
};
use weir_openflow::{Body, text};
use weir_packet::craft::FrameBuilder;
use weir_packet::{Field, Frame, PacketType, Tunnel};

fn udp() -> Vec<u8> {
    let craft = FrameBuilder::ethernet(mac(2), mac(1));
    craft.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1000, 2000).payload(&[1; 18]).build()
}

/// Returns an Ethernet frame with a service header around [`udp`].
fn service(path: u32, context: [u32; 4], ttl: u8) -> Vec<u8> {
    let mut frame =
        FrameBuilder::ethernet(mac(9), mac(0)).nsh(path, context, PacketType::ETHERNET).payload(&udp()).build();
    frame[..12].copy_from_slice(&[0; 12]);
    frame[14] = ttl >> 2;
    frame[15] = ttl << 6 | 6;
    frame
}

fn actions(text: &str) -> Vec<Action> {
    text::parse_actions(text).unwrap()
}

fn matching(text: &str) -> Match {
    text::parse_match(text).unwrap()
}

/// Receives a frame as a tunnel delivers it. Returns the frames that leave.
fn receive(bench: &mut Bench, frame: &[u8], kind: PacketType, tunnel: Tunnel) -> Vec<(PortNo, Frame)> {
    let mut frame = Frame::from_bytes(frame);
    frame.set_packet_type(kind);
    frame.tunnel = tunnel;
    bench.datapath.process(bench.now, PortNo(1), &mut vec![frame], &mut bench.pool, &mut bench.out);
    let frames = bench.out.frames.iter_mut();
    frames.flat_map(|(port, frames)| frames.drain(..).map(|frame| (*port, frame)).collect::<Vec<_>>()).collect()
}

const IPV4: PacketType = PacketType::of_eth_type(0x0800);

#[test]
fn a_classifier_and_a_forwarder() {
    let mut bench = Bench::new();
    let classify =
        "encap(nsh(md_type=1)),set_field:7->nsh_spi,set_field:3->nsh_si,set_field:5->nsh_c2,encap(ethernet),output:2";
    bench.add(1, matching("in_port=1"), actions(classify));
    bench.add(1, matching("in_port=3,dl_type=0x894f,nsh_spi=7,nsh_si=3,nsh_c2=5"), actions("decap(),decap(),output:4"));
    bench.add(1, matching("in_port=4,dl_type=0x894f"), actions("dec_nsh_ttl,set_field:2->nsh_si,output:2"));
    let onward = service(0x703, [0, 5, 0, 0], 63);
    assert_eq!(bench.receive(1, &udp()), [(PortNo(2), onward.clone())]);
    assert_eq!(bench.receive(3, &onward), [(PortNo(4), udp())]);
    assert_eq!(bench.receive(4, &onward), [(PortNo(2), service(0x702, [0, 5, 0, 0], 62))]);
    assert!(bench.receive(3, &service(0x704, [0, 5, 0, 0], 63)).is_empty(), "another index");
}

#[test]
fn a_used_up_service_ttl_goes_to_the_controller_or_is_dropped() {
    for ttl in [0, 1] {
        let mut bench = Bench::controlled();
        bench.add(1, matching("dl_type=0x894f"), actions("dec_nsh_ttl,output:2"));
        let [Body::GetAsyncReply(config)] = &bench.ask(CONTROLLER, Body::GetAsyncRequest)[..] else { panic!() };
        let config = AsyncConfig { packet_in: [Some(0b100), Some(0)], ..config.clone() };
        assert_eq!(bench.ask(CONTROLLER, Body::SetAsync(config)), []);
        let frame = service(5, [0; 4], ttl);
        assert!(bench.receive(1, &frame).is_empty());
        assert_eq!(
            bench.packet_ins(CONTROLLER).iter().map(|packet| packet.reason).collect::<Vec<_>>(),
            [PacketInReason::InvalidTtl]
        );
        let mut alone = Bench::new();
        alone.add(1, matching("dl_type=0x894f"), actions("dec_nsh_ttl,output:2"));
        assert!(alone.receive(1, &frame).is_empty());
        assert_eq!(alone.datapath.drops().ttl_expired, 1);
    }
}

#[test]
fn packets_without_ethernet_are_told_apart_and_go_only_where_they_can() {
    let mut bench = Bench::new();
    bench.datapath.take_any_packet_type(PortNo(3), true);
    bench.add(9, matching("packet_type=(1,0x800),nw_dst=10.0.0.2"), actions("output:2,output:3"));
    bench.add(8, matching("ip"), actions("output:4"));
    bench.add(8, matching("dl_dst=00:00:00:00:00:00/01:00:00:00:00:00"), actions("output:4"));
    let left = receive(&mut bench, &udp()[14..], IPV4, Tunnel::NONE);
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].0, left[0].1.packet_type(), left[0].1.bytes()), (PortNo(3), IPV4, &udp()[14..]));
    assert_eq!(bench.datapath.drops().not_ethernet, 1);
    assert_eq!(bench.ports_of(1, &udp()), [4], "the same packet with its Ethernet header");
    let other = receive(&mut bench, &udp()[14..], PacketType::of_eth_type(0x88b5), Tunnel::NONE);
    assert!(other.is_empty(), "no entry for Ethernet packets takes it");
    assert_eq!(bench.datapath.drops().table_miss, 1);
}

#[test]
fn a_match_without_a_packet_type_is_about_ethernet_packets() {
    let mut bench = Bench::new();
    bench.datapath.take_any_packet_type(PortNo(4), true);
    bench.add(9, matching("in_port=1"), actions("output:2"));
    bench.add(0, Match::any(), actions("output:3"));
    assert!(receive(&mut bench, &udp()[14..], IPV4, Tunnel::NONE).is_empty(), "both entries are for Ethernet");
    assert_eq!((bench.datapath.drops().table_miss, bench.ports_of(1, &udp())), (1, vec![2]));
    bench.add(0, matching("packet_type=(1,0x800)"), actions("output:4"));
    let left = receive(&mut bench, &udp()[14..], IPV4, Tunnel::NONE);
    assert_eq!(left.iter().map(|(port, _)| port.0).collect::<Vec<_>>(), [4], "whatever the priorities of others");
}

/// Returns the cookies of the entries that a statistics request selects, ascending.
fn cookies(bench: &mut Bench, text: &str) -> Vec<u64> {
    let request = FlowRequest { matching: matching(text), ..FlowRequest::all() };
    let parts = bench.multipart(CONTROLLER, RequestBody::Flow(request)).unwrap();
    let flows = parts.into_iter().flat_map(|part| if let ReplyBody::Flow(flows) = part { flows } else { panic!() });
    let mut cookies: Vec<u64> = flows.map(|flow| flow.cookie).collect();
    cookies.sort_unstable();
    cookies
}

#[test]
fn the_packet_type_ethernet_may_be_named_or_not() {
    let mut bench = Bench::controlled();
    let add = |bench: &mut Bench, cookie, text| {
        bench.flow_mod(&FlowMod { cookie, ..FlowMod::add(7, matching(text), apply(actions("output:2"))) }).unwrap();
    };
    add(&mut bench, 1, "in_port=1");
    add(&mut bench, 2, "in_port=1,packet_type=(1,0x800)");
    add(&mut bench, 3, "in_port=1,packet_type=(0,0)");
    assert_eq!(cookies(&mut bench, ""), [2, 3], "the third replaces the first");
    assert_eq!(cookies(&mut bench, "packet_type=(0,0)"), [3]);
    add(&mut bench, 4, "in_port=1");
    assert_eq!(cookies(&mut bench, "packet_type=(0,0)"), [4], "its match does not name the type");
    assert_eq!(cookies(&mut bench, "packet_type=(1,0x800)"), [2]);
    assert!(cookies(&mut bench, "packet_type=(1,0x86dd)").is_empty());
    let flow = FlowMod::add(7, matching("in_port=1,packet_type=(0,0)"), vec![]);
    bench.flow_mod(&FlowMod { command: FlowCommand::DeleteStrict, ..flow }).unwrap();
    assert_eq!(cookies(&mut bench, ""), [2]);
    add(&mut bench, 5, "ip");
    let flow = FlowMod::add(7, matching("packet_type=(0,0)"), vec![]);
    bench.flow_mod(&FlowMod { command: FlowCommand::Delete, ..flow }).unwrap();
    assert_eq!(cookies(&mut bench, ""), [2], "of all Ethernet entries, whatever else they match");
    let overlap = FlowMod { flags: FlowFlags::CHECK_OVERLAP, ..FlowMod::add(7, Match::any(), vec![]) };
    assert_eq!(bench.flow_mod(&overlap), Ok(()), "no packet has both types");
    bench.flow_mod(&FlowMod { command: FlowCommand::Delete, ..FlowMod::add(7, Match::any(), vec![]) }).unwrap();
    assert!(cookies(&mut bench, "").is_empty(), "a delete without a type is about all types");
}

#[test]
fn headers_of_packets_of_another_type_cannot_be_taken_off() {
    let mut bench = Bench::new();
    bench.add(1, matching("in_port=1"), actions("decap(packet_type(ns=1,type=0x86dd)),output:2"));
    bench.add(1, matching("in_port=2"), actions("encap(ethernet),output:1"));
    bench.add(1, matching("in_port=3"), actions("decap(),decap(),output:1"));
    for port in 1..4 {
        assert!(bench.receive(port, &udp()).is_empty());
    }
    assert_eq!(bench.datapath.drops().packet_type, 3);
}

#[test]
fn bare_ip_gets_an_ethernet_header_back() {
    let mut bench = Bench::new();
    let text =
        "encap(ethernet),set_field:02:00:00:00:00:01->eth_src,set_field:02:00:00:00:00:02->eth_dst,dec_ttl,output:2";
    bench.add(1, matching("packet_type=(1,0x800)"), actions(text));
    let left = receive(&mut bench, &udp()[14..], IPV4, Tunnel::NONE);
    assert_eq!((left[0].0, left[0].1.bytes()[22], left[0].1.packet_type()), (PortNo(2), 63, PacketType::ETHERNET));
    assert_eq!(left[0].1.bytes()[..12], udp()[..12]);
    assert_eq!(weir_packet::checksum::verify(left[0].1.bytes()), Ok(()));
}

#[test]
fn the_action_set_takes_off_before_it_puts_in_front() {
    let mut bench = Bench::new();
    let written = actions("output:2,encap(nsh(md_type=2)),decap()");
    bench.datapath.take_any_packet_type(PortNo(2), true);
    bench.flow_mod(&FlowMod::add(1, matching("ip"), vec![Instruction::WriteActions(written)])).unwrap();
    let left = receive(&mut bench, &udp(), PacketType::ETHERNET, Tunnel::NONE);
    assert_eq!(left[0].1.bytes()[..8], [0x0f, 0xc2, 2, 1, 0, 0, 0, 255], "IPv4 behind the service header");
    assert_eq!(left[0].1.bytes()[8..], udp()[14..]);
}

#[test]
fn tunnels_are_matched_and_set() {
    let mut bench = Bench::controlled();
    let came = Tunnel { id: 5, src: 0x0102_0304, dst: 0x0506_0708 };
    bench.add(
        1,
        matching("tun_id=5,tun_src=1.2.3.4,tun_dst=5.6.7.8"),
        actions("output:2,set_field:9->tun_id,set_field:9.9.9.9->tun_dst,output:3,controller"),
    );
    let left = receive(&mut bench, &udp(), PacketType::ETHERNET, came);
    let tunnels: Vec<(u32, Tunnel)> = left.iter().map(|(port, frame)| (port.0, frame.tunnel)).collect();
    assert_eq!(tunnels, [(2, came), (3, Tunnel { id: 9, dst: 0x0909_0909, ..came })]);
    let packet_in = &bench.packet_ins(CONTROLLER)[0];
    let told = [Field::TunnelId, Field::TunSrc, Field::TunDst]
        .map(|field| packet_in.matching.get(field).map(|(value, _)| value));
    assert_eq!(told, [Some(9), Some(0x0102_0304), Some(0x0909_0909)]);
    assert!(receive(&mut bench, &udp(), PacketType::ETHERNET, Tunnel { id: 6, ..came }).is_empty());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut bench = Bench::new();
    let mut add = |matching: Match, actions: Vec<Action>| bench.flow_mod(&FlowMod::add(1, matching, apply(actions)));
    let inconsistent = Err(BadAction::MatchInconsistent.into());
    assert_eq!(add(Match::any(), actions("set_field:7->nsh_spi,output:1")), inconsistent);
    assert_eq!(add(Match::any(), actions("dec_nsh_ttl")), inconsistent);
    assert_eq!(add(matching("packet_type=(1,0x800)"), actions("set_field:02:00:00:00:00:01->eth_dst")), inconsistent);
    assert_eq!(add(matching("packet_type=(1,0x800)"), actions("decap()")), inconsistent);
    assert_eq!(add(matching("ip"), actions("decap(),set_field:02:00:00:00:00:01->eth_dst")), inconsistent);
    assert_eq!(add(matching("ip"), actions("encap(nsh),set_field:1.1.1.1->ip_dst")), inconsistent);
    assert_eq!(add(Match::any(), actions("encap(nsh),set_field:7->nsh_spi,set_field:3->nsh_flags,output:1")), Ok(()));
    assert_eq!(add(matching("ip"), actions("decap(),dec_ttl,encap(ethernet),dec_ttl")), Ok(()));
    let service = || matching("dl_type=0x894f");
    assert_eq!(add(service(), actions("set_field:64->nsh_ttl")), Err(BadAction::BadSetArgument.into()));
    assert_eq!(add(service(), actions("set_field:4->nsh_flags")), Err(BadAction::BadSetArgument.into()));
    assert_eq!(add(service(), actions("set_field:1->nsh_np")), Err(BadAction::BadSetType.into()));
    let header = NshHeader { md_type: Some(3), tlvs: vec![] };
    assert_eq!(add(Match::any(), vec![Action::Encap(EncapHeader::Nsh(header))]), Err(BadAction::BadArgument.into()));
    let both = Match::any().with(Field::PacketType, 0x1_0800_u32).with(Field::EthType, 0x0800_u32);
    assert_eq!(add(both, actions("output:1")), Err(BadMatch::BadPrereq.into()));
}

#[test]
fn packet_outs_say_what_their_packet_begins_with() {
    let mut bench = Bench::controlled();
    bench.datapath.take_any_packet_type(PortNo(2), true);
    let message = weir_openflow::model::PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        matching: Match::any().with(Field::PacketType, IPV4.to_bits()).with(Field::TunnelId, 6_u32),
        actions: actions("output:2,controller"),
        data: udp()[14..].to_vec().into(),
    };
    let [Body::PacketIn(back)] = &bench.ask(CONTROLLER, Body::PacketOut(message))[..] else { panic!() };
    assert_eq!(back.matching.get(Field::PacketType).map(|(value, _)| value), Some(IPV4.to_bits().into()), "back again");
    let (port, frames) = bench.out.frames.iter().find(|(_, frames)| !frames.is_empty()).unwrap();
    assert_eq!((*port, frames[0].packet_type(), frames[0].tunnel.id), (PortNo(2), IPV4, 6));
}
