//! Tests of access lists: what switches and the application decide about packets.
use super::*;
use crate::app::REWRITE_TABLE;
use crate::apps::test_bed::{FakeNetwork, mac, port};
use std::net::{IpAddr, Ipv4Addr};
use weir_openflow::model::multipart::FlowStats;
use weir_openflow::model::{FlowFlags, Instruction};
use weir_packet::MacAddr;
use weir_packet::craft::{FrameBuilder, TcpHeader};

const RULES: &str = r#"
[[rule]]
name = "admins"
action = "permit"
source = "10.0.0.7"
protocol = "tcp"

[[rule]]
name = "no-ssh"
action = "deny"
protocol = "tcp"
destination = "10.0.1.0/24"
destination-port = "22-23"

[[rule]]
name = "locked-port"
action = "deny"
at = ["2:3"]
"#;

#[derive(serde::Deserialize)]
struct Rules {
    rule: Vec<AccessRule>,
}

fn list() -> AccessList {
    AccessList::new(toml::from_str::<Rules>(RULES).unwrap().rule).unwrap()
}

fn tcp(from: [u8; 4], to: [u8; 4], port: u16) -> Vec<u8> {
    let header = TcpHeader { source: 40_000, destination: port, ..TcpHeader::default() };
    FrameBuilder::ethernet(mac(2), mac(1)).ipv4(from.into(), to.into()).tcp(header).build()
}

#[test]
fn the_first_rule_that_applies_decides_in_switches_and_at_the_controller() {
    let (mut list, mut network) = (list(), FakeNetwork::of(2));
    network.bring_up(&mut list);
    let goto = Some(vec![Instruction::GotoTable(TableId(REWRITE_TABLE))]);
    let cases = [
        (port(1, 1), tcp([10, 0, 0, 1], [10, 0, 1, 5], 22), Some(vec![])),
        (port(1, 1), tcp([10, 0, 0, 1], [10, 0, 1, 5], 23), Some(vec![])),
        (port(1, 1), tcp([10, 0, 0, 1], [10, 0, 1, 5], 24), None),
        (port(1, 1), tcp([10, 0, 0, 1], [10, 0, 2, 5], 22), None),
        (port(1, 1), tcp([10, 0, 0, 7], [10, 0, 1, 5], 22), goto.clone()),
        (port(2, 3), tcp([10, 0, 0, 7], [10, 0, 1, 5], 80), goto),
        (port(2, 3), tcp([10, 0, 0, 1], [10, 0, 1, 5], 80), Some(vec![])),
        (port(1, 3), tcp([10, 0, 0, 1], [10, 0, 1, 5], 80), None),
    ];
    for (at, packet, expected) in cases {
        let found = network.lookup(at, ACCESS_TABLE, &packet);
        let taken = if expected == Some(vec![]) { PacketDecision::Taken } else { PacketDecision::PassedOn };
        assert_eq!(found, expected, "{at}");
        assert_eq!(network.packet(at, &packet, &mut list), taken, "{at}");
    }
    let counts: Vec<u64> = list.rule_counts().iter().map(|rule| rule.packets).collect();
    assert_eq!(counts, [2, 2, 1]);
    assert_eq!(
        list.counters()[..4],
        [("entries_set", 5), ("denied", 3), ("judged_at_controller", 8), ("denied_at_controller", 3)]
    );
}

#[test]
fn what_the_network_needs_is_never_denied() {
    let (mut list, mut network) = (list(), FakeNetwork::of(2));
    let builder = || FrameBuilder::ethernet(MacAddr::BROADCAST, mac(1));
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let (v6, node) = ("fe80::1".parse().unwrap(), "ff02::1".parse().unwrap());
    let packets = [
        builder().arp(1, (mac(1), a), (MacAddr::default(), b)).build(),
        builder().ipv4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST).udp(68, 67).build(),
        builder().ipv6(v6, node).icmp(135, 0, [0; 4]).payload(&[0; 16]).build(),
        builder().ether_type(eth_type::LLDP).payload(&[0; 20]).build(),
    ];
    for packet in packets {
        assert_eq!(network.packet(port(2, 3), &packet, &mut list), PacketDecision::PassedOn, "{packet:02x?}");
    }
    let echo = builder().ipv6(v6, node).icmp(128, 0, [0; 4]).build();
    assert_eq!(network.packet(port(2, 3), &echo, &mut list), PacketDecision::Taken);
    assert_eq!(network.packet(port(2, 3), &[1, 2, 3], &mut list), PacketDecision::PassedOn, "no Ethernet header");
}

fn stats_of(network: &FakeNetwork, dpid: u64, priority: u16, packets: u64) -> ReplyBody {
    let entry = network.entries[&dpid].iter().find(|entry| entry.key.priority == priority).unwrap();
    ReplyBody::Flow(vec![FlowStats {
        table: TableId(ACCESS_TABLE),
        duration_sec: 1,
        duration_nsec: 0,
        priority,
        idle_timeout: 0,
        hard_timeout: 0,
        flags: FlowFlags::default(),
        importance: 0,
        cookie: 0,
        packet_count: packets,
        byte_count: 0,
        more: Default::default(),
        matching: entry.key.matching.clone(),
        instructions: Vec::new(),
    }])
}

#[test]
fn denied_packets_are_counted_by_rule_and_told() {
    let (mut list, mut network) = (list(), FakeNetwork::of(2));
    network.bring_up(&mut list);
    network.pass(COUNT_INTERVAL, &mut list);
    let asked: Vec<u64> = network.asked.iter().map(|(dpid, _)| *dpid).collect();
    assert_eq!(asked, [1, 2], "each switch is asked once in an interval");
    let no_ssh = TOP_PRIORITY - 1;
    for (dpid, packets) in [(1, 5), (2, 7), (1, 6), (1, 2), (2, u64::MAX)] {
        let stats = stats_of(&network, dpid, no_ssh, packets);
        list.handle_reply(dpid, &stats, &mut network);
    }
    // Switch 1 counted 6, then 2 of an entry that was added anew.
    assert_eq!(list.rule_counts()[1].packets, 6 + 2 + 7);
    network.pass(COUNT_INTERVAL, &mut list);
    let text = "rule no-ssh of the access list denied 15 packets, 15 in all".to_owned();
    assert_eq!(network.reports, [("access-denied", text, false)]);
    network.pass(COUNT_INTERVAL, &mut list);
    assert_eq!(network.reports.len(), 1, "nothing new is told");
}

#[test]
fn address_families_and_prefixes_become_matches() {
    let rule: AccessRule =
        toml::from_str("action = \"deny\"\ndestination = \"fd00::1/64\"\nprotocol = \"udp\"").unwrap();
    let (mut list, mut network) = (AccessList::new(vec![rule]).unwrap(), FakeNetwork::of(1));
    network.bring_up(&mut list);
    let to = |ip: &str| match ip.parse().unwrap() {
        IpAddr::V6(ip) => FrameBuilder::ethernet(mac(2), mac(1)).ipv6("fd01::9".parse().unwrap(), ip).udp(1, 2).build(),
        IpAddr::V4(ip) => FrameBuilder::ethernet(mac(2), mac(1)).ipv4([10, 0, 0, 1].into(), ip).udp(1, 2).build(),
    };
    assert_eq!(network.lookup(port(1, 1), ACCESS_TABLE, &to("fd00::abcd")), Some(vec![]));
    assert_eq!(network.lookup(port(1, 1), ACCESS_TABLE, &to("fd00:0:0:1::1")), None);
    assert_eq!(network.lookup(port(1, 1), ACCESS_TABLE, &to("10.0.0.2")), None);
}
