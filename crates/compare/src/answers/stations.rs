//! Makes answers of simulated stations.
use super::mean_quantiles;
use super::names::{AT_SWITCH, at_switch, device_name, flow_names};
use crate::answer::{Answer, Answerer, Figure, Metric, Part, Row, State, Status, Verb};
use weir_emulator::parts::shares;
use weir_scenario::{Scenario, TrafficKind};
use weir_sim::stations::report::{DelayRow, FlowRow, StationRow, SwitchRow, report};
use weir_sim::stations::{Plan, StationsRun};
use weir_sim::stats::{Confidence, Delays, Estimate};

/// Makes the answer of the replications. `is_partial`: more replications were planned.
pub fn answer(scenario: &Scenario, plan: &Plan, runs: &[StationsRun], conditions: String, is_partial: bool) -> Answer {
    if runs.is_empty() {
        return Answer::left_out(Answerer::new(Verb::Simulate), "stopped before a replication was through");
    }
    let report = report(plan, runs, Confidence::P95);
    let names = names(scenario, &report.flows);
    let flow = |(place, (row, name)): (usize, (&FlowRow, String))| {
        flow(row, name, &quantiles(runs, |run| &run.flows[place].delays))
    };
    let mut rows: Vec<Row> = report.flows.iter().zip(names).enumerate().map(flow).collect();
    let lost = Some(report.total.loss).filter(|_| report.switches.len() == 1).flatten();
    let switch = |(place, row): (usize, &SwitchRow)| {
        at(row, lost, &quantiles(runs, |run| std::slice::from_ref(&run.switches[place].delays)))
    };
    rows.extend(report.switches.iter().enumerate().map(switch));
    rows.extend(report.stations.iter().map(station));
    let left_out = report.left_out.iter().map(|what| format!("; left out: {what}")).collect::<String>();
    Answer {
        by: Answerer::new(Verb::Simulate),
        state: if is_partial { State::Partial } else { State::Answered },
        runs: runs.len(),
        passed: true,
        conditions: conditions + &left_out,
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
        let is_it = |(item, _): &(&weir_scenario::Traffic, String)| {
            host(item.from) == flow.from.as_ref() && host(item.to) == flow.to.as_ref()
        };
        free.iter().position(is_it).map_or_else(String::new, |place| free.remove(place).1)
    };
    flows.iter().map(name).collect()
}

/// Returns the mean over all replications of the quantiles of delays, which may have several parts.
fn quantiles(runs: &[StationsRun], delays: impl Fn(&StationsRun) -> &[Delays]) -> Vec<(f64, f64)> {
    let one = |run: &StationsRun| {
        let mut all = Delays::default();
        delays(run).iter().for_each(|part| all.merge(part));
        shares().filter_map(|share| Some((share, all.quantile_s(share)?))).collect()
    };
    mean_quantiles(&runs.iter().map(one).collect::<Vec<_>>())
}

fn figure(estimate: Option<Estimate>) -> Option<Figure> {
    estimate.map(Figure::from)
}

fn put_delays(row: &mut Row, delays: &DelayRow, of: &'static str) {
    row.put(Metric::DelayMean, figure(delays.mean_s));
    row.put(Metric::DelayP50, figure(delays.p50_s));
    row.put(Metric::DelayP95, figure(delays.p95_s));
    row.put(Metric::DelayP99, figure(delays.p99_s));
    row.samples = delays.packets;
    row.delay_of = (delays.packets > 0).then_some(of);
}

fn flow(own: &FlowRow, name: String, quantiles: &[(f64, f64)]) -> Row {
    let mut row = Row::new(Part::Flow, name);
    put_delays(&mut row, &own.all, "one way");
    row.put(Metric::Loss, figure(own.loss));
    row.quantiles_s = quantiles.to_vec();
    row
}

fn at(own: &SwitchRow, lost: Option<Estimate>, quantiles: &[(f64, f64)]) -> Row {
    let mut row = Row::new(Part::Flow, at_switch(&own.name));
    put_delays(&mut row, &own.delay, AT_SWITCH);
    row.put(Metric::Loss, figure(lost));
    row.quantiles_s = quantiles.to_vec();
    row
}

fn station(own: &StationRow) -> Row {
    let mut row = Row::new(Part::Device, device_name(&own.name));
    if own.overloaded {
        row.status =
            Status::Unstable("it gets more than it serves and has room for all of it: no steady state".to_owned());
    }
    row.put(Metric::Utilisation, figure(own.utilisation));
    row.put(Metric::Packets, figure(own.per_second));
    row.put(Metric::DelayMean, figure(own.stay_s));
    row.put(Metric::Loss, figure(own.loss));
    row.delay_of = own.stay_s.map(|_| "stay");
    row.samples = own.packets;
    row
}
