//! Makes answers of formulas: of the scenario's own formulas, and of other models.
use super::names::{AT_SWITCH, at_switch, device_name, flow_names};
use super::streams;
use crate::answer::{
    AnswerRow, AnswerRowStatus, AnswerSource, AnswerState, EvaluationMethod, MetricValue, PerformanceMetric,
    ScenarioAnswer, SubjectKind,
};
use weir_model::Distribution;
use weir_predict::{AlternativeAnswer, DevicePrediction, FlowPrediction, PredictedDelay, Prediction};
use weir_scenario::{Scenario, TrafficKind, udp_headers};
use weir_traffic::shares;

/// Most flows whose whole distribution is computed; charts show no more.
const DISTRIBUTIONS: usize = 24;

/// Returns the answer of the scenario's prediction, then those of other models.
pub fn answers(scenario: &Scenario, prediction: &Prediction) -> Vec<ScenarioAnswer> {
    let names = flow_names(scenario);
    let with_items = prediction.flows.iter().filter_map(|flow| Some((flow, flow.item?)));
    let flow = |(flow, item): (&FlowPrediction, usize)| {
        own_flow(scenario, flow, names.get(item).cloned().unwrap_or_default(), item)
    };
    let mut rows: Vec<AnswerRow> = with_items.map(flow).collect();
    rows.extend(prediction.flows.iter().flat_map(|flow| of_streams(scenario, flow)));
    rows.extend(all_at_switch(scenario, prediction));
    rows.extend(prediction.devices.iter().map(device));
    let models: Vec<&str> = prediction.models.iter().map(|choice| choice.model).collect();
    let mut conditions = format!("formulas ({})", models.join(", "));
    prediction.assumptions.iter().for_each(|text| conditions += &format!("; {text}"));
    prediction.warnings.iter().for_each(|warning| conditions += &format!("; warning: {warning}"));
    let own = ScenarioAnswer {
        by: AnswerSource::new(EvaluationMethod::Predict),
        state: AnswerState::Answered,
        runs: 0,
        passed: true,
        fidelity: None,
        conditions,
        rows,
    };
    let others = prediction.alternatives.iter().map(|other| alternative(scenario, &other.model, &other.answer));
    std::iter::once(own).chain(others).collect()
}

fn put_delays(row: &mut AnswerRow, delays: &PredictedDelay) {
    row.insert_figure(PerformanceMetric::DelayMean, Some(MetricValue::exact(delays.mean_s)));
    row.insert_figure(PerformanceMetric::DelayP50, Some(MetricValue::exact(delays.p50_s)));
    row.insert_figure(PerformanceMetric::DelayP95, Some(MetricValue::exact(delays.p95_s)));
    row.insert_figure(PerformanceMetric::DelayP99, Some(MetricValue::exact(delays.p99_s)));
}

fn quantiles(delay: &Distribution) -> Vec<(f64, f64)> {
    delay.curve(shares())
}

fn own_flow(scenario: &Scenario, flow: &FlowPrediction, name: String, item: usize) -> AnswerRow {
    use weir_predict::PredictionStatus as Predicted;
    let mut row = AnswerRow::new(SubjectKind::Flow, name);
    let why = || flow.bottleneck.iter().chain(&flow.notes).cloned().collect::<Vec<_>>().join(": ");
    row.status = match flow.status {
        Predicted::Ok | Predicted::Full | Predicted::Isolated => AnswerRowStatus::Ok,
        Predicted::Unstable => AnswerRowStatus::Unstable(why()),
        Predicted::NoPath => AnswerRowStatus::NotAnswered(why()),
    };
    if row.status != AnswerRowStatus::Ok {
        return row;
    }
    if let Some(delay) = flow.delay.as_ref().filter(|_| flow.status != Predicted::Isolated) {
        put_delays(&mut row, delay);
        row.delay_of = Some(if flow.kind == "ping" { "round trip" } else { "one way" });
    }
    let loss = if flow.status == Predicted::Isolated { Some(1.0) } else { flow.loss };
    row.insert_figure(PerformanceMetric::Loss, loss.filter(|_| flow.kind != "tcp").map(MetricValue::exact));
    row.insert_figure(
        PerformanceMetric::Rate,
        flow.goodput_bps.or_else(|| goodput(scenario, flow, item)).map(MetricValue::exact),
    );
    if let Some(delay) = flow.distribution.as_ref().filter(|_| item < DISTRIBUTIONS && row.delay_of.is_some()) {
        row.quantiles_s = quantiles(delay);
    }
    row.note = flow.notes.first().cloned();
    row
}

