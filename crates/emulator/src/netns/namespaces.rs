//! Network namespaces and veth pairs, made and removed.
use super::programs::{ip, ip_output};
use crate::LabError;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_scenario::Host;

/// Labs of one process would use the same names: they take turns.
static ONE_LAB: Mutex<()> = Mutex::new(());

/// The namespaces of a lab's hosts and the switches' ends of their veth pairs; removed when dropped.
pub(super) struct Namespaces {
    names: Arc<Vec<String>>,
    devices: Vec<String>,
    _turn: MutexGuard<'static, ()>,
}

impl Namespaces {
    /// None yet. Removes what killed runs left behind.
    pub(super) fn new() -> Namespaces {
        let turn = ONE_LAB.lock().unwrap_or_else(PoisonError::into_inner);
        remove_leftovers();
        Namespaces { names: Arc::default(), devices: Vec::new(), _turn: turn }
    }

    /// Their names, in the order they were added.
    pub(super) fn names(&self) -> &Arc<Vec<String>> {
        &self.names
    }

    /// Makes a host's namespace, its interface `eth0` inside, and the other end outside, whose name is given back.
    pub(super) fn add(&mut self, host: &Host) -> Result<String, LabError> {
        let pid = std::process::id();
        let name = format!("weir-{pid}-{}", host.name);
        let device = format!("weir{pid}p{}", self.devices.len());
        // Noted before they are made, so that whatever was made is removed if something fails.
        Arc::make_mut(&mut self.names).push(name.clone());
        self.devices.push(device.clone());
        let (queues, mac) = ("numtxqueues 1 numrxqueues 1", host.mac);
        let pair = format!(
            "netns add {name}\nlink add {device} {queues} type veth peer name eth0 address {mac} {queues} netns {name}\n"
        );
        ip(&["-batch", "-"], &pair)?;
        // The switch's end belongs to the switch: the kernel is to say nothing on it.
        let quiet = format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6");
        if Path::new(&quiet).exists() {
            fs::write(&quiet, "1").map_err(LabError::system(format!("write {quiet}")))?;
        }
        let mut inside = String::from("link set lo up\nlink set eth0 addrgenmode none\nlink set eth0 up\n");
        for net in &host.ip {
            let nodad = if net.addr.is_ipv6() { "nodad" } else { "" };
            inside += &format!("address add {net} dev eth0 {nodad}\n");
        }
        ip(&["-n", &name, "-batch", "-"], &inside)?;
        ip(&["-batch", "-"], &format!("link set {device} up\n"))?;
        Ok(device)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Devices first: with its namespace a pair goes too, but only some time later.
        self.devices.iter().for_each(|device| remove_device(device));
        self.names.iter().for_each(|name| remove_namespace(name));
    }
}

/// Removes namespaces and interfaces of runs whose process is gone. Those with our own process id are a former process's:
/// labs of this one take turns.
fn remove_leftovers() {
    let ours = std::process::id();
    let stale = |pid: u32| pid == ours || !Path::new(&format!("/proc/{pid}")).exists();
    let devices = entries("/sys/class/net").into_iter().filter(|name| device_owner(name).is_some_and(stale));
    let namespaces = entries("/run/netns").into_iter().filter(|name| namespace_owner(name).is_some_and(stale));
    for device in devices {
        tracing::warn!(device, "removing what a killed run left behind");
        remove_device(&device);
    }
    for name in namespaces {
        tracing::warn!(name, "removing what a killed run left behind");
        remove_namespace(&name);
    }
}

/// The process that made `weir-PID-HOST`.
fn namespace_owner(name: &str) -> Option<u32> {
    name.strip_prefix("weir-")?.split_once('-')?.0.parse().ok()
}

/// The process that made `weirPIDpNUMBER`.
fn device_owner(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix("weir")?.split_once('p')?;
    number.parse::<u32>().ok()?;
    pid.parse().ok()
}

fn entries(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn remove_device(device: &str) {
    if Path::new("/sys/class/net").join(device).exists()
        && let Err(error) = ip(&["link", "delete", device], "")
    {
        tracing::warn!(device, %error, "an interface could not be removed");
    }
}

/// Ends the processes inside, then removes the name; without both the namespace lives on.
fn remove_namespace(name: &str) {
    if !Path::new("/run/netns").join(name).exists() {
        return;
    }
    let inside = ip_output(&["netns", "pids", name]).unwrap_or_default();
    for pid in inside.split_whitespace().filter_map(|pid| pid.parse().ok()).filter_map(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::KILL);
    }
    if let Err(error) = ip(&["netns", "delete", name], "") {
        tracing::warn!(name, %error, "a namespace could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_in_the_names() {
        assert_eq!(namespace_owner("weir-4711-red-a"), Some(4711));
        assert_eq!(device_owner("weir4711p12"), Some(4711));
        for other in ["weir", "weir-", "weir-x-h", "weir-1", "other-1-h", "weir0"] {
            assert_eq!(namespace_owner(other), None, "{other}");
        }
        for other in ["weir4711", "weir4711px", "weirxp1", "eth0", "weir-1-p1"] {
            assert_eq!(device_owner(other), None, "{other}");
        }
    }
}
