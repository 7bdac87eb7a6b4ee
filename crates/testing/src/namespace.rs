//! Network namespaces that are deleted with the test.
use crate::run;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);
/// Namespaces of killed tests are deleted once, before the first one is made.
static KILLED: Once = Once::new();

/// A network namespace with loopback up and IPv6 disabled; deleted when dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace with a name that no other test or process uses.
    pub fn new() -> Namespace {
        KILLED.call_once(delete_killed);
        let name = format!("wt{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        run(Command::new("ip").args(["netns", "add", &name]));
        let namespace = Namespace { name };
        run(namespace.command("sysctl").args([
            "-qw",
            "net.ipv6.conf.all.disable_ipv6=1",
            "net.ipv6.conf.default.disable_ipv6=1",
        ]));
        namespace.ip("link set lo up");
        namespace
    }

    /// Returns its name, as `ip netns` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a command that runs `program` in the namespace.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `act` on a thread in the namespace. Sockets made there stay in the namespace.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let file = std::fs::File::open(format!("/run/netns/{}", self.name)).expect("the namespace is there");
        let inside = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("entering the namespace");
            act()
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).expect("the thread inside does not panic")
    }

    /// Runs `ip ARGUMENTS` in the namespace.
    pub fn ip(&self, arguments: &str) {
        run(Command::new("ip").args(["-n", &self.name]).args(arguments.split_whitespace()));
    }

    /// Joins two namespaces by a veth pair of one queue each, both ends up.
    pub fn join(&self, name: &str, other: &Namespace, other_name: &str) {
        self.ip(&format!(
            "link add {name} numtxqueues 1 numrxqueues 1 type veth peer name {other_name} netns {} numtxqueues 1 numrxqueues 1",
            other.name
        ));
        self.ip(&format!("link set {name} up"));
        other.ip(&format!("link set {other_name} up"));
    }
}

/// Deletes test namespaces whose process is gone, and kills the processes left in them. A killed test cannot do that
/// itself.
fn delete_killed() {
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        if owner(&name).is_none_or(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
            continue;
        }
        let inside = Command::new("ip").args(["netns", "pids", &name]).output();
        let inside = inside.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        for pid in inside.split_whitespace().filter_map(|pid| pid.parse().ok()).filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = Command::new("ip").args(["netns", "del", &name]).output();
    }
}

/// Returns the id of the process that made a test's namespace: `wtPID-NUMBER` is made here, `rstPID` by the reference
/// data's conformance runner.
fn owner(name: &str) -> Option<u32> {
    let ours = name.strip_prefix("wt").and_then(|rest| rest.split_once('-')).map(|(pid, _)| pid);
    ours.or_else(|| name.strip_prefix("rst"))?.parse().ok()
}

impl Default for Namespace {
    fn default() -> Self {
        Namespace::new()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Process id above the kernel's maximum.
    const NOBODY: u32 = 4_194_998;

    #[test]
    fn namespaces_of_killed_tests_are_deleted_with_their_processes() {
        if !crate::root() || !crate::programs(&["ip", "sleep"]) {
            return;
        }
        let alive = Namespace::new();
        let killed = [format!("wt{NOBODY}-0"), format!("rst{NOBODY}")];
        killed.iter().for_each(|name| _ = run(Command::new("ip").args(["netns", "add", name])));
        let mut inside =
            Command::new("ip").args(["netns", "exec", &killed[0], "sleep", "1000"]).spawn().expect("it starts");
        delete_killed();
        assert!(crate::wait_until(Duration::from_secs(20), || inside.try_wait().expect("a child").is_some()));
        let there = |name: &str| Path::new("/run/netns").join(name).exists();
        assert!(!there(&killed[0]) && !there(&killed[1]) && there(alive.name()));
    }

    #[test]
    fn a_name_tells_its_process() {
        assert_eq!([owner("wt12-3"), owner("rst45")], [Some(12), Some(45)]);
        assert_eq!([owner("wt12"), owner("rst"), owner("weir-12-a"), owner("wtx-1")], [None; 4]);
    }
}
