//! Tests the first command of the README, in this process and on namespaces, twice in a row.
use crate::bed::weir;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use weir_testing::{TestProcess, wait_until};

/// Lock for tests with labs: the lab of one test would look like a leftover to another.
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// Variable that every process of a run inherits, by which processes left behind are found.
const MARK: &str = "WEIR_SYSTEM_TEST_MARK";

/// Returns the namespaces and interfaces that a lab created, and processes with this mark.
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

/// Starts the quickstart on namespaces and sends it a signal once traffic runs. Returns its exit status, `None` if
/// killed by the signal, and what it left behind.
fn struck(signal: weir_testing::Signal) -> (Option<i32>, Vec<String>) {
    let mark = format!("{}-signal-{signal:?}", std::process::id());
    let mut command = Command::new(weir());
    command.args(["quickstart", "--netns"]).env(MARK, &mark).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut lab = TestProcess::start(&mut command);
    let mut said = BufReader::new(lab.stderr().expect("piped")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains(" through after ")), "traffic begins");
    assert_ne!(leftovers(&mark), Vec::<String>::new(), "there is something to clean up");
    lab.signal(signal);
    let mut status = None;
    wait_until(Duration::from_secs(10), || {
        status = lab.exited();
        status.is_some()
    });
    (status.expect("it ends within ten seconds").code(), leftovers(&mark))
}

#[test]
fn an_interrupted_run_cleans_up() {
    if weir_testing::root() && weir_testing::programs(&["ip", "ping", "iperf3"]) {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        for signal in [weir_testing::Signal::INT, weir_testing::Signal::TERM] {
            assert_eq!(struck(signal), (Some(130), Vec::new()));
        }
    }
}

#[test]
fn a_killed_run_is_cleaned_up_by_the_next() {
    if weir_testing::root() && weir_testing::programs(&["ip", "ping", "iperf3"]) {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let (code, left) = struck(weir_testing::Signal::KILL);
        assert_eq!(code, None);
        assert_ne!(left, Vec::<String>::new(), "a killed run cannot clean up");
        drop(turn);
        twice(&["quickstart", "--netns"], &["isolated"]);
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

#[test]
fn a_strict_run_fails_unless_it_is_faithful() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let run = Command::new(weir()).args(["quickstart", "--duration", "100ms", "--json", "--strict"]).output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(result["passed"], true, "{result}");
    let expected = if result["certificate"]["verdict"] == "faithful" { 0 } else { 3 };
    assert_eq!(run.status.code(), Some(expected), "{result}");
}

#[test]
fn results_are_printed_as_csv() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let csv = |arguments: &[&str]| weir_testing::run(Command::new(weir()).args(arguments));
    let text = csv(&["quickstart", "--duration", "100ms", "--csv"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(",fidelity"), "{text}");
    assert!(["faithful", "doubtful"].iter().any(|verdict| lines[1].ends_with(verdict)), "{text}");
    assert!(lines.len() == 7 && lines[0].starts_with("kind,from,to,reached,ok,sent"), "{text}");
    assert!(lines[1].starts_with("ping,red-a,red-b,true,true,"), "{text}");
    let text = csv(&["experiment", "vx-split-path", "--csv"]);
    assert!(text.starts_with("case,metric,unit,published,ours,sd,samples\n\"equal paths, 12 kB\","), "{text}");
}
