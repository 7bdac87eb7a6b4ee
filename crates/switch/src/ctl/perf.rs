//! Measures where the switch's threads spend their time, for `weir ctl perf`.
use super::buffers::BuffersPerf;
use super::flows::wrong;
use super::server::CtlContext;
use crate::control::stopped;
use crate::engine::Engine;
use crate::engine::inbox::EngineClient;
use crate::engine::perf::PerfBaseline;
use crate::handle::SwitchError;
use crate::snapshot::WorkerSnapshot;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use weir_datapath::perf::{Perf, StageTotals, ThreadStage};
use weir_datapath::{CacheCounts, TableShape};

/// Maximum duration of a measurement in seconds; clients wait a little longer for a reply.
pub const MAX_PERF_SECONDS: f64 = 20.0;

/// Result of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerfReport {
    /// Duration of the measurement in seconds.
    pub seconds: f64,
    /// Cycles of the processor's time stamp counter per nanosecond.
    pub cycles_per_ns: f64,
    /// Number of NUMA nodes of the machine.
    pub nodes: usize,
    /// Threads that move packets.
    pub threads: Vec<ThreadPerf>,
    /// Workers with their rings, as of the end of the measurement.
    pub workers: Vec<WorkerSnapshot>,
    /// Tables that hold flow entries or have looked up packets.
    pub tables: Vec<TableShape>,
    /// Packets dropped during the measurement, by reason.
    pub drops: Vec<(String, u64)>,
    /// Frame buffers, as of the end of the measurement.
    pub buffers: Option<BuffersPerf>,
}

/// Measurements of one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadPerf {
    /// Name of the thread.
    pub name: String,
    /// Placement of the thread.
    pub place: ThreadPlacement,
    /// Stages that the thread ran, in a packet's order.
    pub stages: Vec<StagePerf>,
    /// Bursts that went through the tables: size in packets, and number of bursts of that size.
    pub bursts: Vec<(usize, u64)>,
    /// Counters of the thread's verdict cache during the measurement, and its state.
    pub cache: CacheCounts,
}

/// Placement of a thread. Its buffers are on the same NUMA node: Linux places memory where it is first written, and a
/// thread allocates its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadPlacement {
    /// CPU that the thread is bound to; none if it may run on any.
    pub cpu: Option<usize>,
    /// NUMA node of that CPU; none if the thread may run on several.
    pub node: Option<usize>,
}

/// Measurements of one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StagePerf {
    /// The stage measured.
    pub stage: ThreadStage,
    /// Cycles of the time stamp counter spent in all runs.
    pub cycles: u64,
    /// Number of runs.
    pub times: u64,
    /// Number of packets processed.
    pub packets: u64,
    /// Cycles of the longest run. A long one shows long work or an interruption of the thread.
    pub longest: u64,
}

impl ThreadPerf {
    /// Converts the measurements of a thread.
    pub(crate) fn new(name: &str, place: ThreadPlacement, perf: &Perf) -> ThreadPerf {
        let stages = ThreadStage::ALL.into_iter().map(|stage| (stage, perf.stage(stage)));
        let stage = |(stage, StageTotals { cycles, times, packets, longest })| StagePerf {
            stage,
            cycles,
            times,
            packets,
            longest,
        };
        let bursts = perf.bursts.iter().copied().enumerate().filter(|(_, count)| *count > 0);
        let stages = stages.filter(|(_, took)| took.times > 0).map(stage).collect();
        ThreadPerf { name: name.to_owned(), place, stages, bursts: bursts.collect(), cache: perf.cache }
    }
}

/// Measures for `seconds`.
///
/// # Errors
/// Fails if the duration is out of range or the switch stops meanwhile.
pub(super) async fn watch(context: &CtlContext, seconds: f64) -> Result<Value, SwitchError> {
    if !(0.01..=MAX_PERF_SECONDS).contains(&seconds) {
        return Err(wrong(format!("found {seconds} seconds, expected 0.01 to {MAX_PERF_SECONDS}")));
    }
    let engine = &context.control.engine;
    let begun = engine.call_async(Engine::begin_perf).await?;
    // From here on the client may disconnect: dropping this ends the measurement.
    let watched = PerfMeasurement { engine: engine.clone(), begun: Some(begun) };
    let mut stopping = context.control.stopping.clone();
    tokio::select! {
        () = stopped(&mut stopping) => return Err(SwitchError::Stopped),
        () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
    }
    watched.end().await
}

/// A running measurement of an engine; dropping this ends it.
struct PerfMeasurement {
    engine: EngineClient,
    begun: Option<PerfBaseline>,
}

impl PerfMeasurement {
    /// Ends the measurement and returns the result.
    async fn end(mut self) -> Result<Value, SwitchError> {
        let Some(begun) = self.begun.take() else { return Err(SwitchError::Stopped) };
        let end = move |engine: &mut Engine| (engine.end_perf(begun), engine.buffers());
        let (mut report, (depot, places)) = self.engine.call_async(end).await?;
        report.buffers = Some(BuffersPerf::new(&depot, &places));
        Ok(json!(report))
    }
}

impl Drop for PerfMeasurement {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.engine.post(move |engine| drop(engine.end_perf(begun)));
        }
    }
}
