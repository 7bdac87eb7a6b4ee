//! Formats a comparison as text for a terminal.
use std::fmt::Write as _;
use weir_compare::{
    AnswerRow, AnswerRowStatus, AnswerScore, AnswerState, AnswerSubject, Comparison, EvaluationMethod, MetricValue,
    PerformanceMetric, ScenarioAnswer, SubjectKind,
};
use weir_terminal::table::ReportTable;

/// Columns of the table of flows: metric, factor that converts it to the column's unit, decimals, and unit.
const FLOW_COLUMNS: [(PerformanceMetric, f64, usize, &str); 6] = [
    (PerformanceMetric::DelayMean, 1e6, 0, ""),
    (PerformanceMetric::DelayP50, 1e6, 0, ""),
    (PerformanceMetric::DelayP95, 1e6, 0, ""),
    (PerformanceMetric::DelayP99, 1e6, 0, ""),
    (PerformanceMetric::Loss, 100.0, 1, "%"),
    (PerformanceMetric::Rate, 1e-6, 1, " Mbit/s"),
];
const DEVICE_COLUMNS: [(PerformanceMetric, f64, usize, &str); 3] = [
    (PerformanceMetric::Utilisation, 100.0, 1, "%"),
    (PerformanceMetric::Packets, 1.0, 0, ""),
    (PerformanceMetric::DelayMean, 1e6, 0, ""),
];

/// Heading of the table of devices.
const DEVICES: &str = "Devices (mean delay in microseconds, from arrival to departure; ± is half a 95% interval)";

/// Formats one point of a sweep, or the scenario itself without a sweep.
pub(super) fn point(point: &weir_compare::page::SweptComparison) -> String {
    let values: Vec<String> = point.values.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let title = if values.is_empty() { String::new() } else { format!("== {}\n", values.join(", ")) };
    title + &text(&point.comparison)
}

fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    comparison.compared.iter().for_each(|compared| _ = writeln!(text, "{}", compared.sentence()));
    comparison.answers.iter().filter_map(ScenarioAnswer::doubt).for_each(|doubt| _ = writeln!(text, "{doubt}"));
    if !text.is_empty() {
        text += "\n";
    }
    let flows = flows(comparison);
    let _ = writeln!(text, "Flows (delays in microseconds; ± is half a 95% interval)\n{flows}\n");
    if !comparison.subjects(SubjectKind::Device).is_empty() {
        let _ = writeln!(text, "{DEVICES}\n{}\n", devices(comparison));
    }
    text + &verdicts(comparison) + &conditions(comparison)
}

fn flows(comparison: &Comparison) -> ReportTable {
    let names = FLOW_COLUMNS.map(|(metric, ..)| metric.name());
    let header = ["", "answer", "delay of", "samples"].into_iter().chain(names).chain(["against the reference"]);
    // Delays first, then losses and rates with the verdict.
    let mut table = ReportTable::new(header).keys(2).groups([8]).numbers(3..10);
    for subject in comparison.subjects(SubjectKind::Flow) {
        let mut name = subject.name.as_str();
        for answer in comparison.answers.iter().filter(|answer| answer.is_available()) {
            let Some(row) = answer.row(subject) else { continue };
            let delay_of = row.delay_of.unwrap_or_default().to_owned();
            let mut cells = vec![std::mem::take(&mut name).to_owned(), answer.by.to_string(), delay_of];
            cells.push(if row.samples > 0 { row.samples.to_string() } else { String::new() });
            cells.extend(FLOW_COLUMNS.iter().map(|column| {
                // A percentile that is missing beside samples is one that they are too few to tell.
                let is_missing = column.0.percentile().is_some() && !row.figures.contains_key(&column.0);
                if is_missing && row.samples > 0 { "-".to_owned() } else { cell(row, column) }
            }));
            cells.push(judged(comparison, answer, subject, row));
            table.row(cells);
        }
    }
    table
}

/// Returns the verdict on an answer for one subject by the figures known well, or the reason why there is no figure.
fn judged(comparison: &Comparison, answer: &ScenarioAnswer, subject: &AnswerSubject, row: &AnswerRow) -> String {
    let note = row.note.clone().unwrap_or_default();
    let verdict = match &row.status {
        AnswerRowStatus::Unstable(why) => format!("UNSTABLE: {why}"),
        AnswerRowStatus::NotAnswered(why) => format!("not answered: {why}"),
        AnswerRowStatus::Ok if comparison.is_reference(&answer.by) => "(reference)".to_owned(),
        AnswerRowStatus::Ok => {
            let own = comparison.compared.iter().find(|compared| compared.by == answer.by);
            own.and_then(|compared| compared.decision(subject)).map_or_else(String::new, |decision| {
                let difference = comparison.difference(&answer.by, subject, decision.metric);
                let excess = difference.and_then(|one| one.excess()).filter(|share| *share != 0.0);
                let excess = excess.map_or_else(String::new, |share| format!(" {:+.1}%", share * 100.0));
                let machines = if decision.may_be_machines { ", or the machine's outliers" } else { "" };
                format!("{}{excess}: {}{machines}", decision.metric.name(), decision.verdict)
            })
        }
    };
    [verdict, note].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}

