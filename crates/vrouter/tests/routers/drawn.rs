//! Drawn routers and packets: the entries of both pipelines do what the configuration says.
use crate::switch::PlainSwitch;
use fastrand::Rng;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_openflow::model::PortNo;
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::field::eth_type;
use weir_packet::{MacAddr, PortRange, checksum};
use weir_vrouter::AddressPrefix;
use weir_vrouter::config::{
    AddressPair, FilterAction, IpProtocol, PacketFilter, RouteTarget, RouterPort, RouterPortId, StaticNeighbour,
    StaticRoute, VirtualRouterConfig,
};
use weir_vrouter::entries::{Neighbours, RouterPipeline, RouterPlacement, entries};
use weir_vrouter::forwarding::{ForwardingPath, RoutedFields, RoutingDecision, decide};

/// Addresses of few networks and hosts, so that routes, filters and packets meet.
fn address(random: &mut Rng, is_ipv4: bool) -> IpAddr {
    let (network, host) = (random.u8(1..6), random.u8(1..8));
    match is_ipv4 {
        true => Ipv4Addr::new(10, 0, network, host).into(),
        false if random.u8(..20) == 0 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host.into()).into(),
        false => Ipv6Addr::new(0xfd00, network.into(), 0, 0, 0, 0, 0, host.into()).into(),
    }
}

pub(crate) fn prefix(random: &mut Rng, is_ipv4: bool) -> AddressPrefix {
    let lengths: &[u8] = if is_ipv4 { &[0, 8, 23, 24, 30, 31, 32] } else { &[0, 16, 31, 32, 125, 127, 128] };
    let length = *random.choice(lengths).unwrap();
    AddressPrefix::new(address(random, is_ipv4), length).unwrap()
}

fn mac(random: &mut Rng) -> MacAddr {
    MacAddr([2, 0, 0, 0, 2, random.u8(..)])
}

fn port(random: &mut Rng, network: u8) -> RouterPort {
    let number = u32::from(random.u8(1..4));
    let vlan = random.bool().then(|| random.u16(10..13));
    let addresses = [
        format!("10.0.{network}.{}/24", random.u8(1..4)),
        format!("fd00:{network}::{}/32", random.u8(1..4)),
        format!("fe80::{}/64", random.u8(1..4)),
    ];
    let mut neighbours: Vec<StaticNeighbour> = Vec::new();
    for host in 4..8 {
        let all = [format!("10.0.{network}.{host}"), format!("fd00:{network}::{host}")];
        let known = all.iter().filter(|_| random.clone().bool()).map(|addr| addr.parse().unwrap());
        neighbours.extend(known.map(|address| StaticNeighbour { address, mac: MacAddr([2, 0, 0, 0, network, host]) }));
        random.bool();
    }
    RouterPort {
        port: RouterPortId { number: PortNo(number), vlan },
        mac: mac(random),
        addresses: addresses.iter().map(|net| net.parse().unwrap()).collect(),
        mtu: 1500,
        meter: None,
        queue: None,
        neighbours,
    }
}

pub(crate) fn filter(random: &mut Rng, ports: &[RouterPort]) -> PacketFilter {
    let action = if random.bool() { FilterAction::Permit } else { FilterAction::Deny };
    let mut filter = PacketFilter::all(action);
    let is_ipv4 = random.bool();
    let some_port = |random: &mut Rng| (random.u8(..3) == 0).then(|| random.choice(ports).unwrap().port);
    (filter.input, filter.output) = (some_port(random), some_port(random));
    filter.source = random.bool().then(|| prefix(random, is_ipv4));
    filter.destination = random.bool().then(|| prefix(random, is_ipv4));
    let icmp = if is_ipv4 { 1 } else { 58 };
    filter.protocol = random.choice([None, Some(6), Some(17), Some(132), Some(icmp)]).unwrap().map(IpProtocol);
    let range = |random: &mut Rng| {
        let (one, other) = (random.u16(1..12), random.u16(1..12));
        random.bool().then_some(PortRange { first: one.min(other), last: one.max(other) })
    };
    match filter.protocol {
        Some(protocol) if protocol.has_ports() => {
            (filter.source_port, filter.destination_port) = (range(random), range(random));
        }
        Some(_) => filter.icmp_type = random.bool().then(|| random.u8(1..12)),
        None => {}
    }
    filter
}

