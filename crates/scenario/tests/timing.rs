//! Tests timing of devices and traffic by rule: parsed values, and the message of every error.
mod wrong_lines;

use std::time::Duration;
use weir_model::Law;
use weir_scenario::{
    ControlPathTiming, InstallScope, ReleaseGate, ReturnDiscipline, Scenario, ServiceTime, TrafficKind,
};
use weir_traffic::{ArrivalProcess, OfferedPackets, PacketSizeLaw};
use wrong_lines::{WrongLine, each_says_where_and_why};

/// Valid scenario; each case breaks one line of it.
const RIGHT: &str = r#"
[controller]
service = { law = "exponential", mean = "7.5ms" }
buffer = 200
install = "path"
[[switch]]
name = "s1"
[switch.timing]
data = { law = "constant", mean = "3.34us", per_byte = "7.96ns" }
packet_in = { law = "gamma", mean = "5.6ms", scv = 0.5 }
packet_out = "5.9ms"
agents = "shared"
buffer = 50
returns = { order = "priority", service = "5us", buffer = 10 }
write = "9.3ms"
tick = "4ms"
tick_max = 3
[[host]]
name = "h1"
switch = "s1"
ip = "10.0.0.1/24"
[[host]]
name = "h2"
switch = "s1"
ip = "10.0.0.2/24"
[[traffic]]
kind = "udp"
from = "h1"
to = "h2"
rate = 60
payload = "558B"
arrival = "poisson"
new_flows = 0.25
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, "t.toml").map_err(|error| error.to_string())
}

fn constant(s: f64) -> ServiceTime {
    ServiceTime { law: Some(Law::constant(s).unwrap()), per_byte_s: 0.0 }
}

#[test]
fn timing_is_read() {
    let scenario = parse(RIGHT).unwrap();
    let timing = scenario.switches[0].timing.as_ref().unwrap();
    let data = timing.data.as_ref().unwrap();
    assert!((data.mean_s(600.0) - (3.34e-6 + 600.0 * 7.96e-9)).abs() < 1e-15, "{data:?}");
    assert_eq!(timing.gate, Some(ReleaseGate::Tick { every: Duration::from_millis(4), most: Some(3) }));
    assert_eq!(timing.returns, ReturnDiscipline::Priority { service: Some(constant(5e-6)), buffer: Some(10) });
    assert_eq!((timing.write, timing.slow), (Duration::from_micros(9300), Duration::from_millis(1)));
    let ControlPathTiming::Agents { packet_in: Some(into), packet_out: Some(out), shared: true, buffer: Some(50) } =
        &timing.control
    else {
        panic!("{:?}", timing.control)
    };
    assert_eq!((into.law.clone(), out), (Some(Law::gamma(0.0056, 0.5).unwrap()), &constant(0.0059)));
    let controller = &scenario.controller;
    assert_eq!((controller.buffer, controller.install), (Some(200), InstallScope::Path));
    assert_eq!(controller.service.as_ref().unwrap().law, Some(Law::exponential(0.0075).unwrap()));
    let TrafficKind::Udp { offered, new_flows, .. } = &scenario.traffic[0].kind else { panic!("no udp") };
    assert_eq!(*new_flows, 0.25);
    let expected =
        OfferedPackets::Rule { arrival: ArrivalProcess::Poisson, per_second: 60.0, size: PacketSizeLaw::Fixed(600) };
    assert_eq!(*offered, expected);
}

#[test]
fn flows_have_a_mean_length_and_a_number_at_a_time() {
    for more in
        ["flow_packets = 4\nflows = 3", "new_flows = 0.25\nflows = 3", "new_flows = 0.25\nflow_packets = 4\nflows = 3"]
    {
        let scenario = parse(&RIGHT.replace("new_flows = 0.25", more)).unwrap();
        let TrafficKind::Udp { new_flows, flows, .. } = scenario.traffic[0].kind else { panic!("no udp") };
        assert_eq!((new_flows, flows), (0.25, Some(3)), "{more}");
    }
}

