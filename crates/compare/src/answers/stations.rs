//! Makes answers of simulated stations.
use super::mean_quantiles;
use super::names::{AT_SWITCH, at_switch, device_name, flow_names};
use crate::answer::{
    AnswerRow, AnswerRowStatus, AnswerSource, AnswerState, EvaluationMethod, MetricValue, PerformanceMetric,
    ScenarioAnswer, SubjectKind,
};
use weir_scenario::{Scenario, TrafficKind};
use weir_sim::stations::report::{DelayRow, FlowRow, StationRow, SwitchRow, report};
use weir_sim::stations::{QueueingPlan, QueueingRunResult};
use weir_sim::stats::{Confidence, DelayTally, Estimate};
use weir_traffic::shares;

/// Makes the answer of the replications, of which there is at least one. `is_partial`: more replications were planned.
pub fn answer(
    scenario: &Scenario,
    plan: &QueueingPlan,
    runs: &[QueueingRunResult],
    conditions: String,
    is_partial: bool,
) -> ScenarioAnswer {
    let report = report(plan, runs, Confidence::P95);
    let names = names(scenario, &report.flows);
    let flow = |(place, (row, name)): (usize, (&FlowRow, String))| {
        flow(row, name, &quantiles(runs, |run| &run.flows[place].delays))
    };
    let mut rows: Vec<AnswerRow> = report.flows.iter().zip(names).enumerate().map(flow).collect();
    let lost = Some(report.total.loss).filter(|_| report.switches.len() == 1).flatten();
    let switch = |(place, row): (usize, &SwitchRow)| {
        at(row, lost, &quantiles(runs, |run| std::slice::from_ref(&run.switches[place].delays)))
    };
    rows.extend(report.switches.iter().enumerate().map(switch));
    rows.extend(report.stations.iter().map(station));
    let left_out = report.left_out.iter().map(|what| format!("; left out: {what}")).collect::<String>();
    let unused = report.unused.iter().map(|what| format!("; {what}")).collect::<String>();
    ScenarioAnswer {
        by: AnswerSource::new(EvaluationMethod::Simulate),
        state: if is_partial { AnswerState::Partial } else { AnswerState::Answered },
        runs: runs.len(),
        passed: true,
        fidelity: None,
        conditions: conditions + &left_out + &unused,
        rows,
    }
}

/// Returns the names of simulated flows. Items of traffic between equal hosts are matched in the scenario's order.
fn names(scenario: &Scenario, flows: &[FlowRow]) -> Vec<String> {
    let host = |number: usize| Some(&scenario.hosts[number].name);
    let all = flow_names(scenario);
    let udp = scenario.traffic.iter().zip(all).filter(|(item, _)| matches!(item.kind, TrafficKind::Udp { .. }));
    let mut free: Vec<_> = udp.collect();
    let name = |flow: &FlowRow| {
        let is_it = |(item, _): &(&weir_scenario::TrafficItem, String)| {
            host(item.from) == flow.from.as_ref() && host(item.to) == flow.to.as_ref()
        };
        free.iter().position(is_it).map_or_else(String::new, |place| free.remove(place).1)
    };
    flows.iter().map(name).collect()
}

/// Returns the mean over all replications of the quantiles of delays, which may have several parts.
fn quantiles(runs: &[QueueingRunResult], delays: impl Fn(&QueueingRunResult) -> &[DelayTally]) -> Vec<(f64, f64)> {
    let one = |run: &QueueingRunResult| {
        let mut all = DelayTally::default();
        delays(run).iter().for_each(|part| all.merge(part));
        shares().filter_map(|share| Some((share, all.quantile_s(share)?))).collect()
    };
    mean_quantiles(&runs.iter().map(one).collect::<Vec<_>>())
}

fn figure(estimate: Option<Estimate>) -> Option<MetricValue> {
    estimate.map(MetricValue::from)
}

fn put_delays(row: &mut AnswerRow, delays: &DelayRow, of: &'static str) {
    row.insert_figure(PerformanceMetric::DelayMean, figure(delays.mean_s));
    row.insert_figure(PerformanceMetric::DelayP50, figure(delays.p50_s));
    row.insert_figure(PerformanceMetric::DelayP95, figure(delays.p95_s));
    row.insert_figure(PerformanceMetric::DelayP99, figure(delays.p99_s));
    row.samples = delays.packets;
    row.delay_of = (delays.packets > 0).then_some(of);
}

fn flow(own: &FlowRow, name: String, quantiles: &[(f64, f64)]) -> AnswerRow {
    let mut row = AnswerRow::new(SubjectKind::Flow, name);
    put_delays(&mut row, &own.all, "one way");
    row.insert_figure(PerformanceMetric::Loss, figure(own.loss));
    row.quantiles_s = quantiles.to_vec();
    row
}

fn at(own: &SwitchRow, lost: Option<Estimate>, quantiles: &[(f64, f64)]) -> AnswerRow {
    let mut row = AnswerRow::new(SubjectKind::Flow, at_switch(&own.name));
    put_delays(&mut row, &own.delay, AT_SWITCH);
    row.insert_figure(PerformanceMetric::Loss, figure(lost));
    row.quantiles_s = quantiles.to_vec();
    row
}

fn station(own: &StationRow) -> AnswerRow {
    let mut row = AnswerRow::new(SubjectKind::Device, device_name(&own.name));
    if own.overloaded {
        row.status = AnswerRowStatus::Unstable(
            "it gets more than it serves and has room for all of it: no steady state".to_owned(),
        );
    }
    row.insert_figure(PerformanceMetric::Utilisation, figure(own.utilisation));
    row.insert_figure(PerformanceMetric::Packets, figure(own.per_second));
    row.insert_figure(PerformanceMetric::DelayMean, figure(own.stay_s));
    row.insert_figure(PerformanceMetric::Loss, figure(own.loss));
    row.delay_of = own.stay_s.map(|_| "stay");
    row.samples = own.packets;
    row
}
