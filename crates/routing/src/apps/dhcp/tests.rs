//! Tests of the DHCP server with messages as clients send them.
use super::*;
use crate::apps::test_bed::{FakeNetwork, mac, port};
use message::option;
use std::net::IpAddr;

const CONFIG: &str = r#"
address = "10.0.0.1"
max-leases-per-port = 8

[[pool]]
subnet = "10.0.0.0/24"
range = "10.0.0.100-10.0.0.103"
router = "10.0.0.1"
dns = ["10.0.0.53"]
domain = "example.net"
lease-time = "1h"

[[pool.reservation]]
mac = "02:00:00:00:01:63"
ip = "10.0.0.7"

[[pool]]
subnet = "10.1.0.0/24"
range = "10.1.0.10-10.1.0.19"
at = ["2:3"]
"#;

const A: SwitchPort = port(1, 1);
const SERVER: [u8; 4] = [10, 0, 0, 1];

/// Message of a client as it is on the wire.
#[derive(Clone)]
struct Asked {
    mac: MacAddr,
    ciaddr: [u8; 4],
    options: Vec<u8>,
}

impl Asked {
    fn new(mac: MacAddr, kind: u8) -> Asked {
        Asked { mac, ciaddr: [0; 4], options: vec![option::KIND, 1, kind] }
    }

    fn with(mut self, number: u8, value: &[u8]) -> Asked {
        self.options.extend([number, u8::try_from(value.len()).unwrap()]);
        self.options.extend(value);
        self
    }

    fn payload(&self) -> Vec<u8> {
        let mut bytes = vec![0; 236];
        bytes[..3].copy_from_slice(&[1, 1, 6]);
        bytes[4..8].copy_from_slice(&[1, 2, 3, 4]);
        bytes[12..16].copy_from_slice(&self.ciaddr);
        bytes[28..34].copy_from_slice(&self.mac.0);
        bytes.extend([99, 130, 83, 99]);
        bytes.extend(&self.options);
        bytes.push(option::END);
        bytes
    }

    fn frame(&self) -> Vec<u8> {
        frame_of(self.mac, &self.payload())
    }
}

fn frame_of(source: MacAddr, payload: &[u8]) -> Vec<u8> {
    let frame = FrameBuilder::ethernet(MacAddr::BROADCAST, source);
    frame.ipv4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST).udp(68, 67).payload(payload).build()
}

/// Answer as a client reads it.
#[derive(Debug, PartialEq, Eq)]
struct Got {
    kind: u8,
    xid: [u8; 4],
    ip: Ipv4Addr,
    to: (MacAddr, Ipv4Addr),
    options: Vec<(u8, Vec<u8>)>,
}

impl Got {
    fn option(&self, number: u8) -> Option<&[u8]> {
        self.options.iter().find(|(found, _)| *found == number).map(|(_, value)| value.as_slice())
    }
}

fn read(frame: &[u8]) -> Got {
    assert_eq!(weir_packet::checksum::verify(frame), Ok(()));
    let parsed = parse(frame, A.port).unwrap();
    let payload = udp_payload(frame, &parsed).unwrap();
    assert_eq!(payload[0], 2);
    let mut options = Vec::new();
    let mut rest = &payload[240..];
    while rest[0] != option::END {
        let (value, next) = rest[2..].split_at(rest[1].into());
        options.push((rest[0], value.to_vec()));
        rest = next;
    }
    let destination = Ipv4Addr::from(u32::try_from(parsed.key.get(Field::Ipv4Dst)).unwrap());
    let kind = options.iter().find(|(number, _)| *number == option::KIND).unwrap().1[0];
    let ip = <[u8; 4]>::try_from(&payload[16..20]).unwrap().into();
    let xid = <[u8; 4]>::try_from(&payload[4..8]).unwrap();
    Got { kind, xid, ip, to: (mac_of(&parsed, Field::EthDst), destination), options }
}

struct Bed {
    server: DhcpServer,
    network: FakeNetwork,
}

