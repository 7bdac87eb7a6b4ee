//! Makes and removes network namespaces and veth pairs.
use super::inside;
use super::leftovers::{delete_devices, delete_namespaces};
use super::programs::ip;
use crate::LabError;
use crate::cleanup;
use crate::folder::LabFolder;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_scenario::ScenarioHost;

/// Lock that lets labs of one process take turns, because their names would collide.
pub(super) static ONE_LAB: Mutex<()> = Mutex::new(());

/// Namespaces of a lab's hosts, the switches' ends of their veth pairs, and the lab's folder. All are removed when
/// this is dropped.
pub(super) struct HostNamespaces {
    names: Arc<Vec<String>>,
    devices: Vec<String>,
    folder: LabFolder,
    _turn: MutexGuard<'static, ()>,
}

impl HostNamespaces {
    /// Makes for each host a namespace with interface `eth0` inside, and the other end of the pair outside. Removes
    /// leftovers of killed runs first. If `known`, hosts know each other's Ethernet addresses.
    ///
    /// # Errors
    /// The system refuses; nothing is left behind.
    pub(super) fn make(hosts: &[ScenarioHost], known: bool) -> Result<HostNamespaces, LabError> {
        let turn = ONE_LAB.lock().unwrap_or_else(PoisonError::into_inner);
        remove_leftovers();
        let pid = std::process::id();
        let folder = LabFolder::make()?;
        // Records the names before anything is made, so that on a failure the drop removes what was made.
        let names: Vec<String> = hosts.iter().map(|host| format!("weir-{pid}-{}", host.name)).collect();
        let devices = (0..hosts.len()).map(|number| format!("weir{pid}p{number}")).collect();
        let made = HostNamespaces { names: Arc::new(names), devices, folder, _turn: turn };
        made.make_pairs(hosts)?;
        made.set_up(hosts, known)?;
        Ok(made)
    }

    /// Returns the names, in the order of the hosts.
    pub(super) fn names(&self) -> &Arc<Vec<String>> {
        &self.names
    }

    /// Returns the switches' ends of the veth pairs.
    pub(super) fn devices(&self) -> &[String] {
        &self.devices
    }

    /// Returns the lab's folder.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes all namespaces and pairs in one run of `ip`, because starting it takes as long as its work.
    fn make_pairs(&self, hosts: &[ScenarioHost]) -> Result<(), LabError> {
        let pair = |((host, name), device): ((&ScenarioHost, &String), &String)| {
            let (queues, mac) = ("numtxqueues 1 numrxqueues 1", host.mac);
            format!(
                "netns add {name}\nlink add {device} {queues} type veth peer name eth0 address {mac} {queues} netns {name}\n"
            )
        };
        let lines: String = hosts.iter().zip(&*self.names).zip(&self.devices).map(pair).collect();
        ip(&["-batch", "-"], &lines)
    }

    fn set_up(&self, hosts: &[ScenarioHost], known: bool) -> Result<(), LabError> {
        inside::set_up(hosts, &self.names, known)
            .map_err(|(host, error)| LabError::system(format!("set up the interfaces of host {host}"))(error))?;
        set_up_quiet(&self.devices)
    }
}

impl Drop for HostNamespaces {
    fn drop(&mut self) {
        // Deletes devices first: deleting a namespace removes its pair, too, but only some time later.
        let problems = delete_devices(&self.devices).into_iter().chain(delete_namespaces(&self.names));
        problems.for_each(|problem| tracing::warn!("left behind: {problem}"));
    }
}

/// Sets interfaces of switches up, without IPv6 so that the kernel sends nothing on them.
///
/// # Errors
/// The system refuses.
pub(super) fn set_up_quiet(devices: &[String]) -> Result<(), LabError> {
    for device in devices {
        let quiet = format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6");
        if Path::new(&quiet).exists() {
            fs::write(&quiet, "1").map_err(LabError::system(format!("write {quiet}")))?;
        }
    }
    let lines: String = devices.iter().map(|device| format!("link set {device} up\n")).collect();
    ip(&["-batch", "-"], &lines)
}

/// Removes leftovers of ended processes. Leftovers with this process's id are of an earlier process with that id,
/// because labs of this process take turns.
pub(super) fn remove_leftovers() {
    let ours = std::process::id();
    for mut left in cleanup::leftovers() {
        if left.pid == ours || !left.alive {
            tracing::warn!("removing what a killed run left behind: process {}", left.pid);
            left.alive = false;
            left.remove().into_iter().for_each(|problem| tracing::warn!("left behind: {problem}"));
        }
    }
}
