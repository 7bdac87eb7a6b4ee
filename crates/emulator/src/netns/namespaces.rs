//! Network namespaces and veth pairs, made and removed.
use super::inside;
use super::leftovers::{delete_devices, delete_namespaces};
use super::programs::ip;
use crate::LabError;
use crate::cleanup;
use crate::folder::Folder;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_scenario::Host;

/// Labs of one process would use the same names: they take turns.
pub(super) static ONE_LAB: Mutex<()> = Mutex::new(());

/// The namespaces of a lab's hosts and the switches' ends of their veth pairs, and the lab's folder; removed when dropped.
pub(super) struct Namespaces {
    names: Arc<Vec<String>>,
    devices: Vec<String>,
    folder: Folder,
    _turn: MutexGuard<'static, ()>,
}

impl Namespaces {
    /// Makes a namespace for each host, its interface `eth0` inside, and the other end outside. Removes what killed runs left behind first.
    /// Hosts know each other's Ethernet addresses if `known`.
    ///
    /// # Errors
    /// The system refuses; nothing stays behind.
    pub(super) fn make(hosts: &[Host], known: bool) -> Result<Namespaces, LabError> {
        let turn = ONE_LAB.lock().unwrap_or_else(PoisonError::into_inner);
        remove_leftovers();
        let pid = std::process::id();
        let folder = Folder::make()?;
        // Noted before they are made, so that whatever was made is removed if something fails.
        let names: Vec<String> = hosts.iter().map(|host| format!("weir-{pid}-{}", host.name)).collect();
        let devices = (0..hosts.len()).map(|number| format!("weir{pid}p{number}")).collect();
        let made = Namespaces { names: Arc::new(names), devices, folder, _turn: turn };
        made.make_pairs(hosts)?;
        made.set_up(hosts, known)?;
        Ok(made)
    }

    /// Their names, in the order of the hosts.
    pub(super) fn names(&self) -> &Arc<Vec<String>> {
        &self.names
    }

    /// The switches' ends of their veth pairs.
    pub(super) fn devices(&self) -> &[String] {
        &self.devices
    }

    /// The lab's folder.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All in one run of `ip`: starting it takes as long as what it does.
    fn make_pairs(&self, hosts: &[Host]) -> Result<(), LabError> {
        let pair = |((host, name), device): ((&Host, &String), &String)| {
            let (queues, mac) = ("numtxqueues 1 numrxqueues 1", host.mac);
            format!(
                "netns add {name}\nlink add {device} {queues} type veth peer name eth0 address {mac} {queues} netns {name}\n"
            )
        };
        let lines: String = hosts.iter().zip(&*self.names).zip(&self.devices).map(pair).collect();
        ip(&["-batch", "-"], &lines)
    }

    fn set_up(&self, hosts: &[Host], known: bool) -> Result<(), LabError> {
        inside::set_up(hosts, &self.names, known)
            .map_err(|(host, error)| LabError::system(format!("set up the interfaces of host {host}"))(error))?;
        set_up_quiet(&self.devices)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Devices first: with its namespace a pair goes too, but only some time later.
        let problems = delete_devices(&self.devices).into_iter().chain(delete_namespaces(&self.names));
        problems.for_each(|problem| tracing::warn!("left behind: {problem}"));
    }
}

/// Sets interfaces up that belong to switches: the kernel is to say nothing on them.
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

/// Removes what runs left behind whose process is gone. What has our own process id is a former process's: labs of this one take turns.
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
