//! Tests `weir simulate` on the examples: its answers, their reproducibility, and its errors.
use crate::bed::{run_on_example, stderr, stdout, uncontrolled};
use std::process::Output;

fn simulate(file: &str, arguments: &[&str]) -> Output {
    run_on_example("simulate", file, arguments)
}

/// Options for a short run of the example with two virtual switches.
const SHORT: [&str; 4] = ["--duration", "20ms", "--replications", "3"];

#[test]
fn streams_are_answered_by_virtual_switch() {
    let output = simulate("vx-priority.toml", &SHORT);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for word in ["small", "big", "all", "Simulated 3 replications of 0.02 s", "±"] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
}

#[test]
fn threads_do_not_change_results() {
    let csv = |threads: &str| {
        let output = simulate("vx-priority.toml", &[&SHORT[..], &["--csv", "--threads", threads]].concat());
        assert!(output.status.success());
        stdout(&output)
    };
    assert_eq!(csv("1"), csv("2"));
    assert_eq!(csv("1").lines().count(), 4, "a header, two virtual switches and all together:\n{}", csv("1"));
}

#[test]
fn a_sweep_has_lines_for_each_value() {
    let sweep = ["--csv", "--sweep", "switch[0].virtual[0].buffer=1500B..3000B:1500B"];
    let text = stdout(&simulate("vx-priority.toml", &[&SHORT[..], &sweep].concat()));
    let small: Vec<&str> = text.lines().filter(|line| line.contains(",small,")).collect();
    assert_eq!(small.len(), 2, "{text}");
    assert!(small[0].starts_with("1500B,") && small[1].starts_with("3000B,"), "{text}");
}