/// Returns the rows of streams through one virtual switch and port, one for each class. Classes share the buffers, so
/// their delays and losses are equal.
fn of_streams(scenario: &Scenario, flow: &FlowPrediction) -> Vec<AnswerRow> {
    let mut rows: Vec<AnswerRow> = Vec::new();
    let mut rates: Vec<f64> = Vec::new();
    for stream in flow.streams.iter().filter_map(|place| scenario.streams.get(*place)) {
        let name = streams::name_of(scenario, stream);
        let at = rows.iter().position(|row| row.subject.name == name).unwrap_or_else(|| {
            rows.push(of_stream(name, flow));
            rates.push(0.0);
            rows.len() - 1
        });
        let bytes = stream.source.mean_bytes().unwrap_or(0.0);
        rates[at] += stream.source.per_second() * stream.inputs.len() as f64 * bytes * 8.0;
    }
    for (row, offered) in rows.iter_mut().zip(rates) {
        let loss = flow.expected.as_ref().map(|expected| expected.loss);
        row.insert_figure(PerformanceMetric::Rate, loss.map(|loss| MetricValue::exact(offered * (1.0 - loss))));
    }
    rows
}

fn of_stream(name: String, flow: &FlowPrediction) -> AnswerRow {
    let mut row = AnswerRow::new(SubjectKind::Flow, name);
    let Some(expected) = &flow.expected else {
        row.status = AnswerRowStatus::Unstable(flow.bottleneck.clone().unwrap_or_default());
        return row;
    };
    put_delays(&mut row, &expected.delay);
    row.insert_figure(PerformanceMetric::Loss, Some(MetricValue::exact(expected.loss)));
    row.delay_of = Some(streams::DELAY_OF);
    row.quantiles_s = quantiles(&expected.distribution);
    row.note = flow.notes.first().cloned();
    row
}

/// Returns the payload rate of datagrams that arrive, in bit/s.
fn goodput(scenario: &Scenario, flow: &FlowPrediction, item: usize) -> Option<f64> {
    let traffic = scenario.traffic.get(item)?;
    let TrafficKind::Udp { offered, .. } = &traffic.kind else { return None };
    let payload = offered.mean_bytes().ok()? - f64::from(udp_headers(traffic.address.is_ipv6()));
    Some(flow.packets_per_s * (1.0 - flow.loss?) * payload * 8.0)
}

/// Returns the row of all packets at the switch by the scenario's own formulas, which models of one switch answer,
/// too. `None` if links take time, because flows' delays would include it.
fn all_at_switch(scenario: &Scenario, prediction: &Prediction) -> Option<AnswerRow> {
    let switch = the_timed(scenario)?;
    let hosts = scenario.hosts.iter().map(|host| &host.link);
    let mut links = hosts.chain(scenario.links.iter().map(|link| &link.spec));
    if links.any(|link| link.rate.is_some() || !link.delay.is_zero()) {
        return None;
    }
    let mut row = AnswerRow::new(SubjectKind::Flow, at_switch(switch));
    let udp = || prediction.flows.iter().filter(|flow| flow.kind == "udp" && flow.packets_per_s > 0.0);
    if let Some(flow) = udp().find(|flow| flow.status == weir_predict::PredictionStatus::Unstable) {
        row.status = AnswerRowStatus::Unstable(flow.bottleneck.clone().unwrap_or_default());
        return Some(row);
    }
    let parts: Vec<(f64, Distribution)> =
        udp().filter_map(|flow| Some((flow.packets_per_s * (1.0 - flow.loss?), flow.distribution.clone()?))).collect();
    let sent: f64 = udp().map(|flow| flow.packets_per_s).sum();
    let arrive: f64 = parts.iter().map(|(rate, _)| rate).sum();
    let shares: Vec<(f64, Distribution)> = parts.into_iter().map(|(rate, delay)| (rate / arrive, delay)).collect();
    let delay = Distribution::mixture(&shares).ok()?;
    row.insert_figure(PerformanceMetric::DelayMean, Some(MetricValue::exact(delay.mean())));
    let found = delay.quantiles([0.5, 0.95, 0.99]).into_iter().flatten();
    for (metric, delay_s) in
        [PerformanceMetric::DelayP50, PerformanceMetric::DelayP95, PerformanceMetric::DelayP99].into_iter().zip(found)
    {
        row.insert_figure(metric, Some(MetricValue::exact(delay_s)));
    }
    row.insert_figure(PerformanceMetric::Loss, Some(MetricValue::exact(1.0 - arrive / sent)));
    row.delay_of = Some(AT_SWITCH);
    row.quantiles_s = quantiles(&delay);
    Some(row)
}

