//! Tests `weir bench rfc8456` as a command: weir and os-ken as controllers, failover, errors.
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use weir_testing::osken;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Returns the report of tests, each with one short trial, on a line of three switches.
fn report(controller: &str, python: Option<&Path>, tests: &[&str], more: &[&str]) -> Value {
    let short = ["--quick", "--trials", "1", "--topology", "line", "--leaves", "3", "--no-emulator", "--json"];
    let names = tests.iter().flat_map(|test| ["--test", test]);
    let mut command = Command::new(WEIR);
    command.args(["bench", "rfc8456", "--compare", controller]).args(short).args(names).args(more);
    if let Some(bin) = python.and_then(Path::parent) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", bin.display()));
    }
    let Output { status, stdout, stderr } = command.output().expect("weir runs");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).expect("one JSON document")
}

/// Returns the only value of the first column, or fails with the result.
fn value(report: &Value, test: usize) -> f64 {
    let result = &report["controllers"][0]["tests"][test];
    let value = result["tables"][0]["rows"][0]["values"][0].as_f64();
    value.unwrap_or_else(|| panic!("no value: {result}"))
}

#[test]
fn weir_as_a_controller_provisions_paths_and_has_a_standby() {
    let tests = ["message-processing-time", "reactive-path-time", "sessions-capacity", "failover-time"];
    let found = report("weir", None, &tests, &["--trial-time", "5s", "--max-sessions", "12"]);
    assert!(value(&found, 0) > 0.0 && value(&found, 1) > 0.0, "{found}");
    assert_eq!(value(&found, 2), 12.0);
    let failover = &found["controllers"][0]["tests"][3];
    assert_eq!(failover["not_applicable"], Value::Null, "{failover}");
    let parameters = found["controllers"][0]["parameters"].as_array().expect("parameters of section 4.8");
    assert!(parameters.iter().any(|pair| pair[0] == "southbound protocols" && pair[1] == "OpenFlow 1.3"));
}

/// Returns the first column of the rows of a test's table, and the last row's name.
fn column(report: &Value, test: usize, table: usize) -> (Vec<f64>, String) {
    let rows = report["controllers"][0]["tests"][test]["tables"][table]["rows"].as_array();
    let rows = rows.unwrap_or_else(|| panic!("no table {table}: {report}"));
    let name = rows.last().and_then(|row| row["name"].as_str()).unwrap_or_default().to_owned();
    (rows.iter().filter_map(|row| row["values"][0].as_f64()).collect(), name)
}

#[test]
fn weir_as_a_controller_of_a_network_has_a_northbound_interface() {
    let tests = [
        "topology-discovery-time",
        "proactive-path-time",
        "proactive-path-rate",
        "change-detection-time",
        "discovery-size",
    ];
    let limits = ["--trial-time", "5s", "--test-limit", "5min", "--max-nodes", "4", "--max-paths", "8"];
    let found = report("weir", None, &tests, &limits);
    for test in 0..4 {
        assert!(value(&found, test) > 0.0, "{found}");
    }
    // All of the line's four directions were found, by nothing but discovery messages.
    assert_eq!(found["controllers"][0]["tests"][0]["tables"][0]["rows"][0]["values"][2], 4.0, "{found}");
    let (sizes, last) = column(&found, 4, 0);
    assert_eq!((sizes, last.as_str()), (vec![3.0, 4.0, 4.0], "Network Discovery Size (Ns)"), "{found}");
    let parameters = found["controllers"][0]["parameters"].as_array().expect("parameters of section 4.8");
    let settings = parameters.iter().find(|pair| pair[0] == "controller settings").expect("settings");
    assert!(settings[1].as_str().is_some_and(|text| text.contains("--app forwarding")), "{settings}");
}

#[test]
fn weir_as_a_controller_of_a_network_counts_entries_and_survives_loops() {
    let tests = ["forwarding-table-capacity", "reprovisioning-time"];
    let limits = ["--trial-time", "10s", "--test-limit", "5min", "--max-flows", "10", "--query-interval", "1s"];
    let found = report("weir", None, &tests, &limits);
    let (reactive, proactive) = (column(&found, 0, 0).0, column(&found, 0, 1).0);
    // Three switches have entries of their own, and those of hosts and paths.
    assert!(reactive.len() == 1 && reactive[0] > 30.0, "{found}");
    assert_eq!(proactive, [10.0], "{found}");
    let loops = &found["controllers"][0]["tests"][1];
    let reason = loops["not_applicable"].as_str().unwrap_or_default();
    assert!(!reason.contains("frames circle"), "{loops}");
}