fn devices(comparison: &Comparison) -> ReportTable {
    let is_known = |metric: PerformanceMetric| {
        let rows = || comparison.answers.iter().flat_map(|answer| &answer.rows);
        rows().any(|row| row.subject.part == SubjectKind::Device && row.figures.contains_key(&metric))
    };
    let columns: Vec<_> = DEVICE_COLUMNS.into_iter().filter(|(metric, ..)| is_known(*metric)).collect();
    let header = ["", "answer"].into_iter().chain(columns.iter().map(|(metric, ..)| metric.name())).chain([""]);
    let mut table = ReportTable::new(header).keys(2).numbers(2..2 + columns.len());
    for subject in comparison.subjects(SubjectKind::Device) {
        let mut name = subject.name.as_str();
        for answer in &comparison.answers {
            let Some(row) = answer.row(subject) else { continue };
            let mut cells = vec![std::mem::take(&mut name).to_owned(), answer.by.to_string()];
            cells.extend(columns.iter().map(|column| cell(row, column)));
            cells.push(match &row.status {
                AnswerRowStatus::Ok => row.note.clone().unwrap_or_default(),
                AnswerRowStatus::Unstable(why) => format!("UNSTABLE: {why}"),
                AnswerRowStatus::NotAnswered(why) => format!("not answered: {why}"),
            });
            table.row(cells);
        }
    }
    table
}

fn cell(row: &AnswerRow, (metric, scale, digits, unit): &(PerformanceMetric, f64, usize, &str)) -> String {
    let Some(MetricValue { value, half_width }) = row.figures.get(metric) else { return String::new() };
    let value = value * scale;
    // Values under 100 get two decimals, so that delays of a few microseconds stay precise.
    let digits = if *digits > 0 || value >= 100.0 || value == 0.0 { *digits } else { 2 };
    let half = half_width.filter(|half| *half > 0.0);
    let half = half.map_or(String::new(), |half| format!(" ± {:.digits$}", half * scale));
    format!("{value:.digits$}{half}{unit}")
}

/// Summarises each answer's distance from the reference over all flows.
fn verdicts(comparison: &Comparison) -> String {
    let Some(reference) = &comparison.reference else {
        return "Nothing to hold the answers against: neither run nor simulate answered\n".to_owned();
    };
    if comparison.compared.is_empty() {
        return format!("Nothing to hold against {reference}: nobody else answered\n");
    }
    let mut text = String::new();
    for compared in &comparison.compared {
        let _ = writeln!(text, "{} against {reference}:", compared.by);
        compared.scores.iter().for_each(|score| _ = writeln!(text, "  {}", sentence(score)));
        if compared.scores.is_empty() {
            text += "  no figure in common\n";
        }
        for (flow, why) in compared.not_compared.iter().filter(|(_, why)| why != "nothing was measured") {
            let _ = writeln!(text, "  not compared: {flow}: {why}");
        }
    }
    text
}

/// Describes one score as a sentence.
fn sentence(score: &AnswerScore) -> String {
    let flows = score.errors.valid;
    let unit = |value: f64| match score.metric.is_share() {
        true => format!("{:.2} percentage points", value * 100.0),
        false if value >= 10.0 => format!("a factor of {:.0}", value + 1.0),
        false => format!("{:.1}%", value * 100.0),
    };
    let mut text = format!("{}: {}", score.metric.name(), score.verdict);
    let _ = write!(
        text,
        "; {flows} {}, {} off on average",
        if flows == 1 { "flow" } else { "flows" },
        unit(score.errors.mean)
    );
    if flows > 1 && score.errors.max > 0.0 {
        let _ = write!(text, ", {} at most ({})", unit(score.errors.max), score.worst);
    }
    if score.with_interval > 0 {
        let _ = write!(text, "; {} of {} inside the interval", score.inside, score.with_interval);
    }
    if score.unstable > 0 {
        let _ = write!(text, "; {} unstable", score.unstable);
    }
    text
}

/// Lists the conditions of each answer, the answers left out, and failures.
fn conditions(comparison: &Comparison) -> String {
    let mut text = format!("Scenario {}\n", comparison.scenario);
    for answer in &comparison.answers {
        let _ = match &answer.state {
            AnswerState::LeftOut(why) => writeln!(text, "{}: left out: {why}", answer.by),
            AnswerState::Answered => writeln!(text, "{}: {}", answer.by, answer.conditions),
            AnswerState::Partial => writeln!(text, "{}: stopped early, partial: {}", answer.by, answer.conditions),
        };
    }
    if !comparison.passed {
        let failed =
            comparison.answers.iter().filter(|answer| !answer.passed && answer.by.verb != EvaluationMethod::Predict);
        let failed: Vec<String> = failed.map(|answer| answer.by.to_string()).collect();
        let _ = writeln!(text, "FAILED: traffic did not do what was expected ({})", failed.join(", "));
    }
    if comparison.partial {
        text += "Stopped early, results are partial\n";
    }
    text
}
