//! Tests virtual networks in scenarios: the virtual switches that they become, their promises, and errors with their
//! line.
mod wrong_lines;

use weir_scenario::networks::promises;
use weir_scenario::{FailMode, Scenario, TrafficExpectation};
use weir_units::{Bps, ByteSize};
use wrong_lines::{WrongLine, each_says_where_and_why};

const RIGHT: &str = r#"
[controller]
connect = "none"
[topology]
kind = "linear"
switches = 3
hosts = 2
rate = "100Mbit/s"
delay = "100us"
host_rate = "100Mbit/s"
[[network]]
name = "gold"
[[network.node]]
name = "n"
place = "s2"
[[network.link]]
ends = ["h1", "n"]
bandwidth = "20Mbit/s"
delay = { bound = "30ms" }
[[network.link]]
ends = ["n", "h5"]
bandwidth = "20Mbit/s"
delay = { bound = "30ms" }
[[network]]
name = "tin"
[[network.link]]
ends = ["h2", "h6"]
bandwidth = { minimum = "10Mbit/s", maximum = "30Mbit/s" }
[[traffic]]
kind = "udp"
from = "h1"
to = "h5"
rate = "19Mbit/s"
[[traffic]]
kind = "udp"
from = "h2"
to = "h6"
rate = "11Mbit/s"
[[traffic]]
kind = "ping"
from = "h1"
to = "h6"
"#;

#[test]
fn networks_become_virtual_switches() {
    let scenario = Scenario::parse(RIGHT, "n.toml").unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<Vec<&str>> = scenario
        .switches
        .iter()
        .map(|switch| switch.virtual_switches.iter().map(|cut| cut.name.as_str()).collect())
        .collect();
    assert_eq!(
        names,
        [vec!["gold-h1-n-1", "tin-h2-h6-1"], vec!["gold-n", "tin-h2-h6-2"], vec!["gold-n-h5-2", "tin-h2-h6-3"]]
    );
    let node = &scenario.switches[1].virtual_switches[0];
    assert_eq!(node.fail_mode, FailMode::Standalone);
    assert!(node.ports.iter().all(|port| port.vlan == Some(1) && port.rate_in == Bps(20_000_000)), "{node:?}");
    assert!(node.ports.iter().all(|port| port.ceiling == Some(Bps(20_000_000))));
    let transit = &scenario.switches[0].virtual_switches[1];
    assert_eq!(transit.entries, ["in_port=1,actions=output:2", "in_port=2,actions=output:1"]);
    assert_eq!(transit.ports.iter().map(|port| port.vlan).collect::<Vec<_>>(), [None, Some(2)]);
    assert_eq!(scenario.switches[0].fabric.as_ref().unwrap().max_packet, ByteSize(1518));
    assert_eq!(scenario.networks.len(), 2);
    let dpids: std::collections::BTreeSet<u64> = scenario.switches.iter().flat_map(|switch| switch.dpids()).collect();
    assert_eq!(dpids.len(), 3 + 6);
}

#[test]
fn traffic_is_expected_where_a_network_joins_hosts() {
    let scenario = Scenario::parse(RIGHT, "n.toml").unwrap();
    let expected: Vec<TrafficExpectation> = scenario.traffic.iter().map(|item| item.expect).collect();
    assert_eq!(expected, [TrafficExpectation::Reach, TrafficExpectation::Reach, TrafficExpectation::Isolated]);
}

