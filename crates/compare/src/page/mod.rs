//! Draws comparisons as pages with charts, which open without a network.
mod leaderboard;
mod single;
mod swept;

pub use leaderboard::render_leaderboard;
pub use single::single;
pub use swept::{SweptComparison, swept};

use crate::answer::{AnswerRowStatus, AnswerState, PerformanceMetric, ScenarioAnswer};
use crate::comparison::{AnswerComparison, Comparison};
use weir_plot::{HtmlCell, HtmlPage, HtmlTable, short};

/// Most flows with charts of their own. Tables have all flows.
const MOST_FLOWS: usize = 12;

/// Unit in which delays are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ChartTimeUnit {
    name: &'static str,
    per_second: f64,
}

impl ChartTimeUnit {
    /// Returns microseconds, or milliseconds if the longest mean delay is at least 2 ms.
    fn of<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> ChartTimeUnit {
        let rows = comparisons.flat_map(|comparison| &comparison.answers).flat_map(|answer| &answer.rows);
        let longest = rows.filter_map(|row| row.value(PerformanceMetric::DelayMean)).fold(0.0, f64::max);
        if longest >= 2e-3 {
            ChartTimeUnit { name: "ms", per_second: 1e3 }
        } else {
            ChartTimeUnit { name: "us", per_second: 1e6 }
        }
    }
}

/// Appends what was asked of a scenario, and the answer in a line: how near to the reference each answerer comes.
fn introduce(page: &mut HtmlPage, comparison: &Comparison) {
    let names = |answers: Vec<String>| if answers.is_empty() { "nothing".to_owned() } else { answers.join(" and ") };
    let scenario = &comparison.scenario;
    let Some(reference) = &comparison.reference else {
        let answered = comparison.answers.iter().filter(|answer| answer.is_available());
        let answered = names(answered.map(|answer| answer.by.to_string()).collect());
        page.answer(
            &format!("Asked: how near do answers come to each other in scenario {scenario}?"),
            &format!("Open: {answered} answered, and there is no run or simulation to compare with."),
        );
        return;
    };
    let others = names(comparison.compared.iter().map(|compared| compared.by.to_string()).collect());
    let verb = if comparison.compared.len() > 1 { "do" } else { "does" };
    let asked = format!("Asked: how near {verb} {others} come to {reference}, in scenario {scenario}?");
    let answers: Vec<String> = comparison.compared.iter().map(in_a_line).collect();
    let answer = if answers.is_empty() { "Open: only one answered.".to_owned() } else { answers.join(" ") };
    page.answer(&asked, &answer);
    comparison.answers.iter().filter_map(ScenarioAnswer::doubt).for_each(|doubt| _ = page.warning(&doubt));
}

/// Returns an answerer's verdict by what is known well, and the metrics in which the answerer is wrong on average.
fn in_a_line(compared: &AnswerComparison) -> String {
    let wrong: Vec<&str> =
        compared.scores.iter().filter(|score| score.verdict.is_wrong()).map(|score| score.metric.name()).collect();
    let wrong =
        if wrong.is_empty() { String::new() } else { format!(" On average it is wrong in {}.", wrong.join(", ")) };
    format!("{}{wrong}", compared.sentence())
}

/// Returns the conditions of all answers, for the foot of a page.
fn foot(comparison: &Comparison) -> String {
    let answer = |answer: &ScenarioAnswer| match &answer.state {
        AnswerState::LeftOut(why) => format!("{}: left out: {why}", answer.by),
        AnswerState::Answered | AnswerState::Partial => format!("{}: {}", answer.by, answer.conditions),
    };
    let answers: Vec<String> = comparison.answers.iter().map(answer).collect();
    format!("Scenario {}. {}", comparison.scenario, answers.join(" / "))
}

