//! Tests the shipped applications over real datapaths: addresses by DHCP, routing between subnets, access lists, loads.
use crate::bed::Bed;
use crate::forwarding::{MODES, config};
use std::net::Ipv4Addr;
use std::time::Duration;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::parse::{ParsedHeaders, parse};
use weir_packet::{Field, MacAddr, PortNo, checksum};
use weir_routing::apps::NetworkFile;
use weir_routing::forwarding::ForwardingMode;
use weir_routing::request::{NetworkReply, NetworkRequest};

const MS: Duration = Duration::from_millis(1);
const ROUTER: MacAddr = MacAddr([2, 0, 0, 0, 0xff, 1]);
const GATEWAYS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 1, 1), Ipv4Addr::new(10, 0, 2, 1)];

/// Applications of a network with a subnet at switch 3 and one at the others.
pub(crate) const FILE: &str = r#"
[[access-list]]
name = "no-ssh"
action = "deny"
protocol = "udp"
destination-port = "20-23"

[[access-list]]
action = "permit"
protocol = "udp"
destination-port = 80

[[access-list]]
name = "no-other-udp-from-3"
action = "deny"
protocol = "udp"
at = ["3"]

[router]
mac = "02:00:00:00:ff:01"
gateways = ["10.0.1.1/24", "10.0.2.1/24"]

[dhcp]
address = "10.0.1.1"

[[dhcp.pool]]
subnet = "10.0.1.0/24"
range = "10.0.1.100-10.0.1.199"
router = "10.0.1.1"

[[dhcp.pool]]
subnet = "10.0.2.0/24"
range = "10.0.2.100-10.0.2.199"
router = "10.0.2.1"
at = ["3"]

[monitor]
elephant-rate = "100kbit/s"
"#;

/// Returns a chain of three switches with a host at the first, second and third.
pub(crate) fn chain(mode: ForwardingMode) -> Bed {
    let apps = NetworkFile::parse("network.toml", FILE).unwrap().apps().unwrap();
    let mut bed = Bed::new(3, 1, config(mode), apps);
    bed.link(1, 2);
    bed.link(2, 3);
    (1..=3).for_each(|dpid| _ = bed.host(dpid));
    bed.connect_all();
    bed.run(200 * MS);
    bed
}

/// Message of DHCP of a host, with the address that it asks for.
fn dhcp(mac: MacAddr, kind: u8, requested: Option<Ipv4Addr>) -> Vec<u8> {
    let mut payload = vec![1, 1, 6, 0, 1, 2, 3, 4];
    payload.resize(28, 0);
    payload.extend(mac.0);
    payload.resize(236, 0);
    payload.extend([99, 130, 83, 99, 53, 1, kind, 12, 2, b'h', b'0' + mac.0[5]]);
    if let Some(ip) = requested {
        payload.extend([50, 4]);
        payload.extend(ip.octets());
        payload.extend([54, 4]);
        payload.extend(GATEWAYS[0].octets());
    }
    payload.push(255);
    let frame = FrameBuilder::ethernet(MacAddr::BROADCAST, mac).ipv4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
    frame.udp(68, 67).payload(&payload).build()
}

/// Lets a host send a frame, and returns the frames that all hosts received afterwards, each parsed.
fn exchange(bed: &mut Bed, from: usize, frame: Vec<u8>) -> Vec<(usize, Vec<u8>, ParsedHeaders)> {
    bed.hosts.iter_mut().for_each(|host| host.received.clear());
    bed.send_frame(bed.hosts[from].at, frame);
    bed.run(20 * MS);
    let all = bed.hosts.iter().enumerate();
    let received = all.flat_map(|(at, host)| host.received.iter().map(move |frame| (at, frame)));
    // Probes of links reach hosts, too.
    let is_ip = |frame: &[u8]| frame[12..14] == eth_type::IPV4.to_be_bytes();
    let parsed = received.filter(|(_, frame)| is_ip(frame)).map(|(at, frame)| {
        assert_eq!(checksum::verify(frame), Ok(()));
        (at, frame.clone(), parse(frame, PortNo(1)).unwrap())
    });
    parsed.collect()
}

