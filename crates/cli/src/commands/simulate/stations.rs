//! Simulates scenarios whose devices have service times, in replications.
use super::streams::{ReplicationTotals, SimulationSetup, replications};
use anyhow::Context as _;
use serde::Serialize;
use std::sync::atomic::Ordering;
use weir_scenario::Scenario;
use weir_sim::stations::report::{QueueingReport, is_sure, report};
use weir_sim::stations::{QueueingRunResult, plan, run};
use weir_sim::stats::Confidence;
use weir_sim::{SimulationMonitor, replicate};
use weir_units::{Clock as _, SystemClock};

/// Result of simulating a scenario's stations.
#[derive(Debug, Serialize)]
pub(super) struct StationSimulation {
    /// Level of the simulation, always `stations`. Figures of other levels differ, so the JSON names it.
    pub(super) level: &'static str,
    pub(super) setup: SimulationSetup,
    /// True if the simulation was stopped after fewer replications than requested.
    pub(super) partial: bool,
    /// True if the confidence intervals are as narrow as requested; absent if no width was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_sure: Option<bool>,
    #[serde(flatten)]
    pub(super) report: QueueingReport,
}

/// Simulates the scenario's stations in replications and summarises them.
pub(super) fn simulate(
    scenario: &Scenario,
    threads: usize,
    watch: &SimulationMonitor,
) -> anyhow::Result<StationSimulation> {
    let clock = SystemClock::start();
    let plan = plan(scenario)?;
    let window = weir_sim::scenario::window(scenario);
    let confidence = Confidence::default();
    let until = scenario.simulate.until;
    let one = |number| {
        let result = run(&plan, window, scenario.seed, number, watch).context("cannot simulate this traffic")?;
        anyhow::Ok(Some(result).filter(|result| !result.partial && !watch.cancel.load(Ordering::Relaxed)))
    };
    let sure = |runs: &[QueueingRunResult]| until.is_none_or(|share| is_sure(runs, confidence, share));
    let done = replicate(&replications(scenario, threads), one, sure)?;
    let runs = done.results;
    let sum = |what: fn(&QueueingRunResult) -> u64| runs.iter().map(what).sum();
    let counted =
        ReplicationTotals { replications: runs.len(), packets: sum(|run| run.packets), events: sum(|run| run.events) };
    Ok(StationSimulation {
        level: "stations",
        setup: SimulationSetup::new(scenario, &counted, clock.now().as_secs_f64(), threads),
        partial: done.stopped,
        is_sure: until.map(|_| sure(&runs)),
        report: report(&plan, &runs, confidence),
    })
}
