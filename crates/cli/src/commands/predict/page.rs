//! Writes a prediction as an HTML page with charts.
use super::PredictedPoint;
use super::report::{ReportTimeUnit, percent, word};
use crate::commands::sweep::{key_with_most_values, plain};
use std::collections::BTreeMap;
use weir_plot::{
    Axis, Bar, BarChart, Chart, ChartPoint, ChartSeries, Figure, HtmlCell, HtmlPage, HtmlTable, LineStyle, short,
    swept_axis,
};
use weir_predict::{
    AlternativeAnswer, FlowPrediction, PredictedDelay, Prediction, PredictionStatus, PredictionValidity,
};

/// Maximum number of devices in a chart.
const MOST_DEVICES: usize = 20;
/// Number of points of a distribution's line.
const POINTS: u32 = 120;

/// Returns the page as HTML.
pub(super) fn page(answers: &[PredictedPoint], footer: &str) -> String {
    let scenario = answers.first().map_or("", |answer| answer.prediction.scenario.as_str());
    let mut page = HtmlPage::new(&format!("Prediction of {scenario}"));
    let unit = ReportTimeUnit::of(answers.iter().map(|answer| &answer.prediction));
    match answers {
        [one] if one.point.is_empty() => single(&mut page, &one.prediction, &unit),
        all => swept(&mut page, all, &unit),
    }
    page.finish(footer)
}

fn single(page: &mut HtmlPage, prediction: &Prediction, unit: &ReportTimeUnit) {
    page.answer(
        &format!(
            "Asked: how long do packets take in scenario {}, by formulas and without running anything?",
            prediction.scenario
        ),
        &in_a_line(prediction, unit),
    );
    page.figure(&distributions(prediction, unit), "Shares of packets that take no longer");
    page.heading("Traffic").table(&flows(prediction, unit));
    page.heading("Devices");
    page.figure(&utilisations(prediction), "When they are busiest");
    page.table(&devices(prediction, unit));
    trust(page, prediction);
}

/// Returns the answer in a line: the slowest flow, the busiest device, and how many flows have no steady state.
fn in_a_line(prediction: &Prediction, unit: &ReportTimeUnit) -> String {
    let mut parts = Vec::new();
    let delays = || prediction.flows.iter().filter_map(|flow| Some((flow, flow.delay.as_ref()?.mean_s)));
    if let Some((flow, mean_s)) = delays().max_by(|a, b| a.1.total_cmp(&b.1)) {
        let (count, mean) = (delays().count(), unit.time(mean_s));
        parts.push(format!("{} is the slowest of {count} flows with {mean} {} on average", name(flow), unit.short()));
    }
    if let Some(device) = prediction.devices.first() {
        parts.push(format!("{} is the busiest device at {:.1} %", device.device, device.utilisation * 100.0));
    }
    let unstable = prediction.flows.iter().filter(|flow| flow.status == PredictionStatus::Unstable).count();
    parts.push(match unstable {
        0 => "every flow has a steady state".to_owned(),
        _ => format!("{unstable} of {} flows have no steady state", prediction.flows.len()),
    });
    parts.join("; ") + "."
}

fn trust(page: &mut HtmlPage, prediction: &Prediction) {
    page.heading("When to trust it");
    let choice = |choice: &weir_predict::ModelChoice| {
        (choice.model, false, format!("for {}: {}. Holds: {}", choice.switches.join(", "), choice.why, choice.validity))
    };
    page.list(prediction.models.iter().map(choice));
    for flow in prediction.flows.iter().filter(|flow| flow.validity == PredictionValidity::Approximate) {
        page.warning(&format!("{}: {}", name(flow), flow.notes.join("; ")));
    }
    for warning in &prediction.warnings {
        page.warning(&warning.to_string());
    }
    page.details("Assumptions", |page| {
        for assumption in &prediction.assumptions {
            page.text(assumption);
        }
    });
}

fn name(flow: &FlowPrediction) -> String {
    format!("{} {} -> {}", flow.kind, flow.from, flow.to)
}

