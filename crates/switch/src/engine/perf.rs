//! Measures where the engine's time is spent and how long a packet's steps take, while a client asks for it.
use super::Engine;
use crate::clock::{SwitchClock, cycles};
use crate::ctl::{PerfReport, ThreadPerf, ThreadPlacement};
use std::sync::Arc;
use weir_datapath::perf::{Perf, Stopwatch, ThreadStage};
use weir_packet::SharedBuffers;
use weir_units::{Clock, Instant};

/// Start point for the rate of the time stamp counter, which is found by comparison with the clock.
#[derive(Debug)]
pub(super) struct TscCalibration {
    cycles: u64,
    at: Instant,
}

impl TscCalibration {
    pub(super) fn start(clock: SwitchClock) -> TscCalibration {
        TscCalibration { cycles: cycles(), at: clock.now() }
    }

    /// Returns the counter's rate since the start, in counts per nanosecond.
    pub(super) fn cycles_per_ns(&self, clock: SwitchClock) -> f64 {
        let (cycles, at) = (cycles(), clock.now());
        let ns = at.since(self.at).as_nanos();
        if ns == 0 { 1.0 } else { cycles.saturating_sub(self.cycles) as f64 / ns as f64 }
    }
}

/// Counters at the start of a measurement.
pub(crate) struct PerfBaseline {
    at: Instant,
    perf: Perf,
    workers: Vec<Perf>,
    drops: Vec<(String, u64)>,
}

/// Stopwatch of the engine's own work, which runs while at least one measurement does.
#[derive(Debug, Default)]
pub(super) struct EnginePerf {
    pub(super) watch: Stopwatch,
    watchers: u32,
}

impl EnginePerf {
    /// Number of measurements that run.
    pub(super) fn watchers(&self) -> u32 {
        self.watchers
    }

    /// Notes the end of a stage that handled `packets`: `stage` if it did work, otherwise idle time.
    #[inline]
    pub(super) fn lap(&mut self, stage: ThreadStage, worked: bool, packets: usize) {
        self.watch.lap(if worked { stage } else { ThreadStage::Idle }, packets);
    }
}

impl Engine {
    /// Begins a measurement. Several may run at once.
    pub(crate) fn begin_perf(&mut self) -> PerfBaseline {
        self.perf.watchers += 1;
        if self.perf.watchers == 1 {
            self.watch_stages(true);
        }
        let drops = self.drops(None).unwrap_or_default();
        PerfBaseline { at: self.io.now(), perf: self.measured(), workers: self.workers.perf(), drops }
    }

    /// Ends a measurement and returns what was measured since it began.
    pub(crate) fn end_perf(&mut self, begun: PerfBaseline) -> PerfReport {
        let perf = self.measured().since(&begun.perf);
        let datapath = self.physical.datapath.get();
        let samples = self.workers.own_watch().unwrap_or_else(|| datapath.watch_mut()).samples().to_vec();
        self.perf.watchers = self.perf.watchers.saturating_sub(1);
        if self.perf.watchers == 0 {
            self.watch_stages(false);
        }
        let workers = self.workers.perf().into_iter().zip(begun.workers).enumerate();
        let name = self.workers.thread_names();
        let workers = workers.map(|(number, (now, before))| {
            ThreadPerf::new(&name(number), self.workers.place_of(number + 1), &now.since(&before))
        });
        PerfReport {
            seconds: self.io.now().since(begun.at).as_secs_f64(),
            cycles_per_ns: self.io.cycles_per_ns(),
            nodes: self.workers.node_count(),
            threads: [ThreadPerf::new("engine", self.workers.place_of(0), &perf)].into_iter().chain(workers).collect(),
            workers: self.workers.snapshot(),
            tables: self.physical.datapath.get().table_shapes(&samples),
            drops: grown(&begun.drops, self.drops(None).unwrap_or_default()),
            buffers: None,
        }
    }

    /// Starts or stops the stopwatches of the engine, the datapath and the workers.
    fn watch_stages(&mut self, is_watched: bool) {
        self.perf.watch.watch(is_watched);
        self.physical.datapath.get().watch_mut().watch(is_watched);
        self.workers.watch(is_watched);
    }

    /// Returns the times of the engine's thread so far, outside and inside the datapath.
    fn measured(&mut self) -> Perf {
        let mut perf = self.perf.watch.perf().clone();
        perf.add(self.physical.datapath.get().watch_mut().perf());
        if let Some(own) = self.workers.own_watch() {
            perf.add(own.perf());
        }
        perf
    }

    /// Returns the frame buffers allocated at the start, and the locations of the threads that wrote to them first.
    pub(crate) fn buffers(&self) -> (Arc<SharedBuffers>, Vec<ThreadPlacement>) {
        self.io.pool.report_count();
        self.workers.buffers()
    }
}

/// Returns the counters that have grown, with their increase.
fn grown(before: &[(String, u64)], after: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let known = |reason: &str| before.iter().find(|(other, _)| other == reason).map_or(0, |(_, count)| *count);
    let grown = after.into_iter().map(|(reason, count)| {
        let more = count.saturating_sub(known(&reason));
        (reason, more)
    });
    grown.filter(|(_, count)| *count > 0).collect()
}
