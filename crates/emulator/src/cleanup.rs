//! What labs and switches leave behind whose process was killed: found by the process id in its name, and removed.
use crate::folder;
use crate::netns::leftovers::{self, delete_devices, delete_namespaces};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use weir_port::notes;

/// How long a lab's process may take to clean up by itself when it is told to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What there is of a process's labs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Leftover {
    /// The process that made them.
    pub pid: u32,
    /// Whether it still runs: then nothing was left behind, it is in use.
    pub alive: bool,
    /// Network namespaces: hosts.
    pub namespaces: Vec<String>,
    /// Network interfaces: ports of switches.
    pub interfaces: Vec<String>,
    /// The folder with its switches' sockets.
    pub folder: Option<PathBuf>,
    /// Features that its ports switched off, by interface, and that are to be on again.
    pub features: Vec<String>,
}

/// What there is on this machine of all labs, by process.
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
        // Told only of processes that are gone, whoever has their number now.
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
    /// Removes it all, with the processes inside the namespaces; what could not be removed, and why. If its process lives it is ended
    /// before: it is asked to, and killed if it does not within ten seconds.
    pub fn remove(&self) -> Vec<String> {
        if self.alive {
            end(self.pid);
        }
        // Devices first: with its namespace a pair goes too, but only some time later.
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

/// Ends a lab's process.
fn end(pid: u32) {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    for signal in [Signal::TERM, Signal::KILL] {
        // Its number may be another's by now.
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
