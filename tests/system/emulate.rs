//! Tests `weir emulate` as used by hand and by scripts: a prompt, links that go down, and a complete clean-up, even
//! of a killed lab.
use crate::bed::weir;
use crate::quickstart::ONE_AT_A_TIME;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;
use weir_testing::{Namespace, wait_until};

/// Longest time to wait for anything on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Two switches with a slow link between them, and a host at each.
pub(crate) const TWO: &str = r#"
[[switch]]
name = "s1"
[[switch]]
name = "s2"
[[link]]
ends = ["s1", "s2"]
delay = "5ms"
[[host]]
name = "h1"
switch = "s1"
ip = "10.0.0.1/24"
[[host]]
name = "h2"
switch = "s2"
ip = ["10.0.0.2/24", "fd00::2/64"]
"#;

/// Returns the lock that keeps other tests from creating labs, or `None` if labs cannot run here.
pub(crate) fn turn() -> Option<MutexGuard<'static, ()>> {
    let can = weir_testing::root() && weir_testing::programs(&["ip", "ping", "iperf3", "setpriv"]);
    can.then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Writes a scenario to a file. Returns the temporary folder and the file.
pub(crate) fn file(scenario: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lab.toml");
    std::fs::write(&file, scenario).expect("written");
    (folder, file)
}

/// Output and exit status of a run of `weir emulate`.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
    pub(crate) errors: String,
}

pub(crate) fn emulate(scenario: &str, arguments: &[&str], input: &str) -> Ran {
    let (_folder, file) = file(scenario);
    let mut lab = start(&file, arguments);
    let id = lab.id();
    lab.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = lab.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let ran = Ran { code: output.status.code(), said: text(output.stdout), errors: text(output.stderr) };
    assert_eq!(left_by(id), Vec::<String>::new(), "{}", ran.errors);
    ran
}

pub(crate) fn start(file: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(weir());
    command.arg("emulate").arg(file).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts")
}

/// Returns the remaining namespaces, interfaces and folder of a lab.
pub(crate) fn left_by(pid: u32) -> Vec<String> {
    let names = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<String>>()
    };
    let ours = |name: &String| name.starts_with(&format!("weir-{pid}-")) || name.starts_with(&format!("weir{pid}p"));
    let folders = names("/run/weir/labs").into_iter().filter(|name| *name == pid.to_string());
    names("/run/netns").into_iter().chain(names("/sys/class/net")).filter(ours).chain(folders).collect()
}

/// Returns the number between two texts.
fn shown(text: &str, from: &str, to: &str) -> Option<f64> {
    text.split_once(from)?.1.split_once(to)?.0.parse().ok()
}

/// A lab whose prompt a test uses line by line.
pub(crate) struct Talk {
    lab: Child,
    input: ChildStdin,
    said: BufReader<std::process::ChildStdout>,
    _folder: tempfile::TempDir,
}

impl Talk {
    pub(crate) fn begin(scenario: &str) -> Talk {
        let (folder, file) = file(scenario);
        let mut lab = start(&file, &[]);
        let (input, said) = (lab.stdin.take().expect("piped"), lab.stdout.take().expect("piped"));
        Talk { lab, input, said: BufReader::new(said), _folder: folder }
    }

    /// Sends a line to the prompt. Returns the output until the command is done.
    pub(crate) fn tell(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}\nh1 echo through").expect("it reads");
        let mut said = String::new();
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).expect("it says something") > 0, "it ended after {said}");
            if line == "through\n" {
                return said;
            }
            said += &line;
        }
    }

    pub(crate) fn quit(mut self) -> Option<i32> {
        let id = self.lab.id();
        drop(self.input);
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).expect("it ends");
        let code = self.lab.wait().expect("it ends").code();
        assert_eq!(left_by(id), Vec::<String>::new());
        code
    }
}