impl Bed {
    fn new() -> Bed {
        let server = DhcpServer::new(toml::from_str(CONFIG).unwrap()).unwrap();
        Bed { server, network: FakeNetwork::of(2) }
    }

    /// Returns the answer to a message at a port.
    fn ask_at(&mut self, at: SwitchPort, asked: &Asked) -> Option<Got> {
        self.network.sent.clear();
        assert_eq!(self.network.packet(at, &asked.frame(), &mut self.server), PacketDecision::Taken);
        assert!(self.network.sent.len() <= 1 && self.network.sent.iter().all(|(to, _)| *to == at));
        self.network.sent.first().map(|(_, frame)| read(frame))
    }

    fn ask(&mut self, asked: &Asked) -> Option<Got> {
        self.ask_at(A, asked)
    }

    /// Goes through all four messages, and returns the address.
    fn lease(&mut self, mac: MacAddr) -> Option<Ipv4Addr> {
        let offer = self.ask(&Asked::new(mac, 1))?;
        assert_eq!(offer.kind, 2);
        let request = Asked::new(mac, 3).with(option::SERVER, &SERVER).with(option::REQUESTED, &offer.ip.octets());
        let ack = self.ask(&request)?;
        assert_eq!((ack.kind, ack.ip), (5, offer.ip));
        Some(ack.ip)
    }

    fn renew(&mut self, mac: MacAddr, ip: Ipv4Addr) -> u8 {
        let asked = Asked { ciaddr: ip.octets(), ..Asked::new(mac, 3) };
        self.ask(&asked).unwrap().kind
    }

    fn counter(&self, name: &str) -> u64 {
        self.server.counters().iter().find(|(found, _)| *found == name).unwrap().1
    }
}

#[test]
fn a_host_gets_an_address_and_all_that_the_pool_says() {
    let mut bed = Bed::new();
    let offer = bed.ask(&Asked::new(mac(1), 1).with(option::CLIENT, &[9, 9])).unwrap();
    assert_eq!((offer.kind, offer.ip), (2, Ipv4Addr::new(10, 0, 0, 100)));
    let request = Asked::new(mac(1), 3).with(option::SERVER, &SERVER).with(option::CLIENT, &[9, 9]);
    let request = request.with(option::REQUESTED, &offer.ip.octets()).with(option::HOST_NAME, b"printer\0");
    let ack = bed.ask(&request).unwrap();
    assert_eq!((ack.kind, ack.ip, ack.to), (5, offer.ip, (mac(1), offer.ip)));
    assert_eq!([offer.xid, ack.xid], [[1, 2, 3, 4]; 2]);
    let expected: [(u8, &[u8]); 10] = [
        (option::SERVER, &SERVER),
        (option::CLIENT, &[9, 9]),
        (option::LEASE_TIME, &3600_u32.to_be_bytes()),
        (option::RENEWAL, &1800_u32.to_be_bytes()),
        (option::REBINDING, &3150_u32.to_be_bytes()),
        (option::SUBNET_MASK, &[255, 255, 255, 0]),
        (option::ROUTER, &[10, 0, 0, 1]),
        (option::DNS, &[10, 0, 0, 53]),
        (option::BROADCAST, &[10, 0, 0, 255]),
        (option::DOMAIN, b"example.net"),
    ];
    for (number, value) in expected {
        assert_eq!(ack.option(number), Some(value), "option {number}");
    }
    assert_eq!(bed.network.names[&mac(1)], "printer");
    assert_eq!((bed.counter("leases"), bed.counter("offers"), bed.counter("acks")), (1, 1, 1));
}

