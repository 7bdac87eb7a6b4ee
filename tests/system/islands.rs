//! Tests that a network reaches through switches of others: a standalone bridge of Open vSwitch between two switches of
//! weir, with a host of its own and two cables to one of them.
use crate::bed::{B4, Bed, ping, stderr, stdout, weir};
use crate::open_vswitch::OpenVswitch;
use std::time::Duration;
use weir_testing::{Namespace, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);
/// Address of the host at the bridge.
const C4: &str = "10.9.0.3";

#[test]
fn a_bridge_of_others_is_crossed_without_loops() {
    let programs = [&OpenVswitch::PROGRAMS[..], &["ping", "ip"]].concat();
    if !weir_testing::root() || !weir_testing::programs(&programs) {
        return;
    }
    let (bed, host, folder) = (Bed::new(), Namespace::new(), tempfile::tempdir().expect("a folder"));
    host.join("eth0", &bed.switches, "pc");
    host.ip(&format!("addr add {C4}/24 dev eth0"));
    for number in 1..=3 {
        bed.trunk(&format!("x{number}"), &format!("y{number}"));
    }
    let others = OpenVswitch::start(&bed.switches, folder.path());
    others.add_bridge("island", &["fail_mode=standalone"], &["y1", "y2", "y3", "pc"]);
    let control = folder.path().join("c.controller").display().to_string();
    let app = ["--app", "forwarding", "--discover-islands", "--listen", "tcp:127.0.0.1:6653"];
    let _controller = bed.controller(&[&app[..], &["--control-socket", &control]].concat());
    let name = |number: u32| format!("{}-{number}", bed.switches.name());
    let switch = |number: u32, ports: &[&str]| {
        let (name, dpid) = (name(number), number.to_string());
        let options = ["--name", &name, "--dpid", &dpid, "--controller", "tcp:127.0.0.1:6653"];
        bed.switch(&[&options[..], ports].concat())
    };
    let _one = switch(1, &["--port", "1=af_packet:pa", "--port", "2=af_packet:x1", "--port", "3=af_packet:x3"]);
    let _two = switch(2, &["--port", "1=af_packet:pb", "--port", "2=af_packet:x2"]);

    let links = || {
        let api = format!("unix:{}", folder.path().join("c.api").display());
        let mut command = bed.switches.command(weir());
        let said = command.args(["net", "--api", &api, "links"]).output().expect("weir starts");
        assert!(said.status.success(), "{}", stderr(&said));
        stdout(&said)
    };
    let are_found = |text: &str| text.contains("up, through others") && text.contains("through others, not used");
    assert!(wait_until(PATIENCE, || are_found(&links())), "{}", links());
    // The first packets make hosts known; the ways are there soon after.
    assert!(wait_until(PATIENCE, || bed.reaches(B4, 1) && bed.reaches(C4, 1)));
    assert!(ping(&bed.a, B4, 3) && ping(&bed.a, C4, 3) && ping(&bed.b, C4, 3));
    let mut command = bed.a.command("ping");
    let train = command.args(["-q", "-i", "0.05", "-c", "10", "-W", "10", B4]).output().expect("ping starts");
    assert!(stdout(&train).contains("10 received, 0% packet loss"), "no packet comes twice: {}", stdout(&train));
}
