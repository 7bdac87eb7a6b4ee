//! Tests that a forwarding port has its interface to itself, while other ports may observe it.
use crate::testbed::{Bed, open, within};
use weir_port::{Port, PortError, PortSpec};
use weir_testing::Namespace;

/// Opens a forwarding port.
fn open_alone(namespace: &Namespace, spec: &str) -> Result<Box<dyn Port>, PortError> {
    let spec = spec.to_owned();
    within(namespace, move || weir_port::open_alone(&spec.parse::<PortSpec>()?)).join().expect("opening a port")
}

/// Two ports on one interface would forward each frame twice.
#[test]
fn an_interface_serves_one_port_that_forwards() {
    let Some(bed) = Bed::new() else { return };
    for (first, second) in
        [("af_packet", "af_packet"), ("af_packet", "af_xdp"), ("af_xdp", "af_packet"), ("af_xdp", "af_xdp")]
    {
        let port = open_alone(&bed.switch, &format!("{first}:s0")).expect("the first port opens");
        let refused =
            open_alone(&bed.switch, &format!("{second}:s0")).err().expect("the second is refused").to_string();
        assert!(refused.contains("s0 is taken by another port of this process"), "{first}, {second}: {refused}");
        let other = open_alone(&bed.switch, &format!("{second}:s1")).expect("another interface is free");
        drop((port, other));
        open_alone(&bed.switch, &format!("{second}:s0")).expect("free again");
    }
}

/// Recorders, traffic generators and the profiler open interfaces that a switch uses, in either order. A switch's
/// port may also be one that only observes.
#[test]
fn who_does_not_forward_looks_on() {
    let Some(bed) = Bed::new() else { return };
    let before = open(&bed.switch, "af_packet:s0,outgoing=on").expect("before the switch");
    let port = open_alone(&bed.switch, "af_packet:s0").expect("the switch's port opens");
    for spec in ["af_packet:s0", "af_packet:s0,outgoing=on", "af_xdp:s0"] {
        open(&bed.switch, spec).unwrap_or_else(|error| panic!("{spec} beside the switch: {error}"));
    }
    open_alone(&bed.switch, "af_packet:s0,outgoing=on").expect("a port that looks only");
    drop((before, port));
}

/// An index stands for an interface of one namespace: `lo` has the same index everywhere. A name may change.
#[test]
fn namespaces_are_apart_and_names_do_not_count() {
    let Some(bed) = Bed::new() else { return };
    let _here = open_alone(&bed.switch, "af_packet:lo").expect("the first namespace's");
    let _there = open_alone(&bed.a, "af_packet:lo").expect("the second namespace's");
    let _port = open_alone(&bed.switch, "af_packet:s0").expect("the port opens");
    bed.switch.ip("link set s0 down");
    bed.switch.ip("link set s0 name t0");
    let refused = open_alone(&bed.switch, "af_packet:t0").err().expect("the same interface").to_string();
    assert!(refused.contains("t0 is taken by another port"), "{refused}");
    bed.switch.ip("link set s1 name s0");
    open_alone(&bed.switch, "af_packet:s0").expect("another interface that has the name now");
}
