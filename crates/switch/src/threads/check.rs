//! Checks the thread settings before anything starts. Settings that cannot work are refused, with advice.
use super::{HandOver, MachineResources, ThreadingMode, ThreadsConfig};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of workers.
const MAX_WORKERS: usize = 64;
/// Maximum number of frames in a burst; larger bursts only wait longer.
const MAX_BURST: usize = 1024;
/// Maximum number of frames in a ring: one second at a million frames per second.
const MAX_RING: usize = 1 << 20;
/// Maximum time that a burst may wait; with more the switch would seem dead.
const MAX_FLUSH_TIME: Duration = Duration::from_secs(1);
/// Bytes of a small frame's buffer, including its header and its place in the ring.
const BUFFER_BYTES: u64 = 2560;

/// A setting that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: found {found}, expected {expected}; {advice}")]
pub struct ThreadsError {
    /// Name of the setting: its command line option without the dashes.
    pub setting: &'static str,
    /// Value that was found.
    pub found: String,
    /// Values that are possible.
    pub expected: String,
    /// Advice on what to change.
    pub advice: String,
}

pub(super) fn wrong(
    setting: &'static str,
    found: impl ToString,
    expected: impl Into<String>,
    advice: &str,
) -> ThreadsError {
    ThreadsError { setting, found: found.to_string(), expected: expected.into(), advice: advice.to_owned() }
}

impl ThreadsConfig {
    /// Checks that the settings can work on `machine`.
    ///
    /// # Errors
    /// Returns the first setting that cannot work, with advice.
    pub fn check(&self, machine: &MachineResources) -> Result<(), ThreadsError> {
        self.check_workers(machine)?;
        self.check_bursts()?;
        self.check_waits()?;
        self.check_rings(machine)?;
        self.check_buffers(machine)?;
        self.check_classes()?;
        self.check_deal()?;
        self.check_cpus(machine)
    }

    /// Number of threads on the packet path.
    pub(super) fn threads(&self, machine: &MachineResources) -> usize {
        match self.mode {
            ThreadingMode::RunToCompletion => self.workers,
            ThreadingMode::Pipeline => 1 + self.worker_threads(machine),
        }
    }

    /// Number of threads for workers. The engine has its own core. Workers in excess of the other cores share
    /// threads, because they would only wait for each other. With one core the engine's thread does everything,
    /// unless frames are always handed over.
    pub(super) fn worker_threads(&self, machine: &MachineResources) -> usize {
        let others = machine.cpus.len().saturating_sub(1);
        self.workers.min(if self.hand_over == HandOver::Always { others.max(1) } else { others })
    }

    fn check_workers(&self, machine: &MachineResources) -> Result<(), ThreadsError> {
        let (workers, cores) = (self.workers, machine.cpus.len());
        if !(1..=MAX_WORKERS).contains(&workers) {
            return Err(wrong("workers", workers, format!("1 to {MAX_WORKERS}"), "choose fewer than there are cores"));
        }
        if workers > cores {
            let expected = format!("at most {cores}, the cores that this process may run on");
            let advice = "workers that share a core only wait for each other; choose fewer, or allow more cores (taskset, cpuset)";
            return Err(wrong("workers", workers, expected, advice));
        }
        Ok(())
    }

    fn check_bursts(&self) -> Result<(), ThreadsError> {
        match self.bursts.named().into_iter().find(|(_, size)| !(1..=MAX_BURST).contains(size)) {
            Some((letter, size)) => {
                let expected = format!("1 to {MAX_BURST} for {letter}");
                Err(wrong("bursts", size, expected, "32 is a good start"))
            }
            None => Ok(()),
        }
    }

    fn check_waits(&self) -> Result<(), ThreadsError> {
        for (setting, count) in [("io-loop-count", self.io_loop_count), ("worker-loop-count", self.worker_loop_count)] {
            if count == 0 {
                let advice = "1 sends what there is after each turn, more lets bursts fill";
                return Err(wrong(setting, 0, "1 or more", advice));
            }
        }
        if self.flush_time > MAX_FLUSH_TIME {
            let found = weir_units::TimeSpan(self.flush_time);
            return Err(wrong(
                "flush-time",
                found,
                "at most 1s",
                "it is what a frame waits in each of three stages; try 10us",
            ));
        }
        Ok(())
    }