/// Reasons for which os-ken may have no result on a machine that is busy: its discovery of links has not come to its
/// end. Everything else is a mistake of the benchmark. `nodes` and `links` are those of the network.
fn is_late_discovery(reason: &str, nodes: u64, links: u64) -> bool {
    let numbers: Vec<u64> = reason.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    if reason.starts_with("the controller knows ") {
        let [known, directions, all, between] = numbers[..] else { return false };
        return known <= nodes && directions <= 2 * links && [all, between] == [nodes, links];
    }
    // The application of os-ken answers so if it knows no way; a wrong request has another status.
    let no_way = reason.starts_with("the command failed") && reason.contains("error: 409");
    no_way || reason == "no discovery message followed the change within the trial"
}

/// Checks that a test of os-ken has a value, or that its reason is about late discovery. Returns true for a value.
fn has_value(report: &Value, test: usize) -> bool {
    let result = &report["controllers"][0]["tests"][test];
    match result["not_applicable"].as_str() {
        None => assert!(value(report, test) > 0.0, "{result}"),
        Some(reason) => assert!(is_late_discovery(reason, 3, 2), "{result}"),
    }
    result["not_applicable"].is_null()
}

#[test]
fn os_ken_discovers_links_and_has_a_northbound_interface() {
    let Some(python) = osken() else { return };
    let limits = ["--trial-time", "10s", "--test-limit", "5min", "--max-nodes", "4"];
    let tests = ["topology-discovery-time", "proactive-path-time", "change-detection-time", "discovery-size"];
    let found = report("os-ken", Some(&python), &tests, &limits);
    // Threads of os-ken change what its loop of discovery reads, which may end the loop: each run has another process.
    let again = |_| has_value(&report("os-ken", Some(&python), &tests[..1], &limits), 0);
    assert!(has_value(&found, 0) || (0..4).any(again), "os-ken's discovery was never seen: {found}");
    has_value(&found, 1);
    has_value(&found, 2);
    let size = &found["controllers"][0]["tests"][3];
    match size["not_applicable"].as_str() {
        Some(reason) => assert_eq!(reason, "not even the smallest network was discovered", "{size}"),
        None => {
            // Networks of three and of four switches are tried, and the result is the largest one discovered.
            let rows = size["tables"][0]["rows"].as_array().expect("rows");
            let (last, trials) = rows.split_last().expect("a result");
            let discovered = |row: &&Value| row["values"][2] == 1.0;
            let sizes: Vec<_> = trials.iter().map(|row| row["values"][0].as_f64()).collect();
            assert_eq!(sizes, [Some(3.0), Some(4.0)], "{size}");
            let largest = trials.iter().filter(discovered).filter_map(|row| row["values"][0].as_f64()).next_back();
            assert_eq!(last["values"][0].as_f64(), largest, "{size}");
        }
    }
}

#[test]
fn reasons_of_late_discovery_are_told_from_mistakes() {
    let knows = |known, links| {
        format!("the controller knows {known} switches and {links} links, the network has 3 switches and 2 links")
    };
    assert!(is_late_discovery(&knows(3, 1), 3, 2) && is_late_discovery(&knows(0, 0), 3, 2));
    for (known, links) in [(4, 2), (3, 5)] {
        assert!(!is_late_discovery(&knows(known, links), 3, 2), "{known} {links}");
    }
    for mistake in ["the command failed (exit status: 22): curl: (22) The requested URL returned error: 400", ""] {
        assert!(!is_late_discovery(mistake, 3, 2), "{mistake}");
    }
}

#[test]
fn wrong_options_are_explained() {
    let refused = |arguments: &[&str]| {
        let output = Command::new(WEIR).args(["bench", "rfc8456"]).args(arguments).output().expect("weir runs");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (arguments, expected) in [
        (&["127.0.0.1:1", "--no-emulator"][..], "does it listen there?"),
        (&["nowhere", "--no-emulator"][..], "expected a controller's HOST:PORT"),
        (&["127.0.0.1:1", "--topology", "ring", "--leaves", "2"][..], "at least 3 switches"),
        (&["127.0.0.1:1", "--step", "2"][..], "expected a part from 0.001 to 0.9"),
        (&["127.0.0.1:1", "--test", "speed"][..], "topology-discovery-time"),
    ] {
        let errors = refused(arguments);
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
}
