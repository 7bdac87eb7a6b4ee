//! Runs a switch between the two ends of a tester.
use crate::tester::{TesterEndResults, TesterLoad, TesterResults, TesterWindow, tester};
use crate::{ExperimentError, ExperimentRun};
use std::sync::PoisonError;
use std::time::Duration;
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo};
use weir_switch::threads::{BurstSizes, ReceivePolicy, ThreadingMode, ThreadsConfig};
use weir_switch::{PortConfig, SoftwareSwitch, SoftwareSwitchConfig, SwitchError, SwitchHandle};
use weir_units::{Clock, SystemClock};

/// Port numbers of the tester's two ends.
pub(crate) const PORTS: [PortNo; 2] = [PortNo(1), PortNo(2)];

/// Time between opening the ports and the first frame.
const LEAD: Duration = Duration::from_millis(50);
/// Time for which load is offered before it counts, so that threads are awake and tables are in caches.
const WARM_UP: Duration = Duration::from_millis(300);
/// Time to wait for frames in transit after sending ends.
const LINGER: Duration = Duration::from_millis(200);

/// Threads of the switch: a pipeline as in Lagopus.
#[derive(Debug, Clone)]
pub(crate) struct LagopusThreads {
    /// Number of workers, in addition to the thread of the ports.
    pub(crate) workers: usize,
    /// Size of all six bursts, in frames.
    pub(crate) burst: usize,
    /// Loop iterations after which an incomplete burst is passed on.
    pub(crate) io_loop_count: u32,
    /// Fields that identify a flow, all packets of which go to one worker.
    pub(crate) policy: ReceivePolicy,
    /// Classes of traffic with their worker, as `MATCH=>WORKER`.
    pub(crate) classes: Vec<&'static str>,
}

/// Loop iterations of a worker after which an incomplete burst is passed on, as published for all experiments.
const WORKER_LOOP_COUNT: u32 = 1000;

/// A running switch, to which the tester's ports are added for each measurement.
pub(crate) struct ExperimentTestbed {
    clock: SystemClock,
    switch: SwitchHandle,
    seed: u64,
}

/// Results of a measurement under one load.
pub(crate) struct LoadMeasurement {
    /// Observations of each end.
    pub(crate) ends: [TesterResults; 2],
    /// Frames dropped by the switch, by reason.
    pub(crate) drops: Vec<(String, u64)>,
}

impl ExperimentTestbed {
    /// Starts a switch with these entries.
    pub(crate) fn new(
        run: &ExperimentRun<'_>,
        threads: LagopusThreads,
        flows: Vec<FlowMod>,
    ) -> Result<ExperimentTestbed, ExperimentError> {
        let config = threads.config()?;
        let clock = config.clock;
        let switch = SoftwareSwitch::start(config)?;
        switch.flow_mods(flows)?;
        Ok(ExperimentTestbed { clock, switch, seed: run.options.seed })
    }

    /// Offers a load for `time` and measures. Returns `None` if stopped early.
    pub(crate) fn measure(
        &self,
        run: &ExperimentRun<'_>,
        load: &TesterLoad,
        time: Duration,
    ) -> Result<Option<LoadMeasurement>, ExperimentError> {
        let begin = self.clock.now() + LEAD;
        let from = begin + WARM_UP;
        let window = TesterWindow { begin, from, until: from + time };
        let (ports, ends) = tester(load, window, self.clock, self.seed);
        let before = self.switch.snapshot()?.drops;
        for (number, port) in PORTS.into_iter().zip(ports) {
            self.switch.add_port(PortConfig::new(number, port))?;
        }
        let stopped = run.options.cancel.wait(LEAD + WARM_UP + time + LINGER);
        for number in PORTS {
            self.switch.remove_port(number)?;
        }
        let drops = more(&before, self.switch.snapshot()?.drops);
        Ok((!stopped).then(|| LoadMeasurement { ends: seen(ends), drops }))
    }
}

impl LagopusThreads {
    /// Returns the configuration of a switch with these threads.
    fn config(self) -> Result<SoftwareSwitchConfig, SwitchError> {
        let classes =
            self.classes.into_iter().map(str::parse).collect::<Result<_, _>>().map_err(SwitchError::Request)?;
        let threads = ThreadsConfig {
            mode: ThreadingMode::Pipeline,
            workers: self.workers,
            bursts: BurstSizes::all(self.burst),
            io_loop_count: self.io_loop_count,
            worker_loop_count: WORKER_LOOP_COUNT,
            policy: self.policy,
            classes,
            ..ThreadsConfig::default()
        };
        Ok(SoftwareSwitchConfig { threads, ..SoftwareSwitchConfig::default() })
    }
}

/// Takes the observations of both ends. The ports are gone, so nothing else uses them.
fn seen(ends: TesterEndResults) -> [TesterResults; 2] {
    ends.map(|end| std::mem::take(&mut *end.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Returns the counters that have grown since `before`, by how much.
fn more(before: &[(String, u64)], after: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let grown = after.into_iter().map(|(reason, count)| {
        let known = before.iter().find(|(other, _)| *other == reason).map_or(0, |(_, count)| *count);
        (reason, count.saturating_sub(known))
    });
    grown.filter(|(_, count)| *count > 0).collect()
}

impl LoadMeasurement {
    /// Returns the share of the bulk frames sent by end `from` that did not arrive at the other end.
    pub(crate) fn loss(&self, from: usize) -> f64 {
        let due = self.ends[from].due;
        if due == 0 { 0.0 } else { due.saturating_sub(self.ends[1 - from].arrived) as f64 / due as f64 }
    }

    /// Adds a note to the report if frames were lost: where, and how long the switch did not read the port's ring.
    pub(crate) fn disturbances(&self, run: &mut ExperimentRun<'_>, case: &str) {
        let missed: u64 = self.ends.iter().map(|end| end.missed).sum();
        let gap = self.ends.iter().map(|end| end.longest_gap).max().unwrap_or_default();
        let mut lost: Vec<String> =
            self.drops.iter().map(|(reason, count)| format!("{count} {}", reason.replace('_', " "))).collect();
        if missed > 0 {
            lost.push(format!(
                "{missed} did not fit the port's ring, which nobody looked at for {} us",
                gap.as_micros()
            ));
        }
        if !lost.is_empty() {
            run.note(format!("{case}: lost: {}", lost.join(", ")));
        }
    }
}

/// Returns an entry that applies the actions `before` and outputs to `port`.
pub(crate) fn entry(priority: u16, matching: Match, before: Vec<Action>, port: PortNo) -> FlowMod {
    let actions = before.into_iter().chain([Action::output(port)]).collect();
    FlowMod::add(priority, matching, vec![Instruction::ApplyActions(actions)])
}
