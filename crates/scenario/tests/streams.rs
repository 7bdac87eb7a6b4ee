//! Tests streams in scenario files.
mod wrong_lines;

use std::time::Duration;
use weir_scenario::{PacketStream, Scenario};
use weir_traffic::{ArrivalProcess, BimodalSizes, OfferedPackets, PacketSizeLaw, TwoStateMmpp};
use wrong_lines::{WrongLine, each_says_where_and_why};

/// Switch with 33 ports and streams of two virtual switches; each case breaks one line of it.
const RIGHT: &str = r#"
duration = "2s"
[simulate]
warm_up = "100ms"
until = 0.01
[[switch]]
name = "s1"
[switch.fabric]
ports = 33
rate = "1Gbit/s"
[[switch.virtual]]
name = "gold"
dpid = 0x101
ports = [{ port = 1, rate_in = "1Gbit/s" }, { port = 2, rate_in = "1Gbit/s" }, { port = 33, rate_out = "100Mbit/s" }]
buffer = "15kB"
entries = ["actions=output:33"]
[[stream]]
switch = "s1"
virtual = "gold"
inputs = "1,2"
output = 33
load = 0.1
arrival = { kind = "mmpp", high = 3.0, low = 0.5, time = "500us" }
sizes = { kind = "bimodal", short = 1.0 }
"#;

/// Lines that make it wrong.
const CASES: &[WrongLine] = &[
    ("until = 0.01", "until = 1.0", 5, "until: found 1, expected a share of the mean between 0 and 1, such as 0.01"),
    ("until = 0.01", "replications = 0", 5, "replications: found 0, expected 1 to 10000"),
    ("switch = \"s1\"", "switch = \"s2\"", 18, "stream: switch: found `s2`, expected one of s1"),
    ("virtual = \"gold\"", "virtual = \"tin\"", 19, "stream: virtual: found `tin`, expected one of gold"),
    ("\"1,2\"", "\"1-3\"", 17, "stream: found port 3, expected only ports of virtual switch gold"),
    ("\"1,2\"", "\"1-34\"", 20, "stream: inputs: found `1-34`, expected ports of the switch such as `1-4` or `1,3`"),
    ("\"1,2\"", "\"2-1\"", 20, "stream: inputs: found `2-1`, expected ports of the switch such as `1-4` or `1,3`"),
    ("\"1,2\"", "\"\"", 20, "stream: inputs: found ``, expected ports of the switch such as `1-4` or `1,3`"),
    ("output = 33", "output = 34", 21, "stream: output: found 34, expected one of the switch's 33 ports"),
    (
        "load = 0.1",
        "load = 0.0",
        22,
        "stream: load: found 0, expected a share of the output's capacity above 0, at most 100",
    ),
    (
        "load = 0.1",
        "load = 0.1\nrate = \"1Mbit/s\"",
        17,
        "stream: expected either `rate` (of each input) or `load` (of all, as a share of the output's capacity)",
    ),
    (
        "high = 3.0",
        "high = 0.3",
        23,
        "stream: arrival: rate in the high state: found 0.3, expected at least 1, of the mean rate",
    ),
    (
        "{ kind = \"mmpp\", high = 3.0, low = 0.5, time = \"500us\" }",
        "\"bursts\"",
        23,
        "stream: arrival: found `bursts`, expected constant, poisson, or a table with `kind`",
    ),
    (
        "{ kind = \"mmpp\", high",
        "{ kind = \"mmpp\", hihg",
        23,
        "stream: arrival: unknown field `hihg`, expected one of `high`, `low`, `time`",
    ),
    (", time = \"500us\"", "", 23, "stream: arrival: found no `time`, expected it, such as time = \"500us\""),
    (
        "time = \"500us\"",
        "time = 500",
        23,
        "stream: arrival: time: found `500`, expected a time such as `250us`, `1.5ms`, `10s` or `2min`",
    ),
    (
        "{ kind = \"mmpp\", high = 3.0, low = 0.5, time = \"500us\" }",
        "3",
        23,
        "found another kind of value, expected `constant`, `poisson`, or a table with `kind`, for example \
         { kind = \"mmpp\", high = 3.0, low = 0.5, time = \"500us\" }",
    ),
    (
        "{ kind = \"bimodal\", short = 1.0 }",
        "\"1515B\"",
        24,
        "stream: sizes: found packets of up to 1515 bytes, expected at most `max_packet` of [switch.fabric], 1514B: make \
         it larger, and buffers at least as large",
    ),
    (
        "{ port = 33, rate_out = \"100Mbit/s\" }",
        "{ port = 33, rate_in = \"100Mbit/s\" }, { port = 3, rate_out = \"1Mbit/s\" }",
        17,
        "stream: output: found port 33, for which virtual switch gold has no `rate_out`, expected one: all packets would \
         be lost",
    ),
    (
        "{ port = 2, rate_in =",
        "{ port = 2, rate_out =",
        17,
        "stream: inputs: found port 2, for which virtual switch gold has no `rate_in`, expected one: nothing gets in",
    ),
    (
        "{ kind = \"mmpp\", high = 3.0, low = 0.5, time = \"500us\" }",
        "{ kind = \"trace\", file = \"no-such.csv\" }",
        23,
        "stream: arrival: cannot read no-such.csv: No such file or directory (os error 2)",
    ),
    ("short = 1.0", "short = 1.5", 24, "stream: share of short packets: found 1.5, expected 0 to 1"),
    (
        "{ kind = \"bimodal\", short = 1.0 }",
        "\"1500\"",
        24,
        "stream: sizes: found `1500`, expected bimodal, imix, a size such as 1500B, or a table with `kind`",
    ),
    (
        "{ kind = \"bimodal\", short = 1.0 }",
        "\"70kB\"",
        24,
        "stream: sizes: found 70000 to 70000 bytes, expected 1 to 65535",
    ),
];

