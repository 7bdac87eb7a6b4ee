//! Page of a sweep: one scenario with several values of its keys.
use super::{ChartTimeUnit, MOST_FLOWS, foot, verdicts};
use crate::answer::{AnswerRowStatus, AnswerSource, AnswerSubject, PerformanceMetric, ScenarioAnswer, SubjectKind};
use crate::comparison::Comparison;
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use weir_plot::{Axis, Chart, ChartSeries, Figure, HeatMap, HtmlCell, HtmlPage, HtmlTable, Panels, swept_axis};

/// Comparison, with the values that the scenario had for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweptComparison {
    /// Keys of the scenario and their values, as written by the user.
    pub values: Vec<(String, String)>,
    /// Comparison of the answers.
    #[serde(flatten)]
    pub comparison: Comparison,
}

impl SweptComparison {
    /// Returns the values of the keys other than this one as text.
    fn others(&self, key: usize) -> String {
        let others = self.values.iter().enumerate().filter(|(at, _)| *at != key);
        let others = others.map(|(_, (key, value))| format!("{key} = {value}"));
        others.collect::<Vec<_>>().join(", ")
    }

    fn text(&self) -> String {
        let pairs = self.values.iter().map(|(key, value)| format!("{key} = {value}"));
        pairs.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the index of the key used as the x axis: the key with most values, the first if there are several.
fn along(points: &[SweptComparison]) -> usize {
    let keys = points.first().map_or(0, |point| point.values.len());
    let values = |key: usize| {
        let values: BTreeSet<&str> = points.iter().map(|point| point.values[key].1.as_str()).collect();
        values.len()
    };
    (0..keys).rev().max_by_key(|key| values(*key)).unwrap_or(0)
}

/// Returns the page of a sweep as HTML. Charts have the key with most values as their x axis, and a panel for each
/// combination of the other keys' values.
pub fn swept(points: &[SweptComparison]) -> String {
    let name = points.first().map_or("", |point| point.comparison.scenario.as_str());
    let unit = ChartTimeUnit::of(points.iter().map(|point| &point.comparison));
    let mut page = HtmlPage::new(&format!("{name}: answers side by side"));
    if points.iter().any(|point| point.comparison.partial) {
        page.warning("Stopped early, results are partial");
    }
    introduce(&mut page, points);
    let unstable = unstable(points);
    if !unstable.rows.is_empty() {
        page.heading("Without a steady state");
        page.text("These have no place on the charts, and count for no average.").table(&unstable);
    }
    let subjects = subjects(points);
    for subject in subjects.iter().take(MOST_FLOWS) {
        page.heading(&subject.name);
        for (metric, scale, label) in [
            (PerformanceMetric::DelayMean, unit.per_second, format!("mean delay, {}", unit.name)),
            (PerformanceMetric::DelayP95, unit.per_second, format!("p95 of the delay, {}", unit.name)),
            (PerformanceMetric::Loss, 100.0, "loss, %".to_owned()),
        ] {
            let panels = panels(points, subject, metric, scale, &label);
            if metric == PerformanceMetric::Loss && !panels.is_empty() && !loses(points, subject) {
                page.text("No answer has loss here.");
            } else if !panels.is_empty() {
                let title = format!("{} of {}", metric.name(), subject.name);
                page.figure(&Figure::Panels(Panels { name: "lines".into(), title, columns: 2, figures: panels }), "");
            }
        }
        if let Some(map) = errors(points, subject) {
            page.figure(&map, "error of the mean delay in %, by answer");
        }
    }
    if subjects.len() > MOST_FLOWS {
        page.text(&format!("The first {MOST_FLOWS} of {} flows", subjects.len()));
    }
    for point in points {
        page.details(&point.text(), |page| verdicts(page, &point.comparison));
    }
    page.finish(&points.first().map_or_else(String::new, |point| foot(&point.comparison)))
}

/// Appends what was asked, and the answer in a line: at how many points each answerer has the mean delay right.
fn introduce(page: &mut HtmlPage, points: &[SweptComparison]) {
    let Some(first) = points.first() else { return };
    let keys: Vec<String> = (0..first.values.len())
        .map(|key| {
            let values: Vec<&str> = points.iter().map(|point| point.values[key].1.as_str()).collect();
            let (from, to) = (values.first().copied().unwrap_or_default(), values.last().copied().unwrap_or_default());
            format!("{} goes from {from} to {to}", first.values[key].0)
        })
        .collect();
    let reference = points.iter().find_map(|point| point.comparison.reference.as_ref());
    let near = reference.map_or_else(|| "each other".to_owned(), ToString::to_string);
    let scenario = &first.comparison.scenario;
    let asked =
        format!("Asked: how near do answers come to {near} in scenario {scenario} while {}?", keys.join(" and "));
    let others = answerers(points).into_iter().filter(|by| reference != Some(by));
    let answer = |by: AnswerSource| {
        let own = points.iter().flat_map(|point| &point.comparison.compared).filter(|compared| compared.by == by);
        let scores = own.flat_map(|compared| &compared.scores);
        let verdicts: Vec<bool> = scores
            .filter(|score| score.metric == PerformanceMetric::DelayMean)
            .map(|score| score.verdict.is_wrong())
            .collect();
        let right = verdicts.iter().filter(|wrong| !**wrong).count();
        format!("{by} is not wrong at {right} of the {} points with a value", verdicts.len())
    };
    let answers: Vec<String> = others.map(answer).collect();
    let answer = match (reference, answers.is_empty()) {
        (Some(_), false) => format!("Mean delay: {}.", answers.join("; ")),
        _ => "Open: there is no run or simulation to compare with.".to_owned(),
    };
    page.answer(&asked, &answer);
}

/// Returns true if any answer has loss for this flow.
fn loses(points: &[SweptComparison], subject: &AnswerSubject) -> bool {
    let mut rows = points.iter().flat_map(|point| &point.comparison.answers).filter_map(|answer| answer.row(subject));
    rows.any(|row| row.value(PerformanceMetric::Loss).is_some_and(|loss| loss > 0.0))
}

fn subjects(points: &[SweptComparison]) -> Vec<AnswerSubject> {
    let mut found: Vec<AnswerSubject> = Vec::new();
    for subject in points.iter().flat_map(|point| point.comparison.subjects(SubjectKind::Flow)) {
        if !found.contains(subject) {
            found.push(subject.clone());
        }
    }
    found
}

/// Returns the combinations of the other keys' values, in the order of the points.
fn combinations(points: &[SweptComparison], key: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for point in points {
        let others = point.others(key);
        if !found.contains(&others) {
            found.push(others);
        }
    }
    found
}

fn answerers(points: &[SweptComparison]) -> Vec<AnswerSource> {
    let mut found: Vec<AnswerSource> = Vec::new();
    for answer in points.iter().flat_map(|point| &point.comparison.answers).filter(|answer| answer.is_available()) {
        if !found.contains(&answer.by) {
            found.push(answer.by.clone());
        }
    }
    found
}

/// Returns a panel for each combination, with a line for each answerer.
fn panels(
    points: &[SweptComparison],
    subject: &AnswerSubject,
    metric: PerformanceMetric,
    scale: f64,
    label: &str,
) -> Vec<Figure> {
    let key = along(points);
    let x = points.first().and_then(|point| point.values.get(key)).map_or("", |(key, _)| key.as_str());
    let values: Vec<&String> = points.iter().filter_map(|point| Some(&point.values.get(key)?.1)).collect();
    // A value has one place, also where the other keys have several values.
    let mut distinct: Vec<String> = Vec::new();
    for value in &values {
        if !distinct.contains(value) {
            distinct.push((*value).clone());
        }
    }
    let (x, places) = swept_axis(x, &distinct);
    let places: BTreeMap<&str, f64> = distinct.iter().map(String::as_str).zip(places).collect();
    let panel = |others: &String| {
        let series = |by: &AnswerSource| {
            let value = |point: &SweptComparison| {
                let along = *places.get(point.values.get(key)?.1.as_str())?;
                let own = point.others(key);
                let answer = point.comparison.answers.iter().find(|answer| answer.by == *by)?;
                let figure = *answer.row(subject)?.figures.get(&metric)?;
                let half = figure.half_width.map(|half| half * scale);
                (own == *others).then(|| weir_plot::ChartPoint::within(along, figure.value * scale, half))
            };
            ChartSeries::line(by.label(), points.iter().filter_map(value).collect())
        };
        let series: Vec<ChartSeries> =
            answerers(points).iter().map(series).filter(|series| !series.points.is_empty()).collect();
        (!series.is_empty()).then(|| {
            let title =
                if others.is_empty() { metric.name().to_owned() } else { format!("{}, {others}", metric.name()) };
            Figure::Chart(Chart {
                name: "line".into(),
                title,
                x: Axis::linear(x.clone()),
                y: Axis::linear(label),
                series,
            })
        })
    };
    combinations(points, key).iter().filter_map(panel).collect()
}

/// Returns a heat map of errors of the mean delay, by answerer and point.
fn errors(points: &[SweptComparison], subject: &AnswerSubject) -> Option<Figure> {
    let row = |by: &AnswerSource| {
        let error = |point: &SweptComparison| {
            let difference = point.comparison.difference(by, subject, PerformanceMetric::DelayMean)?;
            difference.error().map(|error| error * 100.0)
        };
        (by.label().to_owned(), points.iter().map(error).collect::<Vec<_>>())
    };
    let rows: Vec<_> =
        answerers(points).iter().map(row).filter(|(_, errors)| errors.iter().any(Option::is_some)).collect();
    let column =
        |point: &SweptComparison| point.values.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ");
    (!rows.is_empty()).then(|| {
        Figure::HeatMap(HeatMap {
            name: "errors".into(),
            title: "Error of the mean delay in %".into(),
            x: points.first().map_or_else(String::new, |point| {
                point.values.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(", ")
            }),
            y: String::new(),
            columns: points.iter().map(column).collect(),
            rows,
            most: Some(100.0),
        })
    })
}

/// Returns a table of the points without a steady state.
fn unstable(points: &[SweptComparison]) -> HtmlTable {
    let rows = points.iter().flat_map(|point| {
        point.comparison.answers.iter().flat_map(move |answer: &ScenarioAnswer| {
            answer.rows.iter().filter_map(move |row| match &row.status {
                AnswerRowStatus::Unstable(why) => Some(vec![
                    point.text().into(),
                    answer.by.to_string().into(),
                    row.subject.name.clone().into(),
                    HtmlCell::wrong(why.clone()),
                ]),
                AnswerRowStatus::Ok | AnswerRowStatus::NotAnswered(_) => None,
            })
        })
    });
    HtmlTable { head: ["with", "answer", "", "why"].map(str::to_owned).into(), texts: 4, rows: rows.collect() }
}
