//! Measures several threads, each with its own ports, over one datapath that they share like the threads of a switch.
use super::case::DatapathBenchCase;
use super::entry::IN;
use super::measure::{self, BURSTS, ThroughputWindow, WARM_UP_BURSTS};
use super::testbed::{self, BURST, BenchPacketPath};
use super::thread_cpu;
use super::{BenchCaseName, DatapathBenchArgs};
use anyhow::ensure;
use serde::Serialize;
use std::sync::Barrier;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use weir_datapath::Datapath;
use weir_emulator::CancelHandle;
use weir_port::PortResult;
use weir_switch::threads::sharded_lock::{ShardReader, ShardWriter};
use weir_units::{Clock, SystemClock};

/// Interval for removing expired entries, as the engine does between packets.
const EXPIRE_EVERY: Duration = Duration::from_millis(10);

/// Results of several workers together.
#[derive(Debug, Serialize)]
pub(super) struct MultiWorkerFigures {
    pub(super) case: BenchCaseName,
    pub(super) workers: usize,
    pub(super) packets: u64,
    /// Packets sent by the output ports.
    pub(super) sent: u64,
    pub(super) hits: Option<f64>,
    /// Sum of the workers' rates, in millions of packets per second of processor time.
    pub(super) mpps: f64,
    /// Packets of all workers per second of elapsed time, in millions, while all ran.
    pub(super) mpps_wall: f64,
    pub(super) each: Vec<WorkerFigures>,
}

/// Results of one worker.
#[derive(Debug, Serialize)]
pub(super) struct WorkerFigures {
    pub(super) core: usize,
    /// Millions of packets per second of the thread's processor time.
    pub(super) mpps: f64,
    /// Highest rate of a single window, in millions of packets per second of processor time.
    pub(super) best: f64,
    pub(super) median: f64,
    pub(super) packets: u64,
}

/// Raw results of one thread.
struct WorkerBenchRun {
    core: usize,
    windows: Vec<ThroughputWindow>,
    passed: (u64, u64),
}

/// Returns the core of each worker, from the last core of this process downwards.
///
/// # Errors
/// There are more workers than cores, and `--oversubscribe` is not given.
pub(super) fn cores(args: &DatapathBenchArgs) -> anyhow::Result<Vec<usize>> {
    let (workers, cores) = (usize::from(args.workers), thread_cpu::cores()?);
    ensure!(workers == 1 || args.core.is_none(), "--core: is for one worker; {workers} take the last {workers} cores");
    ensure!(
        workers <= cores.len() || args.oversubscribe,
        "--workers: found {workers}, expected at most {}, the cores that this process may use; workers that share a core only wait for \
         each other: choose fewer, or say --oversubscribe",
        cores.len()
    );
    Ok(cores.iter().rev().cycle().take(workers).copied().collect())
}

