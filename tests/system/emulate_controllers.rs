//! Tests controllers of other projects with emulated switches, one of which has the timing profile of a hardware
//! switch.
use crate::bed::run_on_example;
use crate::emulate::{LIMIT, TWO, Talk, turn};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weir_testing::{TestProcess, osken, wait_until};

/// Returns a free TCP port of this machine.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port()
}

/// Returns [`TWO`] under a controller at a port; the first switch has the times of a hardware switch.
fn scenario(port: u16) -> String {
    let profiled = TWO.replacen("name = \"s1\"", "name = \"s1\"\nprofile = \"two-level-tcam\"", 1);
    format!("[controller]\nconnect = \"tcp:127.0.0.1:{port}\"\n{profiled}")
}

/// Checks that hosts reach each other under a controller at a port, and that the controller's entries are in the
/// switches' tables.
fn controls(port: u16, log: &Path) {
    let said = || std::fs::read_to_string(log).unwrap_or_default();
    let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(wait_until(LIMIT, listens), "the controller does not listen: {}", said());
    let mut talk = Talk::begin(&scenario(port));
    let mut pings = String::new();
    // The controller may still be adding its first entries.
    let reached = wait_until(LIMIT, || {
        pings = talk.tell("pingall 3s");
        pings.contains("2 of 2 reached")
    });
    assert!(reached, "{pings}\n{}\n{}\n{}", talk.tell("dump s1"), talk.tell("show s1"), said());
    for switch in ["s1", "s2"] {
        let entries = talk.tell(&format!("dump {switch}"));
        assert!(entries.contains("output:"), "{switch}: {entries}");
    }
    let certificate = talk.tell("certificate");
    assert!(certificate.contains("switches with a profile: "), "{certificate}");
    assert!(talk.quit().is_some_and(|code| code <= 1), "a first ping may be lost");
    simulated(port);
}

/// Checks that the controller at a port also controls the same switches in virtual time.
fn simulated(port: u16) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("two.toml");
    let traffic = "[[traffic]]\nkind = \"ping\"\nfrom = \"h1\"\nto = \"h2\"\n";
    std::fs::write(&file, scenario(port) + traffic).expect("writable");
    let mut said = String::new();
    // Faucet refuses a switch while it still takes the one before for connected.
    let reached = wait_until(LIMIT, || {
        let out = run_on_example("simulate", &file.display().to_string(), &["--level", "packets", "--settle", "20ms"]);
        said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        out.status.success()
    });
    assert!(reached && said.contains(&format!("Controller tcp:127.0.0.1:{port}: ")), "{said}");
}

#[test]
fn os_ken_controls_emulated_switches() {
    let Some(app) = weir_testing::shared("conformance/tools/osken_l2.py") else { return };
    let (Some(python), Some(_turn)) = (osken(), turn()) else { return };
    let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
    let log = folder.path().join("log");
    let mut command = Command::new(python);
    command.arg(app).env("OSKEN_L2_PORT", port.to_string());
    let _controller = TestProcess::start(to_log(&mut command, &log));
    controls(port, &log);
}

#[test]
fn faucet_controls_emulated_switches() {
    let (Some(program), Some(_turn)) = (faucet(), turn()) else { return };
    let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
    let (config, log) = (folder.path().join("faucet.yaml"), folder.path().join("log"));
    let switch = |number: u32| {
        format!(
            "  s{number}: {{dp_id: {number}, hardware: 'Open vSwitch', interfaces: {{1: {{native_vlan: office}}, 2: {{native_vlan: office}}}}}}\n"
        )
    };
    let text = format!("vlans: {{office: {{vid: 100}}}}\ndps:\n{}{}", switch(1), switch(2));
    std::fs::write(&config, text).expect("writable");
    let mut command = Command::new(&program);
    command.args(["--ryu-ofp-listen-host", "127.0.0.1", "--ryu-ofp-tcp-listen-port", &port.to_string()]);
    command.env("FAUCET_CONFIG", &config).env("FAUCET_LOG", folder.path().join("faucet.log"));
    command.env("FAUCET_EXCEPTION_LOG", folder.path().join("faucet.exceptions"));
    command.env("FAUCET_PROMETHEUS_PORT", free_port().to_string()).env("FAUCET_PROMETHEUS_ADDR", "127.0.0.1");
    // Faucet starts a program of its virtual environment.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", program.parent().expect("in a folder").display()));
    let _controller = TestProcess::start(to_log(&mut command, &log));
    controls(port, &log);
}

fn to_log<'a>(command: &'a mut Command, log: &Path) -> &'a mut Command {
    let out = std::fs::File::create(log).expect("writable");
    let errors = out.try_clone().expect("a descriptor");
    command.stdin(Stdio::null()).stdout(out).stderr(errors)
}

/// Returns the path of Faucet in its virtual environment, where CI creates it.
fn faucet() -> Option<PathBuf> {
    let folder = std::env::var_os("FAUCET_VENV").map_or_else(|| "/tmp/faucet-venv".into(), PathBuf::from);
    let program = folder.join("bin/faucet");
    if !program.exists() {
        weir_testing::skip("needs Faucet in the virtual environment that FAUCET_VENV names");
        return None;
    }
    Some(program)
}
