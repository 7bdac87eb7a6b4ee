//! Tests that every error message names file, line, value found and value expected.
mod wrong_lines;

use weir_scenario::Scenario;
use wrong_lines::{WrongLine, each_says_where_and_why};

/// Valid scenario; each case breaks one line of it.
const RIGHT: &str = r#"
name = "two"
[[tenant]]
name = "red"
vlan = 10
[[switch]]
name = "s1"
[[switch]]
name = "s2"
dpid = 2
[[host]]
name = "h1"
switch = "s1"
ip = "10.0.0.1/24"
[[host]]
name = "h2"
switch = "s2"
ip = ["10.0.0.2/24", "fd00::2/64"]
[[link]]
ends = ["s1", "s2"]
rate = "1Gbit/s"
buffer = "64kB"
[[traffic]]
kind = "ping"
from = "h1"
to = "h2"
"#;

/// Lines that make it wrong.
const CASES: &[WrongLine] = &[
    ("name = \"red\"", "name = \"Red\"", 4, "name: found `Red`, expected 1 to 63 characters of a-z, 0-9 and -"),
    ("vlan = 10", "vlan = 4095", 5, "tenant red: vlan: found 4095, expected 1 to 4094"),
    ("vlan = 10", "wlan = 10", 5, "unknown field `wlan`, expected `name` or `vlan`"),
    ("vlan = 10", "vlan = \"ten\"", 5, "found `\"ten\"`, expected a whole number from 0 to 65535"),
    ("vlan = 10", "", 3, "found no `vlan`, expected it, such as vlan = 10"),
    (
        "rate = \"1Gbit/s\"",
        "rate = 100",
        21,
        "found `100`, expected a rate above zero such as `100Mbit/s`, `2.5Gbit/s` or `64kbit/s`",
    ),
    ("ends = [\"s1\", \"s2\"]", "ends = [\"s1\"]", 20, "found a list of 1, expected a list of 2"),
    ("ip = \"10.0.0.1/24\"", "ip = 10", 14, "found another kind of value, expected a text in quotes or a list of such"),
    ("name = \"s2\"", "name = \"s1\"", 9, "name: found `s1` twice, expected each name once"),
    ("dpid = 2", "dpid = 1", 8, "found dpid 0x1 twice, expected each once"),
    ("dpid = 2", "tables = 0", 10, "switch s2: tables: found 0, expected 1 to 254"),
    ("dpid = 2", "max_entries = 0", 10, "switch s2: max_entries: found 0, expected at least 1"),
    ("switch = \"s2\"", "switch = \"s9\"", 17, "switch: found `s9`, expected one of s1, s2"),
    ("switch = \"s2\"", "switch = \"s2\"\ntenant = \"blue\"", 18, "tenant: found `blue`, expected one of red"),
    (
        "switch = \"s2\"",
        "switch = \"s2\"\nmac = \"01:00:00:00:00:01\"",
        18,
        "host h2: mac: found 01:00:00:00:00:01, expected a unicast address",
    ),
    (
        "ip = \"10.0.0.1/24\"",
        "ip = \"10.0.0.1\"",
        14,
        "found `10.0.0.1`, expected an address with its prefix such as 10.0.0.1/24 or fd00::1/64",
    ),
    ("10.0.0.2/24", "10.0.0.1/24", 18, "host h2: ip: found 10.0.0.1/24, which host h1 has"),
    (
        "10.0.0.2/24",
        "10.0.9.2/24",
        23,
        "traffic: h1 and h2 share no IPv4 network (no routers yet): expected addresses in one prefix",
    ),
    ("ends = [\"s1\", \"s2\"]", "ends = [\"s1\", \"s1\"]", 19, "link: ends: found s1 twice, expected two switches"),
    ("ends = [\"s1\", \"s2\"]", "ends = [\"s1\", \"s2\"]\nports = [7, 0]", 21, "port: found 0, expected 1 to 65279"),
    (
        "rate = \"1Gbit/s\"",
        "rate = \"1GB/s\"",
        21,
        "found `1GB/s`, expected a rate above zero such as `100Mbit/s`, `2.5Gbit/s` or `64kbit/s`",
    ),
    ("rate = \"1Gbit/s\"\n", "", 21, "buffer: found without rate, expected both: a link without rate needs no buffer"),
    ("\"64kB\"", "\"1kB\"", 22, "buffer: found 1kB, expected at least one frame: 1514B"),
    ("\"64kB\"", "\"64kB\"\ndelay = \"1min\"", 23, "delay: found 60s, expected at most 10s"),
    (
        "\"64kB\"",
        "\"64kB\"\nqueues = [{ queue = 1, min = '2Gbit/s' }]",
        23,
        "queues: queue 1: min: found 2Gbit/s, expected at most 1Gbit/s: what others leave of 1Gbit/s",
    ),
    (
        "\"64kB\"",
        "\"64kB\"\nqueues = [{ queue = 1 }, { queue = 1 }]",
        23,
        "queues: found queue 1 twice, expected each once",
    ),
    (
        "\"64kB\"",
        "\"64kB\"\nqueues = [{ queue = 4294967295 }]",
        23,
        "queue: found 4294967295, expected 0 to 4294967294",
    ),
    (
        "\"64kB\"",
        "\"64kB\"\nqueues = [{ queue = 1, min = '2Mbit/s', max = '1Mbit/s' }]",
        23,
        "queue 1: min: found 2Mbit/s, expected at most max, 1Mbit/s",
    ),
    (
        "\"64kB\"",
        "\"64kB\"\nqueues = [{ queue = 1, buffer = '1kB' }]",
        23,
        "queue 1: buffer: found 1kB, expected 1514B to 64MB",
    ),
    ("\"64kB\"", "\"64kB\"\nqueues = [{ queue = 1, priority = 8 }]", 23, "queue 1: priority: found 8, expected 0 to 7"),
    (
        "ip = \"10.0.0.1/24\"",
        "ip = \"10.0.0.1/24\"\nqueues = [{ queue = 1, min = '1Mbit/s' }]",
        15,
        "queues: queue 1: found min without the link's rate, expected both",
    ),
    ("kind = \"ping\"", "kind = \"pong\"", 24, "unknown variant `pong`, expected one of `ping`, `tcp`, `udp`"),
    (
        "kind = \"ping\"",
        "kind = \"ping\"\nrate = \"1Mbit/s\"",
        25,
        "traffic: found `rate`, expected it only with kind udp",
    ),
    ("to = \"h2\"", "to = \"h1\"", 23, "traffic: found from and to `h1`, expected two hosts"),
    (
        "name = \"two\"",
        "[controller]\nconnect = \"10.0.0.1\"",
        3,
        "connect: found `10.0.0.1`, expected tcp:HOST:PORT such as tcp:127.0.0.1:6653, unix:PATH, or none",
    ),
];

