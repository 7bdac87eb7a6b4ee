//! Experiment: predicted delays of whole networks against packet-by-packet simulations, over networks drawn at random.
mod drawn;

use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use drawn::{DrawnNetwork, GAPS, LARGE, SIZES, SMALL};
use weir_network::result::TrafficResult;
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries};
use weir_predict::{FlowPrediction, PredictSettings, PredictionValidity, predict};
use weir_scenario::Scenario;
use weir_sim::network::{VirtualTimeSettings, simulate};
use weir_sim::{ReplicationLimits, SimulationMonitor, replicate};
use weir_traffic::RandomStream;

/// Delays that are compared.
const DELAYS: [&str; 4] = ["mean", "p50", "p95", "p99"];
/// Case with all networks without bursts and losses.
const PLAIN: &str = "large buffers, no bursts";
/// Cases with the flows whose predictions are good by their own statement, and with the others.
const GOOD: &str = "answers called good";
const APPROXIMATE: &str = "answers called approximate";
/// Claims: case, delay, place among its [`metrics`], and limit in percent.
const CLAIMS: [(&str, &str, usize, f64); 5] = [
    (PLAIN, "mean", 0, 2.0),
    (PLAIN, "mean", 1, 7.0),
    (PLAIN, "p99", 0, 4.0),
    (GOOD, "mean", 2, 10.0),
    (GOOD, "p99", 2, 20.0),
];
/// Share of flows that the second limit of the mean is about.
const MOST: f64 = 0.95;
const BURSTS: &str = "bursts";
const SMALL_BUFFERS: &str = "small buffers";

/// Comparison of one flow.
struct FlowErrors {
    /// Relative errors of the predicted delays, in the order of [`DELAYS`]; none if a delay is missing.
    delays: Option<[f64; 4]>,
    /// Difference of the shares of lost packets.
    loss: f64,
    /// True if the prediction has a remark that its formulas do not hold.
    doubtful: bool,
}

/// Comparison of one network.
struct NetworkErrors {
    network: DrawnNetwork,
    flows: Vec<FlowErrors>,
}

/// Compares as many networks as the experiment has replications.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    let count = u64::from(run.sizes.replications.max(1));
    let (seconds, seed) = (run.sizes.time.0.as_secs_f64(), run.options.seed);
    let cancel = run.options.cancel.clone();
    run.tell(&format!("{count} networks"));
    let once = |number| {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let network = drawn::draw(&mut RandomStream::new(seed, 0, number), seconds);
        compare(network).map(Some)
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut told = 0;
    let progress = &mut *run.progress;
    let enough = |done: &[NetworkErrors]| {
        if done.len() >= told + 50 {
            told = done.len();
            progress(&format!("{told} of {count} networks"));
        }
        false
    };
    let done = replicate(&ReplicationLimits { least: 1, most: count, threads }, once, enough)?.results;
    if done.is_empty() {
        return Ok(());
    }
    figures(run, &done);
    worst(run, &done);
    claims(run);
    run.plots.push(chart(&done));
    Ok(())
}

/// Predicts and simulates a network.
fn compare(network: DrawnNetwork) -> Result<NetworkErrors, ExperimentError> {
    let wrong = |error: String| ExperimentError::Case(format!("{error}, in this network:\n{}", network.scenario));
    let scenario = Scenario::parse(&network.scenario, "network")?;
    let predicted = predict(&scenario, &PredictSettings::default()).map_err(|error| wrong(error.to_string()))?;
    let monitor = SimulationMonitor::default();
    let simulated = simulate(&scenario, &VirtualTimeSettings::default(), &monitor, &mut |_| ())
        .map_err(|error| wrong(error.to_string()))?;
    let flows = predicted.flows.iter().zip(&simulated.traffic).map(|(flow, item)| FlowErrors::of(flow, item)).collect();
    Ok(NetworkErrors { network, flows })
}

