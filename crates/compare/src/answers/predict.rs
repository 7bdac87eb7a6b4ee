//! Makes answers of formulas: of the scenario's own formulas, and of other models.
use super::names::{AT_SWITCH, at_switch, device_name, flow_names};
use super::streams;
use crate::answer::{Answer, Answerer, Figure, Metric, Part, Row, State, Status, Verb};
use weir_emulator::parts::shares;
use weir_model::Distribution;
use weir_predict::{AlternativeAnswer, Delays, DeviceAnswer, FlowAnswer, Prediction};
use weir_scenario::{Scenario, TrafficKind, udp_headers};

/// Most flows whose whole distribution is computed; charts show no more.
const DISTRIBUTIONS: usize = 24;

/// Returns the answer of the scenario's prediction, then those of other models.
pub fn answers(scenario: &Scenario, prediction: &Prediction) -> Vec<Answer> {
    let names = flow_names(scenario);
    let with_items = prediction.flows.iter().filter_map(|flow| Some((flow, flow.item?)));
    let flow = |(flow, item): (&FlowAnswer, usize)| {
        own_flow(scenario, flow, names.get(item).cloned().unwrap_or_default(), item)
    };
    let mut rows: Vec<Row> = with_items.map(flow).collect();
    rows.extend(prediction.flows.iter().flat_map(|flow| of_streams(scenario, flow)));
    rows.extend(all_at_switch(scenario, prediction));
    rows.extend(prediction.devices.iter().map(device));
    let models: Vec<&str> = prediction.models.iter().map(|choice| choice.model).collect();
    let mut conditions = format!("formulas ({})", models.join(", "));
    prediction.assumptions.iter().for_each(|text| conditions += &format!("; {text}"));
    prediction.warnings.iter().for_each(|warning| conditions += &format!("; warning: {warning}"));
    let own =
        Answer { by: Answerer::new(Verb::Predict), state: State::Answered, runs: 0, passed: true, conditions, rows };
    let others = prediction.alternatives.iter().map(|other| alternative(scenario, &other.model, &other.answer));
    std::iter::once(own).chain(others).collect()
}

fn put_delays(row: &mut Row, delays: &Delays) {
    row.put(Metric::DelayMean, Some(Figure::exact(delays.mean_s)));
    row.put(Metric::DelayP50, Some(Figure::exact(delays.p50_s)));
    row.put(Metric::DelayP95, Some(Figure::exact(delays.p95_s)));
    row.put(Metric::DelayP99, Some(Figure::exact(delays.p99_s)));
}

fn quantiles(delay: &Distribution) -> Vec<(f64, f64)> {
    delay.curve(shares())
}

fn own_flow(scenario: &Scenario, flow: &FlowAnswer, name: String, item: usize) -> Row {
    use weir_predict::Status as Predicted;
    let mut row = Row::new(Part::Flow, name);
    let why = || flow.bottleneck.iter().chain(&flow.notes).cloned().collect::<Vec<_>>().join(": ");
    row.status = match flow.status {
        Predicted::Ok | Predicted::Full | Predicted::Isolated => Status::Ok,
        Predicted::Unstable => Status::Unstable(why()),
        Predicted::NoPath => Status::NotAnswered(why()),
    };
    if row.status != Status::Ok {
        return row;
    }
    if let Some(delay) = flow.delay.as_ref().filter(|_| flow.status != Predicted::Isolated) {
        put_delays(&mut row, delay);
        row.delay_of = Some(if flow.kind == "ping" { "round trip" } else { "one way" });
    }
    let loss = if flow.status == Predicted::Isolated { Some(1.0) } else { flow.loss };
    row.put(Metric::Loss, loss.filter(|_| flow.kind != "tcp").map(Figure::exact));
    row.put(Metric::Rate, flow.goodput_bps.or_else(|| goodput(scenario, flow, item)).map(Figure::exact));
    if let Some(delay) = flow.distribution.as_ref().filter(|_| item < DISTRIBUTIONS && row.delay_of.is_some()) {
        row.quantiles_s = quantiles(delay);
    }
    row.note = flow.notes.first().cloned();
    row
}

/// Returns the rows of streams through one virtual switch and port, one for each class. Classes share the buffers, so
/// their delays and losses are equal.
fn of_streams(scenario: &Scenario, flow: &FlowAnswer) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
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
        row.put(Metric::Rate, loss.map(|loss| Figure::exact(offered * (1.0 - loss))));
    }
    rows
}

fn of_stream(name: String, flow: &FlowAnswer) -> Row {
    let mut row = Row::new(Part::Flow, name);
    let Some(expected) = &flow.expected else {
        row.status = Status::Unstable(flow.bottleneck.clone().unwrap_or_default());
        return row;
    };
    put_delays(&mut row, &expected.delay);
    row.put(Metric::Loss, Some(Figure::exact(expected.loss)));
    row.delay_of = Some(streams::DELAY_OF);
    row.quantiles_s = quantiles(&expected.distribution);
    row.note = flow.notes.first().cloned();
    row
}

