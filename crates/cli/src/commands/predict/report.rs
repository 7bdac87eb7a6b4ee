//! Formats a prediction as text and as CSV.
use super::PredictedPoint;
use crate::commands::csv::quoted;
use crate::commands::sweep::plain;
use std::fmt::Write as _;
use weir_model::Warning;
use weir_plot::short;
use weir_predict::{
    AlternativeAnswer, FlowPrediction, PredictedDelay, Prediction, PredictionStatus, PredictionValidity,
};
use weir_terminal::table::ReportTable;
use weir_units::Bps;

/// Longest delay in seconds from which on times are shown in milliseconds.
const MILLISECONDS_FROM: f64 = 0.01;
/// Maximum number of devices shown; if there are more, those with the highest utilisation are shown.
const MOST_DEVICES: usize = 20;

/// Returns the line that states the origin of the figures.
pub(super) fn footer(file: &str, seconds: f64) -> String {
    format!(
        "Predicted in {:.1} ms with weir {}, scenario file {file}; nothing was run",
        seconds * 1e3,
        env!("CARGO_PKG_VERSION")
    )
}

/// Formats the whole report.
pub(super) fn text(answers: &[PredictedPoint], footer: &str) -> String {
    let mut text = match answers {
        [one] if one.point.is_empty() => one_text(&one.prediction),
        all => swept_text(all),
    };
    let _ = writeln!(text, "{footer}");
    text
}

fn one_text(prediction: &Prediction) -> String {
    let unit = ReportTimeUnit::of([prediction]);
    let header = ["", "from", "to", "status", "rate", "loss", "mean", "p50", "p95", "p99", "longest at"];
    let mut table = ReportTable::new(header).keys(3).groups([6]).numbers(4..10);
    for flow in &prediction.flows {
        let mut row = vec![flow.kind.to_owned(), flow.from.clone(), flow.to.clone()];
        row.extend(numbers(flow, &unit));
        row.push(flow.bottleneck.clone().unwrap_or_default());
        table.row(row);
        for (name, delays) in [("without controller", flow.data), ("by the controller", flow.control)] {
            if let Some(delays) = delays {
                let mut row =
                    vec![String::new(), String::new(), name.to_owned(), String::new(), String::new(), String::new()];
                row.extend(unit.delays(Some(delays)));
                table.row(row);
            }
        }
    }
    let mut text = format!("Traffic (rates in packets per second, times in {})\n{table}\n\n", unit.name);
    text += &notes(prediction);
    text += &promises(prediction, &unit);
    text += &devices(prediction, &unit);
    if !prediction.alternatives.is_empty() {
        text += &alternatives(prediction, &unit);
    }
    text += "Models\n";
    for choice in &prediction.models {
        let _ = writeln!(text, "  {} for {}: {}", choice.model, list(&choice.switches), choice.why);
        let _ = writeln!(text, "    holds: {}", choice.validity);
    }
    prediction.assumptions.iter().for_each(|assumed| _ = writeln!(text, "  assumed: {assumed}"));
    text.push('\n');
    for warning in &prediction.warnings {
        let _ = writeln!(text, "{warning}");
    }
    text
}

/// Formats the promises of virtual networks: bounds, which hold for each packet in profile, beside the percentiles of
/// the model.
fn promises(prediction: &Prediction, unit: &ReportTimeUnit) -> String {
    if prediction.promises.is_empty() {
        return String::new();
    }
    let header = ["", "from", "to", "guaranteed", "promised", "bound", "p99 (model)", ""];
    let mut table = ReportTable::new(header).keys(3).numbers(3..7);
    for promise in &prediction.promises {
        let delay = |seconds: Option<f64>| seconds.map_or(String::new(), |seconds| unit.time(seconds));
        let profile = match &promise.out_of_profile {
            Some(reason) => format!("out of profile: {reason}"),
            None => "in profile".to_owned(),
        };
        table.row([
            promise.network.clone(),
            promise.from.clone(),
            promise.to.clone(),
            Bps(promise.guaranteed_bps).to_string(),
            delay(promise.promised_s),
            delay(promise.bound_s),
            delay(promise.p99_s),
            profile,
        ]);
    }
    format!("Promises of virtual networks (times in {})\n{table}\n\n", unit.name)
}

/// Returns the validity as a word.
fn valid(validity: PredictionValidity) -> &'static str {
    match validity {
        PredictionValidity::Good => "GOOD",
        PredictionValidity::Approximate => "APPROXIMATE",
    }
}

/// Joins the first names, and says how many more there are.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 6;
    if names.len() <= SHOWN {
        return names.join(", ");
    }
    format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN)
}