fn stream(text: &str) -> PacketStream {
    Scenario::parse(text, "right.toml").unwrap().streams.remove(0)
}

#[test]
fn the_right_one_says_what_it_means() {
    let scenario = Scenario::parse(RIGHT, "right.toml").unwrap();
    let expected = PacketStream {
        name: "gold".into(),
        switch: 0,
        virtual_switch: Some(0),
        inputs: vec![1, 2],
        output: 33,
        source: OfferedPackets::Rule {
            arrival: ArrivalProcess::TwoState(TwoStateMmpp { high: 3.0, low: 0.5, high_s: 0.0005 }),
            // A tenth of 1 Gbit/s from two inputs, in packets of 82 bytes.
            per_second: 0.1 * 1e9 / 8.0 / 2.0 / 82.0,
            size: PacketSizeLaw::Bimodal(BimodalSizes { short: 1.0, ..BimodalSizes::default() }),
        },
        class: 0,
        start: Duration::ZERO,
        duration: None,
        line: Some(17),
    };
    assert_eq!(scenario.streams, [expected]);
    let simulate = scenario.simulate;
    assert_eq!((simulate.warm_up, simulate.duration), (Duration::from_millis(100), Duration::from_secs(2)));
    assert_eq!((simulate.replications, simulate.until), (10, Some(0.01)));
    assert_eq!(scenario.switches[0].virtual_switches[0].entries, ["actions=output:33"]);
}

#[test]
fn wrong_ones_say_where_and_why() {
    each_says_where_and_why(RIGHT, CASES);
}

#[test]
fn rates_and_sizes_may_be_said_plainly() {
    let text =
        RIGHT.replace("load = 0.1", "rate = \"12Mbit/s\"").replace("{ kind = \"bimodal\", short = 1.0 }", "\"1500B\"");
    let OfferedPackets::Rule { per_second, size, .. } = stream(&text).source else { panic!("expected a rule") };
    assert_eq!((per_second, size), (1000.0, PacketSizeLaw::Fixed(1500)));
}

#[test]
fn lists_of_packets_are_read_from_files_beside_the_scenario() {
    let folder = std::env::temp_dir().join(format!("weir-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("packets.csv"), "0.5,64\n0.75,1500\n").unwrap();
    let law = "{ kind = \"mmpp\", high = 3.0, low = 0.5, time = \"500us\" }";
    let text = RIGHT.replace(law, "{ kind = \"trace\", file = \"packets.csv\" }");
    let file = folder.join("trace.toml");
    let file = file.to_str().unwrap();
    let both = Scenario::parse(&text, file).unwrap_err().to_string();
    let alone = text.replace("load = 0.1\n", "").replace("sizes = { kind = \"bimodal\", short = 1.0 }\n", "");
    let read = Scenario::parse(&alone, file);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(both.ends_with("expected neither rate, load nor sizes: the file has them"), "{both}");
    let OfferedPackets::Trace(trace) = read.unwrap().streams.remove(0).source else { panic!("expected a trace") };
    assert_eq!(trace.packets().iter().map(|packet| packet.bytes).collect::<Vec<_>>(), [64, 1500]);
}