/// Returns the payload rate of datagrams that arrive, in bit/s.
fn goodput(scenario: &Scenario, flow: &FlowAnswer, item: usize) -> Option<f64> {
    let traffic = scenario.traffic.get(item)?;
    let TrafficKind::Udp { offered, .. } = &traffic.kind else { return None };
    let payload = offered.mean_bytes().ok()? - f64::from(udp_headers(traffic.address.is_ipv6()));
    Some(flow.packets_per_s * (1.0 - flow.loss?) * payload * 8.0)
}

/// Returns the row of all packets at the switch by the scenario's own formulas, which models of one switch answer,
/// too. `None` if links take time, because flows' delays would include it.
fn all_at_switch(scenario: &Scenario, prediction: &Prediction) -> Option<Row> {
    let switch = the_timed(scenario)?;
    let hosts = scenario.hosts.iter().map(|host| &host.link);
    let mut links = hosts.chain(scenario.links.iter().map(|link| &link.spec));
    if links.any(|link| link.rate.is_some() || !link.delay.is_zero()) {
        return None;
    }
    let mut row = Row::new(Part::Flow, at_switch(switch));
    let udp = || prediction.flows.iter().filter(|flow| flow.kind == "udp" && flow.packets_per_s > 0.0);
    if let Some(flow) = udp().find(|flow| flow.status == weir_predict::Status::Unstable) {
        row.status = Status::Unstable(flow.bottleneck.clone().unwrap_or_default());
        return Some(row);
    }
    let parts: Vec<(f64, Distribution)> =
        udp().filter_map(|flow| Some((flow.packets_per_s * (1.0 - flow.loss?), flow.distribution.clone()?))).collect();
    let sent: f64 = udp().map(|flow| flow.packets_per_s).sum();
    let arrive: f64 = parts.iter().map(|(rate, _)| rate).sum();
    let shares: Vec<(f64, Distribution)> = parts.into_iter().map(|(rate, delay)| (rate / arrive, delay)).collect();
    let delay = Distribution::mixture(&shares).ok()?;
    row.put(Metric::DelayMean, Some(Figure::exact(delay.mean())));
    let found = delay.quantiles([0.5, 0.95, 0.99]).into_iter().flatten();
    for (metric, delay_s) in [Metric::DelayP50, Metric::DelayP95, Metric::DelayP99].into_iter().zip(found) {
        row.put(metric, Some(Figure::exact(delay_s)));
    }
    row.put(Metric::Loss, Some(Figure::exact(1.0 - arrive / sent)));
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

fn device(own: &DeviceAnswer) -> Row {
    let mut row = Row::new(Part::Device, device_name(&own.device));
    if own.status == weir_predict::Status::Unstable {
        let advice = own.advice.clone().unwrap_or_default();
        row.status = Status::Unstable(format!("utilisation {:.2}: {advice}", own.utilisation));
        return row;
    }
    row.put(Metric::Utilisation, Some(Figure::exact(own.utilisation)));
    row.put(Metric::Packets, Some(Figure::exact(own.packets_per_s)));
    row.put(Metric::DelayMean, own.delay.map(|delay| Figure::exact(delay.mean_s)));
    row.put(Metric::Loss, own.loss.map(Figure::exact));
    row.delay_of = own.delay.map(|_| "stay");
    row.note = Some(own.model.clone());
    row
}

/// Returns another model's answer for the mean packet at the switch and its controller.
fn alternative(scenario: &Scenario, model: &str, answer: &AlternativeAnswer) -> Answer {
    let by = Answerer { verb: Verb::Predict, model: Some(model.to_owned()) };
    let Some(switch) = the_timed(scenario) else {
        return Answer::left_out(by, "it is of one switch with timing, and this scenario has none or several");
    };
    let mut row = Row::new(Part::Flow, at_switch(switch));
    match answer {
        AlternativeAnswer::Numbers { mean_s, p50_s, p95_s, p99_s, loss } => {
            row.put(Metric::DelayMean, Some(Figure::exact(*mean_s)));
            let others =
                [(Metric::DelayP50, p50_s), (Metric::DelayP95, p95_s), (Metric::DelayP99, p99_s), (Metric::Loss, loss)];
            others.into_iter().for_each(|(metric, value)| row.put(metric, value.map(Figure::exact)));
            row.delay_of = Some(AT_SWITCH);
        }
        AlternativeAnswer::None { status: "NOT_COVERED", reason } => return Answer::left_out(by, reason.clone()),
        AlternativeAnswer::None { status: "UNSTABLE", reason } => row.status = Status::Unstable(reason.clone()),
        AlternativeAnswer::None { status, reason } => row.status = Status::NotAnswered(format!("{status}: {reason}")),
    }
    let conditions = format!("model {model} of switch {switch} and its controller (weir model {model})");
    Answer { by, state: State::Answered, runs: 0, passed: true, conditions, rows: vec![row] }
}