#[test]
fn a_prompt_answers() {
    let Some(_turn) = turn() else { return };
    let mut talk = Talk::begin(TWO);
    let nodes = talk.tell("nodes");
    assert!(
        nodes.contains("h1  10.0.0.1/24") && nodes.contains("s2  datapath id 0x2  2 ports  unix:/run/weir/labs/"),
        "{nodes}"
    );
    assert!(talk.tell("links").contains("s1:2 - s2:2  up, delay 5ms"), "{}", talk.tell("links"));
    let pings = talk.tell("pingall 5s");
    assert!(pings.starts_with("h1 -> h2\nh2 -> h1\n2 of 2 reached; round trips "), "{pings}");
    assert!(shown(&pings, "round trips ", " ms").is_some_and(|ms| ms >= 10.0), "twice the delay: {pings}");
    let real = talk.tell("h1 ping -c 1 h2");
    assert!(real.contains("PING 10.0.0.2") && real.contains("1 received"), "{real}");
    assert!(talk.tell("dump s1").contains("actions=output:"), "{}", talk.tell("dump s1"));
    assert!(talk.tell("iperf h1 h2 1s").starts_with("h1 -> h2: "), "by TCP");
    let certificate = talk.tell("certificate");
    assert!(certificate.starts_with("Fidelity: ") && certificate.contains("frames delayed"), "{certificate}");
    assert_eq!(talk.quit(), Some(0));
}

#[test]
fn links_change_while_frames_pass() {
    let Some(_turn) = turn() else { return };
    let mut talk = Talk::begin(TWO);
    assert!(talk.tell("pingall 5s").contains("2 of 2"));
    talk.tell("link s1 s2 down");
    let down = talk.tell("pingall 200ms");
    assert!(down.starts_with("h1 -> X\nh2 -> X\n0 of 2 reached"), "{down}");
    assert!(talk.tell("show s2").contains("s2-s1  link DOWN"), "{}", talk.tell("show s2"));
    assert!(talk.tell("show s2").contains("  up, OpenFlow 1.3\n"), "{}", talk.tell("show s2"));
    talk.tell("link s2 s1 up delay 30ms rate 10M");
    assert!(talk.tell("links").contains("up, 10Mbit/s, delay 30ms"));
    let slow = talk.tell("h1 ping -c 2 h2");
    let shortest = slow
        .lines()
        .find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next()?.parse::<f64>().ok());
    assert!(shortest.is_some_and(|ms| (60.0..200.0).contains(&ms)), "{slow}");
    assert_eq!(talk.tell("h2 cat /sys/class/net/eth0/carrier"), "1\n");
    talk.tell("link h2 s2 down");
    assert_eq!(talk.tell("h2 cat /sys/class/net/eth0/carrier"), "0\n", "a host sees that its link is gone");
    talk.tell("link h2 s2 up");
    assert!(talk.tell("pingall 5s").contains("2 of 2"));
    assert_eq!(talk.quit(), Some(1), "pings were lost on the way");
}

#[test]
fn a_controller_is_told_of_links_at_once() {
    let Some(_turn) = turn() else { return };
    if !weir_testing::programs(&["ovs-ofctl"]) {
        return;
    }
    let mut talk = Talk::begin(TWO);
    // The answer shows that the switches listen.
    talk.tell("nodes");
    let socket = format!("unix:/run/weir/labs/{}/s1.mgmt", talk.lab.id());
    assert_eq!(is_told_of_links(&mut talk, &socket), Ok(()));
    assert_eq!(talk.quit(), Some(0));
}

/// Checks that a program monitoring a switch is told that a link goes down. The error contains the program's output
/// and its exit status.
fn is_told_of_links(talk: &mut Talk, socket: &str) -> Result<(), String> {
    let mut monitor = Command::new("ovs-ofctl");
    monitor.args(["-O", "OpenFlow13", "monitor", socket, "65535"]).stdin(Stdio::null());
    // Folder in which ovs-ofctl creates its own socket.
    let folder = tempfile::tempdir().expect("a folder");
    monitor.env("OVS_RUNDIR", folder.path());
    let mut monitor = monitor.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("ovs-ofctl starts");
    let stderr = BufReader::new(monitor.stderr.take().expect("piped"));
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    // The monitor is notified only after its request was processed, so the link is toggled repeatedly. The link is up
    // again at once, so that a switch that polls its ports from time to time would miss the change.
    let mut said: Vec<String> = Vec::new();
    let is_told = wait_until(LIMIT, || {
        talk.tell("link s1 s2 down");
        said.extend(std::iter::from_fn(|| told.recv_timeout(Duration::from_secs(1)).ok()));
        let of_ports = said.iter().position(|line| line.contains("OFPT_PORT_STATUS"));
        let is_down = of_ports.is_some_and(|from| said[from..].iter().any(|line| line.contains("LINK_DOWN")));
        talk.tell("link s1 s2 up");
        is_down
    });
    let ended = monitor.try_wait().expect("a process");
    monitor.kill().expect("it is ours");
    monitor.wait().expect("it ends");
    if is_told { Ok(()) } else { Err(format!("{said:?}, ended: {ended:?}")) }
}

