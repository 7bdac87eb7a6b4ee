//! Processor affinity and processor time of a thread.
use anyhow::{Context, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Pins this thread to a core, by default the last that it may use. Returns the core.
///
/// # Errors
/// The core does not exist, or this process may not use it.
pub(super) fn pin(wanted: Option<usize>) -> anyhow::Result<usize> {
    let cores = cores()?;
    let core = wanted.or_else(|| cores.last().copied()).unwrap_or(0);
    ensure!(
        cores.contains(&core),
        "--core: found {core}, expected one of those this process may use: {}",
        list(&cores)
    );
    pin_to_core(core)?;
    Ok(core)
}

/// Pins this thread to a core, which may differ from the core of the thread that created it.
///
/// # Errors
/// The system refuses.
pub(super) fn pin_to_core(core: usize) -> anyhow::Result<()> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).with_context(|| format!("cannot stay on core {core}"))
}

/// Returns the cores that this thread may use.
///
/// # Errors
/// The system does not report them.
pub(super) fn cores() -> anyhow::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None).context("cannot ask for the cores that this process may use")?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect())
}

fn list(cores: &[usize]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the processor time of this thread, without the time of other threads on the same core.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
