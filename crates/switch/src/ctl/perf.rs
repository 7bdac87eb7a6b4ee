//! What `weir ctl perf` asks: where the time of the switch's threads goes, watched for a while.
use super::buffers::BuffersPerf;
use super::flows::wrong;
use super::server::Context;
use crate::control::stopped;
use crate::engine::Engine;
use crate::engine::inbox::EngineClient;
use crate::engine::perf::Begun;
use crate::handle::SwitchError;
use crate::snapshot::WorkerSnapshot;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use weir_datapath::perf::{Perf, Stage, Took};
use weir_datapath::{CacheCounts, TableShape};

/// Seconds that can be watched at most: an answer is waited for a little longer.
pub const MAX_PERF_SECONDS: f64 = 20.0;

/// Where time went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerfReport {
    /// How long was watched.
    pub seconds: f64,
    /// Counts of the processor's time stamp counter in a nanosecond.
    pub cycles_per_ns: f64,
    /// NUMA nodes of the machine.
    pub nodes: usize,
    /// Threads that move packets.
    pub threads: Vec<ThreadPerf>,
    /// Workers with their rings, as they are at the end.
    pub workers: Vec<WorkerSnapshot>,
    /// Tables that hold entries or saw packets.
    pub tables: Vec<TableShape>,
    /// What was dropped meanwhile, by reason.
    pub drops: Vec<(String, u64)>,
    /// Frame buffers.
    pub buffers: Option<BuffersPerf>,
}

/// What one thread did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadPerf {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub place: ThreadPlace,
    /// Stages that it did, in a packet's order.
    pub stages: Vec<StagePerf>,
    /// Bursts that went through the tables: their size in packets, and how many there were.
    pub bursts: Vec<(usize, u64)>,
    /// What its verdict cache did meanwhile, and how it stands.
    pub cache: CacheCounts,
}

/// Where a thread runs. Its buffers are on the same node: Linux puts memory where it is first written, and a thread allocates its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadPlace {
    /// The CPU that it is bound to; none: any.
    pub cpu: Option<usize>,
    /// The NUMA node of that CPU; none if it may run on several.
    pub node: Option<usize>,
}

/// What one stage took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StagePerf {
    /// Which.
    pub stage: Stage,
    /// Counts of the time stamp counter.
    pub cycles: u64,
    /// How often it was done.
    pub times: u64,
    /// Packets that it was done for.
    pub packets: u64,
    /// Counts that the longest time took: what was done, or that the thread was stopped in it.
    pub longest: u64,
}

impl ThreadPerf {
    /// What a thread measured.
    pub(crate) fn new(name: &str, place: ThreadPlace, perf: &Perf) -> ThreadPerf {
        let stages = Stage::ALL.into_iter().map(|stage| (stage, perf.stage(stage)));
        let stage =
            |(stage, Took { cycles, times, packets, longest })| StagePerf { stage, cycles, times, packets, longest };
        let bursts = perf.bursts.iter().copied().enumerate().filter(|(_, count)| *count > 0);
        let stages = stages.filter(|(_, took)| took.times > 0).map(stage).collect();
        ThreadPerf { name: name.to_owned(), place, stages, bursts: bursts.collect(), cache: perf.cache }
    }
}

/// Watches for a while.
///
/// # Errors
/// The time is none that can be watched; the switch stops meanwhile.
pub(super) async fn watch(context: &Context, seconds: f64) -> Result<Value, SwitchError> {
    if !(0.01..=MAX_PERF_SECONDS).contains(&seconds) {
        return Err(wrong(format!("found {seconds} seconds, expected 0.01 to {MAX_PERF_SECONDS}")));
    }
    let engine = &context.control.engine;
    let begun = engine.call_async(Engine::begin_perf).await?;
    // From here on who asked may go away: measuring ends with it.
    let watched = Watched { engine: engine.clone(), begun: Some(begun) };
    let mut stopping = context.control.stopping.clone();
    tokio::select! {
        () = stopped(&mut stopping) => return Err(SwitchError::Stopped),
        () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
    }
    watched.end().await
}

/// An engine that measures; no longer once this is dropped.
struct Watched {
    engine: EngineClient,
    begun: Option<Begun>,
}

impl Watched {
    /// Ends measuring; what was measured.
    async fn end(mut self) -> Result<Value, SwitchError> {
        let Some(begun) = self.begun.take() else { return Err(SwitchError::Stopped) };
        let end = move |engine: &mut Engine| (engine.end_perf(begun), engine.buffers());
        let (mut report, (depot, places)) = self.engine.call_async(end).await?;
        report.buffers = Some(BuffersPerf::new(&depot, &places));
        Ok(json!(report))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.engine.post(move |engine| drop(engine.end_perf(begun)));
        }
    }
}
