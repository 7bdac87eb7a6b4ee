//! Tests virtual switches in scenario files.
mod wrong_lines;

use weir_scenario::{Scenario, parse_virtual_switch};
use weir_slicing::{FabricPort, PacketSelector};
use weir_units::{Bps, ByteSize};
use wrong_lines::{WrongLine, each_says_where_and_why};

/// Switch with two virtual switches; each case breaks one line of it.
const RIGHT: &str = r#"
[[switch]]
name = "s1"
[switch.fabric]
ports = 4
rate = "1Gbit/s"
[[switch.virtual]]
name = "gold"
dpid = 0x101
ports = [{ port = 1, rate = "250Mbit/s" }, { port = 4, number = 2, rate = "250Mbit/s", ceiling = "500Mbit/s" }]
buffer = "12kB"
buffers = [{ from = 1, to = 2, buffer = "13kB" }]
[[switch.virtual]]
name = "tin"
dpid = 0x102
select = [{ vlan = 20 }, { port = 2, ip_src = "10.2.0.0/16" }]
ports = [{ port = 1, rate_in = "1Mbit/s", rate_out = "2Mbit/s", quantum = "64B" }]
buffer = "3kB"
queue = "red"
red = { min = "1kB", max = "2kB", probability = 0.1 }
"#;

