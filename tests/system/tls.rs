//! Tests TLS with Open vSwitch's programs as peers.
use crate::bed::{Bed, weir};
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_testing::{CertificateAuthority, KeyAndCertificate, TestProcess, wait_until};

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ip", "ovs-ofctl"])
}

/// Returns the TLS options, which weir and Open vSwitch have in common.
fn options(party: &KeyAndCertificate, ca: &CertificateAuthority) -> Vec<String> {
    let shown = |path: &std::path::Path| path.display().to_string();
    let flags =
        [("--private-key", &party.private_key), ("--certificate", &party.certificate), ("--ca-cert", &ca.ca_cert())];
    flags.into_iter().map(|(flag, path)| format!("{flag}={}", shown(path))).collect()
}

fn with<'a>(arguments: &[&'a str], more: &'a [String]) -> Vec<&'a str> {
    arguments.iter().copied().chain(more.iter().map(String::as_str)).collect()
}

/// Runs `ovs-ofctl show`. Returns whether it got an answer, and its output.
fn show(bed: &Bed, tls: &[String], target: &str) -> (bool, String) {
    let mut command = bed.switches.command("timeout");
    command.args(["10", "ovs-ofctl", "-O", "OpenFlow13"]).args(tls).args(["show", target]);
    let output = command.stdin(Stdio::null()).output().expect("ovs-ofctl starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success() && text.contains("OFPT_FEATURES_REPLY"), text)
}

#[test]
fn ovs_ofctl_talks_to_the_switch_over_tls_if_it_may() {
    if !ready() {
        return;
    }
    // Authorities as ovs-pki creates them: a CA for switches, one for controllers.
    let (switches, controllers, others) =
        (CertificateAuthority::new(), CertificateAuthority::new(), CertificateAuthority::new());
    let bed = Bed::new();
    let ours = options(&switches.sign("s1.test"), &controllers);
    let listen = ["--port", "1=null:a", "--listen", "pssl:6654:127.0.0.1", "--listen", "ptcp:6655"];
    let socket = format!("--control-socket=/tmp/weir-tls-{}.sock", std::process::id());
    let switch = bed.switch(&with(&[&listen[..], &[&socket]].concat(), &ours));
    let (served, text) = show(&bed, &options(&controllers.sign("c1.test"), &switches), "ssl:127.0.0.1:6654");
    assert!(served, "{text}");
    for (who, tls, target) in [
        ("a stranger", options(&others.sign("x.test"), &switches), "ssl:127.0.0.1:6654"),
        ("one that does not trust the switch", options(&controllers.sign("c2.test"), &others), "ssl:127.0.0.1:6654"),
        ("one that speaks no TLS", Vec::new(), "tcp:127.0.0.1:6654"),
        (
            "one that speaks TLS where there is none",
            options(&controllers.sign("c3.test"), &switches),
            "ssl:127.0.0.1:6655",
        ),
    ] {
        let (served, text) = show(&bed, &tls, target);
        assert!(!served, "{who}: {text}");
    }
    let (served, text) = show(&bed, &[], "tcp:127.0.0.1:6655");
    assert!(served, "{text}");
    switch.stop();
}

#[test]
fn ovs_testcontroller_and_our_controller_are_reached_over_tls() {
    if !ready() || !weir_testing::programs(&["ovs-testcontroller", "ping"]) {
        return;
    }
    let (switches, controllers) = (CertificateAuthority::new(), CertificateAuthority::new());
    let tls = options(&controllers.sign("c1.test"), &switches);
    for ours in [true, false] {
        let bed = Bed::new();
        let controller = if ours {
            bed.controller(&with(&["--listen", "ssl:127.0.0.1:6653"], &tls))
        } else {
            let mut command: Command = bed.switches.command("ovs-testcontroller");
            let unixctl = format!("--unixctl={}/testcontroller.ctl", controllers.folder().display());
            command.args(&tls).args(["pssl:6653:127.0.0.1", &unixctl]);
            TestProcess::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
        };
        let socket = format!("--control-socket=/tmp/weir-tls-controller-{}.sock", std::process::id());
        let ports = ["--port", "1=af_packet:pa", "--port", "2=af_packet:pb", "--controller", "ssl:127.0.0.1:6653"];
        let switch_tls = options(&switches.sign("s1.test"), &controllers);
        let switch = bed.switch(&with(&[&ports[..], &[&socket]].concat(), &switch_tls));
        let reaches = wait_until(Duration::from_secs(20), || bed.reaches(crate::bed::B4, 1));
        assert!(reaches, "ours: {ours}: {}", bed.run(weir(), &["ctl", "--socket", &socket[17..], "show"]));
        switch.stop();
        drop(controller);
    }
}
