//! Makes answers of labs' results, live or in virtual time.
use super::names::flow_names;
use super::{mean_quantiles, order_interval, over, share_interval, widened};
use crate::answer::{
    AnswerRow, AnswerSource, AnswerState, EvaluationMethod, PerformanceMetric, ScenarioAnswer, SubjectKind,
};
use weir_network::LabResult;
use weir_network::result::{LabHostKind, TrafficResult};
use weir_scenario::{Scenario, TrafficExpectation};
use weir_traffic::TimeStatistics;

const MICRO: f64 = 1e-6;

/// Function that takes a figure from an item of traffic in one round.
type LabValueFn = fn(&TrafficResult) -> Option<f64>;

const FIGURES: [(PerformanceMetric, LabValueFn); 6] = [
    (PerformanceMetric::DelayMean, |item| delay(item).map(|delay| delay.mean_us * MICRO)),
    (PerformanceMetric::DelayP50, |item| delay(item).map(|delay| delay.p50_us * MICRO)),
    (PerformanceMetric::DelayP95, |item| delay(item).map(|delay| delay.p95_us * MICRO)),
    (PerformanceMetric::DelayP99, |item| delay(item).map(|delay| delay.p99_us * MICRO)),
    (PerformanceMetric::Loss, |item| item.loss),
    (PerformanceMetric::Rate, |item| item.goodput_bps),
];

/// Returns the delays of an item, without those that stops of the machine touched. For pings those after the first,
/// because formulas assume networks that have resolved addresses.
fn delay(item: &TrafficResult) -> Option<TimeStatistics> {
    item.undisturbed.or(item.rtt_after_first).or(item.rtt).or(item.delay)
}

/// Makes the answer of several rounds of a scenario. Stopped rounds are used only if there is no complete one.
pub fn answer(verb: EvaluationMethod, scenario: &Scenario, rounds: &[LabResult]) -> ScenarioAnswer {
    let whole: Vec<&LabResult> = rounds.iter().filter(|round| !round.partial).collect();
    let is_partial = whole.len() < rounds.len();
    let used = if whole.is_empty() { rounds.iter().collect() } else { whole };
    let Some(first) = used.first() else {
        return ScenarioAnswer::left_out(AnswerSource::new(verb), "stopped before it began");
    };
    let names = flow_names(scenario).into_iter().enumerate();
    let mut rows: Vec<AnswerRow> = names.map(|(place, name)| flow(&used, place, name)).collect();
    rows.extend((0..first.switches.len()).map(|place| switch(&used, place)));
    rows.extend(first.controller.as_ref().map(|_| controller(&used)));
    let certificates = rounds.iter().filter_map(|round| round.certificate.as_ref());
    let certified =
        certificates.clone().max_by_key(|certificate| certificate.verdict).map_or_else(String::new, |worst| {
            let why = worst.reasons.first().map_or_else(String::new, |why| format!(", since {why}"));
            format!("; times of the worst round {}{why}", worst.verdict)
        });
    ScenarioAnswer {
        by: AnswerSource::new(verb),
        state: if is_partial { AnswerState::Partial } else { AnswerState::Answered },
        runs: used.len(),
        passed: rounds.iter().all(|round| round.passed || round.partial),
        fidelity: certificates.map(|certificate| certificate.verdict).max(),
        conditions: conditions(first, used.len()) + &certified,
        rows,
    }
}

