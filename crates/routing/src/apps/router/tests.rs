//! Tests of the router with packets of hosts.
use super::*;
use crate::app::{FORWARDING_TABLE, REWRITE_TABLE};
use crate::apps::test_bed::{FakeNetwork, mac, port};
use std::net::Ipv6Addr;
use weir_openflow::model::{Action, Instruction, TableId};
use weir_packet::checksum;

const A: SwitchPort = port(1, 1);
const B: SwitchPort = port(2, 1);
const GATEWAY: [u8; 4] = [10, 0, 1, 1];
const HOST_A: [u8; 4] = [10, 0, 1, 7];
const HOST_B: [u8; 4] = [10, 0, 2, 9];

struct Bed {
    router: Router,
    network: FakeNetwork,
}

fn v4(ip: [u8; 4]) -> IpAddr {
    IpAddr::V4(ip.into())
}

impl Bed {
    fn new() -> Bed {
        let config = "gateways = [\"10.0.1.1/24\", \"10.0.2.1/24\", \"fd00:1::1/64\", \"fd00:2::1/64\"]";
        let router = Router::new(toml::from_str(config).unwrap()).unwrap();
        let mut bed = Bed { router, network: FakeNetwork::of(2) };
        bed.network.bring_up(&mut bed.router);
        bed
    }

    fn mac(&self) -> MacAddr {
        self.router.config.mac
    }

    fn frame(&self) -> FrameBuilder {
        FrameBuilder::ethernet(self.mac(), mac(1))
    }

    fn host(&mut self, number: u8, at: SwitchPort, ips: &[IpAddr]) {
        self.network.host(mac(number), at, ips, &mut self.router);
    }

    fn give(&mut self, at: SwitchPort, frame: &[u8]) -> PacketDecision {
        self.network.packet(at, frame, &mut self.router)
    }

    fn counter(&self, name: &str) -> u64 {
        self.router.counters().iter().find(|(found, _)| *found == name).unwrap().1
    }

    /// Returns the only packet that was sent, which must have the right checksums.
    fn sent(&mut self) -> Vec<u8> {
        let [(_, frame)] = &std::mem::take(&mut self.network.sent)[..] else { panic!("not one packet") };
        assert_eq!(checksum::verify(frame), Ok(()));
        frame.clone()
    }
}

#[test]
fn arp_solicitations_and_echo_requests_are_answered() {
    let mut bed = Bed::new();
    let (asking, own) = ((mac(1), HOST_A.into()), (bed.mac(), GATEWAY.into()));
    let request = |ip: [u8; 4]| {
        FrameBuilder::ethernet(MacAddr::BROADCAST, mac(1)).arp(1, asking, (MacAddr::default(), ip.into())).build()
    };
    assert_eq!(bed.give(A, &request([10, 0, 1, 2])), PacketDecision::PassedOn);
    assert_eq!(bed.give(A, &request(GATEWAY)), PacketDecision::Taken);
    assert_eq!(bed.sent(), FrameBuilder::ethernet(mac(1), own.0).arp(2, own, asking).build());
    // Any of the router's addresses answers, also that of another subnet.
    let ping = bed.frame().ipv4(HOST_A.into(), [10, 0, 2, 1].into()).ttl(1).icmp(8, 0, [1, 2, 3, 4]).payload(b"hello");
    assert_eq!(bed.give(A, &ping.build()), PacketDecision::Taken);
    let reply = FrameBuilder::ethernet(mac(1), own.0).ipv4([10, 0, 2, 1].into(), HOST_A.into());
    assert_eq!(bed.sent(), reply.icmp(0, 0, [1, 2, 3, 4]).payload(b"hello").build());

    let (host, gateway): (Ipv6Addr, Ipv6Addr) = ("fd00:1::7".parse().unwrap(), "fd00:1::1".parse().unwrap());
    let target = [&gateway.octets()[..], &[1, 1], &mac(1).0].concat();
    let group = "ff02::1:ff00:1".parse().unwrap();
    let solicit = FrameBuilder::ethernet(MacAddr([0x33, 0x33, 0xff, 0, 0, 1]), mac(1)).ipv6(host, group);
    let solicit = solicit.icmp(135, 0, [0; 4]).payload(&target);
    assert_eq!(bed.give(A, &solicit.clone().build()), PacketDecision::PassedOn, "hop limit 64: from another network");
    assert_eq!(bed.give(A, &solicit.ttl(255).build()), PacketDecision::Taken);
    let options = [&gateway.octets()[..], &[2, 1], &own.0.0].concat();
    let expected = FrameBuilder::ethernet(mac(1), own.0).ipv6(gateway, host).ttl(255);
    assert_eq!(bed.sent(), expected.icmp(136, 0, [0xe0, 0, 0, 0]).payload(&options).build());
    let ping = bed.frame().ipv6(host, gateway).icmp(128, 0, [0, 1, 0, 2]).payload(&[7; 100]);
    bed.give(A, &ping.build());
    let reply = FrameBuilder::ethernet(mac(1), own.0).ipv6(gateway, host).icmp(129, 0, [0, 1, 0, 2]);
    assert_eq!(bed.sent(), reply.payload(&[7; 100]).build());
}

