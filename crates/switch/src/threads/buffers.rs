//! Allocates a switch's frame buffers at the start. Each thread's buffers are first written on the CPU that the
//! thread is bound to, so that they are on its NUMA node. Without memory for them, an error says what to change.
use super::check::wrong;
use super::{MachineResources, ThreadingMode, ThreadsConfig, ThreadsError};
use crate::turns::pin;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::sync::Arc;
use weir_memory::{BufferSlab, SlabError};
use weir_packet::SharedBuffers;
use weir_packet::frame::SMALL_BUFFER;

/// Maximum number of buffers allocated at the start: 2.2 GiB.
pub const MAX_BUFFERS: usize = 1 << 20;
/// Minimum number of buffers: one burst being received and one being transmitted.
const MIN_BUFFERS: usize = 64;

/// Name of the setting, as users write it.
const SETTING: &str = "buffers";

impl ThreadsConfig {
    /// Checks that the number of buffers is allowed and fits into memory.
    pub(super) fn check_buffers(&self, machine: &MachineResources) -> Result<(), ThreadsError> {
        if !(MIN_BUFFERS..=MAX_BUFFERS).contains(&self.buffers) {
            let advice = "frames beyond it get a buffer from the heap; try 4096";
            return Err(wrong(SETTING, self.buffers, format!("{MIN_BUFFERS} to {MAX_BUFFERS}"), advice));
        }
        match machine.memory {
            Some(memory) if bytes(self.buffers) > memory => {
                let expected = format!("as many as fit into the {} that are free", mib(memory));
                let advice = "choose fewer, free memory, or raise the limit of the control group (memory.max)";
                Err(wrong(SETTING, self.found(), expected, advice))
            }
            _ => Ok(()),
        }
    }

    fn found(&self) -> String {
        format!("{}, which need {}", self.buffers, mib(bytes(self.buffers)))
    }

    /// Numbers of buffers of the threads that receive.
    fn shares(&self) -> Vec<usize> {
        let threads = match self.mode {
            ThreadingMode::RunToCompletion => self.workers,
            // Workers use the buffers that the engine received into.
            ThreadingMode::Pipeline => 1,
        };
        (0..threads).map(|thread| self.buffers / threads + usize::from(thread < self.buffers % threads)).collect()
    }

    /// Allocates all buffers.
    ///
    /// # Errors
    /// Fails if the system refuses the memory. The error names the limits and what to change.
    pub(crate) fn prepare_buffers(&self) -> Result<SharedBuffers, ThreadsError> {
        let shares = self.shares().into_iter().enumerate();
        let slabs = shares.map(|(thread, count)| slab_on(self.cpus.0.get(thread).copied(), count));
        match slabs.collect::<Result<Vec<_>, SlabError>>() {
            Ok(slabs) => {
                tell(self.buffers, &slabs);
                Ok(SharedBuffers::of(slabs))
            }
            Err(refusal) => Err(self.refused(&refusal)),
        }
    }

    fn refused(&self, refusal: &SlabError) -> ThreadsError {
        let limits = limits(refusal);
        let limits =
            if limits.is_empty() { "free memory".to_owned() } else { format!("raise {}", limits.join(" or ")) };
        let found = format!("{} ({refusal})", self.found());
        wrong(SETTING, found, "as many as the system gives memory for", &format!("choose fewer, or {limits}"))
    }
}

fn bytes(buffers: usize) -> u64 {
    buffers.saturating_mul(SMALL_BUFFER) as u64
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Allocates buffers on the NUMA node of `cpu`, if given: Linux places memory on the node of the thread that first
/// writes to it.
fn slab_on(cpu: Option<usize>, count: usize) -> Result<Arc<BufferSlab>, SlabError> {
    let make = || BufferSlab::new(u32::try_from(count).unwrap_or(u32::MAX), SMALL_BUFFER);
    if cpu.is_none() {
        return make();
    }
    let make_there = || {
        pin(cpu);
        make()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, make_there);
        // If no thread can be started, the buffers are on any node.
        thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(make)
    })
}

