//! Forwarding of packets: entries, reserved ports, learning by NORMAL, fail modes, drops.
use crate::bench::*;
use std::net::Ipv4Addr;
use std::time::Duration;
use weir_datapath::FailMode;
use weir_openflow::Version;
use weir_openflow::model::action::NO_BUFFER;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::{Action, Body, Match, PacketInReason, PacketOut, PortNo, TableId};
use weir_packet::craft::FrameBuilder;
use weir_packet::{Field, MacAddr};

fn udp(source: u64, destination: u64) -> Vec<u8> {
    let craft = FrameBuilder::ethernet(mac(destination), mac(source));
    craft.ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)).udp(1000, 2000).payload(&[1; 18]).build()
}

#[test]
fn the_highest_priority_wins() {
    let mut bench = Bench::new();
    bench.add(1, Match::any(), output(2));
    bench.add(5, from_port(1), output(3));
    assert_eq!(bench.receive(1, &udp(1, 2)), [(PortNo(3), udp(1, 2))]);
    assert_eq!(bench.ports_of(4, &udp(1, 2)), [2]);
    assert_eq!(bench.datapath.drops().total(), 0);
}

#[test]
fn reserved_ports() {
    let mut bench = Bench::new();
    let cases: [(PortNo, &[u32]); 5] = [
        (PortNo::ALL, &[2, 3, 4]),
        (PortNo::FLOOD, &[2, 3, 4]),
        (PortNo::IN_PORT, &[1]),
        (PortNo(1), &[]),
        (PortNo(9), &[]),
    ];
    for (port, expected) in cases {
        bench.add(1, Match::any(), vec![Action::output(port)]);
        assert_eq!(bench.ports_of(1, &udp(1, 2)), expected, "{port}");
    }
    let drops = bench.datapath.drops();
    assert_eq!((drops.in_port_only, drops.unknown_port, drops.total()), (1, 1, 2));
}

#[test]
fn each_output_sends_the_packet_as_it_is_then() {
    let mut bench = Bench::new();
    let set = |number| Action::set_mac(Field::EthDst, mac(number));
    let actions = vec![Action::output(PortNo(2)), set(7), Action::output(PortNo(3)), Action::output(PortNo(4)), set(8)];
    bench.add(1, Match::any(), actions);
    assert_eq!(bench.receive(1, &udp(1, 2)), [(PortNo(2), udp(1, 2)), (PortNo(3), udp(1, 7)), (PortNo(4), udp(1, 7))]);
}

#[test]
fn normal_learns_and_forgets() {
    let mut bench = Bench::new();
    bench.add(1, Match::any(), vec![Action::output(PortNo::NORMAL)]);
    assert_eq!(bench.ports_of(1, &udp(1, 2)), [2, 3, 4], "unknown: flooded");
    assert_eq!(bench.ports_of(2, &udp(2, 1)), [1], "learned");
    assert_eq!(bench.ports_of(1, &udp(1, 2)), [2]);
    assert_eq!(bench.ports_of(2, &udp(3, 2)), [0_u32; 0], "not back to its port");
    bench.wait(Duration::from_secs(301));
    assert_eq!(bench.ports_of(1, &udp(1, 2)), [2, 3, 4], "forgotten");
    let stp = FrameBuilder::ethernet("01:80:c2:00:00:00".parse().unwrap(), mac(1)).payload(&[0; 46]).build();
    assert_eq!(bench.ports_of(1, &stp), [0_u32; 0]);
    assert_eq!(bench.datapath.drops().reserved, 1);
}

