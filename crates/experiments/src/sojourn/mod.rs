//! Experiments on sojourn times in a network of one hardware switch and its controller: the published service times,
//! simulated as queueing stations.
//!
//! The thesis measured its devices idle (Tables 4.1 and 4.3) and then loaded (Tables 6.1 and 6.2, figures only). Here
//! the stations use the idle times and are compared with what was observed under load. Two values were not published
//! and are assumed: the variation of the times ([`SCV`]), and the cost of a table write, which blocks the data path.
mod emulated;
pub(crate) mod range_one;
pub(crate) mod range_two;

use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries};
use weir_scenario::Scenario;
use weir_sim::stations::{QueueingRunResult, plan, run as simulate_once};
use weir_sim::{ReplicationLimits, SimulationMonitor, SimulationWindow, replicate};

/// Data path: a line through the published medians by frame size (Table 4.3).
const DATA: &str = "{ law = \"constant\", mean = \"3.34us\", per_byte = \"7.96ns\" }";
/// Capacity in packets of a queue on the control path, as the thesis derived it from its loss curves.
const QUEUE: u32 = 200;
/// Squared coefficient of variation of the control path's times. Assumed.
const SCV: f64 = 0.5;
/// Bytes of Ethernet, IPv4 and UDP headers.
const HEADERS: u32 = 42;
/// Virtual time before packets count: a control queue fills in three seconds.
const WARM_UP: Duration = Duration::from_secs(20);

/// A case: the description of the switch, and the traffic.
struct SimulatedCase<'a> {
    name: String,
    /// Lines of `[controller]`.
    controller: &'a str,
    /// Lines of `[switch.timing]`, in addition to the data path's.
    timing: &'a str,
    new_flows: f64,
    rate: u32,
    bytes: u32,
}

impl SimulatedCase<'_> {
    /// Returns the case as a scenario.
    fn scenario(&self) -> Result<Scenario, ExperimentError> {
        let SimulatedCase { controller, timing, new_flows, rate, bytes, .. } = self;
        let host = |name: &str, last: u8| {
            format!("[[host]]\nname = \"{name}\"\nswitch = \"x510\"\nip = \"10.0.0.{last}/24\"\n")
        };
        let text = format!(
            "[controller]\napp = \"learning\"\n{controller}\n[[switch]]\nname = \"x510\"\n[switch.timing]\ndata = {DATA}\n{timing}\n{}{}\
             [[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\narrival = \"poisson\"\n\
             rate = {rate}\npayload = \"{}B\"\nnew_flows = {new_flows}\n",
            host("h1", 1),
            host("h2", 2),
            bytes - HEADERS
        );
        Ok(Scenario::parse(&text, &self.name)?)
    }
}

/// Simulates a case in the configured number of replications. Returns `None` if stopped.
fn simulate(
    run: &mut ExperimentRun<'_>,
    case: &SimulatedCase<'_>,
) -> Result<Option<Vec<QueueingRunResult>>, ExperimentError> {
    simulate_planned(run, &case.name, &case.scenario()?)
}

/// Simulates a scenario given as text in the configured number of replications. Returns `None` if stopped.
fn simulate_scenario(
    run: &mut ExperimentRun<'_>,
    name: &str,
    text: &str,
) -> Result<Option<Vec<QueueingRunResult>>, ExperimentError> {
    simulate_planned(run, name, &Scenario::parse(text, name)?)
}

fn simulate_planned(
    run: &mut ExperimentRun<'_>,
    name: &str,
    scenario: &Scenario,
) -> Result<Option<Vec<QueueingRunResult>>, ExperimentError> {
    run.tell(name);
    run.simulated = true;
    let plan = plan(scenario)?;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = u64::from(run.sizes.replications.max(1));
    let window = SimulationWindow { warm_up: WARM_UP, length: run.sizes.time.0 };
    let (seed, cancel) = (run.options.seed, run.options.cancel.clone());
    let once = |replication| {
        if cancel.is_cancelled() {
            return Ok::<_, ExperimentError>(None);
        }
        Ok(Some(simulate_once(&plan, window, seed, replication, &SimulationMonitor::default())?))
    };
    let done = replicate(&ReplicationLimits { least: count, most: count, threads }, once, |_| true)?;
    Ok((!done.stopped).then_some(done.results))
}

/// Returns the mean of a value over the replications.
fn over(results: &[QueueingRunResult], value: impl Fn(&QueueingRunResult) -> f64) -> SampledValue {
    SampledValue::mean_of(&results.iter().map(value).collect::<Vec<_>>())
}

/// Returns the mean delay of delivered packets in milliseconds: of all, or only of those that did not go to the
/// controller.
fn sojourn_ms(result: &QueueingRunResult, with_control: bool) -> f64 {
    let [data, control] = &result.flows[0].delays;
    let mut all = data.clone();
    if with_control {
        all.merge(control);
    }
    all.mean_s().unwrap_or(0.0) * 1e3
}

/// Returns the share of lost packets, in percent.
fn loss(result: &QueueingRunResult) -> f64 {
    100.0 * result.flows[0].lost as f64 / result.flows[0].sent.max(1) as f64
}

/// Returns a chart's line through a figure of several cases, each with its position.
fn series(
    run: &ExperimentRun<'_>,
    name: impl Into<String>,
    metric: &str,
    cases: impl Iterator<Item = (f64, String)>,
) -> ChartSeries {
    let point = |(x, case): (f64, String)| {
        let figure = run.figures.iter().find(|figure| figure.case == case && figure.metric == metric)?;
        Some(ChartPoint::within(x, figure.ours, figure.sd))
    };
    ChartSeries::line(name, cases.filter_map(point).collect())
}

fn chart(name: &str, title: &str, y: Axis, series: Vec<ChartSeries>) -> weir_plot::Figure {
    Chart { name: name.into(), title: title.into(), x: Axis::linear("rate, packets/s"), y, series }.into()
}
