//! Finds what labs and switches of killed processes have left behind, by the process id in its name, and removes it.
use crate::folder;
use crate::netns::leftovers::{self, delete_devices, delete_namespaces};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use weir_port::notes;

/// Longest time for a lab's process to clean up by itself after a signal to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two checks whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Objects on this machine that belong to one process's labs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Leftover {
    /// Process that made them.
    pub pid: u32,
    /// True if the process still runs. Its objects are then in use, not left behind.
    pub alive: bool,
    /// Network namespaces of hosts.
    pub namespaces: Vec<String>,
    /// Network interfaces of switches' ports.
    pub interfaces: Vec<String>,
    /// Folder with the sockets of its switches.
    pub folder: Option<PathBuf>,
    /// Interface features that its ports switched off and did not restore, by interface.
    pub features: Vec<String>,
}

/// Lists the objects of all labs on this machine, by process.
pub fn leftovers() -> Vec<Leftover> {
    let mut found: BTreeMap<u32, Leftover> = BTreeMap::new();
    for (pid, name) in leftovers::namespaces() {
        found.entry(pid).or_default().namespaces.push(name);
    }
    for (pid, name) in leftovers::devices() {
        found.entry(pid).or_default().interfaces.push(name);
    }
    for pid in folder::owners() {
        found.entry(pid).or_default().folder = Some(folder::of(pid));
    }
    let mut lives: BTreeMap<u32, bool> = found.keys().map(|pid| (*pid, folder::lives(*pid))).collect();
    for left in notes::left_off() {
        // Notes are returned only of ended processes, even if another process has the number now.
        lives.entry(left.pid).or_insert(false);
        found.entry(left.pid).or_default().features.push(left.describe());
    }
    let told = |(pid, mut left): (u32, Leftover)| {
        left.namespaces.sort();
        left.interfaces.sort();
        left.features.sort();
        Leftover { pid, alive: lives.get(&pid).copied().unwrap_or(false), ..left }
    };
    found.into_iter().map(told).collect()
}

impl Leftover {
    /// Removes all objects, including the processes inside the namespaces. A live process is ended first: it is sent
    /// SIGTERM, and killed if it does not end within ten seconds. Returns what could not be removed, with reasons.
    pub fn remove(&self) -> Vec<String> {
        if self.alive {
            end(self.pid);
        }
        // Deletes devices first: deleting a namespace removes its pair, too, but only some time later.
        let mut problems = delete_devices(&self.interfaces);
        problems.extend(delete_namespaces(&self.namespaces));
        for left in notes::left_off().iter().filter(|left| left.pid == self.pid) {
            problems.extend(left.restore().err().map(|error| format!("features of {}: {error}", left.describe())));
        }
        if let Err(error) = folder::remove(self.pid) {
            problems.push(format!("folder of {}: {error}", self.pid));
        }
        problems
    }
}

/// Ends a lab's process by SIGTERM, then SIGKILL.
fn end(pid: u32) {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    for signal in [Signal::TERM, Signal::KILL] {
        // The process id may belong to another process by now.
        if !folder::lives(pid) {
            return;
        }
        let _ = kill_process(process, signal);
        let mut waited = Duration::ZERO;
        while folder::lives(pid) && waited < PATIENCE {
            std::thread::park_timeout(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }
}