impl FlowErrors {
    fn of(predicted: &FlowPrediction, simulated: &TrafficResult) -> FlowErrors {
        let delays = predicted.delay.zip(simulated.delay).map(|(predicted, simulated)| {
            let error = |predicted_s: f64, simulated_us: f64| predicted_s * 1e6 / simulated_us - 1.0;
            [
                error(predicted.mean_s, simulated.mean_us),
                error(predicted.p50_s, simulated.p50_us),
                error(predicted.p95_s, simulated.p95_us),
                error(predicted.p99_s, simulated.p99_us),
            ]
        });
        let loss = predicted.loss.unwrap_or(0.0) - simulated.loss.unwrap_or(0.0);
        FlowErrors { delays, loss, doubtful: predicted.validity != PredictionValidity::Good }
    }
}

/// Tells whether a flow of a network belongs to a group.
type FlowSelection = Box<dyn Fn(&DrawnNetwork, &FlowErrors) -> bool>;

/// A group of flows, by name.
struct FlowGroup {
    name: String,
    contains: FlowSelection,
}

fn groups() -> Vec<FlowGroup> {
    let large = |network: &DrawnNetwork| network.buffers == LARGE;
    let group = |name: String, contains: FlowSelection| FlowGroup { name, contains };
    let plain = move |network: &DrawnNetwork, _: &FlowErrors| large(network) && network.gaps != BURSTS;
    let mut all = vec![
        group(PLAIN.to_owned(), Box::new(plain)),
        group(GOOD.to_owned(), Box::new(|_, flow| !flow.doubtful)),
        group(APPROXIMATE.to_owned(), Box::new(|_, flow| flow.doubtful)),
    ];
    for gaps in GAPS {
        for sizes in SIZES {
            let contains = move |network: &DrawnNetwork, _: &FlowErrors| {
                large(network) && network.gaps == gaps && network.sizes == sizes
            };
            all.push(group(format!("{gaps}, {sizes}"), Box::new(contains)));
        }
    }
    let wide = move |network: &DrawnNetwork, flow: &FlowErrors| plain(network, flow) && network.shape == "wide area";
    all.push(group("wide area".to_owned(), Box::new(wide)));
    let small = |network: &DrawnNetwork, _: &FlowErrors| network.buffers == SMALL && network.gaps != BURSTS;
    all.push(group(SMALL_BUFFERS.to_owned(), Box::new(small)));
    all
}

/// Metrics of a delay: errors on average, of most flows, and the largest.
fn metrics(delay: &str) -> [&'static str; 3] {
    match delay {
        "mean" => ["mean delay: error on average", "mean delay: 95 of 100 flows", "mean delay: largest error"],
        "p50" => ["median: error on average", "median: 95 of 100 flows", "median: largest error"],
        "p95" => ["p95: error on average", "p95: 95 of 100 flows", "p95: largest error"],
        _ => ["p99: error on average", "p99: 95 of 100 flows", "p99: largest error"],
    }
}

fn figures(run: &mut ExperimentRun<'_>, done: &[NetworkErrors]) {
    for group in groups() {
        let flows = done.iter().flat_map(|one| one.flows.iter().filter(|flow| (group.contains)(&one.network, flow)));
        let flows: Vec<&FlowErrors> = flows.collect();
        for (place, delay) in DELAYS.into_iter().enumerate() {
            let mut errors: Vec<f64> =
                flows.iter().filter_map(|flow| flow.delays).map(|delays| delays[place].abs() * 100.0).collect();
            if errors.is_empty() {
                continue;
            }
            errors.sort_by(f64::total_cmp);
            let samples = errors.len() as u64;
            let [average, most, largest] = metrics(delay);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
            let nearly_last = ((errors.len() - 1) as f64 * MOST) as usize;
            run.figure(&group.name, average, "%", SampledValue::mean_of(&errors));
            run.figure(&group.name, most, "%", SampledValue::of(errors[nearly_last], samples));
            run.figure(&group.name, largest, "%", SampledValue::of(errors[errors.len() - 1], samples));
        }
        let doubtful = flows.iter().filter(|flow| flow.doubtful).count() as f64;
        if !flows.is_empty() && ![GOOD, APPROXIMATE].contains(&group.name.as_str()) {
            let share = SampledValue::of(100.0 * doubtful / flows.len() as f64, flows.len() as u64);
            run.figure(&group.name, "answers called approximate", "%", share);
        }
        if group.name == SMALL_BUFFERS && !flows.is_empty() {
            let losses: Vec<f64> = flows.iter().map(|flow| flow.loss.abs() * 100.0).collect();
            let largest = losses.iter().copied().fold(0.0, f64::max);
            run.figure(&group.name, "loss: difference on average", "points", SampledValue::mean_of(&losses));
            let largest = SampledValue::of(largest, losses.len() as u64);
            run.figure(&group.name, "loss: largest difference", "points", largest);
        }
    }
}