/// Returns the name of the only switch with timing, to which models of one switch apply; `None` if there are none or
/// several.
fn the_timed(scenario: &Scenario) -> Option<&str> {
    let mut timed = scenario.switches.iter().filter(|switch| switch.timing.is_some());
    let only = timed.next()?;
    timed.next().is_none().then_some(only.name.as_str())
}

fn device(own: &DevicePrediction) -> AnswerRow {
    let mut row = AnswerRow::new(SubjectKind::Device, device_name(&own.device));
    if own.status == weir_predict::PredictionStatus::Unstable {
        let advice = own.advice.clone().unwrap_or_default();
        row.status = AnswerRowStatus::Unstable(format!("utilisation {:.2}: {advice}", own.utilisation));
        return row;
    }
    row.insert_figure(PerformanceMetric::Utilisation, Some(MetricValue::exact(own.utilisation)));
    row.insert_figure(PerformanceMetric::Packets, Some(MetricValue::exact(own.packets_per_s)));
    row.insert_figure(PerformanceMetric::DelayMean, own.delay.map(|delay| MetricValue::exact(delay.mean_s)));
    row.insert_figure(PerformanceMetric::Loss, own.loss.map(MetricValue::exact));
    row.delay_of = own.delay.map(|_| "stay");
    row.note = Some(own.model.clone());
    row
}

/// Returns another model's answer for the mean packet at the switch and its controller.
fn alternative(scenario: &Scenario, model: &str, answer: &AlternativeAnswer) -> ScenarioAnswer {
    let by = AnswerSource { verb: EvaluationMethod::Predict, model: Some(model.to_owned()) };
    let Some(switch) = the_timed(scenario) else {
        return ScenarioAnswer::left_out(by, "it is of one switch with timing, and this scenario has none or several");
    };
    let mut row = AnswerRow::new(SubjectKind::Flow, at_switch(switch));
    match answer {
        AlternativeAnswer::Numbers { mean_s, p50_s, p95_s, p99_s, loss } => {
            row.insert_figure(PerformanceMetric::DelayMean, Some(MetricValue::exact(*mean_s)));
            let others = [
                (PerformanceMetric::DelayP50, p50_s),
                (PerformanceMetric::DelayP95, p95_s),
                (PerformanceMetric::DelayP99, p99_s),
                (PerformanceMetric::Loss, loss),
            ];
            others.into_iter().for_each(|(metric, value)| row.insert_figure(metric, value.map(MetricValue::exact)));
            row.delay_of = Some(AT_SWITCH);
        }
        AlternativeAnswer::None { status: "NOT_COVERED", reason } => {
            return ScenarioAnswer::left_out(by, reason.clone());
        }
        AlternativeAnswer::None { status: "UNSTABLE", reason } => {
            row.status = AnswerRowStatus::Unstable(reason.clone())
        }
        AlternativeAnswer::None { status, reason } => {
            row.status = AnswerRowStatus::NotAnswered(format!("{status}: {reason}"))
        }
    }
    let conditions = format!("model {model} of switch {switch} and its controller (weir model {model})");
    ScenarioAnswer {
        by,
        state: AnswerState::Answered,
        runs: 0,
        passed: true,
        fidelity: None,
        conditions,
        rows: vec![row],
    }
}