fn distributions(prediction: &Prediction, unit: &ReportTimeUnit) -> Figure {
    let line = |flow: &FlowPrediction| {
        let delay = flow.distribution.as_ref()?;
        let shares = (1..POINTS).map(|number| f64::from(number) / f64::from(POINTS)).chain([0.995, 0.999]);
        let points =
            delay.curve(shares).into_iter().map(|(share, delay_s)| ChartPoint::new(unit.scaled(delay_s), share));
        Some(ChartSeries::looking(name(flow), LineStyle::Curve, points.collect()))
    };
    Figure::Chart(Chart {
        name: "delays".into(),
        title: "Delay by flow".into(),
        x: Axis::linear(format!("delay, {}", unit.name)),
        y: Axis::linear("share of packets, from 0 to 1"),
        series: prediction.flows.iter().filter_map(line).collect(),
    })
}

fn utilisations(prediction: &Prediction) -> Figure {
    let shown = || prediction.devices.iter().take(MOST_DEVICES);
    let bar = |value: f64| Some(Bar { value: value * 100.0, interval: None });
    Figure::Bars(BarChart {
        name: "utilisation".into(),
        title: "How busy devices are".into(),
        x: String::new(),
        y: Axis::linear("utilisation, %"),
        groups: shown().map(|device| device.device.clone()).collect(),
        series: vec![("predicted".into(), shown().map(|device| bar(device.utilisation)).collect())],
    })
}

fn flows(prediction: &Prediction, unit: &ReportTimeUnit) -> HtmlTable {
    let mut head: Vec<String> = ["flow", "status", "packets/s", "loss"].map(str::to_owned).into();
    head.extend(delay_heads(unit));
    head.push("longest at".to_owned());
    let row = |flow: &FlowPrediction| {
        let mut cells: Vec<HtmlCell> = vec![name(flow).into(), status(&flow.status), short(flow.packets_per_s).into()];
        cells.push(flow.loss.map_or_else(String::new, percent).into());
        cells.extend(unit.delays(flow.delay).map(HtmlCell::from));
        cells.push(flow.bottleneck.clone().unwrap_or_default().into());
        cells
    };
    HtmlTable { head, texts: 2, rows: prediction.flows.iter().map(row).collect() }
}

/// Returns the heads of the columns with delays, with the unit.
fn delay_heads(unit: &ReportTimeUnit) -> [String; 4] {
    ["mean", "p50", "p95", "p99"].map(|name| format!("{name}, {}", unit.short()))
}

fn status(status: &PredictionStatus) -> HtmlCell {
    if *status == PredictionStatus::Unstable { HtmlCell::wrong(word(status)) } else { word(status).into() }
}

fn devices(prediction: &Prediction, unit: &ReportTimeUnit) -> HtmlTable {
    let mut head: Vec<String> = ["device", "status", "formula", "packets/s", "busy", "loss"].map(str::to_owned).into();
    head.extend(delay_heads(unit));
    let row = |device: &weir_predict::DevicePrediction| {
        let mut cells: Vec<HtmlCell> =
            vec![device.device.clone().into(), status(&device.status), device.model.clone().into()];
        cells.push(short(device.packets_per_s).into());
        cells.push(format!("{:.1}%", device.utilisation * 100.0).into());
        cells.push(device.loss.map_or_else(String::new, percent).into());
        cells.extend(unit.delays(device.delay).map(HtmlCell::from));
        cells
    };
    HtmlTable { head, texts: 3, rows: prediction.devices.iter().map(row).collect() }
}