/// Returns a router that passes the checks.
pub(crate) fn router(random: &mut Rng) -> VirtualRouterConfig {
    loop {
        let n_ports = random.u8(1..4);
        let ports: Vec<RouterPort> = (1..=n_ports).map(|network| port(random, network)).collect();
        let routes = (0..random.u8(..6)).map(|_| {
            let is_ipv4 = random.bool();
            let hop = loop {
                let hop = address(random, is_ipv4);
                if hop.is_ipv4() || !hop.to_string().starts_with("fe80") {
                    break hop;
                }
            };
            let via = if random.u8(..5) == 0 { RouteTarget::Blackhole } else { RouteTarget::NextHop(hop) };
            StaticRoute { prefix: prefix(random, is_ipv4), via }
        });
        let mut config = VirtualRouterConfig {
            name: "drawn".to_owned(),
            routes: routes.collect(),
            filters: (0..random.u8(..5)).map(|_| filter(random, &ports)).collect(),
            translations: (0..random.u8(..4))
                .map(|_| {
                    let is_ipv4 = random.bool();
                    let (inside, outside) = (address(random, is_ipv4), address(random, is_ipv4));
                    AddressPair { inside, outside, port: random.choice(&ports).unwrap().port }
                })
                .collect(),
            ports,
        };
        // Items that do not fit are drawn often; without them most routers would be refused as a whole.
        let whole = config.clone();
        (config.routes, config.translations) = (Vec::new(), Vec::new());
        for route in whole.routes {
            config.routes.push(route);
            if config.check().is_err() {
                config.routes.pop();
            }
        }
        for pair in whole.translations {
            config.translations.push(pair);
            if config.check().is_err() {
                config.translations.pop();
            }
        }
        if config.check().is_ok() {
            return config;
        }
    }
}

/// A packet, before it is a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawnPacket {
    pub(crate) fields: RoutedFields,
    eth_source: MacAddr,
    eth_destination: MacAddr,
    ttl: u8,
}

impl DrawnPacket {
    pub(crate) fn draw(random: &mut Rng, config: &VirtualRouterConfig) -> DrawnPacket {
        let is_ipv4 = random.bool();
        let input = random.choice(&config.ports).unwrap();
        let mut destination = address(random, is_ipv4);
        let outside = config.translations.iter().filter(|pair| pair.port == input.port).map(|pair| pair.outside);
        if let Some(outside) = random.choice(outside.collect::<Vec<_>>()).filter(|_| random.u8(..3) == 0) {
            destination = outside;
        }
        let is_ipv4 = destination.is_ipv4();
        let protocol = *random.choice(&[6, 17, 132, if is_ipv4 { 1 } else { 58 }, 47]).unwrap();
        let has_ports = IpProtocol(protocol).has_ports();
        let mut number = || random.u16(1..12);
        let (source_port, destination_port) = if has_ports { (number(), number()) } else { (0, 0) };
        let icmp_type = if IpProtocol(protocol).is_icmp() { random.u8(1..12) } else { 0 };
        let mut source = address(random, is_ipv4);
        let inside = config.translations.iter().map(|pair| pair.inside).filter(|inside| inside.is_ipv4() == is_ipv4);
        if let Some(inside) = random.choice(inside.collect::<Vec<_>>()).filter(|_| random.u8(..3) == 0) {
            source = inside;
        }
        let protocol = IpProtocol(protocol);
        let fields =
            RoutedFields { input: input.port, source, destination, protocol, source_port, destination_port, icmp_type };
        let eth_destination = if random.u8(..10) == 0 { MacAddr([2; 6]) } else { input.mac };
        DrawnPacket { fields, eth_source: MacAddr([2, 0, 0, 0, 9, 9]), eth_destination, ttl: random.u8(2..) }
    }

    pub(crate) fn frame(&self, vlan: Option<u16>) -> Vec<u8> {
        let mut frame = FrameBuilder::ethernet(self.eth_destination, self.eth_source);
        if let Some(vlan) = vlan {
            frame = frame.vlan(eth_type::VLAN, vlan, 0);
        }
        let frame = match (self.fields.source, self.fields.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => frame.ipv4(source, destination),
            (IpAddr::V6(source), IpAddr::V6(destination)) => frame.ipv6(source, destination),
            mixed => panic!("{mixed:?}"),
        };
        let (source, destination) = (self.fields.source_port, self.fields.destination_port);
        let frame = match self.fields.protocol.0 {
            6 => frame.tcp(TcpHeader { source, destination, ..TcpHeader::default() }),
            17 => frame.udp(source, destination),
            132 => frame.sctp(source, destination),
            1 | 58 => frame.icmp(self.fields.icmp_type, 0, [0, 0, 0, 1]),
            number => frame.ip_proto(number),
        };
        frame.ttl(self.ttl).payload(b"payload of the packet").build()
    }

