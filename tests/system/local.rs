//! Tests the port of the host that runs the switch: OFPP_LOCAL, on a TAP interface.
use crate::bed::{B4, Bed, ping, ping_train};
use weir_testing::wait_until;

#[test]
fn the_local_port_joins_the_host_to_its_switch() {
    if !weir_testing::root() || !weir_testing::programs(&["ip", "ping", "ovs-ofctl"]) {
        return;
    }
    let bed = Bed::new();
    let ports = ["--port", "2=af_packet:pb", "--port", "LOCAL=tap:weir0", "--listen", "ptcp:6654"];
    let switch = bed.switch(&ports);
    bed.run("ovs-ofctl", &["-O", "OpenFlow13", "add-flow", "tcp:127.0.0.1:6654", "in_port=2,actions=LOCAL"]);
    bed.run("ovs-ofctl", &["-O", "OpenFlow13", "add-flow", "tcp:127.0.0.1:6654", "in_port=LOCAL,actions=output:2"]);
    bed.switches.ip("addr add 10.9.0.3/24 dev weir0");
    assert!(wait_until(std::time::Duration::from_secs(5), || ping_train(&bed.switches, B4, 1)));
    assert!(ping(&bed.b, "10.9.0.3", 5));
    let show = bed.run("ovs-ofctl", &["-O", "OpenFlow13", "show", "tcp:127.0.0.1:6654"]);
    assert!(show.contains("LOCAL(weir0)"), "{show}");
    switch.stop();
    let left = bed.switches.command("ip").args(["link", "show", "weir0"]).output().expect("ip starts");
    assert!(!left.status.success(), "the interface stayed behind");
}
