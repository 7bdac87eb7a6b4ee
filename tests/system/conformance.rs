//! Switch-test patterns of Ryu and os-ken against the switch, by the runner of the reference data: those of the reference data, and
//! the full sets inside the os-ken package. Nothing is left out; patterns that measure throughput (groups, meters) take
//! [`MEASURED`] seconds each, so several runs share them, each in namespaces of its own.
use crate::bed::our_switch;
use std::process::Command;
use std::thread;

/// Seconds that a throughput pattern measures for: thousands of packets, so that a select group's halves are within the
/// patterns' 10 % but for one run in ten thousand.
const MEASURED: u32 = 15;
/// Runs that share a set with throughput patterns: nearly all their time is waiting.
const SHARES: usize = 6;

/// Runs a set of patterns (a folder, or `os-ken:NAME`); counts those that pass.
fn all_pass(version: &str, set: &str, shares: usize) -> Option<usize> {
    let script = weir_testing::shared("conformance/tools/ryu-switch-test.sh")?;
    if !weir_testing::root() || !weir_testing::programs(&["ip", "python3", "ethtool"]) {
        return None;
    }
    let share = |number: usize| {
        let options = format!("--duration {MEASURED} --shard {number}/{shares}");
        let mut run = Command::new("bash");
        run.arg(&script).args(["-v", version, "-a", &options, &our_switch(), set]);
        let output = run.output().expect("bash starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let last = text.lines().rfind(|line| line.starts_with("passed ")).unwrap_or_default();
        assert!(output.status.success() && last.ends_with("failed 0 error 0"), "{text}");
        last.split(' ').nth(1).and_then(|count| count.parse::<usize>().ok()).expect("a count")
    };
    thread::scope(|scope| {
        let runs: Vec<_> = (1..=shares).map(|number| scope.spawn(move || share(number))).collect();
        Some(runs.into_iter().map(|run| run.join().expect("every pattern passes")).sum())
    })
}

fn folder(name: &str) -> Option<String> {
    let folder = weir_testing::shared(&format!("conformance/ryu-switch-tests/{name}"))?;
    Some(folder.to_string_lossy().into_owned())
}

#[test]
fn every_1_0_pattern_passes() {
    let Some(folder) = folder("of10") else { return };
    all_pass("10", &folder, 1);
}

#[test]
fn every_1_3_pattern_passes() {
    let Some(folder) = folder("of13") else { return };
    all_pass("13", &folder, SHARES);
}

#[test]
fn every_1_0_pattern_of_os_ken_passes() {
    if let Some(count) = all_pass("10", "os-ken:of10", 1) {
        assert_eq!(count, 192);
    }
}

#[test]
fn every_1_3_pattern_of_os_ken_passes() {
    if let Some(count) = all_pass("13", "os-ken:of13", SHARES) {
        assert_eq!(count, 991);
    }
}
