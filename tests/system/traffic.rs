//! Tests `weir traffic`: in memory, into captures, through a switch in another process, and through a controller.
use crate::bed::{Bed, ready, run_weir, weir};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use weir_testing::{Namespace, Signal, TestProcess, programs, root, run, wait_until};

/// Longest time to wait for anything on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn traffic(arguments: &[&str]) -> Output {
    run_weir(&[&["traffic"], arguments].concat())
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

#[test]
fn a_loop_in_memory_loses_nothing_and_writes_its_series() {
    let folder = tempfile::tempdir().expect("a folder");
    let series = folder.path().join("series.csv");
    let file = series.to_str().expect("a path of text");
    let arguments =
        ["memory:traffic", "--to", "memory:traffic", "--rate", "5k", "--duration", "300ms", "--gaps", "gamma:0.5"];
    let more = ["--flows", "100", "--zipf", "1.1", "--new-flow", "0.1", "--size", "imix", "--series", file, "--json"];
    let output = traffic(&[&arguments[..], &more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&String::from_utf8_lossy(&output.stdout));
    let (sent, received) = (&report["sent"]["sent"], &report["received"]["received"]);
    assert!(sent.as_u64().expect("a number") > 500 && sent == received, "{report}");
    assert_eq!((&report["received"]["lost"], &report["partial"]), (&0.into(), &false.into()));
    assert!(report["sent"]["gaps"]["fit"]["p_value"].is_number());
    let rows = std::fs::read_to_string(&series).expect("the series is there");
    let received: u64 =
        rows.lines().skip(1).map(|row| row.split(',').nth(2).expect("a cell").parse::<u64>().expect("a number")).sum();
    assert_eq!(received, report["received"]["received"].as_u64().expect("a number"));
    // Sends again with the report as text.
    let output = traffic(&[&arguments[..], &["--drain", "100ms"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for words in ["Sent ", "Late ", "Gaps ", "Kolmogorov-Smirnov", "Received ", "Delays (microseconds)"] {
        assert!(text.contains(words), "no `{words}`:\n{text}");
    }
}

#[test]
fn a_capture_is_written_and_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path of text").to_owned();
    let [first, second] = [path("first.pcap"), path("second.pcap")];
    let out = |file: &str| format!("pcap:out={file}");
    let written = traffic(&[&out(&first), "--rate", "2k", "--duration", "100ms", "--seed", "7"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let again = traffic(&[&out(&second), "--replay", &first, "--json"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let report = json(&String::from_utf8_lossy(&again.stdout));
    let sent = report["sent"]["sent"].as_u64().expect("a number");
    assert!(sent > 100 && report["received"].is_null(), "{report}");
    // Equal frames, at different times.
    let frames = |file: &str| {
        std::fs::read(file).expect("a capture")[24..]
            .chunks(116)
            .map(|record| record[16..].to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(frames(&first), frames(&second));
    assert_eq!(frames(&first).len() as u64, sent);
}

#[test]
fn what_visits_add_comes_from_several_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs: Vec<String> = (1..=3)
        .map(|visits| {
            let port = format!("memory:visits{visits}");
            let output = traffic(&[&port, "--to", &port, "--duration", "50ms", "--json"]);
            let file = folder.path().join(format!("{visits}.json"));
            std::fs::write(&file, output.stdout).expect("written");
            format!("{visits}={}", file.display())
        })
        .collect();
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let output = traffic(&[&["per-visit"][..], &runs].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("A visit takes") && text.contains("median"), "{text}");
    // The report of one run is subtracted from another: it is used as the rig's own delay.
    let rig = runs[0].split_once('=').expect("two parts").1;
    let output = traffic(&["memory:rig", "--to", "memory:rig", "--duration", "50ms", "--rig", rig]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("Without the rig's own"), "{text}");
}

#[test]
fn bad_input_is_named_with_what_would_do() {
    for (arguments, words) in [
        (&["memory:x", "--gaps", "often"][..], "expected constant, poisson"),
        (&["memory:x", "--rate", "0"], "expected packets a second"),
        (&["memory:x", "--size", "40"], "found packets of 40 bytes, expected at least 60"),
        (&["memory:x", "--new-flow", "2"], "probability of a new flow: found 2"),
        (&["memory:x", "--replay", "/nowhere.pcap"], "cannot read /nowhere.pcap"),
        (&["memory:x", "--size", "file:/nowhere"], "cannot read /nowhere"),
        (&["memory:x", "--ip-src", "::1"], "expected both of IPv4, or both of IPv6"),
        (&["memory:x", "--rig", "/nowhere.json"], "/nowhere.json"),
        (&["nothing"], "expected KIND:NAME"),
        (&["per-visit", "1"], "expected N=FILE"),
    ] {
        let output = traffic(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

/// Returns a namespace with two veth pairs, `ta`-`sa` and `tb`-`sb`: the tester's ends and a switch's.
fn wires() -> Namespace {
    let space = Namespace::new();
    space.join("ta", &space, "sa");
    space.join("tb", &space, "sb");
    space
}

#[test]
fn a_recorder_in_another_process_reads_the_same_clock() {
    if !root() {
        return;
    }
    let space = wires();
    let mut record = space.command(weir());
    record.args(["traffic", "record", "af_packet:sa", "--json"]);
    let record = record.stdout(Stdio::piped()).spawn().expect("weir starts");
    let sent = || {
        run(space.command(weir()).args(["traffic", "af_packet:ta", "--rate", "500", "--duration", "500ms", "--json"]))
    };
    // The file has a line for each packet socket, after a header.
    let listens = || run(space.command("cat").arg("/proc/net/packet")).lines().count() > 1;
    assert!(wait_until(PATIENCE, listens));
    let first = json(&sent());
    assert!(first["sent"]["sent"].as_u64().expect("a number") > 100);
    run(Command::new("kill").args(["-INT", &record.id().to_string()]));
    let output = record.wait_with_output().expect("it ends");
    let report = json(&String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "without --duration stopping is how it ends");
    let received = &report["received"];
    assert!(received["received"].as_u64().expect("a number") > 0, "{report}");
    assert_eq!(received["before_sent"], 0, "{report}");
}

#[test]
fn ctrl_c_gives_what_was_measured() {
    let mut command = Command::new(weir());
    command
        .args(["traffic", "memory:stop", "--to", "memory:stop", "--duration", "1h", "--json"])
        .stdout(Stdio::piped());
    let mut process = TestProcess::start(&mut command);
    let mut stdout = process.stdout().expect("piped");
    // The second thread waits for signals. Sending the signal repeatedly does no harm.
    let threads = |id: u32| std::fs::read_dir(format!("/proc/{id}/task")).map_or(0, Iterator::count);
    let ended = wait_until(PATIENCE, || {
        if threads(process.id()) > 1 {
            process.signal(Signal::INT);
        }
        process.exited().is_some()
    });
    assert!(ended);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut text).expect("text");
    assert_eq!(json(&text)["partial"], true, "{text}");
    assert_eq!(process.exited().and_then(|status| status.code()), Some(130));
}

#[test]
fn taps_part_the_way_by_the_controller() {
    if !root() || !programs(&["ip"]) {
        return;
    }
    let bed = Bed::new();
    bed.trunk("ta", "sa");
    bed.trunk("tb", "sb");
    let mut controller = bed.switches.command(weir());
    controller.args(["controller", "--listen", "tcp:127.0.0.1:6653"]);
    let controller = ready(controller);
    let ports = ["--port", "1=af_packet:sa", "--port", "2=af_packet:sb", "--controller", "tcp:127.0.0.1:6653"];
    let switch = bed.switch(&ports);
    let connected = || bed.run("ss", &["-tn"]).contains(":6653");
    assert!(wait_until(PATIENCE, connected));
    // The destination never answers: every packet goes to the controller, which has it flooded. The switch buffers it
    // meanwhile, so that the answer has the buffer's number instead of the bytes, and the tap sees the packet once.
    let arguments = [
        "traffic",
        "af_packet:ta",
        "--to",
        "af_packet:tb",
        "--tap",
        "control=af_packet:lo",
        "--rate",
        "100",
        "--gaps",
        "constant",
    ];
    let more = ["--duration", "1s", "--drain", "1s", "--threshold", "1us", "--json"];
    let report = json(&bed.run(weir(), &[&arguments[..], &more].concat()));
    let path = &report["path"];
    assert!(path["ended"].as_u64().expect("a number") > 50, "{report}");
    let has = |from: &str, to: &str| {
        path["parts"].as_array().expect("a list").iter().any(|part| part["from"] == from && part["to"] == to)
    };
    assert!(has("sent", "control 1") && has("control 1", "received"), "{path}");
    assert!(path["tapped_share"].as_f64().expect("a number") > 0.9, "{path}");
    switch.stop();
    controller.stop();
}
