//! Reads the machine's CPUs, memory and NUMA nodes from the system.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Resources of the machine that the settings are checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineResources {
    /// CPUs that this process may run on.
    pub cpus: BTreeSet<usize>,
    /// Bytes of memory available without swapping and within the control groups' limits; `None` if the system does
    /// not tell.
    pub memory: Option<u64>,
    /// CPUs of each NUMA node; empty if the system does not tell.
    pub nodes: Vec<BTreeSet<usize>>,
}

impl MachineResources {
    /// Returns the resources of this machine at this moment.
    pub fn here() -> MachineResources {
        MachineResources {
            cpus: allowed_cpus(),
            memory: [available_memory(), left_to_group(&own_group(), Path::new("/sys/fs/cgroup"))]
                .into_iter()
                .flatten()
                .min(),
            nodes: nodes(Path::new("/sys/devices/system/node")),
        }
    }

    /// Returns the NUMA node of a CPU, if it is known.
    pub(super) fn node_of(&self, cpu: usize) -> Option<usize> {
        self.nodes.iter().position(|node| node.contains(&cpu))
    }
}

fn allowed_cpus() -> BTreeSet<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        // Fallback: the right number of CPUs, with assumed numbers.
        return (0..std::thread::available_parallelism().map_or(1, usize::from)).collect();
    };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Path of this process's control group from the root; empty (the root) if the system does not tell.
fn own_group() -> String {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned()
}

/// Bytes that a control group may still allocate within its own limit and its ancestors'; `None` without a limit.
/// Memory of inactive cached files counts as free, because it can be reclaimed.
fn left_to_group(group: &str, top: &Path) -> Option<u64> {
    let read = |directory: &Path, name: &str| fs::read_to_string(directory.join(name)).ok();
    let left = |directory: &Path| {
        let max: u64 = read(directory, "memory.max")?.trim().parse().ok()?;
        let used: u64 = read(directory, "memory.current")?.trim().parse().ok()?;
        let stat = read(directory, "memory.stat").unwrap_or_default();
        let files = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse().ok()).unwrap_or(0);
        Some(max.saturating_sub(used.saturating_sub(files)))
    };
    let own = top.join(group);
    own.ancestors().take_while(|directory| directory.starts_with(top)).filter_map(left).min()
}

fn nodes(directory: &Path) -> Vec<BTreeSet<usize>> {
    let names = (0..).map_while(|node| fs::read_to_string(directory.join(format!("node{node}/cpulist"))).ok());
    let lists = names.map(|list| list.trim().parse::<super::CpuList>().unwrap_or_default());
    lists.map(|cpus| cpus.0.into_iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_something() {
        let machine = MachineResources::here();
        assert!(!machine.cpus.is_empty());
        assert!(machine.memory.is_none_or(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn the_tightest_control_group_counts() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(left_to_group("a/b", top.path()), None, "no limit anywhere");
        let limit = |directory: &Path, max: &str| {
            fs::write(directory.join("memory.max"), max).unwrap();
            fs::write(directory.join("memory.current"), "700\n").unwrap();
        };
        limit(&inner, "max\n");
        assert_eq!(left_to_group("a/b", top.path()), None);
        limit(&top.path().join("a"), "1000\n");
        assert_eq!(left_to_group("a/b", top.path()), Some(300));
        fs::write(top.path().join("a/memory.stat"), "anon 500\ninactive_file 200\n").unwrap();
        assert_eq!(left_to_group("a/b", top.path()), Some(500));
        limit(&inner, "600\n");
        assert_eq!((left_to_group("a/b", top.path()), left_to_group("", top.path())), (Some(0), None));
    }

    #[test]
    fn nodes_are_read_in_order() {
        let directory = tempfile::tempdir().unwrap();
        for (node, list) in [(0, "0-1,4\n"), (1, "2-3\n")] {
            fs::create_dir(directory.path().join(format!("node{node}"))).unwrap();
            fs::write(directory.path().join(format!("node{node}/cpulist")), list).unwrap();
        }
        let nodes = nodes(directory.path());
        assert_eq!(nodes, [BTreeSet::from([0, 1, 4]), BTreeSet::from([2, 3])]);
        let machine = MachineResources { cpus: BTreeSet::new(), memory: None, nodes };
        assert_eq!((machine.node_of(4), machine.node_of(2), machine.node_of(9)), (Some(0), Some(1), None));
    }
}