#[test]
fn fail_modes() {
    let mut bench = Bench::new();
    bench.datapath.set_fail_mode(FailMode::Standalone);
    assert_eq!(bench.ports_of(1, &udp(1, 2)), [2, 3, 4]);
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V13);
    assert_eq!(bench.ports_of(1, &udp(1, 2)), [0_u32; 0]);
    assert_eq!(bench.datapath.drops().table_miss, 1);
    bench.datapath.channel_down(bench.now, CONTROLLER);
    assert_eq!(bench.ports_of(2, &udp(2, 1)), [1]);
    bench.datapath.set_fail_mode(FailMode::Secure);
    bench.add(0, Match::any(), vec![Action::to_controller()]);
    assert_eq!(bench.ports_of(2, &udp(2, 1)), [0_u32; 0]);
    assert_eq!(bench.datapath.drops().no_controller, 1);
}

#[test]
fn misses_go_to_controllers_of_v10_only() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    let frame = FrameBuilder::ethernet(MacAddr::BROADCAST, mac(1)).payload(&[7; 200]).build();
    bench.receive(1, &frame);
    assert_eq!(bench.packet_ins(CONTROLLER), []);
    let [packet] = bench.packet_ins(OLD_CONTROLLER).try_into().unwrap();
    assert_eq!((packet.reason, packet.in_port(), packet.total_len), (PacketInReason::NoMatch, Some(PortNo(1)), 214));
    assert_eq!(packet.data.0, frame[..128]);
    assert!(packet.buffer_id.is_some());
}

#[test]
fn a_table_miss_entry_says_no_match() {
    let mut bench = Bench::controlled();
    bench.add(0, Match::any(), vec![Action::Output { port: PortNo::CONTROLLER, max_len: NO_BUFFER }]);
    bench.receive(3, &udp(1, 2));
    let [packet] = bench.packet_ins(CONTROLLER).try_into().unwrap();
    assert_eq!((packet.reason, packet.table, packet.buffer_id), (PacketInReason::NoMatch, TableId(0), None));
    assert_eq!((packet.in_port(), packet.data.0), (Some(PortNo(3)), udp(1, 2)));
}

/// Version 1.0 has no table-miss entries: an entry that matches everything is an ordinary entry (OpenFlow 1.0.0,
/// 5.4.1).
#[test]
fn v10_is_told_action_for_an_entry_that_matches_all() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    bench.add(0, Match::any(), vec![Action::Output { port: PortNo::CONTROLLER, max_len: NO_BUFFER }]);
    bench.receive(3, &udp(1, 2));
    let reasons = |bench: &mut Bench, channel| bench.packet_ins(channel).iter().map(|p| p.reason).collect::<Vec<_>>();
    assert_eq!(reasons(&mut bench, OLD_CONTROLLER), [PacketInReason::Action]);
    assert_eq!(reasons(&mut bench, CONTROLLER), [PacketInReason::NoMatch]);
}

/// In 1.0 the port matters only for packets that go through the tables (OpenFlow 1.0.0, 5.3.6). In 1.3 every
/// packet-out needs one.
#[test]
fn v10_packet_outs_need_no_port() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    let packet = |port| {
        let actions = vec![Action::output(port)];
        let data = udp(1, 2).into();
        Body::PacketOut(PacketOut { buffer_id: None, in_port: PortNo(0), matching: Match::any(), actions, data })
    };
    assert_eq!(bench.error_of(OLD_CONTROLLER, packet(PortNo(2))), None);
    assert_eq!(bench.sent(), [(PortNo(2), udp(1, 2))]);
    let refused = Some(BadRequest::BadPort.into());
    assert_eq!(bench.error_of(OLD_CONTROLLER, packet(PortNo::TABLE)), refused);
    assert_eq!(bench.error_of(CONTROLLER, packet(PortNo(2))), refused);
}

#[test]
fn short_frames_are_counted() {
    let mut bench = Bench::new();
    bench.add(0, Match::any(), output(2));
    assert_eq!(bench.ports_of(1, &[1; 13]), [0_u32; 0]);
    assert_eq!(bench.ports_of(7, &udp(1, 2)), [0_u32; 0]);
    let drops = bench.datapath.drops();
    assert_eq!((drops.too_short, drops.unknown_port, drops.total()), (1, 1, 2));
}