#[test]
fn laws_are_read() {
    let law = |text: &str| {
        let scenario = parse(&RIGHT.replace("\"5.9ms\"", text)).unwrap();
        match &scenario.switches[0].timing.as_ref().unwrap().control {
            ControlPathTiming::Agents { packet_out: Some(out), .. } => out.law.clone().unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(law("{ law = 'uniform', from = '4ms', to = '16ms' }"), Law::uniform(0.004, 0.016).unwrap());
    let lattice = Law::lattice(&[0.004, 0.008], &[0.75 / 1.75, 1.0 / 1.75]).unwrap();
    assert_eq!(law("{ law = 'lattice', values = ['4ms', '8ms'], probs = [0.75, 1] }"), lattice);
    let two = Law::hyperexponential(0.9, 0.001, 0.01).unwrap();
    assert_eq!(law("{ law = 'hyperexponential', share = 0.9, means = ['1ms', '10ms'] }"), two);
    let balanced = law("{ law = 'hyperexponential', mean = '2ms', scv = 4 }");
    assert!((balanced.mean() - 0.002).abs() < 1e-12 && (balanced.scv() - 4.0).abs() < 1e-9, "{balanced:?}");
}

#[test]
fn a_measured_control_path_stands_for_agents_and_controller() {
    let text = RIGHT
        .replace(
            "agents = \"shared\"\nbuffer = 50\n",
            "control = { delay = '19.06ms', capacity = 70, scv = 0.5, buffer = 200 }\n",
        )
        .replace("packet_in = { law = \"gamma\", mean = \"5.6ms\", scv = 0.5 }\npacket_out = \"5.9ms\"\n", "")
        .replace("service = { law = \"exponential\", mean = \"7.5ms\" }\nbuffer = 200\n", "app = \"learning\"\n");
    let scenario = parse(&text).unwrap();
    let measured = ControlPathTiming::Measured { delay_s: 0.01906, capacity: 70.0, scv: 0.5, buffer: Some(200) };
    assert_eq!(scenario.switches[0].timing.as_ref().unwrap().control, measured);
}

#[test]
fn datagrams_come_as_streams_do() {
    let sizes = "sizes = { kind = \"bimodal\", short_bytes = [60, 100], long_bytes = [1000, 1514] }";
    let scenario = parse(&RIGHT.replace("payload = \"558B\"", sizes).replace("rate = 60", "rate = '1Mbit/s'")).unwrap();
    let TrafficKind::Udp { offered, .. } = &scenario.traffic[0].kind else { panic!("no udp") };
    assert!((offered.per_second() * offered.mean_bytes().unwrap() * 8.0 - 1e6).abs() < 1e-6, "{offered:?}");
    assert_eq!((offered.shortest(), offered.longest()), (Ok(Some(60)), Ok(Some(1514))));
}

/// Lines that make it wrong.
const CASES: &[WrongLine] = &[
    (
        "\"5.9ms\"",
        "\"5.9\"",
        11,
        "switch s1: timing: packet_out: found `5.9`, expected a time such as `250us`, `1.5ms`, `10s` or `2min`",
    ),
    ("\"5.9ms\"", "\"2h\"", 11, "switch s1: timing: packet_out: found 2h, expected at most 3600 s"),
    (
        "\"5.9ms\"",
        "{ mean = '1ms' }",
        11,
        "switch s1: timing: packet_out: found no `law`, expected one of constant, exponential, gamma, hyperexponential, uniform, lattice",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'normal', mean = '1ms' }",
        11,
        "switch s1: timing: packet_out: law: found `normal`, expected one of constant, exponential, gamma, hyperexponential, uniform, lattice",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'gamma', mean = '1ms' }",
        11,
        "switch s1: timing: packet_out: found no `scv`, expected a number",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'gamma', mean = '1ms', scv = -1 }",
        11,
        "switch s1: timing: packet_out: gamma law: scv: found -1, expected a number, 0 or more",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'exponential', mean = 5 }",
        11,
        "switch s1: timing: packet_out: mean: found 5, expected a time with its unit, such as \"7.5ms\"",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'exponential', mean = '0s' }",
        11,
        "switch s1: timing: packet_out: exponential law: mean: found 0, expected a number above 0",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'exponential', mean = '1ms', scv = 2 }",
        11,
        "switch s1: timing: packet_out: law exponential: found `scv`, expected mean and per_byte",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'hyperexponential', mean = '1ms', scv = 1 }",
        11,
        "switch s1: timing: packet_out: hyperexponential law: scv: found 1, expected a number above 1: gamma has the others",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'uniform', from = '4ms', to = '1ms' }",
        11,
        "switch s1: timing: packet_out: to: found 0.001 s, expected more than from, 0.004 s",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'lattice', values = ['4ms'], probs = [1, 2] }",
        11,
        "switch s1: timing: packet_out: probs: found 2 numbers, expected 1: one for each value",
    ),
    (
        "\"5.9ms\"",
        "{ law = 'lattice', values = ['4ms'], probs = [0] }",
        11,
        "switch s1: timing: packet_out: probs: found 0 in all, expected numbers of 0 or more, not all 0",
    ),
    (
        "buffer = 200",
        "buffer = 0",
        4,
        "controller: buffer: found 0, expected 1 to 1048576 packets: the one in service counts",
    ),
    (
        "buffer = 50",
        "buffer = 0",
        13,
        "switch s1: timing: buffer: found 0, expected 1 to 1048576 packets: the one in service counts",
    ),
    (
        "buffer = 50",
        "data_buffer = 0",
        13,
        "switch s1: timing: data_buffer: found 0, expected 1 to 1048576 packets: the one in service counts",
    ),
    (
        "buffer = 10",
        "buffer = 0",
        14,
        "switch s1: timing: returns: buffer: found 0, expected 1 to 1048576 packets: the one in service counts",
    ),
    (
        "order = \"priority\"",
        "order = \"fifo\"",
        14,
        "switch s1: timing: returns: found service or buffer, expected them only with order priority",
    ),
    (
        "write = \"9.3ms\"",
        "write = \"0s\"",
        15,
        "switch s1: timing: write: found 0ns, expected more than 0 and at most 24h",
    ),
    ("tick = \"4ms\"\n", "", 16, "switch s1: timing: found `tick_max` without `tick`, expected both"),
    (
        "tick_max = 3",
        "batch = { packets = 33, timeout = '2ms' }",
        17,
        "switch s1: timing: found `tick` and `batch`, expected one of them",
    ),
    (
        "tick = \"4ms\"\ntick_max = 3",
        "batch = { packets = 0, timeout = '2ms' }",
        16,
        "switch s1: timing: batch: packets: found 0, expected 1 to 1048576 packets: the one in service counts",
    ),
    (
        "tick = \"4ms\"\ntick_max = 3",
        "batch = { packets = 9, timeout = '2ms', stages = 3 }",
        16,
        "switch s1: timing: batch: stages: found 3, expected 1 to 2",
    ),
    (
        "buffer = 50",
        "control = { delay = '19ms', capacity = 70 }",
        10,
        "switch s1: timing: found `packet_in` beside `control`, expected one of them: it is measured with them",
    ),
    (
        "rate = 60",
        "rate = 0",
        30,
        "rate: found 0, expected a rate of bits such as \"10Mbit/s\", or a number of packets a second",
    ),
    (
        "rate = 60",
        "rate = '60'",
        30,
        "rate: found `60`, expected a rate of bits such as \"10Mbit/s\", or a number of packets a second",
    ),
    (
        "rate = 60",
        "rate = true",
        30,
        "found another kind of value, expected a rate such as `10Mbit/s`, or a number of packets a second",
    ),
    ("new_flows = 0.25", "new_flows = 1.5", 33, "new_flows: found 1.5, expected a share of the packets, 0 to 1"),
    ("new_flows = 0.25", "new_flows = nan", 33, "new_flows: found NaN, expected a share of the packets, 0 to 1"),
    (
        "new_flows = 0.25",
        "flow_packets = 5",
        33,
        "flow_packets: found it without `flows`, expected how many flows there are at a time, 1 to 1000",
    ),
    (
        "new_flows = 0.25",
        "flow_packets = 0.5\nflows = 3",
        33,
        "flow_packets: found 0.5, expected the mean of a flow's packets, 1 to 1e9",
    ),
    (
        "new_flows = 0.25",
        "flows = 3",
        33,
        "flows: found it without `flow_packets`, expected the mean number of packets of a flow, 1 or more",
    ),
    ("new_flows = 0.25", "new_flows = 0.25\nflows = 0", 34, "flows: found 0, expected 1 to 1000 flows at a time"),
    (
        "new_flows = 0.25",
        "new_flows = 0.25\nflow_packets = 5\nflows = 3",
        33,
        "new_flows: found 0.25 beside flow_packets = 5, expected one of them, or 0.2",
    ),
    (
        "payload = \"558B\"",
        "payload = '558B'\nsizes = 'imix'",
        31,
        "traffic: found payload and sizes, expected one of them",
    ),
    ("payload = \"558B\"", "sizes = '57B'", 31, "traffic: found frames of 57 to 57 bytes, expected 58 to 1514"),
    (
        "payload = \"558B\"",
        "sizes = { kind = 'exponential', mean = '500B' }",
        31,
        "traffic: found frames of 1 to 65535 bytes, expected 58 to 1514",
    ),
    (
        "arrival = \"poisson\"",
        "arrival = 'pareto'",
        32,
        "traffic: arrival: found `pareto`, expected constant, poisson, or a table with `kind`",
    ),
    ("kind = \"udp\"", "kind = \"tcp\"", 30, "traffic: found `rate`, expected it only with kind udp"),
    (
        "service = { law = \"exponential\", mean = \"7.5ms\" }\nbuffer = 200",
        "app = 'learning'\nbuffer = 7",
        4,
        "controller: found `buffer` without `service`, expected both",
    ),
    (
        "install = \"path\"",
        "connect = 'none'",
        3,
        "controller: service: found it with connect = \"none\", expected a controller that serves",
    ),
];