/// Runs a case's packets on several threads. Returns `None` if cancelled before anything was measured.
///
/// # Errors
/// The datapath rejects an entry; a port fails; a thread cannot be started.
pub(super) fn measure(
    case: DatapathBenchCase,
    args: &DatapathBenchArgs,
    cores: &[usize],
    cancel: &CancelHandle,
) -> anyhow::Result<Option<MultiWorkerFigures>> {
    let ways: Vec<BenchPacketPath> =
        (0..cores.len()).map(|thread| BenchPacketPath::new(&case, args, thread)).collect::<Result<_, _>>()?;
    let mut bed = testbed::DatapathTestbed::new(&case, args, u32::MAX)?;
    let DatapathBenchCase { name, entries, tables, .. } = case;
    if measure::fill(&mut bed, entries, args, cancel)?.is_none() {
        return Ok(None);
    }
    let (clock, datapath) = bed.into_datapath();
    let mut owner = ShardWriter::new(datapath);
    let guests = owner.add_readers(cores.len());
    let hands: Vec<_> = guests.into_iter().map(|guest| (guest, owner.get().add_worker())).collect();
    owner.share();
    let (barrier, (tell, told)) = (Barrier::new(cores.len()), channel());
    let done = std::thread::scope(|scope| {
        for ((way, (guest, worker)), core) in ways.into_iter().zip(hands).zip(cores) {
            let (barrier, tell) = (&barrier, tell.clone());
            scope.spawn(move || {
                let done = run_worker(way, &guest, worker, *core, args, clock, (barrier, cancel));
                // The receiver is gone if another thread failed.
                let _ = tell.send(done);
            });
        }
        drop(tell);
        let mut done = Vec::new();
        while done.len() < cores.len() {
            match told.recv_timeout(EXPIRE_EVERY) {
                Ok(one) => done.push(one),
                Err(RecvTimeoutError::Timeout) => {
                    let mut out = weir_datapath::DatapathOutput::default();
                    owner.get().expire(clock.now(), &mut out);
                    owner.share();
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        done.into_iter().collect::<anyhow::Result<Vec<WorkerBenchRun>>>()
    })?;
    ensure!(done.len() == cores.len(), "a thread panicked; its message is above");
    if done.iter().any(|one| one.windows.is_empty()) {
        return Ok(None);
    }
    let (packets, sent) =
        done.iter().fold((0, 0), |(packets, sent), one| (packets + one.passed.0, sent + one.passed.1));
    let counted = tables.checked_sub(1).map(|last| testbed::hits(owner.get(), clock.now(), last)).transpose()?;
    let hits = counted.map(|counted| counted as f64 / packets.max(1) as f64);
    let mpps_wall = done.iter().map(|one| measure::total(&one.windows).mpps_wall()).sum();
    let mut each: Vec<WorkerFigures> = done.into_iter().map(WorkerFigures::new).collect();
    each.sort_by_key(|one| one.core);
    let mpps = each.iter().map(|one| one.mpps).sum();
    Ok(Some(MultiWorkerFigures { case: name, workers: each.len(), packets, sent, hits, mpps, mpps_wall, each }))
}

/// Runs the packets of one thread.
fn run_worker(
    mut way: BenchPacketPath,
    tables: &ShardReader<Datapath>,
    mut worker: weir_datapath::Worker,
    core: usize,
    args: &DatapathBenchArgs,
    clock: SystemClock,
    (barrier, cancel): (&Barrier, &CancelHandle),
) -> anyhow::Result<WorkerBenchRun> {
    // Every thread must reach the barrier, even after an error, because the others wait there.
    let pinned = thread_cpu::pin_to_core(core);
    barrier.wait();
    pinned?;
    let mut run = |bursts| -> PortResult {
        let now = clock.now();
        way.run(now, bursts, |frames, pool, out| {
            let beside = |datapath: &Datapath| datapath.forward(&mut worker, now, IN, frames, pool, out);
            if tables.read_shared(|| false, beside) == Some(false) {
                tables.write_exclusive(
                    || false,
                    |datapath| datapath.process_for(&mut worker, now, IN, frames, pool, out),
                );
            }
            out.messages.clear();
        })
    };
    let start = clock.now();
    while clock.now().since(start) < args.warm_up.0 && !cancel.is_cancelled() {
        run(WARM_UP_BURSTS)?;
    }
    let windows = measure::windows(&mut run, args.time.0, &clock, cancel)?;
    Ok(WorkerBenchRun { core, windows, passed: way.passed() })
}

impl WorkerFigures {
    fn new(done: WorkerBenchRun) -> WorkerFigures {
        let whole = measure::total(&done.windows);
        let rates = measure::rates(&done.windows);
        WorkerFigures {
            core: done.core,
            mpps: whole.mpps(),
            best: measure::percentile(&rates, 100),
            median: measure::percentile(&rates, 50),
            packets: (done.windows.len() * BURSTS * BURST) as u64,
        }
    }
}

/// Formats the rate of each worker, and the rate of all compared with one alone.
pub(super) fn lines(together: &MultiWorkerFigures, one_alone: f64) -> String {
    let MultiWorkerFigures { workers, mpps, mpps_wall, each, packets, sent, .. } = together;
    let lost = packets - sent.min(packets);
    let lost = if lost == 0 { String::new() } else { format!("; {lost} of {packets} packets did not leave") };
    let mut text = String::new();
    for (number, one) in each.iter().enumerate() {
        text += &format!(
            "  worker {number} on core {}: {:.2} Mpps (best {:.2}, median {:.2})\n",
            one.core, one.mpps, one.best, one.median
        );
    }
    let ratio = mpps / one_alone;
    text + &format!(
        "  {workers} workers: {mpps:.2} Mpps, {ratio:.2} times one; {mpps_wall:.2} by the clock on the wall{lost}\n"
    )
}

/// Formats the summary of a case: rates of one to all workers, as ratios to one.
pub(super) fn summary(one_alone: f64, together: &[&MultiWorkerFigures]) -> String {
    let more = together.iter().map(|all| format!("{}: {:.2}", all.workers, all.mpps / one_alone));
    let all: Vec<String> = std::iter::once("1: 1.00".to_owned()).chain(more).collect();
    format!("  workers to ratio: {}\n", all.join(", "))
}
