//! Tests bundles, eviction and table features with `ovs-ofctl`.
use crate::bed::Bed;
use std::process::{Command, Stdio};

const SWITCH: [&str; 2] = ["--listen", "ptcp:6654"];
const ADDRESS: &str = "tcp:127.0.0.1:6654";

fn ofctl(bed: &Bed, version: &str, arguments: &[&str]) -> String {
    let mut all = vec!["-O", version];
    all.extend(arguments);
    bed.run("ovs-ofctl", &all)
}

/// Runs `ovs-ofctl --bundle COMMAND` with these lines on its standard input. Returns whether it succeeded, and its
/// messages.
fn bundle(bed: &Bed, version: &str, command: &str, lines: &str) -> (bool, String) {
    let mut program: Command = bed.switches.command("ovs-ofctl");
    program.args(["-O", version, "--bundle", command, ADDRESS, "-"]);
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ovs-ofctl starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), lines.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn flows(bed: &Bed, version: &str) -> Vec<String> {
    let dump = ofctl(bed, version, &["dump-flows", "--no-stats", ADDRESS]);
    let mut lines: Vec<_> = dump.lines().filter(|l| l.contains("actions=")).map(|l| l.trim().to_owned()).collect();
    lines.sort();
    lines
}

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ovs-ofctl", "ip"])
}

#[test]
fn bundles_are_committed_whole_or_not_at_all() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = bed.switch(&SWITCH);
    for version in ["OpenFlow13", "OpenFlow14", "OpenFlow15"] {
        let two = "priority=5,in_port=1,actions=output:2\npriority=6,in_port=2,actions=output:1\n";
        let (done, said) = bundle(&bed, version, "replace-flows", two);
        assert!(done, "{version}: {said}");
        let before = flows(&bed, version);
        assert_eq!(before, ["priority=5,in_port=1 actions=output:2", "priority=6,in_port=2 actions=output:1"]);
        let wrong = "delete\nadd in_port=3,actions=drop\nadd table=200,in_port=2,actions=output:1\n";
        let (done, said) = bundle(&bed, version, "add-flows", wrong);
        assert!(!done && said.contains("OFPFMFC_BAD_TABLE_ID") && said.contains("OFPBFC_MSG_FAILED"), "{said}");
        assert_eq!(flows(&bed, version), before, "{version}");
        assert!(bundle(&bed, version, "replace-flows", "priority=7,actions=drop\n").0);
        assert_eq!(flows(&bed, version), ["priority=7 actions=drop"]);
    }
    switch.stop();
}

#[test]
fn tables_evict_and_say_what_they_can_do() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let switch = bed.switch(&["--listen", "ptcp:6654", "--max-entries", "2"]);
    ofctl(&bed, "OpenFlow14", &["mod-table", ADDRESS, "0", "evict"]);
    ofctl(&bed, "OpenFlow14", &["mod-table", ADDRESS, "0", "vacancy:20,80"]);
    let desc = ofctl(&bed, "OpenFlow14", &["dump-table-desc", ADDRESS]);
    assert!(desc.contains("eviction=on eviction_flags=IMPORTANCE|LIFETIME"), "{desc}");
    assert!(desc.contains("vacancy_down=20% vacancy_up=80% vacancy=100%"), "{desc}");
    for (port, importance) in [(1, 5), (2, 3), (3, 4)] {
        let flow = format!("importance={importance},in_port={port},actions=drop");
        ofctl(&bed, "OpenFlow14", &["add-flow", ADDRESS, &flow]);
    }
    let left = flows(&bed, "OpenFlow14");
    assert!(left.len() == 2 && !left.iter().any(|flow| flow.contains("in_port=2")), "{left:?}");
    let features = ofctl(&bed, "OpenFlow13", &["dump-table-features", ADDRESS]);
    assert!(features.contains("next tables: 1-63"), "{features}");
    switch.stop();
}