#[test]
fn switches_route_packets_to_known_hosts_themselves() {
    let mut bed = Bed::new();
    bed.host(9, B, &[v4(HOST_B), "fd00:2::9".parse().unwrap(), v4([192, 168, 0, 1])]);
    assert_eq!(bed.counter("hosts"), 2, "192.168.0.1 is in no subnet");
    let actions =
        vec![Action::DecNwTtl, Action::set_mac(Field::EthSrc, bed.mac()), Action::set_mac(Field::EthDst, mac(9))];
    let routed = vec![Instruction::ApplyActions(actions), Instruction::GotoTable(TableId(FORWARDING_TABLE))];
    let to = |ip: [u8; 4]| bed.frame().ipv4(HOST_A.into(), ip.into()).udp(1, 2).build();
    let asked = vec![Instruction::ApplyActions(vec![Action::to_controller()])];
    for at in [A, B] {
        assert_eq!(bed.network.lookup(at, REWRITE_TABLE, &to(HOST_B)), Some(routed.clone()));
        assert_eq!(bed.network.lookup(at, REWRITE_TABLE, &to([10, 0, 2, 10])), Some(asked.clone()));
    }
    let v6 = bed.frame().ipv6("fd00:1::7".parse().unwrap(), "fd00:2::9".parse().unwrap()).udp(1, 2).build();
    assert_eq!(bed.network.lookup(A, REWRITE_TABLE, &v6), Some(routed.clone()));
    let straight = FrameBuilder::ethernet(mac(9), mac(1)).ipv4(HOST_A.into(), HOST_B.into()).udp(1, 2).build();
    assert_eq!(bed.network.lookup(A, REWRITE_TABLE, &straight), None, "not to the router");
    // Another address, then none; a switch that comes up later has what the others have.
    let frame = to([10, 0, 2, 10]);
    bed.host(9, B, &[v4([10, 0, 2, 10])]);
    bed.network.entries.remove(&2);
    bed.router.handle_event(&NetworkEvent::SwitchUp { dpid: 2 }, &mut bed.network);
    assert_eq!(bed.network.lookup(B, REWRITE_TABLE, &frame), Some(routed));
    let host = bed.network.map.hosts.remove(&mac(9)).unwrap();
    bed.router.handle_event(&NetworkEvent::HostRemoved { host }, &mut bed.network);
    assert_eq!(bed.network.entries.values().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn packets_wait_for_hosts_that_are_looked_for() {
    let mut bed = Bed::new();
    let packet = bed.frame().ipv4(HOST_A.into(), HOST_B.into()).udp(1, 2).payload(b"data");
    for _ in 0..MAX_WAITING + 2 {
        assert_eq!(bed.give(A, &packet.build()), PacketDecision::Taken);
    }
    let own = (bed.mac(), Ipv4Addr::new(10, 0, 2, 1));
    let question = FrameBuilder::ethernet(MacAddr::BROADCAST, own.0).arp(1, own, (MacAddr::default(), HOST_B.into()));
    assert_eq!((&bed.network.flooded, bed.counter("drop_queue_full")), (&vec![question.build()], 2));
    bed.network.pass(ASK_INTERVAL, &mut bed.router);
    assert_eq!(bed.network.flooded.len(), 2, "asked again");
    bed.host(9, B, &[v4(HOST_B)]);
    let routed = FrameBuilder::ethernet(mac(9), own.0).ipv4(HOST_A.into(), HOST_B.into()).ttl(63).udp(1, 2);
    assert_eq!(bed.network.sent, vec![(B, routed.payload(b"data").build()); MAX_WAITING]);
    assert_eq!(bed.router.next_wake(), None);
    bed.give(A, &packet.build());
    assert_eq!(bed.network.sent.len(), MAX_WAITING + 1, "known, but the switch asked before it had the entry");
}

#[test]
fn senders_are_told_what_was_not_delivered() {
    let mut bed = Bed::new();
    let expected = |bed: &Bed, kind: u8, code: u8, packet: &[u8]| {
        let error = FrameBuilder::ethernet(mac(1), bed.mac()).ipv4(GATEWAY.into(), HOST_A.into());
        error.icmp(kind, code, [0; 4]).payload(&packet[14..]).build()
    };
    let to = |bed: &Bed, ip: [u8; 4]| bed.frame().ipv4(HOST_A.into(), ip.into()).udp(1, 2).payload(&[5; 40]);
    let elsewhere = to(&bed, [192, 0, 2, 1]).build();
    bed.give(A, &elsewhere);
    assert_eq!(bed.sent(), expected(&bed, 3, 0, &elsewhere));
    let expired = to(&bed, HOST_B).ttl(1).build();
    bed.give(A, &expired);
    assert_eq!(bed.sent(), expected(&bed, 11, 0, &expired));
    let silent = to(&bed, HOST_B).build();
    bed.give(A, &silent);
    bed.network.pass(ASK_INTERVAL * MAX_REQUESTS, &mut bed.router);
    assert_eq!((bed.network.flooded.len(), bed.counter("drop_unreachable")), (3, 1));
    assert_eq!(bed.sent(), expected(&bed, 3, 1, &silent));
    // No errors about errors, and not to sources that are no hosts of a subnet.
    let error = bed.frame().ipv4(HOST_A.into(), [192, 0, 2, 1].into()).icmp(3, 1, [0; 4]).build();
    let stranger = bed.frame().ipv4([192, 0, 2, 9].into(), [192, 0, 2, 1].into()).udp(1, 2).build();
    bed.give(A, &error);
    bed.give(A, &stranger);
    assert_eq!((bed.network.sent.len(), bed.counter("drop_no_route")), (0, 3));
    for _ in 0..200 {
        bed.give(A, &elsewhere);
    }
    let sent = u32::try_from(bed.network.sent.len()).unwrap();
    // One error was sent in this second already.
    assert_eq!((sent + 1, bed.counter("icmp_errors_limited")), (ERRORS_PER_SECOND, 101));
}

#[test]
fn errors_over_ipv6_quote_what_fits() {
    let mut bed = Bed::new();
    let (host, elsewhere): (Ipv6Addr, Ipv6Addr) = ("fd00:1::7".parse().unwrap(), "fd00:9::1".parse().unwrap());
    let packet = bed.frame().ipv6(host, elsewhere).udp(1, 2).payload(&[5; 1400]).build();
    bed.give(A, &packet);
    let error = FrameBuilder::ethernet(mac(1), bed.mac()).ipv6("fd00:1::1".parse().unwrap(), host);
    let sent = bed.sent();
    assert_eq!((sent.len() - 14, &sent), (1280, &error.icmp(1, 0, [0; 4]).payload(&packet[14..14 + 1232]).build()));
}

#[test]
fn addresses_of_the_router_and_of_other_hosts_are_not_taken_over() {
    let mut bed = Bed::new();
    bed.host(9, B, &[v4(HOST_B)]);
    bed.host(8, A, &[v4(HOST_B)]);
    assert_eq!((bed.router.hosts.get(v4(HOST_B)), bed.network.reports[0].0), (Some(mac(9)), "address-conflict"));
    let host = bed.network.map.hosts.remove(&mac(9)).unwrap();
    bed.router.handle_event(&NetworkEvent::HostRemoved { host }, &mut bed.network);
    assert_eq!(bed.router.hosts.get(v4(HOST_B)), Some(mac(8)), "the first host is gone");
    let liar = (mac(7), GATEWAY.into());
    let arp = FrameBuilder::ethernet(MacAddr::BROADCAST, mac(7)).arp(2, liar, liar).build();
    assert_eq!(bed.give(A, &arp), PacketDecision::Taken);
    bed.host(7, A, &[v4(GATEWAY)]);
    let claims = bed.network.reports.iter().filter(|(kind, _, alarm)| *kind == "gateway-claimed" && *alarm).count();
    assert_eq!((claims, bed.counter("gateway_claims"), bed.router.hosts.get(v4(GATEWAY))), (1, 2, None));
}

#[test]
fn no_packet_stops_the_router() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bed = Bed::new();
    bed.host(9, B, &[v4(HOST_B)]);
    let v6 = |ip: &str| ip.parse::<Ipv6Addr>().unwrap();
    let good = [
        bed.frame().ipv4(HOST_A.into(), GATEWAY.into()).icmp(8, 0, [0; 4]).payload(&[1; 30]).build(),
        bed.frame().ipv4(HOST_A.into(), HOST_B.into()).udp(1, 2).payload(&[1; 30]).build(),
        bed.frame().ipv6(v6("fd00:1::7"), v6("fd00:1::1")).icmp(128, 0, [0; 4]).payload(&[1; 30]).build(),
        bed.frame().ipv6(v6("fd00:1::7"), v6("fd00:1::1")).ttl(255).icmp(135, 0, [0; 4]).payload(&[1; 24]).build(),
        bed.frame().arp(1, (mac(1), HOST_A.into()), (MacAddr::default(), GATEWAY.into())).build(),
    ];
    for _ in 0..20_000 {
        let mut frame = random.choice(&good).unwrap().clone();
        for _ in 0..random.usize(1..5) {
            let at = random.usize(6..frame.len());
            frame[at] = random.u8(..);
        }
        frame.truncate(random.usize(14..=frame.len()));
        bed.give(A, &frame);
    }
    bed.network.pass(Duration::from_secs(10), &mut bed.router);
    assert_eq!(bed.router.next_wake(), None);
    assert!(bed.counter("echo_replies") > 0 && bed.counter("routed_at_controller") > 0);
}
