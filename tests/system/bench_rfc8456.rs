//! Tests `weir bench rfc8456` as a command: weir and os-ken as controllers, failover, errors.
use crate::failover::osken;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

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

#[test]
fn os_ken_discovers_links_and_has_a_northbound_interface() {
    let Some(python) = osken() else { return };
    let tests = ["topology-discovery-time", "proactive-path-time", "change-detection-time", "discovery-size"];
    let found =
        report("os-ken", Some(&python), &tests, &["--trial-time", "10s", "--test-limit", "5min", "--max-nodes", "4"]);
    for test in 0..2 {
        assert!(value(&found, test) > 0.0, "{found}");
    }
    // A port that goes down makes os-ken send nothing, and its periodic discovery stands still while no port is due
    // later than the others (`Switches.lldp_loop`). So both results are right.
    let change = &found["controllers"][0]["tests"][2];
    match change["not_applicable"].as_str() {
        None => assert!(value(&found, 2) > 0.0, "{change}"),
        Some(reason) => assert_eq!(reason, "no discovery message followed the change within the trial"),
    }
    let sizes = &found["controllers"][0]["tests"][3]["tables"][0]["rows"];
    let last = sizes.as_array().and_then(|rows| rows.last()).expect("rows");
    assert_eq!(last["values"][0], 4.0, "{sizes}");
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