#[test]
fn a_script_is_read_before_anything_is_started() {
    let Some(_turn) = turn() else { return };
    let good = emulate(TWO, &["--exec", "pingall 5s", "--exec", "h1 true"], "");
    assert_eq!((good.code, good.said.contains("2 of 2 reached")), (Some(0), true), "{}", good.errors);
    assert!(good.errors.contains("Fidelity: ") && good.errors.contains("ms a node"), "{}", good.errors);
    let bad = emulate(TWO, &["--exec", "pingall", "--exec", "h1 true", "--exec", "h3 true"], "");
    assert_eq!((bad.code, bad.errors.lines().count()), (Some(2), 1), "{}", bad.errors);
    assert!(bad.errors.starts_with("weir: --exec: found `h3`, expected a command"), "{}", bad.errors);
    assert_eq!(emulate(TWO, &["--exec", "h1 false"], "").code, Some(1));
    let piped = emulate(TWO, &[], "# a comment\n\nnonsense\nh2 echo still here\n");
    assert_eq!((piped.code, piped.said.as_str()), (Some(2), "still here\n"), "{}", piped.errors);
    assert!(piped.errors.contains("found `nonsense`, expected a command"), "{}", piped.errors);
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark");
    let behind = format!("h1 sleep 0.2 && touch {} &", mark.display());
    let seen = format!("h2 test ! -e {0} && sleep 3 && test -e {0}", mark.display());
    let background = emulate(TWO, &["--exec", &behind, "--exec", &seen], "");
    assert_eq!(background.code, Some(0), "not waited for, but run: {}", background.errors);
}

#[test]
fn a_file_with_traffic_is_run_and_certified() {
    let Some(_turn) = turn() else { return };
    let example = weir_testing::workspace().join("examples/quickstart.toml");
    let text = std::fs::read_to_string(example).expect("the example");
    let ran = emulate(&text, &["--duration", "1s"], "");
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.said, ran.errors);
    let is_overloaded = ran.said.contains("Fidelity: not faithful");
    let last = if is_overloaded { "NOT FAITHFUL: " } else { "All 6 items of traffic did what was expected" };
    for word in ["red-a", "isolated", "Fidelity: ", "links: ", last] {
        assert!(ran.said.contains(word), "no `{word}` in\n{}", ran.said);
    }
    let json = emulate(&text, &["--duration", "1s", "--json", "--cli"], "traffic\n");
    let result: serde_json::Value = serde_json::from_str(&json.said).expect("one document");
    assert_eq!(result["passed"], true, "{result}");
    assert!(result["certificate"]["links"]["by"]["samples"].as_u64().is_some_and(|count| count > 0), "{result}");
    let csv = emulate(&text, &["--duration", "1s", "--csv"], "").said;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines.len() == 7 && lines[0].starts_with("kind,from,to,") && lines[0].ends_with(",fidelity"), "{csv}");
}

#[test]
fn a_profile_and_slow_motion() {
    let Some(_turn) = turn() else { return };
    let profiled = TWO.replacen("name = \"s1\"", "name = \"s1\"\nprofile = \"two-level-tcam\"", 1);
    let ran = emulate(&profiled, &["--exec", "pingall 10s"], "");
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.said, ran.errors);
    assert!(ran.errors.contains("switches with a profile: "), "{}", ran.errors);
    let slow = emulate(&profiled, &["--dilate", "4", "--exec", "pingall 5s", "--exec", "h1 ping -c 2 h2"], "");
    assert_eq!(slow.code, Some(0), "{}\n{}", slow.said, slow.errors);
    let told = shown(&slow.said, "round trips ", " ms").expect("of pingall");
    assert!(told >= 10.0, "the file's time: {}", slow.said);
    let real = shown(&slow.said, "rtt min/avg/max/mdev = ", "/").expect("of ping");
    assert!(real >= 40.0, "programs' time: {}", slow.said);
    assert!(slow.errors.contains("everything ran 4 times slower"), "{}", slow.errors);
}

