//! Tests port changes by controllers, as seen on the machine.
use crate::bed::{B4, Bed, ping_train};
use std::time::Duration;
use weir_testing::wait_until;

const SOON: Duration = Duration::from_secs(10);

fn ofctl(bed: &Bed, version: &str, command: &str, arguments: &[&str]) -> String {
    let mut all = vec!["-O", version, command, "tcp:127.0.0.1:6654"];
    all.extend(arguments);
    bed.run("ovs-ofctl", &all)
}

/// Returns true if an interface in the switches' namespace is up.
fn is_up(bed: &Bed, interface: &str) -> bool {
    bed.run("ip", &["-o", "link", "show", interface]).split_once('<').is_some_and(|(_, flags)| {
        flags.split_once('>').is_some_and(|(flags, _)| flags.split(',').any(|flag| flag == "UP"))
    })
}

/// Returns the switch's description of port 2: its lines in `ovs-ofctl show` or `dump-ports-desc`.
fn said_of_port_2(bed: &Bed, version: &str) -> String {
    let command = if version == "OpenFlow10" { "show" } else { "dump-ports-desc" };
    let said = ofctl(bed, version, command, &[]);
    said.split_once(" 2(pb)").map(|(_, rest)| rest.to_owned()).unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn a_port_that_is_set_down_is_down_on_the_machine() {
    if !weir_testing::root() || !weir_testing::programs(&["ovs-ofctl", "ping", "ip"]) {
        return;
    }
    for (kind, version) in [("af_packet", "OpenFlow13"), ("af_xdp", "OpenFlow10")] {
        let bed = Bed::new();
        let ports = ["pa", "pb"].map(|interface| format!("{kind}:{interface}"));
        let switch = bed.switch(&["--port", &ports[0], "--port", &ports[1], "--listen", "ptcp:6654"]);
        ofctl(&bed, version, "add-flow", &["actions=NORMAL"]);
        assert!(bed.reaches(B4, 20), "{kind}");
        ofctl(&bed, version, "mod-port", &["2", "down"]);
        assert!(!is_up(&bed, "pb"), "{kind}");
        let said = said_of_port_2(&bed, version);
        assert!(said.contains("PORT_DOWN") && said.contains("LINK_DOWN"), "{kind}: {said}");
        assert!(!ping_train(&bed.a, B4, 1));
        ofctl(&bed, version, "mod-port", &["2", "up"]);
        assert!(is_up(&bed, "pb"), "{kind}");
        assert!(wait_until(SOON, || !said_of_port_2(&bed, version).contains("_DOWN")), "{kind}");
        assert!(bed.reaches(B4, 20), "{kind}");
        ofctl(&bed, version, "mod-port", &["2", "down"]);
        switch.stop();
        assert!(is_up(&bed, "pb"), "{kind}: the switch left its interface as it found it");
    }
}

#[test]
fn other_settings_of_a_port_take_effect() {
    if !weir_testing::root() || !weir_testing::programs(&["ovs-ofctl", "ping", "ip"]) {
        return;
    }
    let bed = Bed::new();
    let switch = bed.switch(&["--port", "af_packet:pa", "--port", "af_packet:pb", "--listen", "ptcp:6654"]);
    ofctl(&bed, "OpenFlow10", "add-flow", &["actions=FLOOD"]);
    assert!(bed.reaches(B4, 20));
    for setting in ["no-forward", "no-receive", "no-flood"] {
        let back = setting.replacen("no-", "", 1);
        ofctl(&bed, "OpenFlow10", "mod-port", &["2", setting]);
        assert!(!ping_train(&bed.a, B4, 1), "{setting}");
        assert!(is_up(&bed, "pb"), "{setting}");
        ofctl(&bed, "OpenFlow10", "mod-port", &["2", &back]);
        assert!(bed.reaches(B4, 20), "{setting}");
    }
    switch.stop();
}