    fn check_rings(&self, machine: &MachineResources) -> Result<(), ThreadsError> {
        let size = self.ring_size;
        if !size.is_power_of_two() || size > MAX_RING {
            let near = size.clamp(1, MAX_RING).next_power_of_two();
            let advice = format!("try {near}");
            return Err(wrong("ring-size", size, format!("a power of two up to {MAX_RING}"), &advice));
        }
        if let Some((letter, burst)) = self.bursts.named().into_iter().skip(1).take(4).find(|(_, burst)| *burst > size)
        {
            let expected = format!("at least burst {letter}, {burst}");
            return Err(wrong("ring-size", size, expected, "make the rings larger or the bursts smaller"));
        }
        let needed = self.buffer_bytes();
        match machine.memory {
            Some(memory) if needed > memory => {
                let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
                let expected = format!("rings whose buffers fit into the {} that are free", mib(memory));
                let found = format!("{size}, which needs {}", mib(needed));
                Err(wrong("ring-size", found, expected, "choose smaller rings or fewer workers, or free memory"))
            }
            _ => Ok(()),
        }
    }

    /// Bytes of memory that full rings hold.
    fn buffer_bytes(&self) -> u64 {
        match self.mode {
            ThreadingMode::RunToCompletion => 0,
            ThreadingMode::Pipeline => (2 * self.workers * self.ring_size) as u64 * BUFFER_BYTES,
        }
    }

    fn check_classes(&self) -> Result<(), ThreadsError> {
        match self.classes.iter().find(|class| class.worker >= self.workers) {
            Some(class) => {
                let expected = format!("a worker from 0 to {}", self.workers.saturating_sub(1));
                Err(wrong("class", format!("`{class}`"), expected, "choose one of them, or more workers"))
            }
            None => Ok(()),
        }
    }

    fn check_deal(&self) -> Result<(), ThreadsError> {
        if self.mode == ThreadingMode::Pipeline && !self.deal.is_empty() {
            let advice = "leave it out: the engine's thread receives from all ports, --policy deals frames to workers";
            return Err(wrong("deal", &self.deal, "none in mode pipeline", advice));
        }
        match self.deal.beyond(self.workers) {
            Some((port, thread)) => {
                let expected = format!("a thread from 0 to {}", self.workers.saturating_sub(1));
                Err(wrong("deal", format!("{port}={thread}"), expected, "choose one of them, or more workers"))
            }
            None => Ok(()),
        }
    }

    fn check_cpus(&self, machine: &MachineResources) -> Result<(), ThreadsError> {
        let (cpus, threads) = (&self.cpus.0, self.threads(machine));
        if cpus.is_empty() {
            return Ok(());
        }
        let list = |cpus: &BTreeSet<usize>| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        if let Some(absent) = cpus.iter().find(|cpu| !machine.cpus.contains(cpu)) {
            let expected = format!("some of {}, which this process may run on", list(&machine.cpus));
            return Err(wrong("cpus", absent, expected, "choose others, or allow more (taskset, cpuset)"));
        }
        if let Some(twice) = cpus.iter().enumerate().find_map(|(place, cpu)| cpus[..place].contains(cpu).then_some(cpu))
        {
            return Err(wrong(
                "cpus",
                format!("{twice} twice"),
                "each once",
                "two threads of the packet path need two",
            ));
        }
        if cpus.len() < threads {
            let expected = match self.mode {
                ThreadingMode::Pipeline => format!("{threads}: one for the engine and one for each worker"),
                ThreadingMode::RunToCompletion => format!("{threads}: one for each thread"),
            };
            return Err(wrong("cpus", cpus.len(), expected, "name more, or choose fewer workers"));
        }
        Ok(())
    }