#[test]
fn a_killed_lab_is_found_and_removed() {
    let Some(_turn) = turn() else { return };
    let mut talk = Talk::begin(TWO);
    talk.tell("h1 sleep 1000 &");
    let pid = talk.lab.id();
    // The lab still runs, so its parts are no leftovers.
    let refused = Command::new(weir()).args(["cleanup", &pid.to_string()]).output().expect("weir starts");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("found labs that run (process {pid}), expected --force")), "{said}");
    weir_testing::run(Command::new(weir()).arg("cleanup"));
    assert!(talk.tell("pingall 5s").contains("2 of 2"), "cleaning up does not touch it");

    talk.lab.kill().expect("it runs");
    talk.lab.wait().expect("it is gone");
    assert_eq!(left_by(pid).len(), 5, "{:?}", left_by(pid));
    let cleaned = weir_testing::run(Command::new(weir()).args(["cleanup", "--json", &pid.to_string()]));
    let cleaned: serde_json::Value = serde_json::from_str(&cleaned).expect("one document");
    assert_eq!(cleaned["removed"][0]["namespaces"].as_array().map(Vec::len), Some(2), "{cleaned}");
    assert_eq!(left_by(pid), Vec::<String>::new());
    let nothing = weir_testing::run(Command::new(weir()).args(["cleanup", &pid.to_string()]));
    assert_eq!(nothing, "nothing was left behind\n");
}

/// The program `nsenter` does not change /sys: it shows the namespace outside.
#[test]
fn interfaces_of_a_namespace_are_found_whatever_sys_shows() {
    if !weir_testing::root() || !weir_testing::programs(&["ip", "nsenter", "true"]) {
        return;
    }
    let namespace = Namespace::new();
    let mut ended = Command::new("true").spawn().expect("true starts");
    let pid = ended.id().to_string();
    ended.wait().expect("it ends");
    namespace.ip(&format!("link add weir{pid}p0 type veth peer name weir{pid}p1"));
    let inside = format!("--net=/run/netns/{}", namespace.name());
    let cleaned = weir_testing::run(Command::new("nsenter").args([&inside, weir(), "cleanup", &pid]));
    assert!(cleaned.contains(&format!("weir{pid}p0")), "{cleaned}");
    let left = weir_testing::run(namespace.command("ip").args(["-o", "link"]));
    assert!(!left.contains("weir"), "{left}");
}

#[test]
fn a_running_lab_is_ended_by_force() {
    let Some(_turn) = turn() else { return };
    let mut talk = Talk::begin(TWO);
    talk.tell("nodes");
    let pid = talk.lab.id();
    let ended = weir_testing::run(Command::new(weir()).args(["cleanup", "--force", &pid.to_string()]));
    assert!(ended.contains(&format!("process {pid} ended")), "{ended}");
    assert_eq!(talk.quit(), Some(130), "it cleaned up by itself");
}

#[test]
fn many_switches_and_hosts() {
    let Some(_turn) = turn() else { return };
    let mut scenario = String::new();
    for number in 1..=10 {
        scenario += &format!("[[switch]]\nname = \"s{number}\"\n");
        for host in [2 * number - 1, 2 * number] {
            scenario += &format!("[[host]]\nname = \"h{host}\"\nswitch = \"s{number}\"\nip = \"10.0.0.{host}/24\"\n");
        }
    }
    (1..10).for_each(|number| scenario += &format!("[[link]]\nends = [\"s{number}\", \"s{}\"]\n", number + 1));
    let ran = emulate(&scenario, &["--exec", "pingall 20s"], "");
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.said, ran.errors);
    assert!(ran.said.contains("380 of 380 reached"), "{}", ran.said);
    assert!(ran.errors.contains("10 switches, 20 hosts and 9 links between switches in"), "{}", ran.errors);
}

#[test]
fn four_answers_side_by_side() {
    let Some(_turn) = turn() else { return };
    let traffic = "[[traffic]]\nkind = \"ping\"\nfrom = \"h1\"\nto = \"h2\"\ncount = 5\ninterval = \"50ms\"\n";
    let (_folder, file) = file(&(TWO.to_owned() + traffic));
    let mut compare = Command::new(weir());
    compare.args(["compare", "--answers", "predict,simulate,emulate,run", "--rounds", "1", "--json"]).arg(&file);
    let output = compare.output().expect("weir starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let document: serde_json::Value = serde_json::from_str(&said).expect("one document");
    let text = document.to_string();
    for verb in ["predict", "simulate", "emulate", "run"] {
        assert!(text.contains(&format!("\"verb\":\"{verb}\"")), "no {verb} in {text}");
    }
    assert!(text.contains("hosts in network namespaces") && text.contains("times of the worst round "), "{text}");
}
