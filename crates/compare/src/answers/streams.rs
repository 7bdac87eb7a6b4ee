//! Makes answers about streams, simulated at the level of lengths or sent live.
//!
//! Rows are the simulation's groups: packets of one virtual switch, port and class.
use super::{mean_quantiles, over};
use crate::answer::{
    AnswerRow, AnswerSource, AnswerState, EvaluationMethod, PerformanceMetric, ScenarioAnswer, SubjectKind,
};
use weir_network::LabResult;
use weir_network::result::StreamResult;
use weir_scenario::{PacketStream, Scenario};
use weir_sim::{FabricRunResult, MeasurementGroup, PacketTally};
use weir_traffic::{TimeStatistics, shares};

const MICRO: f64 = 1e-6;
pub(super) const DELAY_OF: &str = "fabric";

fn group_name(switch: &str, port: &str, class: u8) -> String {
    format!("{switch} > port {port}, class {class}")
}

/// Returns the name of the row to which a stream belongs.
pub(super) fn name_of(scenario: &Scenario, stream: &PacketStream) -> String {
    let switch = &scenario.switches[stream.switch];
    let several = scenario.switches.iter().filter(|switch| switch.fabric.is_some()).count() > 1;
    let port = if several { format!("{}:{}", switch.name, stream.output) } else { stream.output.to_string() };
    let cut = switch.virtual_switches.get(stream.virtual_switch.unwrap_or(0));
    group_name(cut.map_or(&switch.name, |cut| &cut.name), &port, stream.class)
}

/// Function that takes a figure of a group from one replication, given its window's length in seconds.
type TallyValueFn = fn(&PacketTally, f64) -> Option<f64>;

const FIGURES: [(PerformanceMetric, TallyValueFn); 6] = [
    (PerformanceMetric::DelayMean, |tally, _| tally.delays.mean_s()),
    (PerformanceMetric::DelayP50, |tally, _| tally.delays.quantile_s(0.5)),
    (PerformanceMetric::DelayP95, |tally, _| tally.delays.quantile_s(0.95)),
    (PerformanceMetric::DelayP99, |tally, _| tally.delays.quantile_s(0.99)),
    (PerformanceMetric::Loss, |tally, _| share(tally.lost().packets, tally.arrived.packets)),
    (PerformanceMetric::Rate, |tally, window_s| {
        (window_s > 0.0).then(|| tally.accepted().bytes as f64 * 8.0 / window_s)
    }),
];

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Makes the answer of the replications, of which there is at least one. `is_partial`: more replications were planned.
pub fn simulated(
    groups: &[MeasurementGroup],
    runs: &[FabricRunResult],
    conditions: String,
    is_partial: bool,
) -> ScenarioAnswer {
    let row = |(place, group): (usize, &MeasurementGroup)| {
        let mut row = AnswerRow::new(SubjectKind::Flow, group_name(&group.switch, &group.port, group.class));
        let tally = |run: &FabricRunResult| run.groups.get(place).cloned().unwrap_or_default();
        for (metric, value) in FIGURES {
            row.insert_figure(metric, over(runs, |run| value(&tally(run), run.window_s)));
        }
        row.samples = runs.iter().map(|run| tally(run).delays.count()).sum();
        row.delay_of = (row.samples > 0).then_some(DELAY_OF);
        let quantiles = |run: &FabricRunResult| {
            let delays = tally(run).delays;
            shares().filter_map(|share| Some((share, delays.quantile_s(share)?))).collect()
        };
        row.quantiles_s = mean_quantiles(&runs.iter().map(quantiles).collect::<Vec<_>>());
        row
    };
    ScenarioAnswer {
        by: AnswerSource::new(EvaluationMethod::Simulate),
        state: if is_partial { AnswerState::Partial } else { AnswerState::Answered },
        runs: runs.len(),
        passed: true,
        fidelity: None,
        conditions,
        rows: groups.iter().enumerate().map(row).collect(),
    }
}

/// Adds the results of the scenario's streams to a live answer.
pub fn add_live(answer: &mut ScenarioAnswer, scenario: &Scenario, rounds: &[LabResult]) {
    let rounds: Vec<&LabResult> = if rounds.iter().any(|round| !round.partial) {
        rounds.iter().filter(|round| !round.partial).collect()
    } else {
        rounds.iter().collect()
    };
    let names: Vec<String> = scenario.streams.iter().map(|stream| name_of(scenario, stream)).collect();
    let mut done: Vec<&String> = Vec::new();
    for name in &names {
        if !done.contains(&name) {
            done.push(name);
            let own = |round: &&LabResult| -> Vec<StreamResult> {
                let with_names = round.streams.iter().zip(&names);
                with_names.filter(|(_, other)| *other == name).map(|(stream, _)| stream.clone()).collect()
            };
            let each: Vec<Vec<StreamResult>> = rounds.iter().map(own).collect();
            answer.rows.push(live(name, &each));
        }
    }
}

/// Returns the row of a group, from the results of its streams in each round.
fn live(name: &str, rounds: &[Vec<StreamResult>]) -> AnswerRow {
    let mut row = AnswerRow::new(SubjectKind::Flow, name);
    let sum = |streams: &[StreamResult], count: fn(&StreamResult) -> u64| streams.iter().map(count).sum::<u64>();
    row.insert_figure(
        PerformanceMetric::Loss,
        over(rounds, |round| {
            let (sent, received) = (sum(round, |stream| stream.sent), sum(round, |stream| stream.received));
            share(sent.saturating_sub(received), sent)
        }),
    );
    row.insert_figure(
        PerformanceMetric::Rate,
        over(rounds, |round| Some(round.iter().map(|stream| stream.rate_bps).sum())),
    );
    row.insert_figure(PerformanceMetric::DelayMean, over(rounds, |round| mean(round)));
    // Percentiles of several streams together cannot be computed from those of each.
    let only = |value: fn(&TimeStatistics) -> f64| {
        move |round: &Vec<StreamResult>| match &round[..] {
            [stream] => stream.delay.as_ref().map(|delay| value(delay) * MICRO),
            _ => None,
        }
    };
    row.insert_figure(PerformanceMetric::DelayP50, over(rounds, only(|delay| delay.p50_us)));
    row.insert_figure(PerformanceMetric::DelayP95, over(rounds, only(|delay| delay.p95_us)));
    row.insert_figure(PerformanceMetric::DelayP99, over(rounds, only(|delay| delay.p99_us)));
    row.samples = rounds.iter().flatten().filter_map(|stream| stream.delay).map(|delay| delay.samples).sum();
    row.delay_of = (row.samples > 0).then_some(DELAY_OF);
    row
}

/// Returns the mean delay of several streams' packets, in seconds.
fn mean(streams: &[StreamResult]) -> Option<f64> {
    let delays = || streams.iter().filter_map(|stream| stream.delay);
    let count: u64 = delays().map(|delay| delay.samples).sum();
    (count > 0).then(|| delays().map(|delay| delay.mean_us * delay.samples as f64).sum::<f64>() / count as f64 * MICRO)
}