#[test]
fn the_right_one_is_right() {
    let scenario = Scenario::parse(RIGHT, "two.toml").unwrap();
    assert_eq!(scenario.name, "two");
    assert_eq!(scenario.switches[0].dpid, 1);
    assert_eq!((scenario.hosts[0].port, scenario.links[0].ends[0].port), (1, 2));
    assert_eq!(scenario.traffic[0].address.to_string(), "10.0.0.2");
}

#[test]
fn wrong_ones_say_where_and_why() {
    each_says_where_and_why(RIGHT, CASES);
}

#[test]
fn a_scenario_needs_a_switch_and_a_readable_file() {
    let error = Scenario::parse("", "x.toml").unwrap_err();
    assert_eq!(error.to_string(), "x.toml:1: found no [[switch]], expected at least one");
    let error = Scenario::read("/nowhere/x.toml".as_ref()).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/x.toml: cannot read the scenario: No such file"), "{error}");
}

#[test]
fn ports_that_the_file_gives_are_kept_free() {
    let text = RIGHT.replace("ends = [\"s1\", \"s2\"]", "ends = [\"s1\", \"s2\"]\nports = [1, 9]");
    let scenario = Scenario::parse(&text, "two.toml").unwrap();
    assert_eq!((scenario.hosts[0].port, scenario.links[0].ends[0].port, scenario.links[0].ends[1].port), (2, 1, 9));
}

#[test]
fn tenants_may_use_the_same_addresses_and_are_expected_to_be_isolated() {
    let text = format!(
        "{RIGHT}{}",
        r#"
[[host]]
name = "r1"
switch = "s1"
tenant = "red"
ip = "10.0.0.1/24"
[[traffic]]
kind = "udp"
from = "r1"
to = "h2"
start = "1s"
"#
    );
    let scenario = Scenario::parse(&text, "two.toml").unwrap();
    assert_eq!(scenario.traffic[1].expect, weir_scenario::TrafficExpectation::Isolated);
    assert_eq!(scenario.traffic[0].expect, weir_scenario::TrafficExpectation::Reach);
}

#[test]
fn examples_are_right() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scenarios: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "toml")).collect();
    assert!(!scenarios.is_empty());
    for path in scenarios {
        Scenario::read(&path).unwrap_or_else(|error| panic!("{error}"));
    }
}
