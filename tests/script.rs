//! Tests of the script `weir`, with a program in cargo's place.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_testing::wait_until;

/// A cargo that notes its process id and that of the test program it runs, and does not end by itself.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = test ] || exit 1
sleep 600 &
echo $! >"$IDS/program"
echo $$ >"$IDS/cargo"
wait $!
"#;

/// A signal to the script alone leaves neither cargo nor its program nor a file behind.
#[test]
fn a_script_that_is_ended_ends_its_tests() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let (programs, ids, temporary) = (made("programs"), made("ids"), made("temporary"));
    let cargo = programs.join("cargo");
    fs::write(&cargo, CARGO).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&path))).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../weir");
    let mut script = Command::new(script)
        .arg("test")
        .env("PATH", path)
        .env("TMPDIR", &temporary)
        .env("IDS", &ids)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let long = Duration::from_secs(60);
    assert!(wait_until(long, || ids.join("cargo").exists() && id(&ids.join("cargo")).is_some()), "cargo runs");
    let processes: Vec<PathBuf> = ["cargo", "program"]
        .iter()
        .filter_map(|name| id(&ids.join(name)))
        .map(|id| format!("/proc/{id}").into())
        .collect();
    assert!(processes.len() == 2 && processes.iter().all(|process| process.exists()));
    let process = rustix::process::Pid::from_child(&script);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    script.wait().unwrap();
    let end = wait_until(long, || processes.iter().all(|process| !process.exists()));
    // What is left otherwise would sleep on.
    for name in ["cargo", "program"].iter().filter(|_| !end) {
        let process = id(&ids.join(name)).and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        process.map(|process| rustix::process::kill_process(process, rustix::process::Signal::KILL));
    }
    assert!(end, "{processes:?} were there still");
    let left = || fs::read_dir(&temporary).unwrap().count();
    assert!(wait_until(long, || left() == 0), "{} files are left", left());
}

/// Returns the process id in a file, once it is there.
fn id(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
