//! Tests virtual switches on real interfaces, with `ovs-ofctl` and `weir ctl`.
use crate::bed::{B4, Bed, ping, ping_train, weir};
use std::io::Write as _;
use weir_testing::TestProcess;

/// Two tenants on both ports, selected by addresses.
const TENANTS: &str = r#"
[[virtual]]
name = "gold"
dpid = 0x101
select = [{ ip_dst = "10.9.0.0/24" }]
ports = [{ port = 1, rate = "60Mbit/s" }, { port = 2, rate = "60Mbit/s" }]
buffer = "96kB"
listen = "ptcp:7001"
[[virtual]]
name = "tin"
dpid = 0x102
select = [{ ip_dst = "10.8.0.0/24" }]
ports = [{ port = 1, number = 11, rate = "30Mbit/s" }, { port = 2, number = 12, rate = "30Mbit/s" }]
buffer = "48kB"
listen = "ptcp:7002"
"#;

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ovs-ofctl", "ping", "ip", "ss"])
}

fn start(bed: &Bed) -> (TestProcess, tempfile::NamedTempFile) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(TENANTS.as_bytes()).expect("it is written");
    for (number, host) in [(1, &bed.a), (2, &bed.b)] {
        host.ip(&format!("addr add 10.8.0.{number}/24 dev eth0"));
    }
    let path = file.path().to_str().expect("a path in UTF-8").to_owned();
    let port = |number: u32, name: &str| format!("{number}=af_packet:{name},rate=100Mbit/s");
    let (one, two) = (port(1, "pa"), port(2, "pb"));
    let switch = bed.switch(&["--name", bed.switches.name(), "--port", &one, "--port", &two, "--virtual", &path]);
    (switch, file)
}

fn ofctl(bed: &Bed, port: u16, command: &str, arguments: &[&str]) -> String {
    let target = format!("tcp:127.0.0.1:{port}");
    bed.run("ovs-ofctl", &[&["-O", "OpenFlow13", command, &target], arguments].concat())
}

fn ctl(bed: &Bed, arguments: &[&str]) -> String {
    bed.run(weir(), &[&["ctl", "--socket", bed.switches.name()], arguments].concat())
}

#[test]
fn tenants_have_switches_of_their_own() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let (switch, _file) = start(&bed);
    assert!(ofctl(&bed, 7001, "show", &[]).contains("dpid:0000000000000101"));
    let tin = ofctl(&bed, 7002, "show", &[]);
    assert!(tin.contains("dpid:0000000000000102") && tin.contains(" 11(pa)") && tin.contains(" 12(pb)"), "{tin}");
    assert!(!ping_train(&bed.a, B4, 1), "gold has no entries yet");
    ofctl(&bed, 7001, "add-flow", &["actions=NORMAL"]);
    assert!(bed.reaches(B4, 10));
    assert!(!ping_train(&bed.a, "10.8.0.2", 1), "tin has none");
    assert!(ctl(&bed, &["--vs", "tin", "dump-flows"]).is_empty());
    ofctl(&bed, 7002, "add-flow", &["in_port=11,actions=set_queue:12,output:12"]);
    ofctl(&bed, 7002, "add-flow", &["in_port=12,actions=output:11"]);
    assert!(bed.reaches("10.8.0.2", 10));
    let queues = ofctl(&bed, 7002, "queue-stats", &["12"]);
    assert!(queues.contains("port 12 queue 11: bytes=0, pkts=0"), "{queues}");
    assert!(queues.contains("port 12 queue 12") && !queues.contains("queue 12: bytes=0"), "{queues}");
    switch.stop();
}

#[test]
fn they_come_and_go_while_others_forward() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let (switch, _file) = start(&bed);
    ofctl(&bed, 7001, "add-flow", &["actions=NORMAL"]);
    assert!(bed.reaches(B4, 10));
    let guest = ["name=guest", "dpid=0x103", "select=[{ip_dst=\"10.7.0.0/16\"}]", "ports=[{port=1,rate=\"10Mbit/s\"}]"];
    let add = [&["vs", "add"], &guest[..], &["buffer=16kB", "listen=ptcp:7003"]].concat();
    assert!(ctl(&bed, &add).contains("virtual switch guest is added, listens on ptcp:7003:127.0.0.1"));
    assert!(ofctl(&bed, 7003, "show", &[]).contains("dpid:0000000000000103"));
    assert!(ctl(&bed, &["vs", "resize", "tin", "buffer=32kB"]).contains("tin is resized"));
    assert!(ctl(&bed, &["vs", "remove", "guest"]).contains("guest is removed"));
    assert!(ping(&bed.a, B4, 5), "gold never noticed");
    // The resources of the removed virtual switch are free at once, including its listening address.
    assert!(ctl(&bed, &add).contains("guest is added"));
    assert!(ctl(&bed, &["vs", "show"]).contains("virtual switch guest, dpid 0x0000000000000103"));
    switch.stop();
}
