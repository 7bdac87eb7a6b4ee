//! Tests meters and limits on packet-ins, set by `ovs-ofctl` and by `weir ctl`, with packets of kernel hosts.
use crate::bed::{B4, Bed, ping, ping_train, weir};
use std::process::Command;
use std::time::Duration;
use weir_testing::wait_until;

const SWITCH: [&str; 8] =
    ["--dpid", "0x2a", "--port", "1=af_packet:pa", "--port", "2=af_packet:pb", "--listen", "ptcp:6654"];

fn ofctl(bed: &Bed, command: &str, arguments: &[&str]) -> String {
    bed.run("ovs-ofctl", &[&["-O", "OpenFlow13", command, "tcp:127.0.0.1:6654"], arguments].concat())
}

/// Returns the error that `ovs-ofctl` prints.
fn refusal(bed: &Bed, command: &str, argument: &str) -> String {
    let mut ofctl = bed.switches.command("ovs-ofctl");
    let output = ofctl.args(["-O", "OpenFlow13", command, "tcp:127.0.0.1:6654", argument]).output();
    let output = output.expect("ovs-ofctl starts");
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// Returns the lines after the reply's first, joined.
fn told(text: &str) -> String {
    text.lines().skip(1).collect::<Vec<_>>().join("|")
}

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ovs-ofctl", "ping", "ip"])
}

#[test]
fn meters_of_ovs_ofctl_are_set_shown_and_obeyed() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = bed.switch(&SWITCH);
    let features = ofctl(&bed, "meter-features", &[]);
    assert!(features.contains("max_meter:65536 max_bands:16"), "{features}");
    assert!(features.contains("drop dscp_remark") && features.contains("kbps pktps burst stats"), "{features}");
    let bands = "bands=type=drop rate=1 burst_size=4";
    ofctl(&bed, "add-meter", &[&format!("meter=7 pktps burst stats {bands}")]);
    assert_eq!(
        told(&ofctl(&bed, "dump-meters", &[])),
        "meter=7 pktps burst stats bands=|type=drop rate=1 burst_size=4"
    );
    ofctl(&bed, "add-flow", &["priority=9,icmp,in_port=1,actions=meter:7,output:2"]);
    ofctl(&bed, "add-flow", &["priority=1,actions=normal"]);
    // Ten requests in half a second: the burst passes, and then one per second.
    assert!(!ping_train(&bed.a, B4, 10));
    let stats = told(&ofctl(&bed, "meter-stats", &["meter=7"]));
    assert!(stats.starts_with("meter:7 flow_count:1 packet_in_count:10 byte_in_count:980 duration:"), "{stats}");
    let dropped: u64 = stats.split("packet_count:").nth(1).and_then(|s| s.split(' ').next()?.parse().ok()).unwrap();
    assert!((4..=6).contains(&dropped), "{stats}");
    ofctl(&bed, "mod-meter", &["meter=7 kbps bands=type=dscp_remark rate=100000 prec_level=1"]);
    assert!(bed.reaches(B4, 10) && ping(&bed.a, B4, 3));
    let flows = ofctl(&bed, "dump-flows", &[]);
    assert!(flows.contains("actions=meter:7,output:2"), "{flows}");
    ofctl(&bed, "del-meter", &["meter=7"]);
    let flows = ofctl(&bed, "dump-flows", &[]);
    assert!(!flows.contains("meter:7") && flows.contains("actions=NORMAL"), "{flows}");
    switch.stop();
}

#[test]
fn what_cannot_be_metered_is_refused_by_name() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = bed.switch(&SWITCH);
    ofctl(&bed, "add-meter", &["meter=1 kbps bands=type=drop rate=1"]);
    for (command, argument, name) in [
        ("add-meter", "meter=1 kbps bands=type=drop rate=1", "METER_EXISTS"),
        ("mod-meter", "meter=2 kbps bands=type=drop rate=1", "UNKNOWN_METER"),
        ("add-flow", "actions=meter:9,output:1", "UNKNOWN_METER"),
        ("meter-stats", "meter=9", "UNKNOWN_METER"),
        ("dump-meters", "meter=9", "UNKNOWN_METER"),
    ] {
        let said = refusal(&bed, command, argument);
        assert!(said.contains(name), "{command} {argument}: {said}");
    }
    switch.stop();
}

#[test]
fn ctl_sets_meters_and_shows_what_a_limit_kept_from_a_controller() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let socket = format!("/tmp/weir-meters-{}.sock", std::process::id());
    let controller = bed.controller(&["--listen", "tcp:127.0.0.1:6653"]);
    let limit = [
        "--packet-in-rate",
        "1",
        "--packet-in-burst",
        "2",
        "--control-socket",
        &socket,
        "--controller",
        "tcp:127.0.0.1:6653",
    ];
    let switch = bed.switch(&[&SWITCH[..], &limit].concat());
    let ctl = |words: &[&str]| weir_testing::run(Command::new(weir()).args(["ctl", "--socket", &socket]).args(words));
    ctl(&["add-meter", "meter=3,pktps,bands=type=drop,rate=100000"]);
    ctl(&["add-meter", "meter=controller,kbps,bands=type=drop,rate=1000"]);
    let dump = "meter=3 pktps bands=\ntype=drop rate=100000\nmeter=controller kbps bands=\ntype=drop rate=1000\n";
    assert_eq!(ctl(&["dump-meters"]), dump);
    assert_eq!(told(&ofctl(&bed, "dump-meters", &["meter=3"])), "meter=3 pktps bands=|type=drop rate=100000");
    ctl(&["mod-meter", "meter=3,pktps,bands=type=drop,rate=5"]);
    ctl(&["add-flow", "priority=60000,actions=meter:3,controller"]);
    let trace = ctl(&["trace", "1", "icmp,nw_src=10.9.0.1,nw_dst=10.9.0.2"]);
    assert!(trace.contains("meter 3: passes"), "{trace}");
    // No host answers address resolution here.
    bed.a.ip(&format!("neigh replace {B4} lladdr 02:00:00:00:00:02 dev eth0"));
    let is_up = || ctl(&["show"]).contains("up, OpenFlow");
    assert!(wait_until(Duration::from_secs(10), is_up), "{}", ctl(&["show"]));
    let counters = || -> serde_json::Value { serde_json::from_str(&ctl(&["counters", "--json"])).expect("JSON") };
    let is_limited = || {
        ping_train(&bed.a, B4, 5);
        counters()["packet_ins_limited"].as_u64().unwrap_or(0) > 0
    };
    assert!(wait_until(Duration::from_secs(10), is_limited), "{:#}", counters());
    let seen = counters();
    assert!(seen["drops"]["packet_in_rate"].as_u64() > Some(0), "{seen:#}");
    assert!(ctl(&["show"]).contains("packet-ins over a controller's limit"), "{}", ctl(&["show"]));
    assert!(ctl(&["meter-stats", "meter=3"]).starts_with("meter:3 flow_count:1 packet_in_count:"));
    ctl(&["del-meters"]);
    assert_eq!(ctl(&["dump-meters"]), "");
    assert!(!ctl(&["dump-flows"]).contains("meter:3"));
    switch.stop();
    controller.stop();
}
