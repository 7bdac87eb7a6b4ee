//! Test bed: hosts in namespaces and switches in another one, joined by veth pairs.
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use weir_testing::{Namespace, TestProcess, run, wait_until};

/// Time for a switch or controller to become ready.
const READY: Duration = Duration::from_secs(10);

/// Returns the path of the weir command under test.
pub(crate) fn weir() -> &'static str {
    env!("CARGO_BIN_EXE_weir")
}

/// Runs weir and returns what it wrote and its status.
pub(crate) fn run_weir(arguments: &[&str]) -> Output {
    Command::new(weir()).args(arguments).output().unwrap_or_else(|error| panic!("cannot start weir: {error}"))
}

/// Writes the example with an external controller into a folder, for one that does not run. Returns its path.
pub(crate) fn uncontrolled(folder: &Path) -> String {
    let text = include_str!("../../examples/external.toml");
    let file = folder.join("external.toml");
    std::fs::write(&file, text.replace("tcp:127.0.0.1:6653", "unix:/nowhere/controller")).expect("writable");
    file.display().to_string()
}

/// Runs a command of weir on a file of the examples, or on another one by its absolute path.
pub(crate) fn run_on_example(command: &str, file: &str, arguments: &[&str]) -> Output {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../examples", file].iter().collect();
    run_weir(&[&[command, path.to_str().expect("a path in UTF-8")], arguments].concat())
}

/// Returns what a command wrote on standard output.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns what a command wrote on standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A namespace for switches, and two hosts `10.9.0.1` and `10.9.0.2` (`fd09::1`, `fd09::2`), whose veths end there as
/// `pa` and `pb`.
pub(crate) struct Bed {
    pub(crate) switches: Namespace,
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
}

/// Addresses of host B.
pub(crate) const B4: &str = "10.9.0.2";
pub(crate) const B6: &str = "fd09::2";

impl Bed {
    pub(crate) fn new() -> Bed {
        let bed = Bed { switches: Namespace::new(), a: Namespace::new(), b: Namespace::new() };
        for (number, host, end) in [(1, &bed.a, "pa"), (2, &bed.b, "pb")] {
            host.join("eth0", &bed.switches, end);
            run(host.command("sysctl").args(["-qw", "net.ipv6.conf.eth0.disable_ipv6=0"]));
            host.ip(&format!("addr add 10.9.0.{number}/24 dev eth0"));
            host.ip(&format!("addr add fd09::{number}/64 dev eth0 nodad"));
        }
        bed
    }

    /// Creates a veth pair between two switches.
    pub(crate) fn trunk(&self, one: &str, other: &str) {
        self.switches.join(one, &self.switches, other);
    }

    /// Starts `weir switch ARGUMENTS` in the switches' namespace and waits for its ready line.
    pub(crate) fn switch(&self, arguments: &[&str]) -> TestProcess {
        let mut command = self.switches.command(weir());
        command.arg("switch").args(arguments);
        ready(command)
    }

    /// Starts `weir controller ARGUMENTS` in the switches' namespace and waits until it is ready.
    pub(crate) fn controller(&self, arguments: &[&str]) -> TestProcess {
        let mut command = self.switches.command(weir());
        command.arg("controller").args(arguments);
        ready(command)
    }

    /// Runs a program in the switches' namespace. Returns its output.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        run(self.switches.command(program).args(arguments))
    }

    /// Returns true if A gets an answer from `address` within `tries` seconds.
    pub(crate) fn reaches(&self, address: &str, tries: u32) -> bool {
        (0..tries).any(|_| ping_train(&self.a, address, 1))
    }
}

/// Returns true if `count` echo requests to `address`, one after the other, are all answered. Each waits ten seconds,
/// because the machine may be busy.
pub(crate) fn ping(from: &Namespace, address: &str, count: u32) -> bool {
    (0..count).all(|_| echoes(from, address, &["-W", "10", "-c", "1"]) == 1)
}

/// Returns true if `count` echo requests to `address`, 50 ms apart, are all answered. The last one waits a second or,
/// after others, twice their time. For requests that are expected to fail, or that are retried.
pub(crate) fn ping_train(from: &Namespace, address: &str, count: u32) -> bool {
    echoes(from, address, &["-i", "0.05", "-W", "1", "-c", &count.to_string()]) == count
}

/// Returns the number of answered echo requests.
fn echoes(from: &Namespace, address: &str, options: &[&str]) -> u32 {
    let mut command = from.command("ping");
    let output = command.arg("-q").args(options).arg(address).stdin(Stdio::null()).output().expect("ping starts");
    // The line of ping's summary, such as "5 packets transmitted, 5 received, 0% packet loss, time 203ms".
    let text = String::from_utf8_lossy(&output.stdout);
    let before = text.split_once(" received").map_or("", |(before, _)| before);
    before.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Starts a command and waits for its first line of output.
pub(crate) fn ready(mut command: Command) -> TestProcess {
    let mut process = TestProcess::start(command.stdout(Stdio::piped()));
    let stdout = process.stdout().expect("piped");
    let (line_out, line_in) = std::sync::mpsc::channel();
    // Reads on until the process ends, so that the process never blocks on a full pipe.
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = line_out.send(line);
        }
    });
    let first = line_in.recv_timeout(READY);
    assert!(first.is_ok(), "{command:?} was not ready within {READY:?}; exited: {:?}", process.exited());
    process
}

/// Runs iperf3 from A to B. Returns the summary that `-J` prints, as JSON.
pub(crate) fn iperf(bed: &Bed, arguments: &[&str]) -> serde_json::Value {
    let mut server = bed.b.command("iperf3");
    let server = TestProcess::start(server.args(["-s", "-1", "-p", "5201"]).stdout(Stdio::null()));
    let listening = || run(bed.b.command("ss").args(["-ltn"])).contains(":5201");
    assert!(wait_until(READY, listening), "iperf3 does not listen");
    let output = run(bed.a.command("iperf3").args(["-J", "-p", "5201", "-c", B4]).args(arguments));
    server.stop();
    serde_json::from_str(&output).expect("iperf3 prints JSON")
}