    /// Returns warnings about settings that work, but badly.
    pub(super) fn warnings(&self, machine: &MachineResources) -> Vec<String> {
        let mut warnings = Vec::new();
        let (threads, cores) = (self.threads(machine), machine.cpus.len());
        if self.mode == ThreadingMode::Pipeline && self.workers >= threads {
            let (workers, others) = (self.workers, threads - 1);
            warnings.push(match others {
                0 => "there is one core: the engine's thread does the workers' part, too".to_owned(),
                _ => format!(
                    "{workers} workers share {others} of {cores} cores, since the engine needs one; fewer do as much"
                ),
            });
        }
        let nodes: BTreeSet<_> = self.cpus.0.iter().take(threads).filter_map(|cpu| machine.node_of(*cpu)).collect();
        if nodes.len() > 1 {
            warnings.push(format!(
                "threads of the packet path are on {} NUMA nodes; CPUs of one node are faster",
                nodes.len()
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::{BurstSizes, CpuList};

    fn machine() -> MachineResources {
        let nodes = vec![BTreeSet::from([0, 1]), BTreeSet::from([2, 3])];
        MachineResources { cpus: (0..4).collect(), memory: Some(64 << 20), nodes }
    }

    fn pipeline(workers: usize) -> ThreadsConfig {
        ThreadsConfig { mode: ThreadingMode::Pipeline, workers, ring_size: 1024, ..ThreadsConfig::default() }
    }

    fn rtc(workers: usize, deal: &str) -> ThreadsConfig {
        ThreadsConfig { workers, deal: deal.parse().unwrap(), ..ThreadsConfig::default() }
    }

    #[test]
    fn what_can_work_is_accepted() {
        ThreadsConfig::default().check(&machine()).unwrap();
        rtc(4, "1=3,2=0").check(&machine()).unwrap();
        for workers in 1..=4 {
            pipeline(workers).check(&machine()).unwrap();
        }
        let pinned = ThreadsConfig { cpus: CpuList(vec![0, 1]), ..pipeline(1) };
        pinned.check(&machine()).unwrap();
        assert_eq!(pinned.warnings(&machine()), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_work_is_refused_with_what_to_change() {
        let base = pipeline(2);
        let bursts = |change: fn(&mut BurstSizes)| {
            let mut bursts = BurstSizes::default();
            change(&mut bursts);
            ThreadsConfig { bursts, ..pipeline(2) }
        };
        let cases = [
            (ThreadsConfig { workers: 5, ..ThreadsConfig::default() }, "workers: found 5", "at most 4, the cores"),
            (rtc(2, "1=2"), "deal: found 1=2", "a thread from 0 to 1"),
            (
                ThreadsConfig { deal: "1=0".parse().unwrap(), ..base.clone() },
                "deal: found 1=0",
                "none in mode pipeline",
            ),
            (ThreadsConfig { cpus: CpuList(vec![1]), ..rtc(2, "1=0") }, "cpus: found 1", "2: one for each thread"),
            (pipeline(0), "workers: found 0", "1 to 64"),
            (pipeline(65), "workers: found 65", "1 to 64"),
            (pipeline(5), "workers: found 5", "at most 4, the cores"),
            (bursts(|bursts| bursts.rx_read = 0), "bursts: found 0", "1 to 1024 for A"),
            (bursts(|bursts| bursts.tx_write = 2000), "bursts: found 2000", "1 to 1024 for F"),
            (ThreadsConfig { io_loop_count: 0, ..base.clone() }, "io-loop-count: found 0", "1 or more"),
            (ThreadsConfig { worker_loop_count: 0, ..base.clone() }, "worker-loop-count: found 0", "1 or more"),
            (ThreadsConfig { flush_time: Duration::from_secs(2), ..base.clone() }, "flush-time: found 2s", "try 10us"),
            (ThreadsConfig { ring_size: 0, ..base.clone() }, "ring-size: found 0", "try 1"),
            (ThreadsConfig { ring_size: 1000, ..base.clone() }, "ring-size: found 1000", "try 1024"),
            (ThreadsConfig { ring_size: 1 << 21, ..base.clone() }, "ring-size: found 2097152", "try 1048576"),
            (ThreadsConfig { ring_size: 16, ..base.clone() }, "ring-size: found 16", "at least burst B, 32"),
            (ThreadsConfig { buffers: 63, ..base.clone() }, "buffers: found 63", "64 to 1048576"),
            (ThreadsConfig { buffers: 1 << 21, ..base.clone() }, "buffers: found 2097152", "64 to 1048576"),
            (
                ThreadsConfig { buffers: 40_000, ..base.clone() },
                "buffers: found 40000, which need 86 MiB",
                "as many as fit into the 64 MiB that are free",
            ),
            (ThreadsConfig { ring_size: 1 << 13, ..base.clone() }, "needs 80 MiB", "64 MiB that are free"),
            (
                ThreadsConfig { classes: vec!["udp=>2".parse().unwrap()], ..base.clone() },
                "class: found `udp=>2`",
                "0 to 1",
            ),
            (ThreadsConfig { cpus: CpuList(vec![0, 1, 7]), ..base.clone() }, "cpus: found 7", "some of 0,1,2,3"),
            (ThreadsConfig { cpus: CpuList(vec![0, 1, 1]), ..base.clone() }, "cpus: found 1 twice", "each once"),
            (ThreadsConfig { cpus: CpuList(vec![0, 1]), ..base.clone() }, "cpus: found 2", "3: one for the engine"),
        ];
        for (config, found, change) in cases {
            let error = config.check(&machine()).unwrap_err().to_string();
            assert!(error.contains(found) && error.contains(change), "{error}");
        }
    }

    #[test]
    fn what_works_badly_is_warned_of() {
        let crowded = pipeline(4).warnings(&machine());
        assert!(crowded[0].contains("4 workers share 3 of 4 cores"), "{crowded:?}");
        let one_core = MachineResources { cpus: BTreeSet::from([0]), ..machine() };
        assert!(pipeline(1).warnings(&one_core)[0].contains("there is one core"));
        let apart = ThreadsConfig { cpus: CpuList(vec![1, 2]), ..pipeline(1) }.warnings(&machine());
        assert!(apart[0].contains("2 NUMA nodes"), "{apart:?}");
    }
}
