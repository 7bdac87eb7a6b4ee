//! Tests the controller of a network in scenarios: its settings, applications and intents, and errors with their line.
mod wrong_lines;

use std::time::Duration;
use weir_scenario::{DelayKind, ForwardingMode, NetworkControl, Scenario, expand_topology};
use weir_units::ByteSize;
use wrong_lines::{WrongLine, each_says_where_and_why};

const RIGHT: &str = r#"
[controller]
app = "forwarding"
forward = "proactive"
ecmp = true
arp_answers = false
probe_interval = "50ms"
port_buffer = "20packets"
[topology]
kind = "ring"
switches = 4
[router]
gateways = ["10.0.0.254/24"]
[[access-list]]
action = "deny"
protocol = "tcp"
[[intent]]
key = "a"
kind = "many-to-one"
from = ["h1", "s2:1"]
to = "10.0.0.3"
traffic = "tcp,tp_dst=80"
[[intent]]
key = "b"
kind = "host-to-host"
from = "h1"
to = "h3"
[intent.constraints]
bandwidth = "1Mbit/s"
delay = { most = "5ms", worst-case = true }
waypoints = ["s2"]
avoid = ["s4", "s3:2"]
priority = 7
protected = true
"#;

#[test]
fn settings_applications_and_intents_are_read() {
    let scenario = Scenario::parse(RIGHT, "n.toml").unwrap_or_else(|error| panic!("{error}"));
    let control = &scenario.network_control;
    assert_eq!((control.forward, control.ecmp, control.arp_answers), (ForwardingMode::Proactive, true, false));
    assert_eq!(control.probe_interval, Duration::from_millis(50));
    assert_eq!(control.port_buffer, Some(ByteSize(30_000)));
    assert_eq!(control.application_names(), ["access-list", "router"]);
    let [a, b] = &control.intents[..] else { panic!("{:?}", control.intents) };
    let mac = |host: usize| scenario.hosts[host].mac.to_string();
    assert_eq!((a.spec.from.clone(), a.spec.to.clone()), (vec![mac(0), "2:1".into()], vec!["10.0.0.3".to_owned()]));
    assert_eq!(a.ends, [vec!["h1".to_owned(), "s2:1".to_owned()], vec!["10.0.0.3".to_owned()]]);
    assert_eq!(a.spec.traffic, "tcp,tp_dst=80");
    let constraints = &b.spec.constraints;
    assert_eq!(constraints.delay.as_ref().map(|bound| bound.kind), Some(DelayKind::WorstCase));
    assert_eq!((constraints.waypoints.join(" "), constraints.avoid.join(" ")), ("2".to_owned(), "4 3:2".to_owned()));
    assert_eq!((constraints.priority, constraints.protected), (7, true));
}