fn flow(rounds: &[&LabResult], place: usize, name: String) -> AnswerRow {
    let items: Vec<&TrafficResult> = rounds.iter().filter_map(|round| round.traffic.get(place)).collect();
    let mut row = AnswerRow::new(SubjectKind::Flow, name);
    let Some(first) = items.first() else { return row };
    row.samples = items.iter().filter_map(|item| delay(item)).map(|delay| delay.samples).sum();
    let set_aside = items.iter().filter(|item| item.undisturbed.is_some()).map(|item| item.in_stops).sum();
    row.set_aside = (set_aside > 0).then_some(set_aside);
    row.delay_of = match (first.kind, row.samples) {
        (_, 0) => None,
        ("ping", _) => Some("round trip"),
        _ => Some("one way"),
    };
    let seconds = |item: &&TrafficResult| item.quantiles_us.iter().map(|(share, us)| (*share, us * MICRO)).collect();
    row.quantiles_s = mean_quantiles(&items.iter().map(seconds).collect::<Vec<_>>());
    let sent: u64 = items.iter().filter_map(|item| item.sent).sum();
    let received: u64 = items.iter().filter(|item| item.sent.is_some()).map(|item| item.received).sum();
    let lost = sent.saturating_sub(received);
    for (metric, value) in FIGURES {
        let over_rounds = over(&items, |item| value(item));
        let figure = over_rounds.map(|figure| match metric.percentile() {
            Some(share) => widened(figure, order_interval(&row.quantiles_s, share, row.samples)),
            None if metric == PerformanceMetric::Loss && lost > 0 && received > 0 => {
                widened(figure, share_interval(lost, sent))
            }
            None => figure,
        });
        row.insert_figure(metric, figure);
    }
    let failed = items.iter().find(|item| !item.ok && !item.partial).map(|item| failure(item));
    let aside = row.set_aside.map(set_aside_note);
    let lost = machines_losses(rounds, place);
    let lost = (lost > 0).then(|| format!("the machine lost {lost} of {sent} packets"));
    let notes: Vec<String> = [failed, lost, aside].into_iter().flatten().collect();
    row.note = (!notes.is_empty()).then(|| notes.join("; "));
    row
}

/// Returns how many packets of an item the machine lost in all rounds, by their certificates.
fn machines_losses(rounds: &[&LabResult], place: usize) -> u64 {
    let certificates = rounds.iter().filter_map(|round| round.certificate.as_ref());
    certificates.flat_map(|own| &own.flows).filter(|flow| flow.item == place).map(|flow| flow.lost).sum()
}

fn failure(item: &TrafficResult) -> String {
    let what = match item.expect {
        TrafficExpectation::Reach => "NOT REACHED",
        TrafficExpectation::Isolated => "LEAKED: expected to be isolated",
    };
    item.problem.as_ref().map_or_else(|| what.to_owned(), |problem| format!("{what}: {problem}"))
}

fn switch(rounds: &[&LabResult], place: usize) -> AnswerRow {
    let name = &rounds[0].switches[place].name;
    let mut row = AnswerRow::new(SubjectKind::Device, format!("switch {name}"));
    let each = |round: &&LabResult| round.switches.get(place).and_then(|switch| per_second(round, switch.packets));
    row.insert_figure(PerformanceMetric::Packets, over(rounds, each));
    row
}

fn controller(rounds: &[&LabResult]) -> AnswerRow {
    let mut row = AnswerRow::new(SubjectKind::Device, "controller");
    let each = |round: &&LabResult| round.controller.as_ref().and_then(|own| per_second(round, own.packet_ins));
    row.insert_figure(PerformanceMetric::Packets, over(rounds, each));
    row
}

fn per_second(round: &LabResult, count: u64) -> Option<f64> {
    (round.setup.duration_s > 0.0).then(|| count as f64 / round.setup.duration_s)
}

fn conditions(result: &LabResult, rounds: usize) -> String {
    let setup = &result.setup;
    let build = weir_units::BUILD_KIND;
    let how = match setup.mode {
        LabHostKind::Memory => "hosts in this process",
        LabHostKind::Netns => "hosts in network namespaces",
        LabHostKind::Virtual => "hosts, links, tables and controller in virtual time, packet by packet",
    };
    format!(
        "{rounds} x {:.1} s, {how}, seed {}, weir {} ({build} build), {} cores of {}, Linux {}",
        setup.duration_s, setup.seed, setup.version, setup.machine.cores, setup.machine.cpu, setup.machine.kernel
    )
}

fn set_aside_note(count: u64) -> String {
    format!("{} in stops of the machine set aside", weir_units::counted(count, "delay", "delays"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_delay_is_not_many() {
        assert_eq!(set_aside_note(1), "1 delay in stops of the machine set aside");
        assert_eq!(set_aside_note(2), "2 delays in stops of the machine set aside");
    }
}
