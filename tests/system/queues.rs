//! Tests queues of ports on real interfaces, shown by `ovs-ofctl` and changed by `weir ctl`.
use crate::bed::{B4, Bed, iperf, ping, weir};
use weir_testing::{TestProcess, wait_until};

/// Starts a switch, named like its namespace, whose port 2 is a link of 50 Mbit/s with two queues besides the default
/// one.
fn start(bed: &Bed) -> TestProcess {
    let port = "2=af_packet:pb,rate=50Mbit/s,queue=1:min=10Mbit/s:max=25Mbit/s,queue=2:priority=1";
    bed.switch(&["--name", bed.switches.name(), "--port", "1=af_packet:pa", "--port", port, "--listen", "ptcp:6654"])
}

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ovs-ofctl", "ping", "ip", "ss", "iperf3"])
}

fn ofctl(bed: &Bed, version: &str, command: &str, arguments: &[&str]) -> String {
    let mut all = vec!["-O", version, command, "tcp:127.0.0.1:6654"];
    all.extend(arguments);
    bed.run("ovs-ofctl", &all)
}

fn ctl(bed: &Bed, arguments: &[&str]) -> String {
    bed.run(weir(), &[&["ctl", "--socket", bed.switches.name()], arguments].concat())
}

/// Returns the packets sent by a queue of port 2, as queue-stats prints them.
fn packets(bed: &Bed, queue: &str) -> u64 {
    let stats = ofctl(bed, "OpenFlow13", "queue-stats", &["2", queue]);
    let (_, rest) = stats.split_once("pkts=").unwrap_or_else(|| panic!("{stats}"));
    rest.split(',').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{stats}"))
}

#[test]
fn packets_leave_by_the_queue_that_their_entry_chooses() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = start(&bed);
    ofctl(&bed, "OpenFlow13", "add-flow", &["priority=1,actions=NORMAL"]);
    ofctl(&bed, "OpenFlow13", "add-flow", &["priority=9,icmp,in_port=1,actions=set_queue:1,output:2"]);
    assert!(ping(&bed.a, B4, 5));
    assert_eq!(packets(&bed, "1"), 5);
    ofctl(&bed, "OpenFlow10", "add-flow", &["priority=9,icmp,in_port=1,actions=enqueue:2:2"]);
    assert!(ping(&bed.a, B4, 7));
    assert_eq!((packets(&bed, "1"), packets(&bed, "2")), (5, 7));
    let before = packets(&bed, "0");
    ofctl(&bed, "OpenFlow13", "add-flow", &["priority=9,icmp,in_port=1,actions=set_queue:77,output:2"]);
    assert!(ping(&bed.a, B4, 3));
    assert!(packets(&bed, "0") >= before + 3, "a queue that is not there is the default one");
    assert!(ctl(&bed, &["dump-queues"]).contains("port 2: 3 packets for queues that it has not"));
    switch.stop();
}

#[test]
fn controllers_and_owners_see_the_same_queues() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = start(&bed);
    for (version, rates) in [("OpenFlow10", "min_rate:20.0%\n"), ("OpenFlow13", "min_rate:20.0% max_rate:50.0%\n")] {
        let config = ofctl(&bed, version, "queue-get-config", &["2"]);
        assert!(config.contains(&format!("queue 1: {rates}")), "{version}: {config}");
    }
    ctl(&bed, &["set-queue", "pb", "1", "max=5Mbit/s"]);
    ctl(&bed, &["set-queue", "1", "3", "max=1Gbit/s", "priority=7"]);
    ctl(&bed, &["del-queue", "2", "2"]);
    let config = ofctl(&bed, "OpenFlow13", "queue-get-config", &["2"]);
    assert!(config.contains("queue 1: max_rate:10.0%") && !config.contains("queue 2"), "{config}");
    let stats = ofctl(&bed, "OpenFlow13", "queue-stats", &[]);
    let queues: Vec<&str> = stats.lines().filter_map(|line| line.trim().split_once(": ").map(|(q, _)| q)).collect();
    assert_eq!(&queues[queues.len() - 4..], ["port 1 queue 0", "port 1 queue 3", "port 2 queue 0", "port 2 queue 1"]);
    let dump: serde_json::Value = serde_json::from_str(&ctl(&bed, &["--json", "dump-queues"])).unwrap();
    assert_eq!(dump[1]["queues"][1]["max_bps"], 5_000_000);
    let mut refused = bed.switches.command(weir());
    refused.args(["ctl", "--socket", bed.switches.name(), "set-queue", "2", "1", "min=60Mbit/s"]);
    let said = String::from_utf8_lossy(&refused.output().unwrap().stderr).into_owned();
    assert!(said.contains("expected at most 50Mbit/s"), "{said}");
    switch.stop();
}

#[test]
fn a_maximum_holds_for_tcp() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = start(&bed);
    ofctl(&bed, "OpenFlow13", "add-flow", &["priority=1,actions=NORMAL"]);
    ofctl(&bed, "OpenFlow13", "add-flow", &["priority=9,tcp,in_port=1,actions=set_queue:1,output:2"]);
    assert!(bed.reaches(B4, 20));
    let sent = iperf(&bed, &["-t", "2"]);
    let rate = sent["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_default();
    // A slow machine is still not faster than the queue.
    assert!(rate > 100_000.0 && rate < 26_000_000.0, "{rate} bit/s through a queue of 25 Mbit/s");
    let full = || ctl(&bed, &["show"]).contains("port 2 queue 1 full");
    assert!(full() || packets(&bed, "1") > 100);
    switch.stop();
}

#[test]
fn queues_outlive_their_device() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = start(&bed);
    ctl(&bed, &["del-queue", "2", "1"]);
    ctl(&bed, &["set-queue", "2", "5", "max=1Mbit/s"]);
    let queues = |bed: &Bed| -> Vec<u64> {
        let dump: serde_json::Value = serde_json::from_str(&ctl(bed, &["--json", "dump-queues"])).unwrap();
        let queues = dump[0]["queues"].as_array().cloned().unwrap_or_default();
        queues.iter().filter_map(|queue| queue["queue"].as_u64()).collect()
    };
    assert_eq!(queues(&bed), [0, 2, 5]);
    bed.switches.ip("link del pb");
    let limit = std::time::Duration::from_secs(10);
    assert!(wait_until(limit, || queues(&bed).is_empty()));
    bed.b.join("eth0", &bed.switches, "pb");
    assert!(wait_until(limit, || queues(&bed) == [0, 2, 5]));
    switch.stop();
}