/// Gives a host an address by DHCP, and the address of its router.
pub(crate) fn join(bed: &mut Bed, host: usize) -> Ipv4Addr {
    let mac = bed.hosts[host].mac;
    let mut address = None;
    for (kind, answer) in [(1, 2), (3, 5)] {
        let received = exchange(bed, host, dhcp(mac, kind, address));
        let [(at, frame, _)] = &received[..] else { panic!("host {host}: {} frames", received.len()) };
        // The kind is the first option, behind 14 + 20 + 8 + 240 bytes.
        assert_eq!((*at, frame[282..285].to_vec()), (host, vec![53, 1, answer]));
        address = Some(Ipv4Addr::new(frame[58], frame[59], frame[60], frame[61]));
    }
    let ip = address.unwrap();
    bed.hosts[host].ip = ip;
    let gateway = if ip.octets()[2] == 1 { GATEWAYS[0] } else { GATEWAYS[1] };
    bed.ask_arp(host, gateway.into());
    bed.run(20 * MS);
    assert_eq!(bed.hosts[host].resolved, [(ROUTER, gateway)]);
    ip
}

/// Returns an echo request from a host to an address through the router.
fn ping(bed: &Bed, from: usize, to: Ipv4Addr) -> FrameBuilder {
    FrameBuilder::ethernet(ROUTER, bed.hosts[from].mac).ipv4(bed.hosts[from].ip, to).icmp(8, 0, [0, 1, 0, 1])
}

fn udp(bed: &Bed, from: usize, to: Ipv4Addr, port: u16) -> Vec<u8> {
    let frame = FrameBuilder::ethernet(ROUTER, bed.hosts[from].mac).ipv4(bed.hosts[from].ip, to);
    frame.udp(4000, port).payload(&[7; 100]).build()
}

#[test]
fn hosts_get_addresses_and_reach_other_subnets_through_the_router() {
    for mode in MODES {
        let mut bed = chain(mode);
        let ips = [0, 1, 2].map(|host| join(&mut bed, host));
        let expected = [[10, 0, 1, 100], [10, 0, 1, 101], [10, 0, 2, 100]].map(Ipv4Addr::from);
        assert_eq!(ips, expected, "{mode:?}");
        let names: Vec<_> = bed.state().hosts.into_iter().map(|host| host.name).collect();
        assert_eq!(names, ["h1", "h2", "h3"].map(|name| Some(name.to_owned())), "{mode:?}");

        for (from, to) in [(0, 2), (2, 0), (1, 2), (2, 1), (0, 2)] {
            let ping = ping(&bed, from, ips[to]).build();
            let received = exchange(&mut bed, from, ping);
            let [(at, frame, parsed)] = &received[..] else {
                panic!("{mode:?} {from} to {to}: {} frames", received.len())
            };
            let macs = [Field::EthSrc, Field::EthDst].map(|field| parsed.key.get(field));
            let expected = [ROUTER, bed.hosts[to].mac].map(|mac| u128::from(mac.to_bits()));
            assert_eq!((*at, macs, frame[22]), (to, expected, 63), "{mode:?}: one less to live");
        }
        assert_eq!(bed.count("routed_at_controller"), 0, "{mode:?}: switches route");
    }
}

#[test]
fn the_router_answers_for_itself_and_for_hosts_that_are_silent() {
    let mut bed = chain(ForwardingMode::Proactive);
    let ips = [0, 2].map(|host| join(&mut bed, host));
    let icmp = |received: &[(usize, Vec<u8>, ParsedHeaders)]| {
        let key = |parsed: &ParsedHeaders, field| u64::try_from(parsed.key.get(field)).unwrap();
        let is_icmp = |parsed: &ParsedHeaders| key(parsed, Field::IpProto) == u64::from(ip_proto::ICMP);
        let types = received.iter().filter(|(_, _, parsed)| is_icmp(parsed));
        types
            .map(|(at, _, parsed)| (*at, [Field::Icmpv4Type, Field::Icmpv4Code].map(|field| key(parsed, field))))
            .collect::<Vec<_>>()
    };
    for gateway in GATEWAYS {
        let frame = ping(&bed, 0, gateway).build();
        assert_eq!(icmp(&exchange(&mut bed, 0, frame)), [(0, [0, 0])], "echo reply");
    }
    let frame = ping(&bed, 0, ips[1]).ttl(1).build();
    assert_eq!(icmp(&exchange(&mut bed, 0, frame)), [(0, [11, 0])], "time exceeded");
    let frame = ping(&bed, 0, Ipv4Addr::new(192, 0, 2, 1)).build();
    assert_eq!(icmp(&exchange(&mut bed, 0, frame)), [(0, [3, 0])], "network unreachable");
    let frame = ping(&bed, 0, Ipv4Addr::new(10, 0, 2, 77)).build();
    assert_eq!(exchange(&mut bed, 0, frame).len(), 0, "the host is looked for");
    bed.run(4000 * MS);
    let errors = bed.hosts[0].received.iter().filter(|frame| frame[34..36] == [3, 1]);
    assert_eq!(errors.count(), 1, "host unreachable");
    // A host that was never heard of is found by ARP, and its packet was kept.
    let silent = bed.host(3);
    bed.hosts[silent].ip = Ipv4Addr::new(10, 0, 2, 77);
    let frame = ping(&bed, 0, Ipv4Addr::new(10, 0, 2, 77)).build();
    let received = exchange(&mut bed, 0, frame);
    assert_eq!((received.len(), received[0].0, bed.count("routed_at_controller")), (1, silent, 1));
}