#[test]
fn promises_say_which_traffic_they_are_about() {
    let scenario = Scenario::parse(RIGHT, "n.toml").unwrap();
    let [gold, tin] = &promises(&scenario)[..] else { panic!("{:?}", promises(&scenario)) };
    assert_eq!((gold.network.as_str(), gold.links.join(" ")), ("gold", "h1-n n-h5".to_owned()));
    assert_eq!((gold.guaranteed, gold.out_of_profile.as_deref()), (Bps(20_000_000), None));
    assert_eq!(gold.promised.unwrap().as_millis(), 60, "of both links");
    assert!(gold.bound.unwrap() < gold.promised.unwrap());
    let reason = tin.out_of_profile.as_deref().unwrap();
    assert_eq!(reason, "link h2-h6: 11Mbit/s are offered, 10Mbit/s are guaranteed");
    assert_eq!(tin.promised, None);

    for (text, by, reason) in [
        ("rate = \"19Mbit/s\"\n", "rate = \"1Mbit/s\"\narrival = \"poisson\"\n", "has no constant gaps"),
        ("kind = \"ping\"\nfrom = \"h1\"\nto = \"h6\"", "kind = \"tcp\"\nfrom = \"h1\"\nto = \"h5\"", "TCP from h1"),
        (
            "rate = \"19Mbit/s\"\n",
            "rate = \"19Mbit/s\"\n[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h5\"\nrate = \"2Mbit/s\"\n",
            "21Mbit/s are offered",
        ),
    ] {
        assert!(RIGHT.contains(text), "{text}");
        let scenario =
            Scenario::parse(&RIGHT.replacen(text, by, 1), "n.toml").unwrap_or_else(|error| panic!("{error}"));
        let found = promises(&scenario)[0].out_of_profile.clone().unwrap_or_default();
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn wrong_networks_are_refused_with_their_line() {
    let cases: &[WrongLine] = &[
        ("name = \"tin\"", "name = \"gold\"", 24, "name: found `gold` twice, expected each name once"),
        (
            "ends = [\"h2\"",
            "ends = [\"h9\"",
            24,
            "network tin: link h9-h6: ends: found `h9`, expected a node or a host: h1, h2, h3, h4, h5, h6",
        ),
        (
            "rate = \"100Mbit/s\"\ndelay",
            "delay",
            10,
            "found no `rate` of the line at port s1:3, expected one: virtual networks are promised shares of it",
        ),
    ];
    each_says_where_and_why(RIGHT, cases);
    let error = Scenario::parse(&RIGHT.replacen("place = \"s2\"", "kind = \"router\"", 1), "n.toml").unwrap_err();
    let said = "n.toml:11: network gold: node n: found kind = \"router\", expected \"bridge\" or \"controller\"";
    assert!(error.to_string().starts_with(said), "{error}");
    let error = Scenario::parse(
        &RIGHT.replace("minimum = \"10Mbit/s\"", "minimum = \"30Mbit/s\"").replacen("\"20Mbit/s\"", "\"70Mbit/s\"", 1),
        "n.toml",
    )
    .unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("n.toml:24: network tin, link h2-h6: on the way s1, s2, s3, port s1:3 has 2"), "{said}");
    assert!(said.contains("possible: 2") && said.contains("for link h2-h6"), "{said}");
}

/// Promises rest on a scheduler, and know no device's times.
#[test]
fn what_would_break_promises_is_refused() {
    let explicit = r#"
[controller]
connect = "none"
[[switch]]
name = "s1"
SETTING
[[host]]
name = "a"
switch = "s1"
ip = "10.0.0.1/24"
rate = "10Mbit/s"
[[host]]
name = "b"
switch = "s1"
ip = "10.0.0.2/24"
rate = "10Mbit/s"
[[network]]
name = "x"
[[network.link]]
ends = ["a", "b"]
bandwidth = "5Mbit/s"
"#;
    let parsed = |setting: &str| Scenario::parse(&explicit.replace("SETTING", setting), "x.toml");
    assert!(parsed("[switch.fabric]\ncrosspoint = \"500kB\"").is_ok());
    for (setting, expected) in [
        ("entries = [\"actions=drop\"]", "switch s1: found `entries`"),
        ("profile = \"at-x510\"", "switch s1: found the times of a device"),
        ("[switch.fabric]\ndiscipline = \"strict-priority\"", "switch s1: found a discipline other than \"drr\""),
    ] {
        let error = parsed(setting).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
