//! Experiments on the cost of sharing a switch: a crosspoint-queued switch divided into virtual switches, in virtual
//! time (Anhalt 2011, chapter 4).
//!
//! The thesis does not print the parameters of its traffic. Those assumed here, equal in all three experiments, are
//! [`BURSTS`] and [`SHORT`].
mod port;
pub(crate) mod priority;
pub(crate) mod routers;
pub(crate) mod scale;
pub(crate) mod split_path;

use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_plot::{ChartPoint, ChartSeries};
use weir_sim::{FabricNetwork, FabricRunResult, ReplicationLimits, SimulationMonitor, SimulationWindow, replicate};
use weir_traffic::{ArrivalProcess, BimodalSizes, PacketSizeLaw, TwoStateMmpp};
use weir_units::Bps;

/// Rate of all lines, as published.
const LINE: Bps = Bps(1_000_000_000);
/// Bursts: three times the mean rate for half a millisecond, and half the mean rate between.
const BURSTS: ArrivalProcess = ArrivalProcess::TwoState(TwoStateMmpp { high: 3.0, low: 0.5, high_s: 0.0005 });
/// Share of packets that are short; lengths are as published.
const SHORT: f64 = 0.5;

fn sizes() -> PacketSizeLaw {
    PacketSizeLaw::Bimodal(BimodalSizes { short: SHORT, ..BimodalSizes::default() })
}

/// Returns the packets per second that offer the given share of a line.
fn packets_per_second(load: f64) -> f64 {
    let mean_bytes = SHORT * 82.0 + (1.0 - SHORT) * 1425.0;
    load * LINE.0 as f64 / (8.0 * mean_bytes)
}

/// Simulates a case in the configured number of replications. Returns `None` if stopped.
fn simulate(
    run: &mut ExperimentRun<'_>,
    case: &str,
    model: &FabricNetwork,
) -> Result<Option<Vec<FabricRunResult>>, ExperimentError> {
    run.tell(case);
    run.simulated = true;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = u64::from(run.sizes.replications.max(1));
    let window = SimulationWindow { warm_up: Duration::ZERO, length: run.sizes.time.0 };
    let (seed, cancel) = (run.options.seed, run.options.cancel.clone());
    let once = |replication| {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        weir_sim::run(model, window, seed, replication, &SimulationMonitor::default()).map(Some)
    };
    let done = replicate(&ReplicationLimits { least: count, most: count, threads }, once, |_| true)?;
    Ok((!done.stopped).then_some(done.results))
}

/// Returns the mean of a value over the replications.
fn over(results: &[FabricRunResult], value: impl Fn(&FabricRunResult) -> f64) -> SampledValue {
    SampledValue::mean_of(&results.iter().map(value).collect::<Vec<_>>())
}

/// Returns the share of the groups' bytes that were not lost, in percent.
fn throughput(result: &FabricRunResult, groups: &[usize]) -> f64 {
    let sum = |value: fn(&weir_sim::PacketTally) -> u64| {
        groups.iter().map(|group| value(&result.groups[*group])).sum::<u64>()
    };
    let (arrived, accepted) = (sum(|tally| tally.arrived.bytes), sum(|tally| tally.accepted().bytes));
    100.0 * accepted as f64 / arrived.max(1) as f64
}

/// Returns the mean delay of the groups' packets that were not lost, in milliseconds.
fn delay_ms(result: &FabricRunResult, groups: &[usize]) -> f64 {
    let mut delays = weir_sim::stats::DelayTally::default();
    groups.iter().for_each(|group| delays.merge(&result.groups[*group].delays));
    delays.mean_s().unwrap_or(0.0) * 1e3
}

/// Returns a chart's line through a figure of several cases, each with its position.
fn series(
    run: &ExperimentRun<'_>,
    name: impl Into<String>,
    metric: &str,
    cases: impl IntoIterator<Item = (f64, String)>,
) -> ChartSeries {
    let point = |(x, case): (f64, String)| {
        let figure = run.figures.iter().find(|figure| figure.case == case && figure.metric == metric)?;
        Some(ChartPoint::within(x, figure.ours, figure.sd))
    };
    ChartSeries::line(name, cases.into_iter().filter_map(point).collect())
}