/// Returns a table of the decisions on each flow, with the figures that were judged.
fn decisions(comparison: &Comparison) -> HtmlTable {
    let rows = comparison.compared.iter().flat_map(|compared| {
        compared.decisions.iter().map(|decision| {
            let machines = if decision.may_be_machines { ", or the machine's outliers" } else { "" };
            let verdict = format!("{}: {}{machines}", decision.metric.name(), decision.verdict);
            let judged: Vec<&str> = decision.judged_by.iter().map(|metric| metric.name()).collect();
            vec![
                decision.name.clone().into(),
                compared.by.to_string().into(),
                if decision.is_wrong() { HtmlCell::wrong(verdict) } else { verdict.into() },
                judged.join(", ").into(),
                decision.known_best.name().into(),
                decision.known_to.map_or_else(String::new, |half| format!("{:.1}", half * 100.0)).into(),
            ]
        })
    });
    let head = ["", "answer", "verdict", "judged by", "known best", "verdict's figure known to, ±%"];
    HtmlTable { head: head.map(str::to_owned).into(), texts: 5, rows: rows.collect() }
}

/// Adds the verdicts by answerer and metric to a page.
fn verdicts(page: &mut HtmlPage, comparison: &Comparison) {
    let Some(reference) = &comparison.reference else {
        page.warning("Nothing to hold the answers against: neither run nor simulate answered");
        return;
    };
    let rows = comparison.compared.iter().flat_map(|compared| {
        compared.scores.iter().map(|score| {
            let verdict = score.verdict.to_string();
            let share = |value: f64| format!("{:.1}", value * 100.0);
            vec![
                compared.by.to_string().into(),
                score.metric.name().into(),
                if score.verdict.is_wrong() { HtmlCell::wrong(verdict) } else { verdict.into() },
                score.worst.clone().into(),
                score.errors.valid.to_string().into(),
                score.unstable.to_string().into(),
                share(score.errors.mean).into(),
                share(score.errors.median).into(),
                share(score.errors.p95).into(),
                share(score.errors.max).into(),
                format!("{} of {}", score.inside, score.with_interval).into(),
            ]
        })
    });
    let head = [
        "answer",
        "of",
        "verdict",
        "farthest off",
        "flows",
        "unstable",
        "mean error, %",
        "median, %",
        "p95, %",
        "largest, %",
        "inside the interval",
    ];
    page.heading(&format!("Against {reference}"));
    page.table(&HtmlTable { head: head.map(str::to_owned).into(), texts: 4, rows: rows.collect() });
}

/// Returns a table of all flows and answers.
fn flows(comparison: &Comparison, unit: ChartTimeUnit) -> HtmlTable {
    let metrics = [
        PerformanceMetric::DelayMean,
        PerformanceMetric::DelayP50,
        PerformanceMetric::DelayP95,
        PerformanceMetric::DelayP99,
        PerformanceMetric::Loss,
        PerformanceMetric::Rate,
    ];
    let names = ["", "answer", "delay of", ""].into_iter().map(str::to_owned);
    let columns = metrics.iter().map(|metric| match metric {
        PerformanceMetric::Loss => "loss, %".to_owned(),
        PerformanceMetric::Rate => "rate, Mbit/s".to_owned(),
        delay => format!("{}, {}", delay.name(), unit.name),
    });
    let mut rows = Vec::new();
    for subject in comparison.subjects(crate::answer::SubjectKind::Flow) {
        for answer in &comparison.answers {
            let Some(row) = answer.row(subject) else { continue };
            let mut cells: Vec<HtmlCell> = vec![
                subject.name.clone().into(),
                answer.by.to_string().into(),
                row.delay_of.unwrap_or_default().into(),
                match &row.status {
                    AnswerRowStatus::Ok => row.note.clone().unwrap_or_default().into(),
                    AnswerRowStatus::Unstable(why) => HtmlCell::wrong(format!("UNSTABLE: {why}")),
                    AnswerRowStatus::NotAnswered(why) => format!("not answered: {why}").into(),
                },
            ];
            for metric in metrics {
                let scale = match metric {
                    PerformanceMetric::Loss => 100.0,
                    PerformanceMetric::Rate => 1e-6,
                    _ => unit.per_second,
                };
                cells.push(
                    row.figures
                        .get(&metric)
                        .map_or_else(String::new, |figure| {
                            let half = figure.half_width.filter(|half| *half > 0.0);
                            let half = half.map_or_else(String::new, |half| format!(" ± {}", short(half * scale)));
                            format!("{}{half}", short(figure.value * scale))
                        })
                        .into(),
                );
            }
            rows.push(cells);
        }
    }
    HtmlTable { head: names.chain(columns).collect(), texts: 4, rows }
}
