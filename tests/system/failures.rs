//! Tests the switch's behaviour when its environment fails.
use crate::bed::{B4, Bed, ping, ping_train, weir};
use std::time::Duration;
use weir_testing::wait_until;

const PORTS: [&str; 4] = ["--port", "1=af_packet:pa", "--port", "2=af_packet:pb"];
const PATIENCE: Duration = Duration::from_secs(10);

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ip", "ping"])
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = PORTS.to_vec();
    all.extend(more);
    all
}

/// Fail-secure: known flows continue, unknown ones wait. Standalone: all traffic continues. Both reconnect to a new
/// controller.
#[test]
fn a_killed_controller() {
    if !ready() {
        return;
    }
    for mode in ["secure", "standalone"] {
        let bed = Bed::new();
        let listen = ["--listen", "tcp:127.0.0.1:6653", "--idle-timeout", "60s"];
        let controller = bed.controller(&listen);
        let switch = bed.switch(&with(&["--controller", "tcp:127.0.0.1:6653", "--fail-mode", mode]));
        assert!(bed.reaches(B4, 10) && ping(&bed.a, B4, 3), "{mode}: with a controller");
        controller.signal(weir_testing::Signal::KILL);
        drop(controller);
        assert!(ping(&bed.a, B4, 10), "{mode}: known flows stay without a controller");
        // An address that no entry matches.
        bed.b.ip("link set eth0 address 02:00:00:00:99:99");
        bed.a.ip("neigh flush dev eth0");
        let reached = wait_until(PATIENCE / 2, || ping_train(&bed.a, B4, 1));
        assert_eq!(reached, mode == "standalone", "{mode}: new flows without a controller");
        let controller = bed.controller(&listen);
        assert!(wait_until(PATIENCE, || ping_train(&bed.a, B4, 1)), "{mode}: with a new controller");
        controller.stop();
        switch.stop();
    }
}

/// A port disappears with its device, and the others stay; the port returns with the device.
#[test]
fn a_deleted_veth() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let socket = format!("/tmp/weir-veth-{}.sock", std::process::id());
    let switch = bed.switch(&with(&["--fail-mode", "standalone", "--control-socket", &socket]));
    assert!(bed.reaches(B4, 20));
    bed.switches.ip("link del pb");
    let port_2 = || bed.run(weir(), &["ctl", "--socket", &socket, "dump-ports", "--json"]).contains("\"pb\"");
    assert!(wait_until(PATIENCE, || !port_2()), "the port of a deleted device is still listed");
    assert!(!ping_train(&bed.a, B4, 1));
    bed.b.join("eth0", &bed.switches, "pb");
    bed.b.ip("addr add 10.9.0.2/24 dev eth0");
    assert!(wait_until(PATIENCE, port_2), "the port did not come back with its device");
    bed.a.ip("neigh flush dev eth0");
    assert!(bed.reaches(B4, 20));
    switch.stop();
}

/// A killed switch leaves nothing that prevents the next one from starting.
#[test]
fn a_restarted_switch() {
    if !ready() {
        return;
    }
    for kind in ["af_packet", "af_xdp"] {
        let bed = Bed::new();
        let socket = format!("/tmp/weir-restart-{}-{kind}.sock", std::process::id());
        let (one, two) = (format!("1={kind}:pa"), format!("2={kind}:pb"));
        let arguments = [
            "--port",
            &one,
            "--port",
            &two,
            "--fail-mode",
            "standalone",
            "--control-socket",
            &socket,
            "--listen",
            "ptcp:6654",
        ];
        let switch = bed.switch(&arguments);
        assert!(bed.reaches(B4, 20), "{kind}");
        switch.signal(weir_testing::Signal::KILL);
        drop(switch);
        let switch = bed.switch(&arguments);
        assert!(bed.reaches(B4, 20), "{kind}: after a restart");
        switch.stop();
    }
}