/// Adds line charts over the swept values, if they are numbers, otherwise over their positions in the sweep.
fn swept(page: &mut HtmlPage, answers: &[PredictedPoint], unit: &ReportTimeUnit) {
    let key = key_with_most_values(answers.iter().map(|answer| &answer.point));
    let values: Vec<String> =
        answers.iter().map(|answer| answer.point.0.get(&key).map(plain).unwrap_or_default()).collect();
    let (label, along) = swept_axis(&key, &values);
    page.answer(
        &format!(
            "Asked: how long do packets take in scenario {} while {key} goes from {} to {}, by formulas and without \
             running anything?",
            answers.first().map_or("", |answer| answer.prediction.scenario.as_str()),
            values.first().map_or("", String::as_str),
            values.last().map_or("", String::as_str),
        ),
        &swept_in_a_line(answers, unit),
    );
    page.text("Where a line ends or has a gap there is no steady state.");
    for (file, title, of) in [
        ("mean", "Mean delay", (|delays| delays.mean_s) as fn(&PredictedDelay) -> f64),
        ("p99", "99 of 100 packets take no longer", |delays| delays.p99_s),
    ] {
        let mut lines: BTreeMap<String, Vec<ChartPoint>> = BTreeMap::new();
        for (answer, x) in answers.iter().zip(&along) {
            let group = answer.point.without(&key);
            for flow in &answer.prediction.flows {
                let y = flow.delay.as_ref().map_or(f64::NAN, |delays| unit.scaled(of(delays)));
                lines.entry(format!("{}{group}", name(flow))).or_default().push(ChartPoint::new(*x, y));
            }
            for one in &answer.prediction.alternatives {
                let y = match &one.answer {
                    AlternativeAnswer::Numbers { mean_s, .. } if file == "mean" => unit.scaled(*mean_s),
                    AlternativeAnswer::Numbers { p99_s: Some(p99_s), .. } if file != "mean" => unit.scaled(*p99_s),
                    _ => f64::NAN,
                };
                lines.entry(format!("{}{group}", one.model)).or_default().push(ChartPoint::new(*x, y));
            }
        }
        lines.retain(|_, points| points.iter().any(|point| point.y.is_finite()));
        let chart = Chart {
            name: file.into(),
            title: title.into(),
            x: Axis::linear(label.clone()),
            y: Axis::log(format!("delay, {}", unit.name)),
            series: lines.into_iter().map(|(name, points)| ChartSeries::line(name, points)).collect(),
        };
        page.figure(&chart.into(), "");
    }
    for answer in answers {
        page.details(&answer.point.to_string(), |page| {
            page.table(&flows(&answer.prediction, unit)).table(&devices(&answer.prediction, unit));
        });
    }
    if let Some(answer) = answers.last() {
        trust(page, &answer.prediction);
    }
}

/// Returns the answer of a sweep in a line: the range of mean delays, and how many points have no steady state.
fn swept_in_a_line(answers: &[PredictedPoint], unit: &ReportTimeUnit) -> String {
    let flows = || answers.iter().flat_map(|answer| &answer.prediction.flows);
    let means: Vec<f64> = flows().filter_map(|flow| Some(flow.delay.as_ref()?.mean_s)).collect();
    let unstable = answers
        .iter()
        .filter(|answer| answer.prediction.flows.iter().any(|flow| flow.status == PredictionStatus::Unstable))
        .count();
    let steady = match unstable {
        0 => format!("all {} points have a steady state", answers.len()),
        _ => format!("{unstable} of {} points have flows without a steady state", answers.len()),
    };
    match (means.iter().copied().reduce(f64::min), means.iter().copied().reduce(f64::max)) {
        (Some(low), Some(high)) => {
            let (low, high) = (unit.time(low), unit.time(high));
            format!("Flows take {low} to {high} {} on average; {steady}.", unit.short())
        }
        _ => format!("No flow has a delay; {steady}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sweep;
    use weir_predict::{PredictSettings, predict};

    fn of(file: &str, swept: &[&str]) -> String {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
        let sweeps: Vec<_> = swept.iter().map(|sweep| sweep.parse().unwrap()).collect();
        let answer = |(point, scenario)| {
            let prediction = predict(&scenario, &PredictSettings::default()).unwrap();
            PredictedPoint { point, prediction }
        };
        page(&sweep::points(&file, &sweeps).unwrap().into_iter().map(answer).collect::<Vec<_>>(), "footer")
    }

    #[test]
    fn pages_begin_with_the_question_and_the_answer() {
        let one = of("quickstart.toml", &[]);
        for words in [
            "Asked: how long do packets take in scenario quickstart, by formulas",
            "udp blue-a -&gt; blue-b is the slowest of 4 flows with ",
            "every flow has a steady state.",
            "mean, us",
        ] {
            assert!(one.contains(words), "no `{words}` in {one}");
        }
        let swept = of("at-x510.toml", &["traffic.rate=60,500,600"]);
        for words in ["while traffic.rate goes from 60 to 600, by formulas", "Flows take ", "traffic.rate, packets/s"] {
            assert!(swept.contains(words), "no `{words}` in {swept}");
        }
    }
}