#[test]
fn host_traffic_is_answered_as_live() {
    let output = simulate("quickstart.toml", &["--duration", "100ms"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for word in ["red-a", "blue-b", "isolated", " s of virtual time in "] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
}

#[test]
fn intents_are_told_with_expected_and_measured_delays() {
    let output = simulate("intents.toml", &["--duration", "200ms"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    let line = text.lines().find(|line| line.trim_start().starts_with("calls")).unwrap_or_else(|| panic!("{text}"));
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells[..6], ["calls", "h1", "h4", "installed", "p99", "2000"], "{text}");
    let us = |cell: &str| cell.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
    assert!(us(cells[7]) < us(cells[6]), "{text}");
    let json: serde_json::Value =
        serde_json::from_slice(&simulate("intents.toml", &["--duration", "200ms", "--json"]).stdout).unwrap();
    assert_eq!(
        (&json["intents"][0]["state"], &json["intents"][1]["state"]),
        (&"installed".into(), &"installed".into())
    );
}

#[test]
fn formulas_say_that_they_leave_intents_and_applications_out() {
    let text = stdout(&run_on_example("predict", "intents.toml", &[]));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("applications (access-list, monitor) and 2 intents are left out"), "{text}");
}

/// Two hosts on a switch, and a stream through two other ports of it.
const BOTH: &str = r#"
duration = "50ms"
[controller]
connect = "none"
[[switch]]
name = "s1"
[switch.fabric]
ports = 4
rate = "100Mbit/s"
[[switch.virtual]]
name = "tin"
dpid = 0x101
buffer = "64kB"
entries = ["in_port=1,actions=output:2", "in_port=2,actions=output:1"]
ports = [{ port = 1, rate = "50Mbit/s" }, { port = 2, rate = "50Mbit/s" }]
[[switch.virtual]]
name = "gold"
dpid = 0x102
buffer = "64kB"
entries = ["actions=output:4"]
ports = [{ port = 3, rate_in = "50Mbit/s" }, { port = 4, rate_out = "50Mbit/s" }]
[[host]]
name = "h1"
switch = "s1"
port = 1
ip = "10.0.0.1/24"
[[host]]
name = "h2"
switch = "s1"
port = 2
ip = "10.0.0.2/24"
[[traffic]]
kind = "udp"
from = "h1"
to = "h2"
[[stream]]
switch = "s1"
virtual = "gold"
inputs = "3"
output = 4
load = 0.3
"#;

#[test]
fn streams_and_host_traffic_are_answered_together() {
    let folder = tempfile::tempdir().unwrap();
    let (file, page) = (folder.path().join("both.toml"), folder.path().join("page.html"));
    std::fs::write(&file, BOTH).unwrap();
    let [file, page] = [&file, &page].map(|path| path.to_str().expect("a path in UTF-8"));
    let answered = |arguments: &[&str]| {
        let output = simulate(file, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let text = answered(&["--plot", page]);
    for word in ["Traffic", "h2", "Streams", "gold", "Delays of streams", "did what was expected"] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
    let html = std::fs::read_to_string(page).expect("the page");
    assert!(html.contains("udp h1 -&gt; h2") && html.contains("stream gold -&gt; s1 port 4"), "{html}");
    let csv = answered(&["--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    let starts = ["kind,from,to,", "udp,h1,h2,true,true,", "stream,gold,s1 port 4,true,,"];
    assert_eq!(lines.len(), starts.len(), "{csv}");
    assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{csv}");
    let columns = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{csv}");
}

#[test]
fn a_capture_is_replayed() {
    let text = stdout(&simulate("replay.toml", &["--csv"]));
    for line in ["udp,server,browser,true,true,148,148,0,", "udp,browser,server,true,true,78,78,0,"] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
}

#[test]
fn progress_is_told_unless_it_is_not_wanted() {
    let told = |arguments: &[&str]| {
        let output = simulate("vx-priority.toml", &[&SHORT[..], arguments].concat());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(told(&[]).starts_with("weir: simulating vx-priority"), "{}", told(&[]));
    assert_eq!(told(&["--quiet"]), "");
}

#[test]
fn a_page_is_written_or_the_reason_is_told_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let output = simulate("vx-priority.toml", &[&SHORT[..], &["--plot", page.to_str().expect("a path")]].concat());
    assert!(output.status.success() && stdout(&output).contains("small"));
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("Simulation of vx-priority") && html.contains("<svg"), "{html}");
    let output = simulate("vx-priority.toml", &[&SHORT[..], &["--plot", "/nowhere/page.html"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "weir: --plot: create /nowhere/page.html: No such file or directory (os error 2)\n");
}

#[test]
fn devices_that_take_time_are_stations() {
    let output = simulate("at-x510.toml", &["--duration", "20s", "--replications", "3"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for word in [
        "queueing stations",
        "h1",
        "control",
        "x510 packet-in",
        "controller",
        "held up",
        "Simulated 3 replications of 20 s",
    ] {
        assert!(text.contains(word), "no `{word}` in\n{text}");
    }
    let sweep = ["--duration", "10s", "--json", "--sweep", "traffic.rate=20..60:20"];
    let document: serde_json::Value = serde_json::from_str(&stdout(&simulate("at-x510.toml", &sweep))).unwrap();
    let rates: Vec<f64> = document
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["total"]["per_second"]["mean"].as_f64().unwrap())
        .collect();
    for (found, expected) in rates.iter().zip([20.0, 40.0, 60.0]) {
        assert!((found - expected).abs() < expected / 5.0, "{rates:?}");
    }
    assert_eq!(document[0]["level"], "stations");
    // Frames of 600 bytes take 4.8 ms on each of two links of 1 Mbit/s; links without a rate take no time.
    let median = |more: &[&str]| {
        let arguments = [&["--duration", "10s", "--replications", "1", "--json"][..], more].concat();
        let document: serde_json::Value = serde_json::from_str(&stdout(&simulate("at-x510.toml", &arguments))).unwrap();
        document["total"]["all"]["p50_s"]["mean"].as_f64().unwrap()
    };
    let (fast, slow) = (median(&[]), median(&["--link-rate", "1Mbit/s"]));
    assert!(fast < 1e-3 && slow > 9.6e-3, "{fast} {slow}");
    let output = simulate("at-x510.toml", &["--duration", "1s", "--level", "packets"]);
    assert!(stdout(&output).contains("in virtual time"), "{}", stdout(&output));
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (file, arguments, problem) in [
        (&*uncontrolled(folder.path()), &[][..], "is the controller running?"),
        ("vx-priority.toml", &["--sweep", "switch[3].dpid=1"][..], "found [3], but the list has 1 item"),
        (
            "vx-priority.toml",
            &["--sweep", "switch[0].virtual[0].buffer=1B"][..],
            "with switch[0].virtual[0].buffer = 1B",
        ),
        ("quickstart.toml", &["--level", "stations"][..], "found no [switch.timing] with --level stations"),
        ("vx-priority.toml", &["--level", "stations"][..], "found [[stream]] with --level stations"),
        ("at-x510.toml", &["--sweep", "traffic.new_flows=0,1.5"][..], "new_flows: found 1.5, expected a share"),
        ("vx-priority.toml", &["--until", "2"][..], "expected a share between 0 and 1"),
    ] {
        let output = simulate(file, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(problem), "no `{problem}` in {error}");
    }
}