/// Formats the remarks about flows, each once with all flows that have it.
fn notes(prediction: &Prediction) -> String {
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    for flow in &prediction.flows {
        let goodput = flow.goodput_bps.map(|bps| format!("{:.1} Mbit/s of payload", bps / 1e6));
        let name = format!("{} {} -> {}", flow.kind, flow.from, flow.to);
        for note in goodput.iter().chain(&flow.notes) {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name.clone()),
                None => notes.push((note.clone(), vec![name.clone()])),
            }
        }
    }
    let mut text = String::new();
    for (note, names) in notes {
        let _ = writeln!(text, "{}: {note}", list(&names));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn devices(prediction: &Prediction, unit: &ReportTimeUnit) -> String {
    let header = ["device", "status", "rate", "busy", "loss", "mean", "p95", "p99", "formula"];
    let mut table = ReportTable::new(header).groups([5]).numbers(2..8);
    for device in prediction.devices.iter().take(MOST_DEVICES) {
        let mut row = vec![
            device.device.clone(),
            word(&device.status).to_owned(),
            short(device.packets_per_s),
            format!("{:.1}%", device.utilisation * 100.0),
            device.loss.map_or_else(String::new, percent),
        ];
        // There is no room for the median, which `--json` has.
        let [mean, _, p95, p99] = unit.delays(device.delay);
        row.extend([mean, p95, p99, device.model.clone()]);
        table.row(row);
    }
    let hidden = prediction.devices.len().saturating_sub(MOST_DEVICES);
    let more = if hidden > 0 { format!("and {hidden} with less to do (--json has all)\n") } else { String::new() };
    let first = prediction.bottleneck.as_ref().map_or_else(String::new, |name| format!("; {name} would be full first"));
    format!("Devices (rates in packets per second, when they are busiest{first})\n{table}\n{more}\n")
}

fn alternatives(prediction: &Prediction, unit: &ReportTimeUnit) -> String {
    let mut table = ReportTable::new(["model", "status", "loss", "mean", "p50", "p95", "p99", ""]).numbers(2..7);
    for one in &prediction.alternatives {
        table.row(match &one.answer {
            AlternativeAnswer::Numbers { mean_s, p50_s, p95_s, p99_s, loss } => {
                let time = |s: &Option<f64>| s.map_or_else(String::new, |s| unit.time(s));
                vec![
                    one.model.clone(),
                    "OK".into(),
                    loss.map_or_else(String::new, percent),
                    unit.time(*mean_s),
                    time(p50_s),
                    time(p95_s),
                    time(p99_s),
                    String::new(),
                ]
            }
            AlternativeAnswer::None { status, reason } => {
                let empty = || String::new();
                vec![
                    one.model.clone(),
                    (*status).to_owned(),
                    empty(),
                    empty(),
                    empty(),
                    empty(),
                    empty(),
                    reason.clone(),
                ]
            }
        });
    }
    format!("What other models say of the switch and its controller, without links\n{table}\n\n")
}

fn swept_text(answers: &[PredictedPoint]) -> String {
    let unit = ReportTimeUnit::of(answers.iter().map(|answer| &answer.prediction));
    let keys: Vec<&str> =
        answers.first().map(|answer| answer.point.0.keys().map(String::as_str).collect()).unwrap_or_default();
    let mut head = keys.clone();
    head.extend(["flow", "status", "rate", "loss", "mean", "p50", "p95", "p99", "longest at"]);
    let mut table = ReportTable::new(head).keys(keys.len() + 1).numbers(keys.len() + 2..keys.len() + 8);
    let (mut rows, mut unstable) = (0, 0);
    for answer in answers {
        let values: Vec<String> = answer.point.0.values().map(plain).collect();
        for flow in &answer.prediction.flows {
            rows += 1;
            unstable += usize::from(flow.status == PredictionStatus::Unstable);
            let mut row = values.clone();
            row.push(format!("{} {} -> {}", flow.kind, flow.from, flow.to));
            row.extend(numbers(flow, &unit));
            row.push(flow.bottleneck.clone().unwrap_or_default());
            table.row(row);
        }
        for one in &answer.prediction.alternatives {
            let mut row = values.clone();
            row.push(format!("model {}", one.model));
            match &one.answer {
                AlternativeAnswer::None { status, reason } => {
                    row.extend([
                        (*status).to_owned(),
                        String::new(),
                        String::new(),
                        String::new(),
                        String::new(),
                        String::new(),
                        String::new(),
                    ]);
                    row.push(reason.clone());
                }
                AlternativeAnswer::Numbers { mean_s, p50_s, p95_s, p99_s, loss } => {
                    let time = |s: &Option<f64>| s.map_or_else(String::new, |s| unit.time(s));
                    row.extend([
                        "OK".into(),
                        String::new(),
                        loss.map_or_else(String::new, percent),
                        unit.time(*mean_s),
                    ]);
                    row.extend([time(p50_s), time(p95_s), time(p99_s), String::new()]);
                }
            }
            table.row(row);
        }
    }
    let mut text = format!("Traffic (rates in packets per second, times in {})\n{table}\n\n", unit.name);
    let _ = writeln!(
        text,
        "{rows} {} of traffic, {unstable} of them UNSTABLE: without a steady state, and without numbers",
        if rows == 1 { "row" } else { "rows" }
    );
    text + &swept_warnings(answers)
}

/// Lists the warnings of a sweep, one line for each device or assumption that they are about: at how many points, and
/// the warning at the last of these, which is the farthest in a rising sweep. `UNSTABLE` stands in the table already.
fn swept_warnings(answers: &[PredictedPoint]) -> String {
    let mut found: Vec<(String, usize, &PredictedPoint, &Warning)> = Vec::new();
    for answer in answers {
        let warnings = answer.prediction.warnings.iter().filter(|warning| warning.kind != "UNSTABLE");
        for warning in warnings {
            let about = without_numbers(warning);
            match found.iter_mut().find(|(known, ..)| *known == about) {
                Some((_, times, at, last)) => (*times, *at, *last) = (*times + 1, answer, warning),
                None => found.push((about, 1, answer, warning)),
            }
        }
    }
    let total = answers.len();
    let line = |(_, times, at, warning): &(String, usize, &PredictedPoint, &Warning)| {
        format!("{} at {times} of {total} points, last at {}: {}\n", warning.kind, at.point, warning.text)
    };
    found.iter().map(line).collect()
}

/// Returns the text of a warning without numbers, in which warnings about one thing differ from point to point.
fn without_numbers(warning: &Warning) -> String {
    let text = warning.to_string();
    let is_number = |word: &str| word.trim_end_matches([':', ';', ',', '%']).parse::<f64>().is_ok();
    text.split(' ').filter(|word| !is_number(word)).collect::<Vec<_>>().join(" ")
}

/// Formats status, packet rate, loss and delays of a flow.
fn numbers(flow: &FlowPrediction, unit: &ReportTimeUnit) -> Vec<String> {
    let mut cells =
        vec![word(&flow.status).to_owned(), short(flow.packets_per_s), flow.loss.map_or_else(String::new, percent)];
    cells.extend(unit.delays(flow.delay));
    cells
}

pub(super) fn word(status: &PredictionStatus) -> &'static str {
    match status {
        PredictionStatus::Ok => "OK",
        PredictionStatus::Unstable => "UNSTABLE",
        PredictionStatus::Full => "FULL",
        PredictionStatus::Isolated => "ISOLATED",
        PredictionStatus::NoPath => "NO_PATH",
    }
}