#[test]
fn addresses_are_given_once_and_come_back() {
    let mut bed = Bed::new();
    let given: Vec<_> = (1..=4).map(|host| bed.lease(mac(host)).unwrap()).collect();
    assert_eq!(given.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{given:?}");
    assert_eq!(bed.lease(mac(5)), None, "the range has four");
    assert_eq!((bed.counter("drop_pool_empty"), bed.network.reports[0].0), (1, "dhcp-pool-empty"));
    assert_eq!(bed.lease(mac(2)), Some(given[1]), "a host keeps its address");
    bed.ask(&Asked { ciaddr: given[2].octets(), ..Asked::new(mac(3), 7) });
    assert_eq!(bed.lease(mac(5)), Some(given[2]), "released");
    bed.network.now += Duration::from_secs(1800);
    assert_eq!([1, 2, 4, 5].map(|host| bed.renew(mac(host), bed.server.leases.address_of(&leases::ClientKey::Mac(mac(host))).unwrap())), [5; 4]);
    bed.network.now += Duration::from_secs(3599);
    assert_eq!(bed.lease(mac(6)), None);
    bed.network.now += Duration::from_secs(1);
    assert!(given.contains(&bed.lease(mac(6)).unwrap()), "leases end");
}

#[test]
fn addresses_that_other_hosts_use_are_not_offered() {
    let mut bed = Bed::new();
    let ip = |last: u8| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
    bed.network.host(mac(50), port(2, 1), &[ip(100), ip(101)], &mut bed.server);
    assert_eq!(bed.lease(mac(1)), Some(Ipv4Addr::new(10, 0, 0, 102)));
    let decline = Asked::new(mac(1), 4).with(option::REQUESTED, &[10, 0, 0, 102]).with(option::SERVER, &SERVER);
    assert_eq!(bed.ask(&decline), None);
    assert_eq!(bed.network.reports[0].0, "address-in-use");
    assert_eq!(bed.lease(mac(1)), Some(Ipv4Addr::new(10, 0, 0, 103)));
    assert_eq!(bed.lease(mac(2)), None);
    bed.network.now += server::DECLINE_TIME;
    assert_eq!(bed.lease(mac(2)), Some(Ipv4Addr::new(10, 0, 0, 102)), "tried again later");
}

#[test]
fn wrong_addresses_are_refused_and_former_ones_accepted() {
    let mut bed = Bed::new();
    let first = bed.lease(mac(1)).unwrap();
    // Of another client, of another subnet, outside of the range, reserved for another host.
    for ip in [first, [10, 1, 0, 10].into(), [10, 0, 0, 50].into(), [10, 0, 0, 7].into()] {
        assert_eq!(bed.renew(mac(2), ip), 6, "{ip}");
    }
    let nak = bed.ask(&Asked::new(mac(2), 3).with(option::REQUESTED, &first.octets())).unwrap();
    assert_eq!((nak.kind, nak.ip, nak.to), (6, Ipv4Addr::UNSPECIFIED, (MacAddr::BROADCAST, Ipv4Addr::BROADCAST)));
    assert_eq!((bed.counter("naks"), nak.option(option::LEASE_TIME)), (5, None));
    // A restarted server knows no leases.
    let mut bed = Bed::new();
    assert_eq!(bed.renew(mac(1), first), 5);
    assert_eq!(bed.renew(mac(2), first), 6);
}

#[test]
fn reservations_ports_and_other_servers() {
    let mut bed = Bed::new();
    assert_eq!(bed.lease(mac(0x63)), Some(Ipv4Addr::new(10, 0, 0, 7)));
    let offer = bed.ask_at(port(2, 3), &Asked::new(mac(1), 1)).unwrap();
    assert_eq!((offer.ip, offer.option(option::ROUTER)), (Ipv4Addr::new(10, 1, 0, 10), None));
    // The client chooses another server: the offer ends.
    let other = Asked::new(mac(1), 3).with(option::SERVER, &[10, 0, 0, 9]).with(option::REQUESTED, &[10, 0, 0, 9]);
    assert_eq!(bed.ask_at(port(2, 3), &other), None);
    assert_eq!(bed.counter("offered_or_declined"), 0);
    let inform = Asked { ciaddr: [10, 0, 0, 40], ..Asked::new(mac(8), 8) };
    let ack = bed.ask(&inform).unwrap();
    assert_eq!((ack.kind, ack.ip, ack.option(option::LEASE_TIME)), (5, Ipv4Addr::UNSPECIFIED, None));
    assert_eq!(ack.to, (mac(8), Ipv4Addr::new(10, 0, 0, 40)));
}

#[test]
fn a_host_cannot_take_all_addresses_or_play_the_server() {
    let mut bed = Bed::new();
    let spoofed = frame_of(mac(1), &Asked::new(mac(2), 1).payload());
    assert_eq!(bed.network.packet(A, &spoofed, &mut bed.server), PacketDecision::Taken);
    assert_eq!((bed.counter("drop_spoofed"), bed.network.sent.len()), (1, 0));
    for client in 0..20 {
        bed.ask_at(port(2, 3), &Asked::new(mac(1), 1).with(option::CLIENT, &[client]));
    }
    assert_eq!((bed.counter("offered_or_declined"), bed.counter("drop_port_full")), (8, 12));
    bed.network.now += server::OFFER_TIME;
    assert!(bed.ask_at(port(2, 3), &Asked::new(mac(1), 1).with(option::CLIENT, &[77])).is_some());
    let frame = FrameBuilder::ethernet(mac(3), mac(9)).ipv4([10, 0, 0, 9].into(), Ipv4Addr::BROADCAST).udp(67, 68);
    for _ in 0..5 {
        assert_eq!(bed.network.packet(A, &frame.build(), &mut bed.server), PacketDecision::Taken);
    }
    let alarms = bed.network.reports.iter().filter(|(kind, _, alarm)| *kind == "other-dhcp-server" && *alarm);
    assert_eq!((alarms.count(), bed.counter("drop_other_server")), (1, 5));
}

#[test]
fn the_servers_own_address_is_answered() {
    let mut bed = Bed::new();
    let asking = (mac(1), Ipv4Addr::new(10, 0, 0, 100));
    let request = |ip: [u8; 4]| {
        FrameBuilder::ethernet(MacAddr::BROADCAST, mac(1)).arp(1, asking, (MacAddr::default(), ip.into())).build()
    };
    assert_eq!(bed.network.packet(A, &request([10, 0, 0, 2]), &mut bed.server), PacketDecision::PassedOn);
    assert_eq!(bed.network.packet(A, &request(SERVER), &mut bed.server), PacketDecision::Taken);
    let own = (bed.server.config.mac, SERVER.into());
    let expected = FrameBuilder::ethernet(mac(1), own.0).arp(2, own, asking).build();
    assert_eq!(bed.network.sent, [(A, expected)]);
}

#[test]
fn malformed_messages_are_counted_and_change_nothing() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bed = Bed::new();
    let good = Asked::new(mac(1), 3).with(option::REQUESTED, &[10, 0, 0, 100]).with(option::OVERLOAD, &[3]);
    let good = good.with(option::HOST_NAME, b"host").with(option::CLIENT, &[1; 20]);
    for round in 0..20_000 {
        let mut payload = good.payload();
        for _ in 0..random.usize(1..8) {
            let at = random.usize(..payload.len());
            payload[at] = random.u8(..);
        }
        payload.truncate(random.usize(..=payload.len()));
        let mut frame = frame_of(mac(1), &payload);
        if round % 2 == 0 {
            let at = random.usize(12..frame.len());
            frame[at] = random.u8(..);
            frame.truncate(random.usize(14..=frame.len()));
        }
        bed.network.packet(A, &frame, &mut bed.server);
    }
    assert!(bed.counter("drop_malformed") > 1000);
    // Whatever was asked, no address has two clients, and the port has not more than its most.
    assert!(bed.server.leases.of_port(A) <= 8);
    for sent in std::mem::take(&mut bed.network.sent) {
        read(&sent.1);
    }
}

