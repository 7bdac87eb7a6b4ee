//! Simulates scenarios with packets by rule, in replications.
use serde::Serialize;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use weir_network::result::LabMachineInfo;
use weir_scenario::Scenario;
use weir_sim::report::{FabricReport, is_sure, report};
use weir_sim::stats::Confidence;
use weir_sim::{
    FabricNetwork, FabricNetworkError, FabricRunResult, ReplicationLimits, SimulationMonitor, replicate, run,
};
use weir_units::{Clock as _, SystemClock};

/// Maximum number of replications if they continue until the results are precise enough.
const MAX_REPLICATIONS: u64 = 10_000;
/// Smallest number of replications from which the confidence intervals are checked.
const MIN_REPLICATIONS: u64 = 3;

/// Result of simulating a scenario's streams.
#[derive(Debug, Serialize)]
pub(super) struct StreamSimulation {
    pub(super) setup: SimulationSetup,
    /// True if the simulation was stopped after fewer replications than requested.
    pub(super) partial: bool,
    /// Simulated seconds after the warm-up, if the simulation was stopped in the first replication; all figures cover
    /// this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_replication_s: Option<f64>,
    /// True if the confidence intervals are as narrow as requested; absent if no width was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_sure: Option<bool>,
    #[serde(flatten)]
    pub(super) report: FabricReport,
}

/// Conditions under which the figures were simulated.
#[derive(Debug, Serialize)]
pub(super) struct SimulationSetup {
    pub(super) scenario: String,
    pub(super) seed: u64,
    pub(super) replications: usize,
    pub(super) confidence: Confidence,
    pub(super) warm_up_s: f64,
    pub(super) duration_s: f64,
    pub(super) packets: u64,
    pub(super) events: u64,
    pub(super) events_per_second: f64,
    pub(super) wall_s: f64,
    pub(super) threads: usize,
    pub(super) version: &'static str,
    pub(super) release_build: bool,
    pub(super) machine: LabMachineInfo,
}

/// Simulates the model in replications and summarises them.
pub(super) fn simulate(
    scenario: &Scenario,
    model: &FabricNetwork,
    threads: usize,
    watch: &SimulationMonitor,
) -> Result<StreamSimulation, FabricNetworkError> {
    let clock = SystemClock::start();
    let window = weir_sim::scenario::window(scenario);
    let confidence = Confidence::default();
    let until = scenario.simulate.until;
    let plan = replications(scenario, threads);
    let begun = Mutex::new(None);
    let one = |number| {
        let result = run(model, window, scenario.seed, number, watch)?;
        if !result.partial && !watch.cancel.load(Ordering::Relaxed) {
            return Ok(Some(result));
        }
        if number == 0 && result.window_s > 0.0 {
            *begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
        Ok(None)
    };
    let sure = |runs: &[FabricRunResult]| until.is_none_or(|share| is_sure(runs, confidence, share));
    let done = replicate(&plan, one, sure)?;
    let mut runs = done.results;
    let replications = runs.len();
    // Without a complete replication, the figures of an incomplete one are reported.
    let first = begun.into_inner().unwrap_or_else(PoisonError::into_inner).filter(|_| runs.is_empty());
    let first_replication_s = first.as_ref().map(|run| run.window_s);
    runs.extend(first);
    let sum = |what: fn(&FabricRunResult) -> u64| runs.iter().map(what).sum();
    let counted = ReplicationTotals { replications, packets: sum(|run| run.packets), events: sum(|run| run.events) };
    let setup = SimulationSetup::new(scenario, &counted, clock.now().as_secs_f64(), threads);
    let is_sure = until.map(|_| sure(&runs));
    let report = report(&model.groups, &runs, confidence);
    Ok(StreamSimulation { setup, partial: done.stopped, first_replication_s, is_sure, report })
}

/// Counters over all replications.
pub(super) struct ReplicationTotals {
    pub(super) replications: usize,
    pub(super) packets: u64,
    pub(super) events: u64,
}

impl SimulationSetup {
    /// Returns the setup for `scenario`, simulated in `wall_s` seconds of real time.
    pub(super) fn new(
        scenario: &Scenario,
        counted: &ReplicationTotals,
        wall_s: f64,
        threads: usize,
    ) -> SimulationSetup {
        let window = weir_sim::scenario::window(scenario);
        SimulationSetup {
            scenario: scenario.name.clone(),
            seed: scenario.seed,
            replications: counted.replications,
            confidence: Confidence::default(),
            warm_up_s: window.warm_up.as_secs_f64(),
            duration_s: window.length.as_secs_f64(),
            packets: counted.packets,
            events: counted.events,
            events_per_second: if wall_s > 0.0 { counted.events as f64 / wall_s } else { 0.0 },
            wall_s,
            threads,
            version: env!("CARGO_PKG_VERSION"),
            release_build: weir_units::IS_RELEASE_BUILD,
            machine: LabMachineInfo::this(),
        }
    }
}

/// Returns the number of replications that a scenario requests.
pub(super) fn replications(scenario: &Scenario, threads: usize) -> ReplicationLimits {
    let asked = u64::from(scenario.simulate.replications);
    match scenario.simulate.until {
        Some(_) => ReplicationLimits { least: asked.clamp(2, MIN_REPLICATIONS), most: MAX_REPLICATIONS, threads },
        None => ReplicationLimits { least: asked, most: asked, threads },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "[simulate]\nduration = '1000s'\nwarm_up = '1ms'\nreplications = 2\n[[switch]]\nname = 's'\n\
                          [switch.fabric]\nports = 2\nrate = '1Gbit/s'\n[[stream]]\nswitch = 's'\ninputs = '1'\noutput = 2\n\
                          load = 0.5\n";

    fn stopped_after(warm_up: &str) -> StreamSimulation {
        let scenario = Scenario::parse(&STREAM.replace("1ms", warm_up), "stream").unwrap();
        let model = weir_sim::scenario::model(&scenario).unwrap();
        let watch = SimulationMonitor::default();
        watch.cancel.store(true, Ordering::Relaxed);
        simulate(&scenario, &model, 1, &watch).unwrap()
    }

    #[test]
    fn stopped_in_the_first_replication_it_says_what_was_seen() {
        let found = stopped_after("1ms");
        assert!(found.partial && found.setup.replications == 0);
        let seconds = found.first_replication_s.expect("a part of it was simulated");
        assert!(seconds > 0.0 && seconds < 1000.0 && found.report.total.packets > 0, "{seconds}");
        // Half of the line rate, over the simulated time only.
        let rate = found.report.total.rate_bps.expect("packets arrived").mean;
        assert!((rate - 5e8).abs() < 5e7, "{rate}");
    }

    #[test]
    fn stopped_while_warming_up_there_is_nothing_to_say() {
        let found = stopped_after("900s");
        assert!(found.partial && found.first_replication_s.is_none() && found.report.total.packets == 0);
    }
}