#[test]
fn wrong_ones_say_where_and_why() {
    each_says_where_and_why(RIGHT, CASES);
}

#[test]
fn what_only_parts_make_wrong_is_found() {
    let without_service =
        RIGHT.replace("service = { law = \"exponential\", mean = \"7.5ms\" }\nbuffer = 200\n", "app = 'learning'\n");
    let without_agents = without_service
        .replace("packet_in = { law = \"gamma\", mean = \"5.6ms\", scv = 0.5 }\npacket_out = \"5.9ms\"\n", "")
        .replace("agents = \"shared\"\nbuffer = 50\n", "");
    assert_eq!(
        parse(&without_agents).unwrap_err(),
        "t.toml:28: new_flows: found it, but no service time of what it asks, expected `service` in [controller], or `packet_in`, \
         `packet_out` or `control` in [switch.timing]"
    );
    let nothing = "[[switch]]\nname = 's1'\n[switch.timing]\nwrite = '1ms'\n";
    let expected =
        "t.toml:3: switch s1: timing: found no service time, expected `data` at least, such as data = \"9us\"";
    assert_eq!(parse(nothing).unwrap_err(), expected);
    let nobody = "[controller]\nservice = '1ms'\n[[switch]]\nname = 's1'\n[switch.timing]\ncontrol = { delay = '20ms', capacity = 70 }\n";
    assert!(parse(nobody).unwrap_err().starts_with("t.toml:2: controller: service: found no switch that it is for"));
    let short = "[[switch]]\nname = 's1'\n[switch.timing]\ncontrol = { delay = '10ms', capacity = 50 }\n";
    assert_eq!(
        parse(short).unwrap_err(),
        "t.toml:4: switch s1: timing: control: delay: found 10 ms, expected at least 1 / capacity, 20 ms, and at most an hour"
    );
}

#[test]
fn a_profile_stands_for_timing() {
    let with = |line: &str| parse(&format!("[[switch]]\nname = 's1'\n{line}\n"));
    let x510 = with("profile = 'at-x510'").unwrap().switches[0].timing.clone().unwrap();
    assert!(matches!(x510.control, ControlPathTiming::Agents { buffer: Some(200), .. }), "{x510:?}");
    assert!((x510.data.unwrap().mean_s(600.0) * 1e6 - 8.04).abs() < 0.3);
    assert_eq!(with("profile = 'native'").unwrap().switches[0].timing, None);
    let both = with("profile = 'at-x510'\n[switch.timing]\ndata = '1us'").unwrap_err();
    assert!(both.starts_with("t.toml:3: switch s1: found `profile` and a section `timing`"), "{both}");
    let none = with("profile = 'nowhere.toml'").unwrap_err();
    assert!(none.starts_with("t.toml:3: switch s1: profile: found no profile `nowhere.toml`"), "{none}");
    assert!(none.contains("at-x510"), "{none}");
}
