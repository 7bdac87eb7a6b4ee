//! Requests as users write them, in TOML and JSON, and what is wrong with some.
use crate::{refused, row, written};
use std::time::Duration;
use weir_units::Bps;
use weir_vnet::service::{Bandwidth, NetworkServiceRequest, NodeKind};

const OFFICE: &str = r#"
name = "office"
owner = "alice"
lifetime = "8h"
[[node]]
name = "hall"
place = "s2"
[[node]]
name = "gate"
kind = "router"
routes = [{ to = "10.9.0.0/16", via = "10.0.2.9" }]
[[link]]
ends = ["a1", "hall"]
bandwidth = "10Mbit/s"
[[link]]
name = "up"
ends = ["hall", "gate"]
bandwidth = { minimum = "5Mbit/s", maximum = "20Mbit/s" }
backward = { minimum = "1Mbit/s" }
delay = { bound = "40ms", percentile = 99 }
burst = "6kB"
addresses = [[], ["10.0.1.1/24"]]
[[link]]
ends = ["gate", "b3"]
bandwidth = { maximum = "50Mbit/s" }
vlan = 30
addresses = [["10.0.2.1/24", "fd00:2::1/64"], []]
[[stage]]
start = "1h"
link = [{ name = "up", bandwidth = "30Mbit/s" }]
"#;

#[test]
fn toml_and_json_say_the_same() {
    let request = written(OFFICE);
    let json = serde_json::to_string_pretty(&request).unwrap();
    assert_eq!(serde_json::from_str::<NetworkServiceRequest>(&json).unwrap(), request, "{json}");
    assert_eq!(toml::from_str::<NetworkServiceRequest>(&toml::to_string(&request).unwrap()).unwrap(), request);
    assert_eq!(request.nodes[0].kind, NodeKind::Bridge);
    assert_eq!(request.links[0].name(), "a1-hall");
    assert_eq!(request.links[0].bandwidths(), [Bandwidth::Static(Bps(10_000_000)); 2]);
    let [up, down] = request.links[1].bandwidths();
    assert_eq!((up.minimum(), up.maximum()), (Bps(5_000_000), Some(Bps(20_000_000))));
    assert_eq!((down.minimum(), down.maximum()), (Bps(1_000_000), None));
    assert_eq!(request.links[1].delay.unwrap().bound.0, Duration::from_millis(40));
    crate::admit(&mut row(3), &request);
}

#[test]
fn unknown_keys_and_kinds_of_values_are_refused() {
    for (text, expected) in [
        ("name = \"x\"\nlink = []\nrouter = []\n", "router"),
        ("name = \"x\"\n[[link]]\nends = [\"a1\", \"b1\"]\nbandwidth = 10\n", "a rate such as"),
        ("name = \"x\"\n[[link]]\nends = [\"a1\"]\nbandwidth = \"1Mbit/s\"\n", "ends"),
    ] {
        let error = toml::from_str::<NetworkServiceRequest>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Each line: text to replace in the request above, replacement, and a part of the error.
#[test]
fn contradictions_are_refused_with_the_key_that_is_wrong() {
    for (text, by, expected) in [
        ("name = \"office\"", "name = \"Office\"", "name: found `Office`, expected 1 to 20 characters"),
        ("lifetime = \"8h\"", "lifetime = \"0s\"", "lifetime: found 0s"),
        ("lifetime = \"8h\"", "lifetime = \"1h\"", "stage at 3600s: expected a time within the lifetime of 3600s"),
        ("place = \"s2\"", "place = \"s4\"", "node hall: place: found `s4`, expected one of s1, s2, s3"),
        ("name = \"gate\"", "name = \"a1\"", "node a1: found another node or a host of this name"),
        ("kind = \"router\"", "kind = \"controller\"", "node gate: expected `connect` with kind = \"controller\""),
        ("kind = \"router\"", "", "node gate: found routes"),
        ("\"hall\", \"gate\"", "\"hall\", \"gte\"", "link up: ends: found `gte`, expected a node or a host"),
        ("\"hall\", \"gate\"", "\"gate\", \"gate\"", "addresses: end gate"),
        ("addresses = [[], [\"10.0.1.1/24\"]]", "", "link up: addresses: end gate"),
        ("name = \"up\"", "name = \"a1-hall\"", "link a1-hall: found twice"),
        ("vlan = 30", "vlan = 4095", "link gate-b3: vlan: found 4095"),
        ("burst = \"6kB\"", "vlan = 7", "link up: vlan: found without a host"),
        ("burst = \"6kB\"", "burst = \"1kB\"", "link up: burst: found 1kB, expected 1514B to 1GB"),
        ("bound = \"40ms\"", "bound = \"0s\"", "link up: delay: bound: found 0ns"),
        ("percentile = 99", "percentile = 100", "link up: delay: percentile: found 100"),
        ("minimum = \"5Mbit/s\", ", "", "link up: delay: found without a guaranteed minimum"),
        ("minimum = \"5Mbit/s\"", "minimum = \"25Mbit/s\"", "link up: bandwidth: found a maximum of 20Mbit/s"),
        ("link = [{ name = \"up\"", "link = [{ name = \"upp\"", "stage at 3600s: found link `upp`"),
        ("start = \"1h\"", "start = \"0s\"", "stage at 0ns: expected times after 0"),
    ] {
        assert!(OFFICE.contains(text), "{text}");
        let error = refused(&mut row(3), &written(&OFFICE.replacen(text, by, 1)));
        assert!(error.starts_with("network ") && error.contains(expected), "{error}\nexpected: {expected}");
    }
}

#[test]
fn rings_of_bridges_are_refused_and_of_routers_are_not() {
    let ring = |kind: &str, addresses: &str| {
        let nodes: String =
            (1..=3).map(|at| format!("[[node]]\nname = \"n{at}\"\nkind = \"{kind}\"\nplace = \"s{at}\"\n")).collect();
        let links: String = [(1, 2), (2, 3), (3, 1)]
            .map(|(a, b)| format!("[[link]]\nends = [\"n{a}\", \"n{b}\"]\nbandwidth = \"1Mbit/s\"\n{addresses}\n"))
            .concat();
        written(&format!("name = \"ring\"\n{nodes}{links}"))
    };
    let error = refused(&mut crate::ring(3), &ring("bridge", ""));
    assert!(error.contains("link n3-n1: found a ring of bridges"), "{error}");
    crate::admit(&mut crate::ring(3), &ring("router", "addresses = [[\"10.0.0.1/24\"], [\"10.0.0.2/24\"]]"));
}