/// Returns a server that was started anew `elapsed` after the one of `bed`, with what that has kept.
fn restarted(bed: &Bed, elapsed: Duration) -> Result<Bed, String> {
    let kept = bed.server.kept(bed.network.now).expect("leases");
    let mut next = Bed::new();
    next.network.now = Instant::from_nanos(5);
    next.server.restore(next.network.now, elapsed, &kept)?;
    Ok(next)
}

#[test]
fn leases_survive_a_restart() {
    let mut bed = Bed::new();
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let before = bed.server.kept_changes();
    let [one, two] = [1, 2].map(|number| bed.lease(mac(number)).unwrap());
    assert!(bed.server.kept_changes() > before);
    bed.network.now += minutes(30);
    bed.renew(mac(2), two);
    let three = bed.lease(mac(3)).unwrap();
    bed.ask(&Asked::new(mac(3), 4).with(option::REQUESTED, &three.octets()));
    // An offer alone is not kept.
    bed.ask(&Asked::new(mac(4), 1));
    let kept = bed.server.kept(bed.network.now).unwrap();
    assert_eq!(kept["leases"].as_array().map(Vec::len), Some(3), "{kept}");
    let mut next = restarted(&bed, minutes(5)).unwrap();
    // Addresses of others and one that is in use elsewhere are not given; the range has four.
    let four = next.lease(mac(9)).unwrap();
    assert!(![one, two, three].contains(&four), "{four}");
    assert_eq!(next.lease(mac(8)), None, "all others are taken");
    // The first lease had 30 minutes left, of which 5 have passed; the second one had 60.
    next.network.now += minutes(26);
    assert_eq!((next.lease(mac(8)), next.renew(mac(2), two)), (Some(one), 5));
    // What is kept again is the same but for the time.
    assert_eq!(restarted(&next, minutes(0)).unwrap().server.leases.count(Instant::from_nanos(6)), (3, 0));
}

