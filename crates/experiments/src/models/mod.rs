//! Compares formulas with simulated queueing stations of the same device.
pub(crate) mod accuracy;
pub(crate) mod comparison;
mod device;
mod drawn;

use crate::{ExperimentError, Run, Value};
use std::time::Duration;
use weir_scenario::Scenario;
use weir_sim::stations::{self, StationsRun};
use weir_sim::stats::{Confidence, Delays, estimate};
use weir_sim::{Plan, Watch, Window, replicate};

/// Share of a run's time that passes before packets count.
const WARM_UP: f64 = 0.1;

/// Results of the replications of one case, in seconds and shares.
struct Simulated {
    /// Mean sojourn of delivered packets.
    sojourn_s: Value,
    /// Half the width of the 95 % interval of `sojourn_s`.
    unsure_s: f64,
    /// 95th percentile of the sojourn.
    p95_s: Value,
    /// Mean sojourn of packets that went to the controller.
    control_s: Value,
    /// Share of packets that are lost.
    loss: Value,
}

/// Simulates a scenario of one flow in the configured number of replications. Returns `None` if stopped.
fn simulate(run: &mut Run<'_>, case: &str, scenario: &str, seed: u64) -> Result<Option<Simulated>, ExperimentError> {
    run.tell(case);
    run.simulated = true;
    let scenario = Scenario::parse(scenario, "scenario").map_err(|error| ExperimentError::Case(error.to_string()))?;
    let plan = stations::plan(&scenario).map_err(|error| ExperimentError::Case(error.to_string()))?;
    let length: Duration = run.sizes.time.0;
    let window = Window { warm_up: length.mul_f64(WARM_UP), length };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = u64::from(run.sizes.replications.max(1));
    let cancel = run.options.cancel.clone();
    let once = |replication| {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let found = stations::run(&plan, window, seed, replication, &Watch::default());
        found.map(Some).map_err(|error| ExperimentError::Case(error.to_string()))
    };
    let done = replicate(&Plan { least: count, most: count, threads }, once, |_| true)?;
    Ok((!done.stopped).then(|| Simulated::of(&done.results)))
}

impl Simulated {
    fn of(runs: &[StationsRun]) -> Simulated {
        let over = |value: &dyn Fn(&StationsRun) -> f64| Value::mean_of(&runs.iter().map(value).collect::<Vec<_>>());
        let means: Vec<f64> = runs.iter().filter_map(|run| all(run).mean_s()).collect();
        let interval = estimate(&means, Confidence::P95);
        Simulated {
            unsure_s: interval.and_then(|found| found.half_width).unwrap_or(0.0),
            sojourn_s: Value::mean_of(&means),
            p95_s: over(&|run| all(run).quantile_s(0.95).unwrap_or(0.0)),
            control_s: over(&|run| run.flows[0].delays[1].mean_s().unwrap_or(0.0)),
            loss: over(&|run| run.flows[0].lost as f64 / run.flows[0].sent.max(1) as f64),
        }
    }
}

/// Returns the delays of all packets of the only flow.
fn all(run: &StationsRun) -> Delays {
    let [data, control] = &run.flows[0].delays;
    let mut all = data.clone();
    all.merge(control);
    all
}