#[test]
fn a_written_out_topology_keeps_applications_and_intents() {
    let written = expand_topology(RIGHT, "n.toml").unwrap_or_else(|error| panic!("{error}"));
    let read = Scenario::parse(&written, "n.toml").unwrap_or_else(|error| panic!("{error}\n{written}"));
    let first = Scenario::parse(RIGHT, "n.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.network_control, first.network_control);
}

#[test]
fn buffers_of_ports_are_those_of_the_links_with_a_rate() {
    let buffer = |links: &str| {
        let text = format!("[controller]\napp = 'forwarding'\n[topology]\nkind = 'ring'\nswitches = 3\n{links}");
        Scenario::parse(&text, "n.toml").unwrap_or_else(|error| panic!("{error}")).network_control.port_buffer
    };
    let all = "rate = '1Gbit/s'\nbuffer = '40kB'\nhost_rate = '1Gbit/s'\nhost_buffer = '64kB'";
    assert_eq!(buffer(all), Some(ByteSize(64_000)));
    let hosts = "rate = '1Gbit/s'\nbuffer = '40kB'\nhost_rate = '1Gbit/s'";
    assert_eq!(buffer(hosts), Some(ByteSize(128_000)), "the default of links with a rate");
    assert_eq!(buffer("rate = '1Gbit/s'\nbuffer = '40kB'"), Some(ByteSize(40_000)), "hosts have no rate");
    assert_eq!(buffer(""), None, "nothing waits for a rate");
    let queue = format!("{all}\n[[link]]\nends = ['s1', 's2']\nqueues = [{{ queue = 1, buffer = '50kB' }}]");
    assert_eq!(buffer(&queue), Some(ByteSize(90_000)));
}

#[test]
fn the_learning_switch_has_none_of_it() {
    let scenario = Scenario::parse("[[switch]]\nname = 's1'", "n.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.network_control, NetworkControl::default());
    for (more, line, name) in [
        ("[controller]\napp = 'learning'\necmp = true", 5, "ecmp"),
        ("[controller]\nconnect = 'none'\nport_buffer = '1kB'", 5, "port_buffer"),
        ("[monitor]\ninterval = '1s'", 3, "monitor"),
        ("[[access-list]]\naction = 'deny'", 3, "access-list"),
        ("[[intent]]\nkey = 'a'\nkind = 'host-to-host'\nfrom = 'a'\nto = 'b'", 3, "intent"),
    ] {
        let error = Scenario::parse(&format!("[[switch]]\nname = 's1'\n{more}"), "n.toml").expect_err(more).to_string();
        let expected = "found it without app = \"forwarding\" in [controller], expected both";
        assert_eq!(error, format!("n.toml:{line}: {name}: {expected}"), "{more}");
    }
}

const CASES: &[WrongLine] = &[
    (
        "forward = \"proactive\"",
        "forward = \"reactive\"",
        4,
        "unknown variant `reactive`, expected one of `proactive`, `reactive-path`, `reactive-hop`",
    ),
    (
        "forward = \"proactive\"",
        "forward = \"reactive-hop\"",
        5,
        "ecmp: found it with a reactive `forward`, expected forward = \"proactive\": a reactive entry has one way",
    ),
    ("\"50ms\"", "\"5ms\"", 7, "probe_interval: found `5ms`, expected a time from 10ms to 1h, such as 25ms"),
    (
        "\"20packets\"",
        "\"20\"",
        8,
        "port_buffer: found `20`, expected bytes such as 64kB, or packets of 1500 bytes such as 100packets, at most \
         4GiB",
    ),
    (
        "10.0.0.254/24",
        "10.0.0.254",
        13,
        "found `10.0.0.254`, expected an address with its prefix such as 10.0.0.1/24 or fd00::1/64",
    ),
    (
        "protocol = \"tcp\"",
        "source-port = 5",
        14,
        "access-list: found `source-port` without a protocol that has ports, expected `protocol` tcp, udp or sctp",
    ),
    ("key = \"b\"", "key = \"a\"", 24, "intent: found the key `a` twice, expected each once"),
    ("kind = \"many-to-one\"\n", "", 17, "found no `kind`, expected it"),
    (
        "to = \"h3\"",
        "to = \"h9\"",
        27,
        "intent `b`: to: found `h9`, expected a host (h1, h2, h3, h4), its address, or a port such as s1:2",
    ),
    (
        "\"s2:1\"",
        "\"s9:1\"",
        20,
        "intent `a`: from: found `s9:1`, expected a switch (s1, s2, s3, s4) or one of its ports such as s1:2",
    ),
    (
        "waypoints = [\"s2\"]",
        "waypoints = [\"s7\"]",
        31,
        "intent `b`: waypoints: found `s7`, expected a switch (s1, s2, s3, s4) or one of its ports such as s1:2",
    ),
    (
        "waypoints = [\"s2\"]",
        "waypoints = [\"s2:1\"]",
        31,
        "intent `b`: `constraints.waypoints`: found `2:1`, expected a datapath id in hexadecimal",
    ),
    ("priority = 7", "priority = 1001", 33, "intent `b`: `constraints.priority`: found 1001, expected 0 to 1000"),
    (
        "worst-case = true",
        "worst-case = true, percentile = 99",
        30,
        "intent `b`: delay: found both `percentile` and `worst-case`, expected either percentile = 99 or worst-case = \
         true",
    ),
    (
        ", worst-case = true",
        "",
        30,
        "intent `b`: delay: found no `percentile`, expected either percentile = 99 or worst-case = true",
    ),
    ("most = \"5ms\", ", "", 30, "found no `most`, expected it, such as most = \"5ms\""),
    (
        "kind = \"host-to-host\"",
        "kind = \"one-to-many\"",
        34,
        "intent `b`: `constraints.protected`: found one-to-many, expected protection only for host-to-host and \
         point-to-point",
    ),
];

#[test]
fn errors_have_their_line() {
    each_says_where_and_why(RIGHT, CASES);
}
