//! Finds namespaces and interfaces of labs by their names, and removes them.
use super::programs::ip;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use weir_port::interface;

/// Folder in which `ip netns` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";
/// First number of the interface groups used for deletion, one for each process; far from numbers in common use.
const GROUPS: u32 = 0x7000_0000;

/// Lists the namespaces of all labs with the process that made each.
pub(crate) fn namespaces() -> impl Iterator<Item = (u32, String)> {
    entries(NAMESPACES).into_iter().filter_map(|name| Some((namespace_owner(&name)?, name)))
}

/// Lists the interfaces of all labs in this namespace with the process that made each.
pub(crate) fn devices() -> impl Iterator<Item = (u32, String)> {
    interface::names().into_iter().filter_map(|name| Some((device_owner(&name)?, name)))
}

/// Returns the process that made namespace `weir-PID-HOST`.
fn namespace_owner(name: &str) -> Option<u32> {
    name.strip_prefix("weir-")?.split_once('-')?.0.parse().ok()
}

/// Returns the process that made interface `weirPIDpNUMBER`.
fn device_owner(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix("weir")?.split_once('p')?;
    number.parse::<u32>().ok()?;
    pid.parse().ok()
}

fn entries(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Deletes those of the interfaces that exist, as one group: deleted one by one, the kernel would wait each time
/// until no reader uses the old list. Returns what could not be deleted.
pub(crate) fn delete_devices(names: &[String]) -> Vec<String> {
    // Asks the kernel because /sys may show another network namespace.
    let present = interface::names();
    let there: Vec<&String> = names.iter().filter(|name| present.contains(name)).collect();
    if there.len() > 1 {
        let group = GROUPS + std::process::id();
        let lines: String = there.iter().map(|name| format!("link set dev {name} group {group}\n")).collect();
        // Interfaces that are left after a failure are deleted one by one below.
        let _ = ip(&["-force", "-batch", "-"], &lines)
            .and_then(|()| ip(&["link", "delete", "group", &group.to_string()], ""));
    }
    let present = interface::names();
    let left = there.into_iter().filter(|name| present.contains(name));
    left.filter_map(|name| ip(&["link", "delete", name], "").err().map(|error| format!("interface {name}: {error}")))
        .collect()
}

/// Kills the processes in those of the namespaces that exist, and deletes the namespaces; a namespace with processes
/// would live on. Returns what could not be deleted.
pub(crate) fn delete_namespaces(names: &[String]) -> Vec<String> {
    let there: Vec<&String> = names.iter().filter(|name| Path::new(NAMESPACES).join(name).exists()).collect();
    kill_inside(&there);
    let lines: String = there.iter().map(|name| format!("netns delete {name}\n")).collect();
    if !lines.is_empty() {
        // Namespaces that are left after a failure are deleted one by one below.
        let _ = ip(&["-force", "-batch", "-"], &lines);
    }
    let left = there.into_iter().filter(|name| Path::new(NAMESPACES).join(name).exists());
    left.filter_map(|name| ip(&["netns", "delete", name], "").err().map(|error| format!("namespace {name}: {error}")))
        .collect()
}

/// Kills the processes in these namespaces; reads the list of processes once for all namespaces.
fn kill_inside(names: &[&String]) {
    let identity = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let inside: BTreeSet<_> = names.iter().filter_map(|name| identity(&Path::new(NAMESPACES).join(name))).collect();
    let own = std::process::id();
    for pid in entries("/proc").iter().filter_map(|name| name.parse::<u32>().ok()).filter(|pid| *pid != own) {
        let is_inside = identity(Path::new(&format!("/proc/{pid}/ns/net"))).is_some_and(|at| inside.contains(&at));
        if let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw).filter(|_| is_inside) {
            // Fails if the process has ended meanwhile.
            let _ = kill_process(process, Signal::KILL);
        }
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