/// Returns the limits of this process that may have caused the refusal, and how to raise them.
fn limits(refusal: &SlabError) -> Vec<String> {
    let of = |resource, name: &str, how: &str| {
        let now = getrlimit(resource).current?;
        Some(format!("the limit of {name} ({how}, now {})", mib(now)))
    };
    let locked = of(Resource::Memlock, "locked memory", "ulimit -l");
    let mapped = [of(Resource::As, "address space", "ulimit -v"), of(Resource::Data, "data", "ulimit -d")];
    match refusal.error.raw_os_error() {
        // With all memory of a program locked, a mapping beyond the limit is refused with these errors.
        Some(code) if code == Errno::AGAIN.raw_os_error() || code == Errno::PERM.raw_os_error() => {
            locked.into_iter().collect()
        }
        _ => mapped.into_iter().flatten().collect(),
    }
}

/// Logs how the buffers are allocated.
fn tell(buffers: usize, slabs: &[Arc<BufferSlab>]) {
    let all: usize = slabs.iter().map(|slab| slab.bytes()).sum();
    if all < 2 << 20 {
        return;
    }
    let huge: usize = slabs.iter().filter_map(|slab| slab.huge_bytes()).sum();
    let mib = |bytes: usize| bytes >> 20;
    tracing::info!("{buffers} frame buffers: {} MiB, of which {} MiB on huge pages", mib(all), mib(huge));
    if huge == 0 {
        tracing::info!(
            "ordinary pages cost some more time; for huge ones: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or set \
             {} aside (sysctl vm.nr_hugepages)",
            all.div_ceil(2 << 20)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn config(buffers: usize, workers: usize, mode: ThreadingMode) -> ThreadsConfig {
        ThreadsConfig { buffers, workers, mode, ..ThreadsConfig::default() }
    }

    #[test]
    fn threads_share_the_buffers_out() {
        assert_eq!(config(100, 3, ThreadingMode::RunToCompletion).shares(), [34, 33, 33]);
        assert_eq!(config(100, 3, ThreadingMode::Pipeline).shares(), [100]);
        let depot = config(101, 2, ThreadingMode::RunToCompletion).prepare_buffers().expect("there is memory");
        let counts: Vec<u32> = depot.slabs().iter().map(|slab| slab.count()).collect();
        assert_eq!((counts, depot.free_count(), depot.heap_count()), (vec![51, 50], 101, 0));
    }

    #[test]
    fn buffers_of_a_bound_thread_are_made_on_its_cpu() {
        let cpu = *MachineResources::here().cpus.first().expect("a process may run somewhere");
        let bound =
            ThreadsConfig { cpus: super::super::CpuList(vec![cpu]), ..config(100, 1, ThreadingMode::RunToCompletion) };
        assert_eq!(bound.prepare_buffers().expect("there is memory").free_count(), 100);
        assert!(MachineResources::here().cpus.contains(&cpu), "this thread is bound no more than before");
    }

    #[test]
    fn what_the_system_refuses_is_said_with_what_to_change() {
        let refusal = |error: Errno| SlabError {
            bytes: 9_175_040,
            is_mapped: false,
            error: io::Error::from_raw_os_error(error.raw_os_error()),
        };
        let text = config(4096, 1, ThreadingMode::Pipeline).refused(&refusal(Errno::NOMEM)).to_string();
        for part in ["buffers: found 4096, which need 9 MiB (mapping 9175040 bytes: ", "choose fewer, or "] {
            assert!(text.contains(part), "{part}: {text}");
        }
        if getrlimit(Resource::Memlock).current.is_some() {
            let text = config(4096, 1, ThreadingMode::Pipeline).refused(&refusal(Errno::AGAIN)).to_string();
            assert!(text.contains("raise the limit of locked memory (ulimit -l, now "), "{text}");
        }
    }
}
