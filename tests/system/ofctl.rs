//! Tests the switch with `ovs-ofctl`, in every version of OpenFlow.
use crate::bed::{B4, Bed, ping, ping_train};
use std::process::Command;

const SWITCH: [&str; 8] =
    ["--dpid", "0x2a", "--port", "1=af_packet:pa", "--port", "2=af_packet:pb", "--listen", "ptcp:6654"];

fn ofctl(bed: &Bed, version: &str, command: &str, arguments: &[&str]) -> String {
    let mut all = vec!["-O", version, command, "tcp:127.0.0.1:6654"];
    all.extend(arguments);
    bed.run("ovs-ofctl", &all)
}

/// Returns the flow entries as dump-flows prints them, without times and counters.
fn flows(bed: &Bed, version: &str) -> Vec<String> {
    let dump = ofctl(bed, version, "dump-flows", &["--no-stats"]);
    let mut lines: Vec<_> =
        dump.lines().filter(|line| line.contains("actions=")).map(|l| l.trim().to_owned()).collect();
    lines.sort();
    lines
}

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ovs-ofctl", "ping", "ip"])
}

#[test]
fn flows_added_changed_and_deleted_by_ovs_ofctl() {
    if !ready() {
        return;
    }
    for version in ["OpenFlow15", "OpenFlow14", "OpenFlow13", "OpenFlow10"] {
        let bed = Bed::new();
        let switch = bed.switch(&SWITCH);
        assert!(!ping_train(&bed.a, B4, 1), "an empty table forwards nothing");
        ofctl(&bed, version, "add-flow", &["priority=10,in_port=1,actions=output:2"]);
        ofctl(&bed, version, "add-flow", &["priority=10,in_port=2,actions=output:1"]);
        // The kernel may just be giving up on resolving the address that was unreachable before.
        assert!(bed.reaches(B4, 10) && ping(&bed.a, B4, 3), "{version}");
        ofctl(&bed, version, "mod-flows", &["in_port=2,actions=drop"]);
        assert!(!ping_train(&bed.a, B4, 1), "{version}");
        let expected = ["priority=10,in_port=1 actions=output:2", "priority=10,in_port=2 actions=drop"];
        let found = flows(&bed, version);
        assert_eq!(found.len(), 2, "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.ends_with(expected), "{version}: {found} is not {expected}");
        }
        ofctl(&bed, version, "del-flows", &["in_port=1"]);
        assert_eq!(flows(&bed, version).len(), 1, "{version}");
        switch.stop();
    }
}

#[test]
fn counters_ports_and_descriptions() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = bed.switch(&SWITCH);
    ofctl(&bed, "OpenFlow13", "add-flow", &["cookie=0x77,actions=normal"]);
    assert!(ping(&bed.a, B4, 10));
    let dump = ofctl(&bed, "OpenFlow13", "dump-flows", &["cookie=0x77/-1"]);
    let packets: u64 = number_after(&dump, "n_packets=");
    // Ten requests, ten answers, and address resolution.
    assert!((20..40).contains(&packets), "{dump}");
    let ports = ofctl(&bed, "OpenFlow13", "dump-ports", &["1"]);
    assert!(number_after(&ports, "rx pkts=") >= 10, "{ports}");
    let show = ofctl(&bed, "OpenFlow13", "show", &[]);
    assert!(show.contains("dpid:000000000000002a"), "{show}");
    assert!(show.contains("1(pa)") && show.contains("2(pb)"), "{show}");
    let desc = ofctl(&bed, "OpenFlow13", "dump-desc", &[]);
    assert!(desc.contains("weir"), "{desc}");
    let aggregate = ofctl(&bed, "OpenFlow13", "dump-aggregate", &[]);
    assert!(aggregate.contains("flow_count=1"), "{aggregate}");
    let tables = ofctl(&bed, "OpenFlow10", "dump-tables", &[]);
    assert!(tables.contains("active=1"), "{tables}");
    switch.stop();
}

#[test]
fn what_ovs_ofctl_gets_wrong_is_refused_by_name() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = bed.switch(&SWITCH);
    let cases = [("table=200,actions=output:1", "BAD_TABLE_ID"), ("actions=group:5", "BAD_OUT_GROUP")];
    for (flow, name) in cases {
        let mut command = bed.switches.command("ovs-ofctl");
        command.args(["-O", "OpenFlow13", "add-flow", "tcp:127.0.0.1:6654", flow]);
        let output = command.output().expect("ovs-ofctl starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(name), "{flow}: {said}");
    }
    switch.stop();
}