pub(super) fn percent(share: f64) -> String {
    // Smaller losses are rounding errors and print as zero.
    if share > 1e-10 && share < 1e-4 { format!("{:.0e}%", share * 100.0) } else { format!("{:.2}%", share * 100.0) }
}

/// Unit of time for a table: microseconds or milliseconds, chosen by the longest delay.
pub(crate) struct ReportTimeUnit {
    pub(crate) name: &'static str,
    factor: f64,
}

impl ReportTimeUnit {
    /// Returns the unit for the flows of predictions.
    pub(super) fn of<'a>(predictions: impl IntoIterator<Item = &'a Prediction>) -> ReportTimeUnit {
        let flows = predictions.into_iter().flat_map(|prediction| &prediction.flows);
        let delays = flows.flat_map(|flow| [flow.delay, flow.data, flow.control]).flatten();
        ReportTimeUnit::for_longest(delays.map(|delays| delays.p99_s).fold(0.0, f64::max))
    }

    /// Returns the unit for times up to this number of seconds.
    pub(crate) fn for_longest(seconds: f64) -> ReportTimeUnit {
        if seconds >= MILLISECONDS_FROM {
            ReportTimeUnit { name: "milliseconds", factor: 1e3 }
        } else {
            ReportTimeUnit { name: "microseconds", factor: 1e6 }
        }
    }

    /// Formats a number of seconds in the unit.
    pub(crate) fn time(&self, seconds: f64) -> String {
        let value = seconds * self.factor;
        // In a column with longer times, short ones are easier to read without an exponent.
        if (1e-4..0.01).contains(&value) { format!("{value:.4}") } else { short(value) }
    }

    /// Returns the unit's symbol.
    pub(crate) fn short(&self) -> &'static str {
        if self.factor < 1e6 { "ms" } else { "us" }
    }

    /// Returns a number of seconds in the unit.
    pub(crate) fn scaled(&self, seconds: f64) -> f64 {
        seconds * self.factor
    }

    pub(super) fn delays(&self, delays: Option<PredictedDelay>) -> [String; 4] {
        match delays {
            None => Default::default(),
            Some(PredictedDelay { mean_s, p50_s, p95_s, p99_s }) => [mean_s, p50_s, p95_s, p99_s].map(|s| self.time(s)),
        }
    }
}

