//! Tests what a switch changes on interfaces, and their state after it is killed.
use crate::bed::{Bed, ready, weir};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::tempdir;
use weir_testing::{Namespace, Signal, TestProcess, run, wait_until};

/// Time for a switch to end by itself.
const PATIENCE: Duration = Duration::from_secs(10);

fn is_possible() -> bool {
    weir_testing::root() && weir_testing::programs(&["ip", "ethtool"])
}

/// Starts `weir switch` on an interface that another one uses. Returns its error output.
fn refused(bed: &Bed, folder: &Path, port: &str) -> String {
    let mut command = bed.switches.command(weir());
    command.args(["switch", "--name", "second", "--port", port, "--control-socket"]).arg(folder.join("second.sock"));
    let mut second = TestProcess::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    assert!(wait_until(PATIENCE, || second.exited().is_some()), "{port} was taken twice");
    let mut said = String::new();
    second.stderr().expect("piped").read_to_string(&mut said).expect("text");
    said
}

/// Starts `weir switch`; a killed one leaves its socket in the folder.
fn switch(bed: &Bed, folder: &Path, port: &str) -> TestProcess {
    let mut command = bed.switches.command(weir());
    command.args(["switch", "--port", port, "--control-socket"]).arg(folder.join("switch.sock"));
    ready(command)
}

fn kill(switch: TestProcess) {
    switch.signal(Signal::KILL);
    drop(switch);
}

/// Returns true if a host's end of its link leaves VLAN tags to the device.
fn leaves_tags(host: &Namespace) -> bool {
    let features = run(host.command("ethtool").args(["-k", "eth0"]));
    let line = features.lines().find(|line| line.starts_with("tx-vlan-offload")).expect("veth pairs have it");
    line.ends_with(": on")
}

#[test]
fn an_interface_is_refused_with_the_process_that_has_it_until_that_is_killed() {
    if !is_possible() {
        return;
    }
    for (first, second) in [("af_packet:pa", "af_xdp:pa"), ("af_xdp:pa", "af_packet:pa")] {
        let (bed, folder) = (Bed::new(), tempdir().expect("a folder"));
        let switch = switch(&bed, folder.path(), first);
        let said = refused(&bed, folder.path(), second);
        assert!(said.contains(&format!("pa is taken by a port of process {}", switch.id())), "{said}");
        assert!(said.contains("weir switch --port"), "{said}");
        kill(switch);
        self::switch(&bed, folder.path(), second).stop();
    }
}

#[test]
fn features_that_a_killed_switch_left_off_are_on_again_after_cleanup() {
    if !is_possible() {
        return;
    }
    let (bed, folder) = (Bed::new(), tempdir().expect("a folder"));
    assert!(leaves_tags(&bed.a));
    let switch = switch(&bed, folder.path(), "af_xdp:pa");
    assert!(!leaves_tags(&bed.a));
    let process = switch.id().to_string();
    let clean = || run(Command::new(weir()).args(["cleanup", &process]));
    assert_eq!(clean(), "nothing was left behind\n");
    assert!(!leaves_tags(&bed.a), "a switch that runs needs them off");
    kill(switch);
    assert!(!leaves_tags(&bed.a));
    // Another test's clean-up may have restored them already.
    let said = clean();
    let names = "eth0: tx-vlan-hw-insert, tx-vlan-stag-hw-insert: on again";
    assert!(said.contains(names) || said.starts_with("nothing"), "{said}");
    assert!(leaves_tags(&bed.a));
}

#[test]
fn the_next_switch_restores_what_a_killed_one_left_off() {
    if !is_possible() {
        return;
    }
    let (bed, folder) = (Bed::new(), tempdir().expect("a folder"));
    kill(switch(&bed, folder.path(), "af_xdp:pa"));
    switch(&bed, folder.path(), "af_xdp:pa").stop();
    assert!(leaves_tags(&bed.a));
}