/// Tests all requests in the form of 1.4 and 1.5, and what both add to flow entries, groups and bundles.
#[test]
fn later_versions_say_the_same_in_their_own_form() {
    if !ready() {
        return;
    }
    for (version, bucket) in [("OpenFlow14", ""), ("OpenFlow15", "bucket_id:0,")] {
        let bed = Bed::new();
        let switch = bed.switch(&SWITCH);
        let ask = |command, arguments: &[&str]| ofctl(&bed, version, command, arguments);
        ask("add-group", &["group_id=7,type=select,bucket=weight:2,output:2"]);
        let groups = ask("dump-groups", &[]);
        assert!(
            groups.contains(&format!("group_id=7,type=select,bucket={bucket}weight:2,actions=output:2")),
            "{groups}"
        );
        ask("add-flow", &["table=1,importance=9,tcp,in_port=1,tp_dst=80,actions=set_field:5->ip_dscp,group:7"]);
        let dump = ask("dump-flows", &["table=1"]);
        assert!(dump.contains("importance=9, tcp,in_port=1,tp_dst=80 actions=set_field:5->"), "{version}: {dump}");
        assert!(ask("dump-aggregate", &[]).contains("flow_count=1"), "{version}");
        let show = ask("show", &[]);
        assert!(show.contains("1(pa)") && show.contains("2(pb)"), "{show}");
        let ports = ask("dump-ports", &["1"]);
        assert!(ports.contains("1 ports") && ports.contains("rx pkts="), "{ports}");
        assert!(ask("dump-tables", &[]).contains("active=1"), "{version}");
        assert!(ask("dump-table-desc", &[]).contains("eviction=off"), "{version}");
        ask("mod-port", &["1", "no-packet-in"]);
        assert!(ask("dump-ports-desc", &[]).contains("NO_PACKET_IN"), "{version}");
        switch.stop();
    }
}

/// Tests `weir ctl` together with `ovs-ofctl`: both see the same switch.
#[test]
fn ctl_sees_what_ovs_ofctl_did() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let socket = format!("/tmp/weir-system-{}.sock", std::process::id());
    let mut arguments = SWITCH.to_vec();
    arguments.extend(["--control-socket", &socket]);
    let switch = bed.switch(&arguments);
    ofctl(&bed, "OpenFlow13", "add-flow", &["priority=7,ip,nw_dst=10.9.0.0/24,actions=dec_ttl,output:2"]);
    let ctl = |words: &[&str]| {
        weir_testing::run(Command::new(crate::bed::weir()).args(["ctl", "--socket", &socket]).args(words))
    };
    let dump = ctl(&["dump-flows"]);
    assert!(dump.contains("priority=7,ip,nw_dst=10.9.0.0/24 actions=dec_ttl,output:2"), "{dump}");
    let ports: serde_json::Value = serde_json::from_str(&ctl(&["dump-ports", "--json"])).expect("JSON");
    assert!(ports.to_string().contains("\"pa\""), "{ports}");
    switch.stop();
    assert!(!std::path::Path::new(&socket).exists(), "the control socket stayed behind");
}

/// Returns the number after `label`.
fn number_after(text: &str, label: &str) -> u64 {
    let start = text.find(label).unwrap_or_else(|| panic!("no {label} in {text}")) + label.len();
    let digits: String = text[start..].trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number behind {label} in {text}"))
}

/// Tests Nicira's extensions, which `ovs-ofctl` uses in 1.0 for entries that 1.0 cannot express.
#[test]
fn registers_and_resubmits_by_ovs_ofctl() {
    if !ready() {
        return;
    }
    for version in ["OpenFlow10", "OpenFlow13"] {
        let bed = Bed::new();
        let switch = bed.switch(&SWITCH);
        let flows = [
            "table=0,in_port=1,actions=load:0x2->NXM_NX_REG0[],resubmit(,1)",
            "table=0,in_port=2,actions=load:0x1->NXM_NX_REG0[],resubmit(,1)",
            "table=1,reg0=0x2,actions=output:NXM_NX_REG0[]",
            "table=1,reg0=0x1,actions=output:NXM_NX_REG0[0..15]",
        ];
        for flow in flows {
            bed.run("ovs-ofctl", &["-O", version, "add-flow", "tcp:127.0.0.1:6654", flow]);
        }
        assert!(ping(&bed.a, B4, 3), "{version}");
        let dump = bed.run("ovs-ofctl", &["-O", version, "dump-flows", "tcp:127.0.0.1:6654", "table=1"]);
        assert!(dump.contains("reg0=0x2 actions=output:NXM_NX_REG0[]"), "{dump}");
        assert!(dump.contains("reg0=0x1 actions=output:NXM_NX_REG0[0..15]"), "{dump}");
        bed.run("ovs-ofctl", &["-O", version, "del-flows", "tcp:127.0.0.1:6654", "table=1"]);
        assert!(!ping_train(&bed.a, B4, 1), "{version}");
        switch.stop();
    }
}