/// Lines that make it wrong.
const CASES: &[WrongLine] = &[
    (
        "rate_in = \"1Mbit/s\"",
        "rate_in = \"800Mbit/s\"",
        13,
        "virtual switch tin: input 1: asked for 800Mbit/s, 750Mbit/s of 1Gbit/s are free: 50Mbit/s short",
    ),
    (
        "ports = 4",
        "ports = 4\ncrosspoint = \"14kB\"",
        14,
        "virtual switch tin: crosspoint 1 to 1: asked for 3000 bytes, 2000 of 14000 are free: 1000 short",
    ),
    (
        "rate_in = \"1Mbit/s\", ",
        "",
        13,
        "virtual switch tin: found no port to come in or none to leave by, expected both",
    ),
    (
        "buffer = \"3kB\"",
        "buffer = \"3kB\"\napp = \"learning\"\nconnect = \"tcp:127.0.0.1:6653\"",
        19,
        "virtual switch tin: app: found it with `connect`, expected one of them: the application is a controller",
    ),
    (
        "buffer = \"3kB\"",
        "buffer = \"3kB\"\napp = \"forwarding\"",
        19,
        "virtual switch tin: app: found \"forwarding\", which controls whole networks, expected \"learning\"",
    ),
    (
        "buffer = \"3kB\"",
        "buffer = \"3kB\"\nopenflow = \"1.0\"",
        19,
        "virtual switch tin: openflow: found it without `app`, expected both, such as app = \"learning\"",
    ),
    ("quantum = \"64B\"", "quantum = \"0B\"", 17, "quantum: found 0B, expected 60B to 16MiB"),
    ("buffer = \"3kB\"", "", 13, "found no `buffer`, expected it, such as buffer = \"24kB\""),
    ("buffer = \"3kB\"", "buffer = 100", 18, "found `100`, expected a size such as `64kB`, `1500B` or `2MiB`"),
    (
        "{ port = 1, rate_in = \"1Mbit/s\", rate_out = \"2Mbit/s\", quantum = \"64B\" }",
        "7",
        17,
        "found `7`, expected a table",
    ),
    ("buffer = \"3kB\"", "buffer = \"1kB\"", 18, "buffer: found 1kB, expected 1514B to 192kB"),
    (
        "queue = \"red\"",
        "queue = \"red\"\nlifetime = \"0s\"",
        20,
        "lifetime: found 0ns, expected more than 0 and at most 24h",
    ),
    (
        "queue = \"red\"",
        "queue = \"red\"\ntime_weight = 0",
        20,
        "virtual switch tin: time_weight: found 0, expected 1 to 1000000: who weighs nothing would never be served",
    ),
    ("ports = 4", "ports = 0", 5, "switch s1: fabric: ports: found 0, expected 1 to 256"),
    (
        "rate = \"1Gbit/s\"",
        "",
        4,
        "switch s1: fabric: found no rate for port 1, expected the port's link to have one, or `rate` in [switch.fabric] \
         for all that have none",
    ),
    (
        "rate = \"1Gbit/s\"",
        "rate = \"1Gbit/s\"\ncrosspoint = \"1kB\"",
        7,
        "crosspoint: found 1kB, expected 1514B to 1GB",
    ),
    ("name = \"tin\"", "name = \"gold\"", 13, "name: found `gold` twice, expected each name once"),
    ("dpid = 0x102", "dpid = 1", 13, "found dpid 0x1 twice, expected each once"),
    (
        "dpid = 0x102",
        "",
        14,
        "virtual switch tin: found no dpid, expected a datapath id of its own, such as dpid = 0x101",
    ),
    (
        "{ port = 1, rate = ",
        "{ port = 9, rate = ",
        10,
        "virtual switch gold: port: found 9, expected one of the switch's 4 ports",
    ),
    ("port = 4, number = 2", "port = 1", 10, "virtual switch gold: ports: found port 1 twice, expected each once"),
    (
        "number = 2",
        "number = 1",
        10,
        "virtual switch gold: ports: found number 1 for ports 1 and 4, expected each number once: give one of them \
         another `number`",
    ),
    ("number = 2", "number = 65280", 10, "port: found 65280, expected 1 to 65279"),
    (
        "{ port = 1, rate = \"250Mbit/s\" }",
        "{ port = 1 }",
        10,
        "virtual switch gold: port 1: found no rate, expected `rate`, or `rate_in` or `rate_out` or both",
    ),
    (
        "rate_out = \"2Mbit/s\"",
        "rate_out = \"2Gbit/s\"",
        17,
        "virtual switch tin: port 1: rate_out: found 2Gbit/s, expected at most the port's 1Gbit/s",
    ),
    (
        "ceiling = \"500Mbit/s\"",
        "ceiling = \"100Mbit/s\"",
        10,
        "virtual switch gold: port 4: ceiling: found 100Mbit/s, expected at least its guaranteed 250Mbit/s",
    ),
    ("quantum = \"64B\"", "quantum = \"0B\"", 17, "quantum: found 0B, expected 60B to 16MiB"),
    ("buffer = \"3kB\"", "buffer = \"1500B\"", 18, "buffer: found 1500B, expected 1514B to 192kB"),
    (
        "from = 1, to = 2",
        "from = 1, to = 4",
        12,
        "virtual switch gold: buffers: found 1 to 4, expected numbers of its ports",
    ),
    ("buffer = \"13kB\"", "buffer = \"1MB\"", 12, "buffers: buffer: found 1MB, expected 1514B to 192kB"),
    (
        "buffer = \"3kB\"",
        "buffer = \"3kB\"\npaths = [[1, 2]]",
        19,
        "virtual switch tin: paths: found [1, 2], expected pairs of numbers of its ports",
    ),
    (
        "{ vlan = 20 }",
        "{}",
        16,
        "virtual switch tin: select: found nothing in it, expected for example { port = 1, vlan = 10 }",
    ),
    (
        "{ vlan = 20 }",
        "{ vlan = 4095 }",
        16,
        "virtual switch tin: select: vlan: found 4095, expected 0 (no tag) to 4094",
    ),
    ("quantum = \"64B\"", "vlan = 0", 17, "virtual switch tin: port 1: vlan: found 0, expected 1 to 4094"),
    ("quantum = \"64B\"", "vlan = 4095", 17, "virtual switch tin: port 1: vlan: found 4095, expected 1 to 4094"),
    (
        "{ vlan = 20 }, { port = 2, ip_src = \"10.2.0.0/16\" }]\nports = [{ port = 1,",
        "{ vlan = 20, port = 1 }]\nports = [{ port = 1, vlan = 21,",
        16,
        "virtual switch tin: select: vlan: found 20, expected the port's vlan = 21, or none",
    ),
    ("{ vlan = 20 }", "{ port = 4 }", 13, "virtual switch tin: select: found { port = 4 }, which gold has"),
    (
        "{ vlan = 20 }",
        "{ port = 5 }",
        16,
        "virtual switch tin: select: port: found 5, expected one of the switch's 4 ports",
    ),
    ("queue = \"red\"", "", 20, "virtual switch tin: red: found without queue = \"red\", expected both or neither"),
    (
        "probability = 0.1",
        "probability = 0.0",
        20,
        "virtual switch tin: red: expected probability and weight above 0 and at most 1",
    ),
    ("max = \"2kB\"", "max = \"1kB\"", 20, "virtual switch tin: red: expected min below max"),
];

#[test]
fn the_right_one_says_what_it_means() {
    let scenario = Scenario::parse(RIGHT, "right.toml").unwrap();
    let switch = &scenario.switches[0];
    let fabric = switch.fabric.as_ref().unwrap();
    assert_eq!(fabric.ports.len(), 4);
    assert_eq!(fabric.ports[3], FabricPort { port: 4, rate: Bps(1_000_000_000) });
    let [gold, tin] = &switch.virtual_switches[..] else { panic!("expected two virtual switches") };
    let its_ports = [1, 4].map(|port| PacketSelector { port: Some(port), ..PacketSelector::default() });
    assert_eq!(gold.select, its_ports, "nothing said: its ports");
    assert_eq!(gold.ports[0].quantum, ByteSize(32 * 1514 / 4), "a quarter of the capacity");
    assert_eq!((gold.ports[1].number, gold.ports[1].port), (2, 4));
    assert_eq!((tin.ports[0].rate_in, tin.ports[0].rate_out), (Bps(1_000_000), Bps(2_000_000)));
    assert_eq!((gold.time_weight(), tin.time_weight()), (500, 1), "as their input rates, in Mbit/s");
    assert_eq!(switch.dpids().collect::<Vec<_>>(), [1, 0x101, 0x102]);
}

