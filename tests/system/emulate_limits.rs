//! Tests the errors of `weir emulate` if the machine or the user lacks something, and that no part of a lab is left
//! behind.
use crate::bed::weir;
use crate::emulate::{Ran, TWO, emulate, file, left_by, turn};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// Open files that [`TWO`] needs by the emulator's estimate: two switches, two hosts and a link between switches.
const FILES: u32 = 128 + 2 * 24 + 2 * 12 + 4;

/// Runs `weir emulate` on [`TWO`] through another program, which executes it.
fn by(program: &[&str], arguments: &[&str]) -> Ran {
    let (folder, file) = file(TWO);
    for place in [folder.path(), &file] {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).arg(weir()).arg("emulate").arg(&file).args(arguments);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let id = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(left_by(id), Vec::<String>::new());
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { code: output.status.code(), said: text(output.stdout), errors: text(output.stderr) }
}

#[test]
fn without_root_it_says_so() {
    let Some(_turn) = turn() else { return };
    // A folder on the path to the command may be closed to other users; a copy is readable.
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("weir");
    std::fs::copy(weir(), &copy).expect("copied");
    for place in [folder.path(), &copy] {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let (scenario_folder, scenario) = file(TWO);
    for place in [scenario_folder.path(), &scenario] {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&copy);
    let output = command.arg("emulate").arg(&scenario).stdin(Stdio::null()).output().expect("setpriv starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("hosts in namespaces need root: use sudo"), "{said}");
}

#[test]
fn too_few_files_are_told_before_anything_is_made() {
    let Some(_turn) = turn() else { return };
    if !weir_testing::programs(&["prlimit"]) {
        return;
    }
    let limit = |soft: u32, hard: u32| format!("--nofile={soft}:{hard}");
    let few = by(&["prlimit", &limit(FILES - 1, FILES - 1)], &["--exec", "pingall"]);
    let expected = format!(
        "2 switches and 2 hosts need about {FILES} open files, found a limit of {}: raise it (ulimit -Hn {FILES})",
        FILES - 1
    );
    assert_eq!(few.code, Some(2), "{}", few.errors);
    assert!(few.errors.contains(&expected), "{}", few.errors);
    // The number in the error is sufficient, and a lower soft limit is raised.
    let enough = by(
        &["prlimit", &limit(64, FILES)],
        &["--exec", "pingall 10s", "--exec", "iperf h1 h2 1s", "--exec", "dump s1"],
    );
    assert_eq!(enough.code, Some(0), "{}\n{}", enough.said, enough.errors);
    assert!(enough.said.contains("2 of 2 reached"), "{}", enough.said);
}

#[test]
fn more_processors_than_there_are_is_refused_by_name() {
    let Some(_turn) = turn() else { return };
    let asked = TWO.replacen("name = \"s1\"", "name = \"s1\"\nthreads = { mode = \"pipeline\", workers = 4000 }", 1);
    let ran = emulate(&asked, &["--exec", "pingall"], "");
    assert_eq!(ran.code, Some(2), "{}", ran.errors);
    assert!(ran.errors.contains("switch s1: threads: ") && ran.errors.contains("4000"), "{}", ran.errors);
    let pinned = TWO.replacen("name = \"s2\"", "name = \"s2\"\nthreads = { cpus = \"4000\" }", 1);
    let ran = emulate(&pinned, &["--exec", "pingall"], "");
    assert_eq!(ran.code, Some(2), "{}", ran.errors);
    assert!(ran.errors.contains("switch s2: threads: ") && ran.errors.contains("4000"), "{}", ran.errors);
}

#[test]
fn a_machine_that_is_too_busy_is_told() {
    let Some(_turn) = turn() else { return };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut arguments = vec!["--strict".to_owned()];
    for _ in 0..2 * cores {
        arguments.extend(["--exec".to_owned(), "h1 timeout 20 sh -c 'while :; do :; done' &".to_owned()]);
    }
    for line in ["sleep 2s", "pingall 20s", "sleep 2s"] {
        arguments.extend(["--exec".to_owned(), line.to_owned()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = emulate(TWO, &arguments, "");
    assert_eq!(ran.code, Some(3), "{}\n{}", ran.said, ran.errors);
    assert!(ran.errors.contains("Fidelity: not faithful"), "{}", ran.errors);
    assert!(ran.errors.contains("all processors were busy for "), "{}", ran.errors);
    assert!(ran.errors.contains("use fewer or idler nodes, or more processors"), "{}", ran.errors);
}

#[test]
fn hosts_that_know_each_other_ask_nobody() {
    let Some(_turn) = turn() else { return };
    let asks = emulate(TWO, &["--exec", "pingall 10s", "--exec", "h1 ip neigh"], "");
    assert!(asks.said.contains("10.0.0.2") && !asks.said.contains("PERMANENT"), "{}", asks.said);
    let knows = ["--neighbours", "known", "--exec", "pingall 10s", "--exec", "h1 ip neigh", "--exec", "h2 ip neigh"];
    let knows = emulate(TWO, &knows, "");
    assert_eq!(knows.code, Some(0), "{}\n{}", knows.said, knows.errors);
    assert!(knows.errors.contains("hosts know each other's Ethernet addresses"), "{}", knows.errors);
    for address in ["10.0.0.1 dev eth0", "10.0.0.2 dev eth0", "fd00::2 dev eth0"] {
        let is_there =
            knows.said.lines().any(|line| line.starts_with(address) && line.trim_end().ends_with("PERMANENT"));
        assert!(is_there, "{address}: {}", knows.said);
    }
}
