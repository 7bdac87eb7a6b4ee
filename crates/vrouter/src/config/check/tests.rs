//! Tests of the checks: each kind of error is found and named.
use super::*;
use crate::config::{FilterAction, IpProtocol, RouterPortId};

fn port(id: &str, last: u8, nets: &[&str]) -> RouterPort {
    RouterPort {
        port: id.parse().unwrap(),
        mac: MacAddr([2, 0, 0, 0, 1, last]),
        addresses: nets.iter().map(|net| net.parse().unwrap()).collect(),
        mtu: 1500,
        meter: None,
        queue: None,
        neighbours: Vec::new(),
    }
}

fn config() -> VirtualRouterConfig {
    VirtualRouterConfig {
        name: "r1".to_owned(),
        ports: vec![
            port("1", 1, &["10.0.1.1/24", "fd00:1::1/64", "fe80::1/64"]),
            port("2.7", 2, &["10.0.2.1/24", "fe80::1/64"]),
        ],
        routes: vec![StaticRoute { prefix: "0.0.0.0/0".parse().unwrap(), via: "10.0.2.9".parse().unwrap() }],
        filters: vec![PacketFilter::all(FilterAction::Permit)],
        translations: vec![AddressPair {
            inside: "10.0.1.5".parse().unwrap(),
            outside: "10.0.2.5".parse().unwrap(),
            port: "2.7".parse().unwrap(),
        }],
    }
}

/// Changes the right configuration, and expects an error with these parts.
fn refused(change: impl FnOnce(&mut VirtualRouterConfig), parts: &[&str]) {
    let mut config = config();
    change(&mut config);
    let error = config.check().unwrap_err().to_string();
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn right_ones_pass_and_survive_json() {
    assert_eq!(config().check(), Ok(()));
    let text = serde_json::to_string(&config()).unwrap();
    assert_eq!(serde_json::from_str::<VirtualRouterConfig>(&text).unwrap(), config());
}

#[test]
fn wrong_ports_are_named() {
    refused(|config| config.ports.clear(), &["`ports`: found 0"]);
    refused(|config| config.ports[0].port.number.0 = 0, &["port 0", "port number 0"]);
    refused(|config| config.ports[1].port.vlan = Some(4095), &["port 2.4095", "VLAN 4095"]);
    refused(|config| config.ports[0].mac = MacAddr::BROADCAST, &["port 1", "ff:ff"]);
    refused(|config| config.ports[0].addresses.clear(), &["port 1", "no address"]);
    refused(|config| config.ports[0].addresses[0].addr = "10.0.1.255".parse().unwrap(), &["10.0.1.255/24"]);
    refused(|config| config.ports[0].mtu = 1000, &["port 1", "MTU 1000", "1280"]);
    refused(|config| config.ports[1].meter = Some(0), &["port 2.7", "meter 0"]);
    refused(|config| config.ports[1].port = config.ports[0].port, &["port 1", "twice"]);
    let overlapping = "10.0.0.1/16".parse().unwrap();
    refused(
        |config| config.ports[1].addresses.push(overlapping),
        &["port 2.7", "10.0.0.1/16", "10.0.1.1/24 of port 1"],
    );
}

#[test]
fn wrong_neighbours_are_named() {
    let known = |address: &str| StaticNeighbour { address: address.parse().unwrap(), mac: MacAddr([2; 6]) };
    refused(|config| config.ports[0].neighbours.push(known("10.0.2.3")), &["port 1", "neighbour 10.0.2.3"]);
    refused(|config| config.ports[0].neighbours.push(known("10.0.1.1")), &["port 1", "another host"]);
    refused(
        |config| config.ports[0].neighbours.extend([known("10.0.1.3"), known("10.0.1.3")]),
        &["each neighbour once"],
    );
}

#[test]
fn wrong_routes_are_named() {
    let route = |prefix: &str, via: &str| StaticRoute { prefix: prefix.parse().unwrap(), via: via.parse().unwrap() };
    for (prefix, via, part) in [
        ("0.0.0.0/0", "10.0.1.9", "the prefix twice"),
        ("10.0.2.0/24", "10.0.1.9", "the network of a port"),
        ("10.9.0.0/16", "fd00:1::9", "next hop fd00:1::9"),
        ("10.9.0.0/16", "10.9.0.1", "on a network of a port"),
        ("10.9.0.0/16", "10.0.1.1", "another router"),
        ("fd00:9::/64", "fe80::9", "on a network of a port"),
    ] {
        refused(|config| config.routes.push(route(prefix, via)), &[prefix, part]);
    }
}

/// Change that makes a filter wrong.
type WrongChange = &'static dyn Fn(&mut PacketFilter);

#[test]
fn wrong_filters_are_named() {
    let filter = |change: &dyn Fn(&mut PacketFilter)| {
        let mut filter = PacketFilter::all(FilterAction::Deny);
        change(&mut filter);
        filter
    };
    let cases: [(WrongChange, &str); 4] = [
        (&|filter| filter.input = Some(RouterPortId::untagged(9)), "input 9"),
        (&|filter| filter.destination_port = Some("80".parse().unwrap()), "protocol tcp"),
        (&|filter| (filter.protocol, filter.icmp_type) = (Some(IpProtocol(6)), Some(8)), "protocol icmp"),
        (
            &|filter| (filter.source, filter.protocol) = (Some("10.0.0.0/8".parse().unwrap()), Some(IpProtocol(58))),
            "one version",
        ),
    ];
    for (change, part) in cases {
        refused(|config| config.filters.push(filter(change)), &["filter 2", part]);
    }
}

#[test]
fn wrong_translations_are_named() {
    let pair = |inside: &str, outside: &str, port: &str| AddressPair {
        inside: inside.parse().unwrap(),
        outside: outside.parse().unwrap(),
        port: port.parse().unwrap(),
    };
    for (wrong, part) in [
        (pair("10.0.1.6", "10.0.2.6", "3"), "port 3"),
        (pair("10.0.1.6", "fd00::6", "2.7"), "no pair of hosts"),
        (pair("10.0.1.6", "10.0.2.1", "2.7"), "the router's address 10.0.2.1"),
        (pair("10.0.1.6", "10.0.2.5", "2.7"), "an address twice"),
    ] {
        refused(|config| config.translations.push(wrong), &["translation of 10.0.1.6", part]);
    }
}