#[test]
fn access_lists_deny_what_they_say_also_to_routed_packets() {
    let mut bed = chain(ForwardingMode::Proactive);
    let ips = [0, 1, 2].map(|host| join(&mut bed, host));
    let cases = [(0, 2, 22, false), (0, 2, 80, true), (0, 2, 443, true), (2, 0, 80, true), (2, 0, 443, false)];
    for (from, to, port, carried) in cases {
        for _ in 0..3 {
            let frame = udp(&bed, from, ips[to], port);
            let received = exchange(&mut bed, from, frame).len();
            assert_eq!(received, usize::from(carried), "{from} to {to}, port {port}");
        }
    }
    // A host whose first packet is one that a rule denies.
    let stranger = bed.host(1);
    bed.hosts[stranger].ip = Ipv4Addr::new(10, 0, 1, 50);
    let frame = udp(&bed, stranger, ips[2], 20);
    assert_eq!(exchange(&mut bed, stranger, frame).len(), 0);
    bed.run(20_500 * MS);
    assert_eq!((bed.count("denied"), bed.count("denied_at_controller")), (7, 1));
    let NetworkReply::Events { events } = bed.ask(&NetworkRequest::Events { after: 0, most: 1000 }) else { panic!() };
    let last = |rule: &str| {
        let of_rule = |text: &&str| text.starts_with(&format!("rule {rule} of the access list denied"));
        let mut texts = events.iter().filter(|event| event.kind == "access-denied").map(|event| event.text.as_str());
        texts.rfind(of_rule).and_then(|text| text.split_once(", ")).map(|(_, total)| total.to_owned())
    };
    assert_eq!(last("no-ssh").as_deref(), Some("4 in all"));
    assert_eq!(last("no-other-udp-from-3").as_deref(), Some("3 in all"));
}

#[test]
fn a_switch_that_restarts_denies_and_routes_as_before() {
    let mut bed = chain(ForwardingMode::Proactive);
    let ips = [0, 2].map(|host| join(&mut bed, host));
    bed.restart(1);
    bed.connect(1);
    bed.run(500 * MS);
    for (port, carried) in [(22, 0), (80, 1)] {
        let frame = udp(&bed, 0, ips[1], port);
        assert_eq!(exchange(&mut bed, 0, frame).len(), carried, "port {port}");
    }
}

#[test]
fn loads_of_links_are_known_and_elephants_told() {
    let mut bed = chain(ForwardingMode::Proactive);
    let ips = [0, 2].map(|host| join(&mut bed, host));
    // 142 bytes every 5 ms: 227.2 kbit/s.
    for _ in 0..4000 {
        let frame = udp(&bed, 0, ips[1], 80);
        bed.send_frame(bed.hosts[0].at, frame);
        bed.run(5 * MS);
    }
    for link in bed.state().links {
        let [there, back] = link.load_bps.expect("measured");
        // Probes of links come on top, in both directions.
        assert!((227_000.0..228_000.0).contains(&(there - back)) && back < 30_000.0, "{there} and {back}");
    }
    let events = |bed: &mut Bed, kind: &str| {
        let NetworkReply::Events { events } = bed.ask(&NetworkRequest::Events { after: 0, most: 1000 }) else {
            panic!()
        };
        events.into_iter().filter(|event| event.kind == kind).map(|event| event.text).collect::<Vec<_>>()
    };
    let elephants = events(&mut bed, "elephant");
    assert!(elephants.len() == 1 && elephants[0].contains("dl_dst=02:00:00:00:00:03"), "{elephants:?}");
    bed.run(12_000 * MS);
    assert_eq!(events(&mut bed, "elephant-over").len(), 1);
}
