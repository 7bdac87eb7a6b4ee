//! Ryu's switch-test patterns against the switch, by the runner of the reference data. Throughput patterns (groups and meters)
//! are left out: weir has neither yet.
use crate::bed::our_switch;
use std::process::Command;

fn all_patterns(version: &str, folder: &str) {
    let Some(script) = weir_testing::shared("conformance/tools/ryu-switch-test.sh") else { return };
    let Some(patterns) = weir_testing::shared(folder) else { return };
    if !weir_testing::root() || !weir_testing::programs(&["ip", "python3", "ethtool"]) {
        return;
    }
    let output = Command::new("bash").arg(script).args(["-v", version, "-m", &our_switch()]).arg(patterns).output();
    let output = output.expect("bash starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rfind(|line| line.starts_with("passed ")).unwrap_or_default().to_owned();
    assert!(output.status.success() && last.ends_with("failed 0 error 0"), "{text}");
}

#[test]
fn every_1_3_pattern_passes() {
    all_patterns("13", "conformance/ryu-switch-tests/of13");
}

#[test]
fn every_1_0_pattern_passes() {
    all_patterns("10", "conformance/ryu-switch-tests/of10");
}
