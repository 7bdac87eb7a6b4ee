//! Runs `weir ofp` as a process and checks its output.
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(arguments).output().expect("weir runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("weir writes UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("weir writes UTF-8")
}

#[test]
fn a_flow_goes_to_a_message_and_back() {
    let flow = "priority=10,ip,nw_dst=10.0.0.0/8 actions=output:2";
    let hex = stdout(&weir(&["ofp", "parse-flow", "--hex", flow]));
    let printed = weir(&["ofp", "print", hex.trim()]);
    assert_eq!(stdout(&printed), format!("OFPT_FLOW_MOD (OF1.3) (xid=0x0): ADD {flow}\n"));
    let canonical = weir(&["ofp", "parse-flow", "--version", "1.0", "dl_type=0x0800,nw_dst=10.0.0.0/8,actions=2"]);
    assert_eq!(stdout(&canonical), "ip,nw_dst=10.0.0.0/8 actions=output:2\n");
}

#[test]
fn a_wrong_flow_is_one_line_and_status_2() {
    let output = weir(&["ofp", "parse-flow", "ip,nw_dts=10.0.0.1,actions=drop"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "weir: `ip,nw_dts=10.0.0.1,actions=drop`: column 4: found `nw_dts`, expected a match field or setting; \
                    did you mean `nw_dst`?\n";
    assert_eq!(stderr(&output), expected);
}

#[test]
fn dumps_are_read_from_standard_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["ofp", "print", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("weir runs");
    let dump = "00000000  04 14 00 08 00 00 00 01-04 15 00 08 00 00 00 02 |................|\n";
    child.stdin.take().unwrap().write_all(dump.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let expected = "OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1):\nOFPT_BARRIER_REPLY (OF1.3) (xid=0x2):\n";
    assert_eq!((stdout(&output).as_str(), output.status.code()), (expected, Some(0)));
}

#[test]
fn messages_before_a_bad_one_are_printed() {
    let output = weir(&["ofp", "print", "04140008 00000001", "0414ffff 00000002"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "OFPT_BARRIER_REQUEST (OF1.3) (xid=0x1):\n");
    assert_eq!(stderr(&output), "weir: message 2 (byte 8): found 8 bytes, expected the 65535 its header says\n");
    let output = weir(&["ofp", "print", "no such file"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`no such file` is no file, and as text: line 1, column 1: found `n`"));
}

/// Captures of the reference data, with their number of messages and the expected exit status.
const CAPTURES: [(&str, usize, i32); 7] = [
    ("of10_7050q.pcapng", 6, 0),
    ("of10_7050sx_bsn.pcap", 65, 0),
    ("of10_p3295.pcap", 63, 0),
    ("of10_pf5240.pcap", 77, 0),
    ("of10_s4810.pcap", 155, 0),
    ("of13_ericsson.pcapng", 103, 0),
    ("of10_inv_OFPST_FLOW.pcap", 0, 2),
];

#[test]
fn captures_are_taken_apart() {
    for (name, count, status) in CAPTURES {
        let Some(path) = weir_testing::shared(&format!("data/external/rules/openflow/tcpdump-pcap/{name}")) else {
            return;
        };
        let output = weir(&["ofp", "print", "--json", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(status), "{name}: {}", stderr(&output));
        let text = stdout(&output);
        let records: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_message = |record: &&serde_json::Value| record["body"] != serde_json::Value::Null;
        assert_eq!(records.iter().filter(is_message).count(), count, "{name}");
        assert!(records.iter().all(|record| record["from"].as_str().unwrap().contains(':')), "{name}");
    }
}

/// Splits printed output into messages, without the lines of capture time and addresses.
fn messages(text: &str) -> Vec<String> {
    let is_place = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let ends = words.len().checked_sub(3).map(|at| (words[at], words[at + 1]));
        ends.is_some_and(|(from, arrow)| arrow == ">" && from.contains('.') && !line.starts_with(' '))
    };
    let mut messages: Vec<Vec<&str>> = Vec::new();
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        match messages.last_mut() {
            _ if is_place(line) => messages.push(Vec::new()),
            Some(last) => last.push(line),
            None => panic!("a message without its place: {line}"),
        }
    }
    messages.into_iter().map(|lines| lines.join("\n")).collect()
}

/// Returns true if Open vSwitch cannot decode a message, or shows less of it than weir: it confuses 1.0's
/// spanning-tree and link states, and omits unknown bits of a port's configuration, unknown properties of queues, the
/// port of a reply without queues, and the name of an experimenter's message in an error.
fn is_less(theirs: &str) -> bool {
    if theirs.contains("QUEUE_GET_CONFIG_REPLY") && theirs.ends_with(':') {
        return true;
    }
    ["decode error", "FORWARDLINK", "queue 0:\n", "PORT_DOWN", "BRC_BAD_EXPERIMENTER"]
        .iter()
        .any(|sign| theirs.contains(sign))
}

#[test]
fn captures_look_as_in_ovs() {
    if !weir_testing::programs(&["ovs-ofctl"]) {
        return;
    }
    for (name, count, _) in CAPTURES.iter().filter(|(name, count, _)| name.ends_with(".pcap") && *count > 0) {
        let Some(path) = weir_testing::shared(&format!("data/external/rules/openflow/tcpdump-pcap/{name}")) else {
            return;
        };
        let path = path.to_str().unwrap();
        let ours = messages(&stdout(&weir(&["ofp", "print", path])));
        let theirs = Command::new("ovs-ofctl").args(["ofp-parse-pcap", path]).output().expect("ovs-ofctl runs");
        // OpenFlow 1.0 calls an experimenter a vendor.
        let theirs = messages(&stdout(&theirs).replace("_BAD_VENDOR", "_BAD_EXPERIMENTER"));
        assert_eq!((ours.len(), theirs.len()), (*count, *count), "{name}");
        let (mut compared, pairs) = (0, ours.iter().zip(&theirs));
        for (ours, theirs) in pairs.filter(|(_, theirs)| !is_less(theirs)) {
            assert_eq!(ours, theirs, "{name}");
            compared += 1;
        }
        assert!(compared * 2 > *count, "{name}: only {compared} of {count} compared");
    }
}
