//! Tests groups, changed by `ovs-ofctl` and by `weir ctl`, with pings through them.
use crate::bed::{B4, Bed, ping, ping_train, weir};
use std::process::Command;

const SWITCH: [&str; 6] = ["--port", "1=af_packet:pa", "--port", "2=af_packet:pb", "--listen", "ptcp:6654"];

fn ofctl(bed: &Bed, command: &str, arguments: &[&str]) -> String {
    let mut all = vec!["-O", "OpenFlow13", command, "tcp:127.0.0.1:6654"];
    all.extend(arguments);
    bed.run("ovs-ofctl", &all)
}

/// Returns the output of `ovs-ofctl` about groups, without durations.
fn groups(bed: &Bed, command: &str) -> Vec<String> {
    let dump = ofctl(bed, command, &[]);
    let lines = dump.lines().map(str::trim).filter(|line| line.starts_with("group_id="));
    lines
        .map(|line| line.split(',').filter(|part| !part.starts_with("duration=")).collect::<Vec<_>>().join(","))
        .collect()
}

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ovs-ofctl", "ping", "ip"])
}

#[test]
fn groups_added_changed_and_deleted_by_ovs_ofctl() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = bed.switch(&SWITCH);
    ofctl(
        &bed,
        "add-group",
        &["group_id=1,type=ff,bucket=watch_port:7,actions=output:7,bucket=watch_port:2,actions=output:2"],
    );
    ofctl(
        &bed,
        "add-group",
        &["group_id=2,type=select,bucket=weight:3,actions=output:1,bucket=weight:0,actions=output:2"],
    );
    ofctl(&bed, "add-flow", &["in_port=1,actions=group:1"]);
    ofctl(&bed, "add-flow", &["in_port=2,actions=write_actions(group:2)"]);
    assert!(ping(&bed.a, B4, 3));
    let expected = [
        "group_id=1,type=ff,bucket=watch_port:7,actions=output:7,bucket=watch_port:2,actions=output:2",
        "group_id=2,type=select,bucket=weight:3,actions=output:1,bucket=weight:0,actions=output:2",
    ];
    // The program `ovs-ofctl` prints ports by name if it knows their names.
    let found: Vec<String> = groups(&bed, "dump-groups")
        .iter()
        .map(|line| line.replace("\"pa\"", "1").replace("pa", "1").replace("pb", "2"))
        .collect();
    assert_eq!(found, expected);
    let stats = groups(&bed, "dump-group-stats");
    assert!(stats[0].starts_with("group_id=1,ref_count=1,packet_count="), "{stats:?}");
    assert!(stats[0].contains("bucket0:packet_count=0,"), "{stats:?}");
    assert!(!stats[1].contains("bucket0:packet_count=0,") && stats[1].contains("bucket1:packet_count=0,"), "{stats:?}");
    let features = ofctl(&bed, "dump-group-features", &[]);
    assert!(features.contains("select group") && features.contains("fast failover group"), "{features}");
    ofctl(&bed, "mod-group", &["group_id=1,type=indirect,bucket=actions=drop"]);
    assert!(!ping_train(&bed.a, B4, 1));
    ofctl(&bed, "del-groups", &["group_id=1"]);
    let flows = ofctl(&bed, "dump-flows", &[]);
    assert!(!flows.contains("group:1") && flows.contains("group:2"), "{flows}");
    ofctl(&bed, "del-groups", &[]);
    assert_eq!(groups(&bed, "dump-groups"), [""; 0]);
    switch.stop();
}

#[test]
fn a_bucket_takes_over_when_the_link_of_the_one_before_goes() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    // A third link, in addition to B's own: frames sent there are lost.
    bed.switches.join("pc", &bed.b, "eth9");
    let switch = bed.switch(&[&SWITCH[..], &["--port", "3=af_packet:pc"]].concat());
    ofctl(
        &bed,
        "add-group",
        &["group_id=1,type=ff,bucket=watch_port:3,actions=output:3,bucket=watch_port:2,actions=output:2"],
    );
    ofctl(&bed, "add-flow", &["in_port=1,actions=group:1"]);
    ofctl(&bed, "add-flow", &["in_port=2,actions=output:1"]);
    assert!(!ping_train(&bed.a, B4, 1), "the first bucket's port has link");
    bed.b.ip("link set eth9 down");
    assert!(bed.reaches(B4, 20), "the second bucket took over");
    bed.b.ip("link set eth9 up");
    assert!(
        weir_testing::wait_until(std::time::Duration::from_secs(5), || !ping_train(&bed.a, B4, 1)),
        "the first is back"
    );
    switch.stop();
}