#[test]
fn a_client_gets_its_former_address_after_a_restart() {
    let mut bed = Bed::new();
    let first = bed.lease(mac(1)).unwrap();
    let second = bed.lease(mac(2)).unwrap();
    let mut next = restarted(&bed, Duration::from_secs(7200)).unwrap();
    assert_eq!(next.counter("leases"), 0, "both have ended meanwhile");
    assert_eq!((next.lease(mac(2)), next.lease(mac(1))), (Some(second), Some(first)));
}

#[test]
fn damaged_leases_are_refused() {
    let lease = |change: &str, value: serde_json::Value| {
        let good = serde_json::json!({
            "ip": "10.0.0.100", "client": "02:00:00:00:00:01", "state": "bound", "at": "1:1", "left_s": 9,
        });
        let mut changed = good.clone();
        changed[change] = value;
        serde_json::json!({ "leases": [good, changed] })
    };
    let refused = |kept: &serde_json::Value| {
        let mut server = Bed::new().server;
        server.restore(Instant::ZERO, Duration::ZERO, kept).unwrap_err()
    };
    for (kept, part) in [
        (lease("ip", "10.0.0.101".into()), "lease of 10.0.0.101: found it or its client twice"),
        (lease("client", "02:00:00:00:00:02".into()), "lease of 10.0.0.100: found it or its client twice"),
        (lease("client", "id:0".into()), "found the client `id:0`, expected an address or id:HEX"),
        (lease("left_s", (1_u64 << 40).into()), "s left, expected at most"),
        (lease("state", "offered".into()), "unknown variant `offered`"),
        (lease("at", "1".into()), "expected DPID:PORT"),
        (serde_json::json!([]), "expected an object with `leases`"),
    ] {
        let problem = refused(&kept);
        assert!(problem.contains(part), "{problem}");
    }
    // Addresses that no pool has any more are left out.
    let mut server = Bed::new().server;
    let other = serde_json::json!({ "leases": [{
        "ip": "10.9.0.1", "client": "02:00:00:00:00:01", "state": "bound", "at": "1:1", "left_s": 9,
    }] });
    assert_eq!(server.restore(Instant::ZERO, Duration::ZERO, &other), Ok(()));
    assert_eq!(server.leases.count(Instant::ZERO), (0, 0));
}
