//! Tests `weir net`: what an operator sees of a network under a controller, and what is said when something is wrong.
use crate::bed::{B4, Bed, ready, stderr, stdout, weir};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use weir_testing::{CertificateAuthority, TestProcess, wait_until};

const PATIENCE: Duration = Duration::from_secs(30);
const TOKEN: &str = "operate-0123456789abcdef";

/// A controller of a network without switches, on addresses of its own.
struct LoneController {
    _process: TestProcess,
    folder: tempfile::TempDir,
}

impl LoneController {
    fn start(arguments: &[&str]) -> LoneController {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(weir());
        command.args(["controller", "--app", "forwarding", "--listen", "tcp:127.0.0.1:0", "--control-socket"]);
        command.arg(folder.path().join("c.controller")).args(arguments);
        LoneController { _process: ready(command), folder }
    }

    /// Runs `weir net` over the controller's Unix socket.
    fn net(&self, arguments: &[&str]) -> Output {
        let socket = format!("unix:{}", self.folder.path().join("c.api").display());
        net(&[&["--api", &socket], arguments].concat())
    }
}

fn net(arguments: &[&str]) -> Output {
    Command::new(weir()).arg("net").args(arguments).output().expect("weir starts")
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", stdout(output));
    stderr(output)
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_network_without_switches_is_shown() {
    let controller = LoneController::start(&[]);
    let shown = controller.net(&["show"]);
    assert!(stdout(&shown).starts_with("0 switches, 0 links, 0 hosts, 0 intents; "), "{}", stderr(&shown));
    assert_eq!(json(&controller.net(&["show", "--json"]))["switches"], Value::Array(Vec::new()));
    assert_eq!(stdout(&controller.net(&["hosts"])), "no host is known\n");
    assert_eq!(stdout(&controller.net(&["hosts", "--csv"])), "mac,at,ips,name,seen_s\n");
    assert_eq!(stdout(&controller.net(&["intent", "list"])), "no intents\n");
}

#[test]
fn state_is_written_and_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("network.state");
    let path = file.display().to_string();
    let arguments = ["--state", &path, "--discover-islands"];
    let controller = LoneController::start(&arguments);
    assert!(wait_until(PATIENCE, || file.exists()));
    drop(controller);
    let written = std::fs::read_to_string(&file).expect("the state");
    assert!(written.starts_with("{\"weir_network_state\":1,"), "{written}");
    // State of an application that does not run stays, so a controller that had not read the file would lose it.
    let other = written.replace("\"applications\":{}", "\"applications\":{\"other\":[7]}");
    assert_ne!(other, written);
    let before = other.replace("\"saved_unix_s\":1", "\"saved_unix_s\":");
    std::fs::write(&file, &before).expect("the file can be written");
    let controller = LoneController::start(&arguments);
    let text = || std::fs::read_to_string(&file).expect("the state");
    assert!(wait_until(PATIENCE, || text() != before), "it is written again");
    drop(controller);
    assert!(text().contains("\"other\":[7]"), "{}", text());
}

