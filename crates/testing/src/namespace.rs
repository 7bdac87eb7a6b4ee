//! Network namespaces that end with the test.
use crate::run;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A network namespace with loopback up and no IPv6 chatter unless asked for; deleted when dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace whose name no other test or process has.
    pub fn new() -> Namespace {
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

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Does something on a thread that lives inside: sockets that are made there stay there.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let file = std::fs::File::open(format!("/run/netns/{}", self.name)).expect("the namespace is there");
        let inside = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("entering the namespace");
            act()
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).expect("the thread inside does not panic")
    }

    /// Runs `ip ARGUMENTS` inside.
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
