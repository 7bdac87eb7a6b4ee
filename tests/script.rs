//! Tests of the script `weir`, with a program in cargo's place.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// A cargo that makes a program which prints its kind, in the folder of the profile that it is asked for.
const BUILDER: &str = r#"#!/bin/sh
[ "$1" = build ] || exit 0
kind=quick
for word; do [ "$word" = --release ] && kind=release; done
mkdir -p "$PROJECT/target/$kind"
printf '#!/bin/sh\necho %s $*\n' "$kind ${WEIR_QUICK:-0}" >"$PROJECT/target/$kind/weir"
chmod +x "$PROJECT/target/$kind/weir"
"#;

/// Turn of a test. A program that is being written in one thread is also open in what another thread starts meanwhile,
/// and the kernel does not run a program that is open for writing.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a program that can be run.
fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// First steps take the program that is built quickly; commands that depend on speed take the fast one, and so do all
/// once it is there.
#[test]
fn first_steps_do_not_wait_for_the_fast_program() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let (project, programs) = (folder.path().join("project"), folder.path().join("programs"));
    [&project, &programs].iter().for_each(|path| fs::create_dir(path).unwrap());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ["weir", "rust-toolchain.toml"].iter().for_each(|name| _ = fs::copy(root.join(name), project.join(name)).unwrap());
    program(&programs.join("cargo"), BUILDER);
    // The toolchain is there already.
    program(&programs.join("rustup"), "#!/bin/sh\n");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&path))).unwrap();
    let run = |words: &[&str]| {
        let mut script = Command::new(project.join("weir"));
        let ran = script.args(words).env("PATH", &path).env("PROJECT", &project).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(run(&["quickstart"]), "quick 1 quickstart\n");
    assert_eq!(run(&["predict", "file"]), "quick 1 predict file\n");
    assert_eq!(run(&["--help"]), "quick 1 --help\n");
    assert_eq!(run(&["profile", "list"]), "quick 1 profile list\n");
    assert_eq!(run(&["switch", "--help"]), "quick 1 switch --help\n");
    assert_eq!(run(&["nosuch"]), "quick 1 nosuch\n");
    assert_eq!(run(&["switch", "--port"]), "release 0 switch --port\n");
    assert_eq!(run(&["quickstart"]), "release 0 quickstart\n");
}

/// A signal to the script alone leaves neither cargo nor its program nor a file behind.
#[test]
fn a_script_that_is_ended_ends_its_tests() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let (programs, ids, temporary) = (made("programs"), made("ids"), made("temporary"));
    let cargo = programs.join("cargo");
    program(&cargo, CARGO);
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
