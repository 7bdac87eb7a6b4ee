//! Tests output that cannot be written: an error and exit status 2, never half a result with success.
use crate::bed::weir;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use weir_testing::{TestProcess, root, wait_until};

fn example(file: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../examples", file].iter().collect();
    path.to_string_lossy().into_owned()
}

/// Runs a command whose standard output is a device without space.
fn on_a_full_disk(arguments: &[&str]) -> Output {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full");
    Command::new(weir()).args(arguments).stdout(full).stderr(Stdio::piped()).output().expect("weir starts")
}

#[test]
fn a_result_that_is_lost_is_an_error() {
    let (quickstart, network) = (example("quickstart.toml"), example("vx-priority.toml"));
    let commands: &[&[&str]] = &[
        &["predict", &quickstart],
        &["predict", "--json", &quickstart],
        &["simulate", "--duration", "100ms", &network],
        &["simulate", "--json", "--duration", "100ms", &network],
        &["run", "--duration", "1s", &quickstart],
        &["compare", "--answers", "predict,simulate", "--replications", "1", "--duration", "100ms", &network],
        &["profile", "list"],
        &["experiment", "list"],
        &["topology", "show", &quickstart],
        &["ofp", "print", "0400000800000001"],
        &["ofp", "parse-flow", "actions=drop"],
        &["licenses"],
    ];
    for arguments in commands {
        let output = on_a_full_disk(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("No space left on device"), "{arguments:?}: {said}");
    }
}

/// A reader that ends after the beginning (`weir ... | head -n 1`) is no error, for neither command.
#[test]
fn a_reader_that_leaves_is_no_error() {
    let child = Command::new(weir()).arg("licenses").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("weir starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("weir ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A page that cannot be written is reported before the first round, not after the last.
#[test]
fn a_missing_folder_is_found_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("missing/page.html");
    let output = Command::new(weir()).args(["compare", "--plot"]).arg(&page).arg(example("quickstart.toml")).output();
    let output = output.expect("weir starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("weir: --plot: write ") && said.contains("No such file or directory"), "{said}");
    assert!(output.stdout.is_empty());
}

/// A switch whose ready line is lost continues, and logs the loss: its ports matter more than a full disk.
#[test]
fn a_daemon_that_cannot_say_that_it_is_ready_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("ctl.sock");
    let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full");
    let mut command = Command::new(weir());
    command.args(["switch", "--name", "mute", "--port", "1=null:", "--control-socket"]).arg(&socket);
    let mut switch = TestProcess::start(command.stdout(full).stderr(Stdio::piped()));
    let ctl = |command: &str| Command::new(weir()).args(["ctl", "--socket"]).arg(&socket).arg(command).output();
    let answers = || ctl("show").is_ok_and(|output| output.status.success());
    assert!(wait_until(Duration::from_secs(60), || answers() || switch.exited().is_some()), "it does not start");
    assert!(answers(), "it ended");
    assert!(ctl("stop").expect("weir starts").status.success());
    let mut said = String::new();
    switch.stderr().expect("piped").read_to_string(&mut said).expect("text");
    assert!(said.contains("cannot write the whole result to standard output") && said.contains("is ready"), "{said}");
}

/// A lab whose answers are lost is no success.
#[test]
fn answers_of_a_lab_that_are_lost_are_an_error() {
    if !root() {
        return;
    }
    let output = on_a_full_disk(&["emulate", "--exec", "help", &example("quickstart.toml")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

/// The result is printed even if there is no space for the time series.
#[test]
fn a_series_that_is_lost_costs_no_result() {
    let port = format!("memory:series-{}", std::process::id());
    let arguments = ["traffic", &port, "--to", &port, "--duration", "50ms", "--json", "--series", "/dev/full"];
    let output = Command::new(weir()).args(arguments).output().expect("weir starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write the time series") && said.contains("No space left on device"), "{said}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the result, in JSON");
    assert!(result["sent"]["sent"].as_u64() > Some(0), "{result}");
}