#[test]
fn buckets_inserted_and_removed_by_ovs_ofctl() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = bed.switch(&[&SWITCH[..], &["--versions", "1.5"]].concat());
    let ofctl = |command: &str, arguments: &[&str]| {
        let all = [&["-O", "OpenFlow15", command, "tcp:127.0.0.1:6654"], arguments].concat();
        bed.run("ovs-ofctl", &all)
    };
    let fields = "selection_method=hash,fields(ip_src,ip_dst=255.255.0.0)";
    ofctl("add-group", &[&format!("group_id=1,type=select,{fields},bucket=bucket_id:10,weight:2,actions=drop")]);
    ofctl("insert-buckets", &["group_id=1,command_bucket_id=last,bucket=bucket_id:20,weight:1,actions=drop"]);
    ofctl("insert-buckets", &["group_id=1,command_bucket_id=10,bucket=bucket_id:15,weight:3,actions=drop"]);
    ofctl("remove-buckets", &["group_id=1,command_bucket_id=first"]);
    let dump = ofctl("dump-groups", &[]);
    let expected = "bucket=bucket_id:15,weight:3,actions=drop,bucket=bucket_id:20,actions=drop";
    assert!(dump.contains(expected), "{dump}");
    assert!(dump.contains("selection_method=hash,fields(ip_src,ip_dst=255.255.0.0)"), "{dump}");
    switch.stop();
}

/// The command `weir ctl` reads and writes the syntax of `ovs-ofctl`.
#[test]
fn ctl_changes_and_shows_groups() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let socket = format!("/tmp/weir-groups-{}.sock", std::process::id());
    let switch = bed.switch(&[&SWITCH[..], &["--control-socket", &socket]].concat());
    let command = |words: &[&str]| {
        let mut command = Command::new(weir());
        command.args(["ctl", "--socket", &socket]).args(words);
        command
    };
    let ctl = |words: &[&str]| weir_testing::run(&mut command(words));
    ctl(&["add-group", "group_id=5,type=all,bucket=output:2,bucket=set_field:4103->vlan_vid,output:1"]);
    ctl(&["add-flow", "in_port=1,actions=group:5"]);
    assert!(groups(&bed, "dump-groups")[0].starts_with("group_id=5,type=all,bucket="));
    let dump = ctl(&["dump-groups"]);
    assert_eq!(dump, "group_id=5,type=all,bucket=actions=output:2,bucket=actions=set_field:4103->vlan_vid,output:1\n");
    let stats = ctl(&["dump-group-stats", "5"]);
    assert!(stats.starts_with("group_id=5,duration=") && stats.contains("ref_count=1,packet_count="), "{stats}");
    let json: serde_json::Value = serde_json::from_str(&ctl(&["dump-groups", "--json"])).expect("JSON");
    assert_eq!(json["groups"][0]["group"]["group"], 5, "{json}");
    let trace = ctl(&["trace", "1", "udp,nw_src=10.0.0.1,nw_dst=10.0.0.2"]);
    assert!(trace.contains("group 5 (all): bucket 0"), "{trace}");
    ctl(&["mod-group", "group_id=5,type=indirect,bucket=output:2"]);
    assert_eq!(ctl(&["dump-groups"]), "group_id=5,type=indirect,bucket=actions=output:2\n");
    let refused = command(&["add-group", "group_id=5,type=all"]).output().expect("weir starts");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("the switch refuses the group: OFPGMFC_GROUP_EXISTS"), "{said}");
    ctl(&["del-groups"]);
    assert_eq!(ctl(&["dump-groups"]) + &ctl(&["dump-flows"]), "");
    switch.stop();
}
