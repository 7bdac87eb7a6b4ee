//! Tests other projects' controllers with weir, and weir's controller with Open vSwitch: the ping test of the
//! reference data's `interop-ping.sh`, three hosts and all pings between them.
use crate::bed::weir;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_testing::pattern_switch;

/// Runs share no state, but each uses both cores, so they run one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn our_controller(version: &str) -> String {
    format!("exec {} controller --listen tcp:$OF_CTL --versions {version}", weir())
}

fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn all_pings(version: &str, switch: &str, controller: &str) {
    let programs = ["ip", "ping", "python3", "ss", "ethtool", "ovs-vsctl", "ovs-testcontroller"];
    let Some(script) = weir_testing::shared("conformance/tools/interop-ping.sh") else { return };
    if !weir_testing::root() || !weir_testing::programs(&programs) {
        return;
    }
    let _turn = one_at_a_time();
    let output = Command::new("bash").arg(script).args([version, switch, controller]).output().expect("bash starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("pings 6/6"), "{text}");
}

#[test]
fn os_ken_drives_our_switch_in_1_3() {
    all_pings("13", &pattern_switch(weir()), "osken");
}

#[test]
fn os_ken_drives_our_switch_in_1_0() {
    all_pings("10", &pattern_switch(weir()), "osken");
}

#[test]
fn faucet_drives_our_switch() {
    all_pings("13", &pattern_switch(weir()), "faucet");
}

#[test]
fn ovs_testcontroller_drives_our_switch() {
    for version in ["13", "10"] {
        all_pings(version, &pattern_switch(weir()), "testcontroller");
    }
}

#[test]
fn our_controller_drives_open_vswitch() {
    for (number, version) in [("13", "1.3"), ("10", "1.0")] {
        all_pings(number, "ovs", &our_controller(version));
    }
}
