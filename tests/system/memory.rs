//! Tests limits of memory: a switch that cannot get what it needs does not start, and says what to change.
use crate::bed::weir;
use std::process::{Command, Stdio};
use weir_testing::{Namespace, programs, root};

/// Runs `weir switch ARGUMENTS` with a limit of the shell's `ulimit`. Returns its error output.
fn refusal(mut command: Command, limit: &str, arguments: &[&str]) -> String {
    let socket = tempfile::tempdir().expect("there is room for a folder");
    let socket = socket.path().join("switch.sock");
    command
        .args(["-c", &format!("ulimit {limit} && exec \"$@\""), "bash", weir(), "switch", "--control-socket"])
        .arg(&socket);
    let output = command.args(arguments).stdin(Stdio::null()).output().expect("the shell starts");
    assert!(!output.status.success(), "{limit}: it started");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn has_all(said: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| said.contains(part)), "expected {parts:?}: {said}");
}

#[test]
fn buffers_that_a_limit_forbids() {
    // 855 MiB of buffers in 781 MiB of address space.
    let said = refusal(Command::new("bash"), "-v 800000", &["--port", "1=null:a", "--buffers", "400000"]);
    has_all(&said, &["buffers: found 400000, which need 855 MiB", "choose fewer"]);
    if !said.contains("that are free") {
        has_all(&said, &["mapping 896000000 bytes", "raise the limit of address space (ulimit -v, now 782 MiB)"]);
    }
}

#[test]
fn buffers_that_nobody_has() {
    let said = refusal(Command::new("bash"), "-n 512", &["--port", "1=null:a", "--buffers", "2000000"]);
    has_all(&said, &["buffers: found 2000000", "64 to 1048576"]);
}

/// Without the capability to lock memory and with a low limit of it, AF_XDP's error names both ways out.
#[test]
fn locked_memory_that_a_limit_forbids() {
    if !root() || !programs(&["ip", "setpriv"]) {
        return;
    }
    let (own, peer) = (Namespace::new(), Namespace::new());
    own.join("veth0", &peer, "veth0");
    let mut command = own.command("setpriv");
    command.args(["--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock", "bash"]);
    let said = refusal(command, "-l 64", &["--port", "1=af_xdp:veth0"]);
    has_all(&said, &["af_xdp:veth0", "locked in memory", "CAP_IPC_LOCK", "ulimit -l"]);
}