    /// Returns the packet as it leaves.
    fn routed(&self, config: &VirtualRouterConfig, path: &ForwardingPath, next_hop: MacAddr) -> Vec<u8> {
        let mut packet = *self;
        (packet.fields.source, packet.fields.destination) = (path.source, path.destination);
        packet.eth_destination = next_hop;
        packet.eth_source = config.port(path.output).unwrap().mac;
        packet.ttl -= 1;
        packet.frame(path.output.vlan)
    }
}

/// Gives a packet to the router's entries, and compares what happens with the plain decision. Returns the decision.
fn compare(config: &VirtualRouterConfig, switch: &mut PlainSwitch, packet: &DrawnPacket) -> RoutingDecision {
    let frame = packet.frame(packet.fields.input.vlan);
    let outcome = switch.receive(packet.fields.input.number.0, &frame);
    let decision = decide(config, &packet.fields);
    let context = || format!("{config:#?}\n{packet:?}\n{decision:?}\n{outcome:?}");
    let known = |hop| config.ports.iter().flat_map(|port| &port.neighbours).find(|known| known.address == hop);
    let is_for_router = packet.eth_destination == config.port(packet.fields.input).unwrap().mac;
    let (left, punted) = match decision {
        _ if !is_for_router => (vec![], vec![]),
        RoutingDecision::Denied(_) | RoutingDecision::Blackhole => (vec![], vec![]),
        RoutingDecision::Local | RoutingDecision::NoRoute => (vec![], vec![frame]),
        RoutingDecision::Forward(path) => match known(path.next_hop) {
            Some(neighbour) => {
                let routed = packet.routed(config, &path, neighbour.mac);
                assert_eq!(checksum::verify(&routed), Ok(()));
                (vec![(path.output.number.0, routed)], vec![])
            }
            None => (vec![], vec![frame]),
        },
    };
    assert_eq!(outcome.left, left, "{}", context());
    let punted_data: Vec<_> = outcome.punted.iter().map(|packet| packet.data.0.clone()).collect();
    assert_eq!(punted_data, punted, "{}", context());
    decision
}

fn switches(config: &VirtualRouterConfig) -> [PlainSwitch; 2] {
    [RouterPlacement::whole_switch(), RouterPlacement::confined(7, 3, 1)].map(|placement| {
        let placement = RouterPlacement { first_table: 0, ..placement };
        PlainSwitch::with(&entries(config, &Neighbours::new(), &placement).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn entries_do_what_the_configuration_says(seed: u64) {
        let mut random = Rng::with_seed(seed);
        let config = router(&mut random);
        let mut switches = switches(&config);
        for _ in 0..60 {
            let packet = DrawnPacket::draw(&mut random, &config);
            for switch in &mut switches {
                compare(&config, switch, &packet);
            }
        }
    }
}

/// Guards the drawing: each decision must be frequent, or the comparison says little.
#[test]
fn every_decision_is_drawn() {
    let mut random = Rng::with_seed(1);
    let (mut counts, mut translated) = ([0; 5], [0; 2]);
    for _ in 0..200 {
        let config = router(&mut random);
        for _ in 0..20 {
            let packet = DrawnPacket::draw(&mut random, &config);
            let kind = match decide(&config, &packet.fields) {
                RoutingDecision::Denied(_) => 0,
                RoutingDecision::Blackhole => 1,
                RoutingDecision::Local => 2,
                RoutingDecision::NoRoute => 3,
                RoutingDecision::Forward(path) => {
                    translated[0] += usize::from(path.source != packet.fields.source);
                    translated[1] += usize::from(path.destination != packet.fields.destination);
                    4
                }
            };
            counts[kind] += 1;
        }
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
    assert!(translated.iter().all(|count| *count > 20), "{translated:?}");
}

#[test]
fn pipelines_follow_from_the_number_of_tables() {
    assert_eq!(RouterPlacement::whole_switch().pipeline(), RouterPipeline::Several);
    assert_eq!(RouterPlacement::confined(1, 0, 6).pipeline(), RouterPipeline::Single);
}
