//! Compares formulas with simulated queueing stations of the same device.
pub(crate) mod accuracy;
pub(crate) mod comparison;
mod device;
mod drawn;

use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_scenario::Scenario;
use weir_sim::stations::{self, QueueingRunResult};
use weir_sim::stats::{Confidence, DelayTally, estimate};
use weir_sim::{ReplicationLimits, SimulationMonitor, SimulationWindow, replicate};

/// Share of a run's time that passes before packets count.
const WARM_UP: f64 = 0.1;

/// Results of the replications of one case, in seconds and shares.
struct SimulatedSojourn {
    /// Mean sojourn of delivered packets.
    sojourn_s: SampledValue,
    /// Half the width of the 95 % interval of `sojourn_s`.
    unsure_s: f64,
    /// 95th percentile of the sojourn.
    p95_s: SampledValue,
    /// Mean sojourn of packets that went to the controller.
    control_s: SampledValue,
    /// Share of packets that are lost.
    loss: SampledValue,
}

/// Simulates a scenario of one flow in the configured number of replications. Returns `None` if stopped.
fn simulate(
    run: &mut ExperimentRun<'_>,
    case: &str,
    scenario: &str,
    seed: u64,
) -> Result<Option<SimulatedSojourn>, ExperimentError> {
    run.tell(case);
    run.simulated = true;
    let scenario = Scenario::parse(scenario, "scenario").map_err(|error| ExperimentError::Case(error.to_string()))?;
    let plan = stations::plan(&scenario).map_err(|error| ExperimentError::Case(error.to_string()))?;
    let length: Duration = run.sizes.time.0;
    let window = SimulationWindow { warm_up: length.mul_f64(WARM_UP), length };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = u64::from(run.sizes.replications.max(1));
    let cancel = run.options.cancel.clone();
    let once = |replication| {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let found = stations::run(&plan, window, seed, replication, &SimulationMonitor::default());
        found.map(Some).map_err(|error| ExperimentError::Case(error.to_string()))
    };
    let done = replicate(&ReplicationLimits { least: count, most: count, threads }, once, |_| true)?;
    Ok((!done.stopped).then(|| SimulatedSojourn::of(&done.results)))
}

impl SimulatedSojourn {
    fn of(runs: &[QueueingRunResult]) -> SimulatedSojourn {
        let over = |value: &dyn Fn(&QueueingRunResult) -> f64| {
            SampledValue::mean_of(&runs.iter().map(value).collect::<Vec<_>>())
        };
        let means: Vec<f64> = runs.iter().filter_map(|run| all(run).mean_s()).collect();
        let interval = estimate(&means, Confidence::P95);
        SimulatedSojourn {
            unsure_s: interval.and_then(|found| found.half_width).unwrap_or(0.0),
            sojourn_s: SampledValue::mean_of(&means),
            p95_s: over(&|run| all(run).quantile_s(0.95).unwrap_or(0.0)),
            control_s: over(&|run| run.flows[0].delays[1].mean_s().unwrap_or(0.0)),
            loss: over(&|run| run.flows[0].lost as f64 / run.flows[0].sent.max(1) as f64),
        }
    }
}

/// Returns the delays of all packets of the only flow.
fn all(run: &QueueingRunResult) -> DelayTally {
    let [data, control] = &run.flows[0].delays;
    let mut all = data.clone();
    all.merge(control);
    all
}
