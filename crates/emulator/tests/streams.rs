//! Tests streams through virtual switches, live.
use weir_emulator::{LabOptions, run};
use weir_network::LabResult;
use weir_scenario::Scenario;

/// Two virtual switches on three ports; the streams use half of the output's rate.
const TWO: &str = r#"
duration = "300ms"
[controller]
connect = "none"
[[switch]]
name = "s1"
[switch.fabric]
ports = 3
rate = "20Mbit/s"
[[switch.virtual]]
name = "gold"
dpid = 0x101
select = [{ vlan = 10 }]
buffer = "96kB"
entries = ["actions=output:3"]
ports = [{ port = 1, rate_in = "5Mbit/s" }, { port = 2, rate_in = "5Mbit/s" }, { port = 3, rate_out = "10Mbit/s" }]
[[switch.virtual]]
name = "tin"
dpid = 0x102
select = [{ port = 2, ip_dst = "10.2.0.0/16" }]
buffer = "96kB"
entries = ["actions=output:3"]
ports = [{ port = 2, rate_in = "5Mbit/s" }, { port = 3, rate_out = "10Mbit/s" }]
[[stream]]
switch = "s1"
virtual = "gold"
inputs = "1,2"
output = 3
load = 0.25
[[stream]]
switch = "s1"
virtual = "tin"
inputs = "2"
output = 3
load = 0.25
arrival = "constant"
sizes = "500B"
class = 7
"#;

fn lab(text: &str) -> LabResult {
    run(&Scenario::parse(text, "streams.toml").unwrap(), &LabOptions::default(), &mut |_| {}).unwrap()
}

#[test]
fn streams_go_through_their_virtual_switches() {
    let result = lab(TWO);
    let [gold, tin] = &result.streams[..] else { panic!("expected two streams") };
    for stream in [gold, tin] {
        assert!(stream.sent > 100, "{stream:?}");
        assert_eq!(stream.received, stream.sent, "nothing is lost at half of the rate: {stream:?}");
        assert_eq!((stream.throughput, stream.loss), (Some(1.0), Some(0.0)));
        assert_eq!(stream.delay.map(|delay| delay.samples), Some(stream.sent));
    }
    assert_eq!((tin.virtual_switch.as_deref(), tin.output, tin.class), (Some("tin"), 3, 7));
    // Sends 5 Mbit/s for 0.3 s in packets of 500 bytes; the first packet is sent within the first gap.
    assert!((374..=375).contains(&tin.sent), "{}", tin.sent);
    assert!(result.drops.is_empty(), "{:?}", result.drops);
}

#[test]
fn what_a_virtual_switch_drops_is_told() {
    let narrow = TWO.replace(
        "rate_out = \"10Mbit/s\" }]\n[[switch.virtual]]",
        "rate_out = \"1Mbit/s\", ceiling = \"1Mbit/s\" }]\n[[switch.virtual]]",
    );
    let narrow = narrow.replacen("buffer = \"96kB\"", "buffer = \"8kB\"", 1);
    let result = lab(&narrow);
    let [gold, tin] = &result.streams[..] else { panic!("expected two streams") };
    assert!(gold.received < gold.sent, "{gold:?}");
    assert_eq!(tin.received, tin.sent, "the other's ceiling is its own affair");
    let lost: u64 = result.drops.iter().filter(|drop| drop.place == "s1 gold").map(|drop| drop.packets).sum();
    assert_eq!(lost, gold.sent - gold.received, "{:?}", result.drops);
}

#[test]
fn streams_that_cannot_be_sent_are_refused() {
    let host = "[[host]]\nname = \"h1\"\nswitch = \"s1\"\nport = 1\nip = \"10.0.0.1/24\"\n[[stream]]";
    for (found, replaced, says) in [
        (
            "sizes = \"500B\"",
            "sizes = \"40B\"",
            "stream tin: sizes: found packets of 40 bytes, expected at least 46: real ones have headers",
        ),
        (
            "[{ port = 2, ip",
            "[{ port = 1, ip",
            "stream tin: virtual switch tin: select: found nothing for packets of port 2",
        ),
        ("[[stream]]", host, "stream gold: found port 1 of s1, which host h1 has; expected a port of its own"),
    ] {
        let text = TWO.replacen(found, replaced, 1);
        let scenario = Scenario::parse(&text, "wrong.toml").unwrap();
        let refused = run(&scenario, &LabOptions::default(), &mut |_| {}).unwrap_err();
        assert_eq!(refused.to_string(), says);
    }
}