#[test]
fn what_is_refused_is_said_with_advice() {
    let controller = LoneController::start(&[]);
    let path = refused(&controller.net(&["path", "10.0.0.1", "1:1"]));
    assert!(path.contains("`10.0.0.1`"), "{path}");
    let gone = refused(&net(&["--api", "unix:/nonexistent/c.api", "show"]));
    assert!(gone.contains("cannot connect to unix:/nonexistent/c.api") && gone.contains("--app forwarding"), "{gone}");
    let token = refused(&net(&["--api", "http://127.0.0.1:1", "show"]));
    assert!(token.contains("needs a token") && token.contains("--token-file"), "{token}");
    let address = refused(&net(&["--api", "tcp:127.0.0.1", "show"]));
    assert!(address.contains("expected unix:PATH, http://HOST[:PORT]"), "{address}");
    let mut learning = Command::new(weir());
    let learning = learning.args(["controller", "--listen", "tcp:127.0.0.1:0", "--api", "0"]).output().expect("weir");
    assert!(refused(&learning).contains("--api and --api-tokens go with --app forwarding"), "{}", stderr(&learning));
    for (arguments, expected) in [
        (&["--max-addresses", "9"][..], "--max-addresses goes with --app learning"),
        (&["--idle-timeout", "9s"][..], "entries of --forward proactive stay"),
        (&["--max-hosts", "0"][..], "expected a number from 1"),
        (&["--state", "/dev/null"][..], "--state /dev/null: the file is damaged"),
    ] {
        let error = LoneController::refused(arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let buffer = LoneController::refused(&["--port-buffer", "64"]);
    assert!(buffer.contains("expected bytes such as 64kB, or packets of 1500 bytes such as 100packets"), "{buffer}");
    let open = LoneController::refused(&["--api", "http:0.0.0.0:0"]);
    assert!(open.contains("tokens would cross the network in clear"), "{open}");
}

impl LoneController {
    /// Returns why a controller does not start.
    fn refused(arguments: &[&str]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(weir());
        command.args(["controller", "--app", "forwarding", "--listen", "tcp:127.0.0.1:0", "--control-socket"]);
        refused(&command.arg(folder.path().join("c.controller")).args(arguments).output().expect("weir starts"))
    }
}

/// Writes a file for its owner alone. Returns its path.
fn secret(folder: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(name);
    std::fs::write(&path, text).expect("writable");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its owner's");
    path.display().to_string()
}

/// Returns a free port of 127.0.0.1.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn a_controller_elsewhere_is_asked_by_https_with_a_token() {
    let authority = CertificateAuthority::new();
    let party = authority.sign("localhost");
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = secret(folder.path(), "tokens", &format!("operate {TOKEN} tests\n"));
    let token = secret(folder.path(), "token", &format!("{TOKEN}\n"));
    let wrong = secret(folder.path(), "wrong", "wrong-0123456789abcdef");
    let port = free_port();
    let (key, certificate) = (party.private_key.display().to_string(), party.certificate.display().to_string());
    let (ca, api) = (authority.ca_cert().display().to_string(), format!("https:127.0.0.1:{port}"));
    let tls = ["--private-key", &key, "--certificate", &certificate, "--ca-cert", &ca];
    let _controller = LoneController::start(&[&["--api", &api, "--api-tokens", &tokens], &tls[..]].concat());
    let url = format!("https://localhost:{port}");
    let asked = |token: &str| net(&["--api", &url, "--ca-cert", &ca, "--token-file", token, "switches"]);
    assert_eq!(stdout(&asked(&token)), "no switch is connected\n");
    let refused_token = refused(&asked(&wrong));
    assert!(refused_token.contains("the token is not valid; give the file with a valid token"), "{refused_token}");
    let no_ca = refused(&net(&["--api", &url, "--token-file", &token, "switches"]));
    assert!(no_ca.contains("give their file with --ca-cert"), "{no_ca}");
}

#[test]
fn switches_links_and_hosts_are_shown_and_events_told() {
    if !weir_testing::root() || !weir_testing::programs(&["ip", "ping", "curl"]) {
        return;
    }
    let bed = Bed::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let arguments = ["--app", "forwarding", "--metrics", "9101", "--control-socket", &path("c.controller")];
    let _controller = bed.controller(&arguments);
    bed.trunk("t1", "t2");
    let switch = |dpid: &str, own: &str, trunk: &str| {
        let (socket, controller) = (path(dpid), "tcp:127.0.0.1:6653");
        let (own, trunk) = (format!("1=af_packet:{own}"), format!("9=af_packet:{trunk}"));
        bed.switch(&[
            "--dpid",
            dpid,
            "--port",
            &own,
            "--port",
            &trunk,
            "--control-socket",
            &socket,
            "--controller",
            controller,
        ])
    };
    let _switches = [switch("5", "pa", "t1"), switch("6", "pb", "t2")];
    let socket = format!("unix:{}", path("c.api"));
    let net = |arguments: &[&str]| net(&[&["--api", &socket], arguments].concat());
    let links = || json(&net(&["links", "--json"])).as_array().map_or(0, Vec::len);
    assert!(wait_until(PATIENCE, || links() == 1), "{}", stdout(&net(&["show"])));
    assert!(bed.reaches(B4, 30));
    let hosts = json(&net(&["hosts", "--json"]));
    let at = |place: &str| hosts.as_array().is_some_and(|all| all.iter().any(|host| host["at"] == place));
    assert!(at("5:1") && at("6:1"), "{hosts}");
    let ways = stdout(&net(&["path", "5:1", "6:1"]));
    assert!(ways.contains("5:1-9, 6:9-1"), "{ways}");
    let ways = net(&["path", "5:1", "6:1", "--csv"]);
    assert!(stdout(&ways).starts_with("path,ports,delay_us,free_bps\n1,5:1 5:9 6:9 6:1,"), "{}", stdout(&ways));
    let shown = stdout(&net(&["show"]));
    assert!(shown.starts_with("2 switches, 1 link, ") && shown.contains("5:9"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let web = ["--from", "10.9.0.1", "--to", B4, "--traffic", "tcp,tp_dst=80", "--bandwidth", "10Mbit/s", "--wait"];
    let added = net(&[&["intent", "add", "web"], &web[..]].concat());
    assert!(added.status.success() && stdout(&added).starts_with("intent web: installed, "), "{}", stdout(&added));
    let effect = stdout(&net(&["what-if", "link", "5:9"]));
    assert!(effect.contains("web") && effect.contains("failed"), "the only link: {effect}");
    let nowhere = net(&["intent", "add", "x", "--from", "10.9.0.1", "--to", "10.9.0.77", "--wait"]);
    assert_eq!(nowhere.status.code(), Some(1), "{}", stdout(&nowhere));
    assert_eq!(stdout(&net(&["intent", "remove", "x"])), "intent x is removed\n");
    assert!(refused(&net(&["intent", "show", "x"])).contains("no intent with the key `x`"));
    // Several at once, one of them wrong.
    let file = path("intents.json");
    let many = r#"[{"key":"m1","kind":"point-to-point","from":["10.9.0.1"],"to":["B4"],"traffic":"udp,tp_dst=1"},
                   {"key":"m2","kind":"point-to-point","from":["10.9.0.1"],"to":["B4"],"traffic":"udp,tp_dts=1"},
                   {"key":"m3","kind":"point-to-point","from":["B4"],"to":["10.9.0.1"],"traffic":"udp,tp_dst=1"}]"#;
    std::fs::write(&file, many.replace("B4", B4)).expect("the file can be written");
    let added = net(&["intent", "add", "--file", &file, "--wait"]);
    let told = stdout(&added);
    assert_eq!(
        (added.status.code(), told.lines().next()),
        (Some(1), Some("3 intents: 2 installed, 1 refused")),
        "{told}"
    );
    assert!(told.contains("tp_dts"), "{told}");
    let removed = stdout(&net(&["intent", "remove", "m1", "m3"]));
    assert!(removed.starts_with("2 intents: 2 withdrawn"), "{removed}");
    assert!(stdout(&net(&["intent", "remove", "--all"])).starts_with("1 intent: 1 withdrawn"));
    // The file is one that `weir topology` reads.
    let saved = path("net.json");
    assert!(net(&["topology", "--save", &saved]).status.success());
    let topology = Command::new(weir()).args(["topology", "show", &saved, "--json"]).output().expect("weir starts");
    let measures = &json(&topology)["measures"];
    assert_eq!((&measures["nodes"], &measures["links"]), (&2.into(), &1.into()), "{measures}");
    let metrics = bed.run("curl", &["-sf", "-m", "60", "http://127.0.0.1:9101/metrics"]);
    for sample in [
        "weir_network_switches 2",
        "weir_network_links{state=\"up\"} 1",
        "weir_network_links{state=\"down\"} 0",
        "weir_network_intents{state=\"installed\"} 0",
        "weir_network_events_total{kind=\"switch-up\"} 2",
        "weir_network_probes_total{outcome=\"forged\"} 0",
        "weir_controller_switches 2",
    ] {
        assert!(metrics.lines().any(|line| line == sample), "no {sample} in:\n{metrics}");
    }
    assert!(metrics.contains("weir_api_requests_total{status=\"404\"} 1\n"), "the intent that is gone: {metrics}");
    let events = stdout(&net(&["watch", "--after", "0", "--count", "2"]));
    assert!(events.contains("switch-up: ") && events.lines().count() == 2, "{events}");
}
