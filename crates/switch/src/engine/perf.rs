//! Measures where the engine's time is spent and how long a packet's steps take, while a client asks for it.
use super::Engine;
use crate::clock::{SwitchClock, cycles};
use crate::ctl::{PerfReport, ThreadPerf, ThreadPlacement};
use crate::handle::SwitchError;
use std::sync::Arc;
use std::time::Duration;
use weir_datapath::TraceCycles;
use weir_datapath::perf::Perf;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, SharedBuffers};
use weir_units::{Clock, Instant};

/// Maximum time that one trace measurement takes from forwarding.
const TRACE_SLICE: Duration = Duration::from_micros(40);

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

impl Engine {
    /// Begins a measurement. Several may run at once.
    pub(crate) fn begin_perf(&mut self) -> PerfBaseline {
        self.watchers += 1;
        if self.watchers == 1 {
            self.watch.watch(true);
            self.logical.datapath.get().watch_mut().watch(true);
            self.workers.watch(true);
        }
        PerfBaseline { at: self.clock.now(), perf: self.perf(), workers: self.workers.perf(), drops: self.drops() }
    }

    /// Ends a measurement and returns what was measured since it began.
    pub(crate) fn end_perf(&mut self, begun: PerfBaseline) -> PerfReport {
        let perf = self.perf().since(&begun.perf);
        let own = self.workers.own_watch();
        let samples = own.unwrap_or_else(|| self.logical.datapath.get().watch_mut()).samples().to_vec();
        self.watchers = self.watchers.saturating_sub(1);
        if self.watchers == 0 {
            self.watch.watch(false);
            self.logical.datapath.get().watch_mut().watch(false);
            self.workers.watch(false);
        }
        let workers = self.workers.perf().into_iter().zip(begun.workers).enumerate();
        let name = self.workers.thread_names();
        let workers = workers.map(|(number, (now, before))| {
            ThreadPerf::new(&name(number), self.workers.place_of(number + 1), &now.since(&before))
        });
        PerfReport {
            seconds: self.clock.now().since(begun.at).as_secs_f64(),
            cycles_per_ns: self.cycles_per_ns(),
            nodes: self.workers.node_count(),
            threads: [ThreadPerf::new("engine", self.workers.place_of(0), &perf)].into_iter().chain(workers).collect(),
            workers: self.workers.snapshot(),
            tables: self.logical.datapath.get().table_shapes(&samples),
            drops: grown(&begun.drops, self.drops()),
            buffers: None,
        }
    }

    /// Returns the frame buffers allocated at the start, and the locations of the threads that wrote to them first.
    pub(crate) fn buffers(&self) -> (Arc<SharedBuffers>, Vec<ThreadPlacement>) {
        self.pool.report_count();
        self.workers.buffers()
    }

    /// Returns the times of the engine's thread so far, outside and inside the datapath.
    fn perf(&mut self) -> Perf {
        let mut perf = self.watch.perf().clone();
        perf.add(self.logical.datapath.get().watch_mut().perf());
        if let Some(own) = self.workers.own_watch() {
            perf.add(own.perf());
        }
        perf
    }

    /// Returns the rate of the time stamp counter, in counts per nanosecond.
    pub(crate) fn cycles_per_ns(&self) -> f64 {
        self.calibration.cycles_per_ns(self.clock)
    }

    /// Runs a traced frame's steps repeatedly for a bounded time and returns how long the steps took.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub(crate) fn time_trace(&mut self, in_port: PortNo, frame: &Frame) -> Result<TraceCycles, SwitchError> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousands")]
        let budget = (TRACE_SLICE.as_nanos() as f64 * self.cycles_per_ns()) as u64;
        self.has_port(in_port)?;
        Ok(self.logical.datapath.get().time_trace(self.clock.now(), in_port, frame.bytes(), budget))
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