#[test]
fn wrong_ones_say_where_and_why() {
    each_says_where_and_why(RIGHT, CASES);
}

#[test]
fn ports_of_links_have_the_links_rate() {
    let text = r#"
        switch = [{ name = "s1", virtual = [{ name = "v", dpid = 7, ports = [{ port = 1, rate = "5Mbit/s" }], buffer = "2kB" }] }]
        host = [{ name = "h1", switch = "s1", ip = "10.0.0.1/24", rate = "10Mbit/s" }]
    "#;
    let scenario = Scenario::parse(text, "links.toml").unwrap();
    let fabric = scenario.switches[0].fabric.as_ref().unwrap();
    assert_eq!(fabric.ports, [FabricPort { port: 1, rate: Bps(10_000_000) }]);
}

/// Entries have numbers in place of names: of hosts, of links, and on a virtual switch its own numbers.
#[test]
fn ports_in_entries_have_the_names_of_what_they_lead_to() {
    let example = include_str!("../../../examples/two-tenants.toml");
    let entries = "[\"in_port=1,actions=output:2\", \"in_port=2,actions=output:1\"]";
    let with = |texts: &str| Scenario::parse(&example.replace(entries, texts), "two-tenants.toml");
    let scenario = with("[\"in_port=tin-a,actions=output:world\", \"in_port=2,actions=tin-a\"]").unwrap();
    let tin = &scenario.switches[0].virtual_switches[1];
    assert_eq!(tin.entries, ["in_port=1,actions=output:2", "in_port=2,actions=1"]);
    let error = with("[\"in_port=gold-a,actions=output:world\"]").unwrap_err().to_string();
    let expected = "two-tenants.toml:31: switch s1: virtual switch tin: entries: `in_port=gold-a,actions=output:world`: \
                    no port `gold-a`; there are: 1=tin-a, 2=world";
    assert_eq!(error, expected);
    let text = "[[switch]]\nname = 's1'\nentries = ['in_port=a,actions=output:s1-s2']\n[[switch]]\nname = 's2'\n\
                [[link]]\nends = ['s1', 's2']\n[[host]]\nname = 'a'\nswitch = 's1'\nip = '10.0.0.1/24'\n";
    let scenario = Scenario::parse(text, "t.toml").unwrap();
    let (host, link) = (scenario.hosts[0].port, scenario.links[0].ends[0].port);
    assert_eq!(scenario.switches[0].entries, [format!("in_port={host},actions=output:{link}")]);
    let error = Scenario::parse(&text.replace("in_port=a", "in_port=b"), "t.toml").unwrap_err().to_string();
    assert!(
        error.starts_with("t.toml:3: switch s1: entries: ") && error.contains("no port `b`; there are: "),
        "{error}"
    );
}

#[test]
fn one_alone_is_read_like_one_in_a_scenario() {
    let scenario = Scenario::parse(RIGHT, "right.toml").unwrap();
    let switch = &scenario.switches[0];
    let alone = &RIGHT[RIGHT.rfind("[[switch.virtual]]").unwrap()..].replace("[[switch.virtual]]", "");
    let read = parse_virtual_switch(alone, "tin.toml", switch.fabric.as_ref().unwrap()).unwrap();
    assert_eq!(read, switch.virtual_switches[1]);
    let error = parse_virtual_switch("name = \"a\"", "a.toml", switch.fabric.as_ref().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a.toml:1: found no `ports`, expected it, such as ports = [{ port = 1, rate = \"100Mbit/s\" }, { port = 2, rate = \"100Mbit/s\" }]"
    );
}

/// Selectors of ports with an outside VLAN contain the VLAN, whether written or made by default.
#[test]
fn a_ports_vlan_is_in_its_selectors() {
    let parsed = |select: &str| {
        let text = RIGHT.replace("select = [{ vlan = 20 }, { port = 2, ip_src = \"10.2.0.0/16\" }]\n", select);
        let scenario = Scenario::parse(&text.replace("quantum = \"64B\"", "vlan = 20"), "edge.toml").unwrap();
        scenario.switches[0].virtual_switches[1].clone()
    };
    let tin = parsed("");
    assert_eq!(tin.ports[0].vlan, Some(20));
    let (port, vlan) = (Some(1), Some(20));
    assert_eq!(tin.select, [PacketSelector { port, vlan, ..PacketSelector::default() }]);
    let tin = parsed("select = [{ port = 1, mpls = 7 }, { mpls = 8 }]\n");
    let labelled = |port, vlan, label| PacketSelector { port, vlan, mpls: Some(label), ..PacketSelector::default() };
    assert_eq!(tin.select, [labelled(port, vlan, 7), labelled(None, None, 8)]);
}