/// Flows furthest off that are noted, of good and of approximate answers.
const NOTED: usize = 3;

/// Notes the flows whose means and 99th percentiles are furthest off, of answers called good and of others.
fn worst(run: &mut ExperimentRun<'_>, done: &[NetworkErrors]) {
    for (doubtful, answers) in [(false, GOOD), (true, APPROXIMATE)] {
        for (place, delay) in [(0, DELAYS[0]), (3, DELAYS[3])] {
            let flows = done.iter().enumerate().flat_map(|(number, one)| {
                let those = one.flows.iter().enumerate().filter(|(_, flow)| flow.doubtful == doubtful);
                those.filter_map(move |(flow, errors)| Some((number, &one.network, flow, errors.delays?[place])))
            });
            let mut flows: Vec<(usize, &DrawnNetwork, usize, f64)> = flows.collect();
            flows.sort_by(|a, b| b.3.abs().total_cmp(&a.3.abs()));
            for (number, network, flow, error) in flows.into_iter().take(NOTED) {
                let DrawnNetwork { shape, gaps, sizes, buffers, .. } = network;
                run.note(format!(
                    "{answers}, furthest off in {delay}: flow {flow} of network {number} by {:+.1} %: {shape}, {gaps}, \
                     {sizes}, {buffers} buffers",
                    error * 100.0
                ));
            }
        }
    }
}

fn claims(run: &mut ExperimentRun<'_>) {
    for (case, delay, place, limit) in CLAIMS {
        let metric = metrics(delay)[place];
        let Some(found) = run.value(case, metric) else { continue };
        let text = format!("{case}: {metric} at most {limit} %");
        run.claims.push(Claim::tested(text, found <= limit, format!("{found:.1} %")));
    }
}

/// Draws for each law of gaps the share of flows up to each error of the mean delay.
fn chart(done: &[NetworkErrors]) -> weir_plot::Figure {
    let series = |gaps: &str| {
        let flows = done.iter().filter(|one| one.network.gaps == gaps && one.network.buffers == LARGE);
        let mut errors: Vec<f64> = flows
            .flat_map(|one| &one.flows)
            .filter_map(|flow| flow.delays)
            .map(|delays| delays[0].abs() * 100.0)
            .collect();
        errors.sort_by(f64::total_cmp);
        let count = errors.len() as f64;
        let points = errors.iter().enumerate().map(|(at, error)| ChartPoint::new(*error, (at + 1) as f64 / count));
        ChartSeries { name: gaps.to_owned(), points: points.collect(), ..ChartSeries::default() }
    };
    Chart {
        name: "errors".into(),
        title: "Flows by the error of their mean delay".into(),
        x: Axis::linear("error of the mean delay, %"),
        y: Axis::linear("share of flows, from 0 to 1"),
        series: GAPS.into_iter().map(series).collect(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExperimentOptions;
    use crate::tests::sizes;
    use std::time::Duration;

    #[test]
    fn networks_are_compared_by_kind() {
        let options = ExperimentOptions { seed: 2, ..ExperimentOptions::default() };
        let mut sizes = sizes(Duration::from_secs(1));
        sizes.replications = 12;
        let progress = &mut |_: &str| ();
        let mut run = ExperimentRun::new(&options, sizes, progress);
        measure(&mut run).unwrap();
        let [average, most, largest] = metrics("mean").map(|metric| run.value(PLAIN, metric).unwrap());
        assert!(average > 0.0 && average <= most && most <= largest, "{average} {most} {largest}");
        // One second is too short for the limits, but long enough to tell a formula that is wrong.
        assert!(average < 15.0, "{average} %");
        assert!(run.value(GOOD, metrics("p99")[0]).is_some());
        assert!(run.claims.len() >= 3 && run.plots.len() == 1);
        assert!(run.notes.iter().filter(|note| note.starts_with(GOOD)).count() == 2 * NOTED, "{:?}", run.notes);
    }
}
