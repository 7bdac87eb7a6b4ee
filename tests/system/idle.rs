//! Tests ports without traffic for a long time next to a busy one.
use crate::bed::{B4, Bed, iperf, ping};
use weir_testing::{Namespace, run};

#[test]
fn a_port_that_was_quiet_for_long_is_heard_again() {
    if !weir_testing::root() || !weir_testing::programs(&["ping", "ip", "ss", "iperf3"]) {
        return;
    }
    let bed = Bed::new();
    let quiet = Namespace::new();
    quiet.join("eth0", &bed.switches, "pc");
    quiet.ip("addr add 10.9.0.3/24 dev eth0");
    let ports = ["--port", "af_packet:pa", "--port", "af_packet:pb", "--port", "af_packet:pc", "--port", "tap:quiet"];
    let switch = bed.switch(&[&["--fail-mode", "standalone"], &ports[..]].concat());
    assert!(bed.reaches(B4, 20) && ping(&quiet, B4, 3));
    // The stream keeps the switch busy for thousands of rounds; meanwhile the third host is silent, then sends,
    // several times.
    std::thread::scope(|scope| {
        let stream = scope.spawn(|| iperf(&bed, &["-t", "3"]));
        let mut heard = 0;
        while !stream.is_finished() {
            let mut command = quiet.command("ping");
            command.args(["-q", "-i", "0.2", "-W", "2", "-c", "3", B4]);
            heard += u32::from(run(&mut command).contains("3 received"));
        }
        assert!(heard > 0);
        let sent = stream.join().expect("iperf3 runs");
        assert!(sent["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_default() > 1e6, "{sent}");
    });
    bed.switches.ip("link del pc");
    assert!(bed.reaches(B4, 20), "a watched port may vanish");
    switch.stop();
}
