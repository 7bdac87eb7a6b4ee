//! The first command of the README, in this process and on namespaces, twice in a row.
use crate::bed::weir;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// One test's lab would be the other's leftover.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// Every process that a run starts inherits this variable, by which those that stay behind are found.
const MARK: &str = "WEIR_SYSTEM_TEST_MARK";

/// Namespaces and interfaces that a lab made, and processes with this mark.
fn leftovers(mark: &str) -> Vec<String> {
    let text = |command: &mut Command| {
        let output = command.stderr(Stdio::null()).output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&output).into_owned()
    };
    let namespaces = text(Command::new("ip").args(["netns", "list"]));
    let links = text(Command::new("ip").args(["-o", "link"]));
    let named = |line: &&str| line.contains("weir");
    let devices = namespaces.lines().filter(named).chain(links.lines().filter(named)).map(str::to_owned);
    devices.chain(marked_processes(mark)).collect()
}

fn marked_processes(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").expect("/proc").map_while(Result::ok).map(|entry| entry.path());
    let marked = |path: &std::path::PathBuf| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let command = |path: std::path::PathBuf| std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
    processes.filter(marked).map(command).collect()
}

fn twice(arguments: &[&str], expected: &[&str]) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for round in 1..=2 {
        let mark = format!("{}-{round}-{}", std::process::id(), arguments.len());
        let output = weir_testing::run(Command::new(weir()).args(arguments).env(MARK, &mark));
        for word in expected {
            assert!(output.contains(word), "round {round}: no `{word}` in\n{output}");
        }
        assert_eq!(leftovers(&mark), Vec::<String>::new(), "round {round} left something behind");
    }
}

#[test]
fn quickstart_needs_no_root() {
    twice(&["quickstart"], &["red-a", "blue-b", "isolated"]);
}

#[test]
fn quickstart_on_namespaces() {
    if weir_testing::root() && weir_testing::programs(&["ip", "ping", "iperf3"]) {
        twice(&["quickstart", "--netns"], &["red-a", "blue-b", "isolated"]);
    }
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let output = Command::new(weir()).args(["run", "no-such-file.toml"]).output().expect("weir starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("no-such-file.toml: cannot read the scenario"), "{said}");
}