/// Formats one CSV line for each flow and each other model, at each point.
pub(super) fn csv(answers: &[PredictedPoint]) -> String {
    let keys: Vec<&String> = answers.first().map(|answer| answer.point.0.keys().collect()).unwrap_or_default();
    let mut head: Vec<String> = keys.iter().map(|key| quoted(key)).collect();
    head.push("kind,from,to,status,packets_per_s,loss,mean_s,p50_s,p95_s,p99_s,control_mean_s,control_p99_s,goodput_bps,bottleneck,validity,notes,warnings".into());
    let mut text = head.join(",") + "\n";
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value}"));
    for answer in answers {
        let values: Vec<String> = answer.point.0.values().map(|value| quoted(&plain(value))).collect();
        let mut line = |cells: Vec<String>| {
            let all: Vec<String> = values.iter().cloned().chain(cells).collect();
            text += &(all.join(",") + "\n");
        };
        let warnings = answer.prediction.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        for flow in &answer.prediction.flows {
            let delay = |of: fn(&PredictedDelay) -> f64| number(flow.delay.as_ref().map(of));
            line(vec![
                flow.kind.into(),
                flow.from.clone(),
                flow.to.clone(),
                word(&flow.status).into(),
                format!("{}", flow.packets_per_s),
                number(flow.loss),
                delay(|d| d.mean_s),
                delay(|d| d.p50_s),
                delay(|d| d.p95_s),
                delay(|d| d.p99_s),
                number(flow.control.map(|control| control.mean_s)),
                number(flow.control.map(|control| control.p99_s)),
                number(flow.goodput_bps),
                quoted(flow.bottleneck.as_deref().unwrap_or_default()),
                valid(flow.validity).into(),
                quoted(&flow.notes.join("; ")),
                quoted(&warnings),
            ]);
        }
        for one in &answer.prediction.alternatives {
            let (status, numbers, reason) = match &one.answer {
                AlternativeAnswer::Numbers { mean_s, p50_s, p95_s, p99_s, loss } => {
                    ("OK", [*loss, Some(*mean_s), *p50_s, *p95_s, *p99_s], String::new())
                }
                AlternativeAnswer::None { status, reason } => (*status, [None; 5], reason.clone()),
            };
            let mut cells = vec!["model".into(), one.model.clone(), String::new(), status.into(), String::new()];
            cells.extend(numbers.map(number));
            cells.extend([const { String::new() }; 5]);
            cells.extend([quoted(&reason), String::new()]);
            line(cells);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sweep;
    use weir_predict::{PredictSettings, predict};

    #[test]
    fn sweeps_have_the_warnings_of_their_points() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/at-x510.toml");
        let points = sweep::points(&file, &["traffic.rate=60,500,600".parse().unwrap()]).unwrap();
        let answer = |(point, scenario)| {
            let prediction = predict(&scenario, &PredictSettings::default()).unwrap();
            PredictedPoint { point, prediction }
        };
        let answers: Vec<PredictedPoint> = points.into_iter().map(answer).collect();
        let text = swept_text(&answers);
        let near: Vec<&str> = text.lines().filter(|line| line.starts_with("NEAR_SATURATION at")).collect();
        assert!(
            near.iter().any(|line| {
                line.starts_with("NEAR_SATURATION at 2 of 3 points, last at traffic.rate = 600: utilisation")
                    && line.contains("at controller: ")
            }),
            "{text}"
        );
        let csv = csv(&answers);
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].ends_with(",validity,notes,warnings"), "{csv}");
        let commas = |line: &str| line.chars().filter(|char| *char == ',').count();
        assert!(lines.iter().all(|line| commas(line) >= commas(lines[0])), "{csv}");
        assert_eq!(
            lines.iter().map(|line| line.contains("NEAR_SATURATION")).collect::<Vec<_>>(),
            [false, false, true, true]
        );
    }
}
