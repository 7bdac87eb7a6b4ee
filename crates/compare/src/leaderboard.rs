//! Computes leader boards: errors of all answerers against the reference over many scenarios.
use crate::answer::{AnswerRowStatus, AnswerSource, PerformanceMetric, ScenarioAnswer, SubjectKind};
use crate::comparison::Comparison;
use crate::score::ErrorStatistics;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Metrics of a board.
const METRICS: [PerformanceMetric; 5] = [
    PerformanceMetric::DelayMean,
    PerformanceMetric::DelayP95,
    PerformanceMetric::DelayP99,
    PerformanceMetric::Loss,
    PerformanceMetric::Rate,
];

/// Leader board over several scenarios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Leaderboard {
    /// True if an answer is partial.
    pub partial: bool,
    /// Places by metric, then from the smallest mean error to the largest.
    pub places: Vec<LeaderboardRow>,
    /// Scenarios, in the order in which they were asked.
    pub entries: Vec<LeaderboardScenario>,
}

/// Scenario of a board.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeaderboardScenario {
    /// File of the scenario.
    pub file: String,
    /// Comparison, or the reason why there is none.
    #[serde(flatten)]
    pub outcome: ScenarioOutcome,
}

/// Outcome for a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", content = "result", rename_all = "snake_case")]
pub enum ScenarioOutcome {
    /// The answers were compared.
    Compared(Box<Comparison>),
    /// The scenario could not be read, or there was no answer, for this reason.
    Failed(String),
}

/// Place of an answerer for a metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeaderboardRow {
    /// Answerer of the place.
    pub by: AnswerSource,
    /// Metric of the place.
    pub metric: PerformanceMetric,
    /// Number of flows that could be compared.
    pub valid: usize,
    /// Number of flows for which it has no steady state.
    pub unstable: usize,
    /// Number of flows that it does not answer for other reasons.
    pub not_answered: usize,
    /// Errors over its own valid flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<ErrorStatistics>,
    /// Errors over the flows that all answerers with a place answer. Only these compare answerers with each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common: Option<ErrorStatistics>,
}

/// Result of an answerer for a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FlowAccuracy {
    Error(f64),
    Unstable,
    NotAnswered,
}

/// Flow of a scenario: index of the entry, and index of the row in the reference.
type ScenarioFlow = (usize, usize);

impl Leaderboard {
    /// Makes the board of these scenarios.
    pub fn new(entries: Vec<LeaderboardScenario>) -> Leaderboard {
        let comparisons: Vec<(usize, &Comparison)> = entries.iter().enumerate().filter_map(compared).collect();
        let places = METRICS.into_iter().flat_map(|metric| places(metric, &comparisons)).collect();
        let partial = comparisons.iter().any(|(_, comparison)| comparison.partial);
        Leaderboard { partial, places, entries }
    }
}

fn compared((number, entry): (usize, &LeaderboardScenario)) -> Option<(usize, &Comparison)> {
    match &entry.outcome {
        ScenarioOutcome::Compared(comparison) => Some((number, comparison)),
        ScenarioOutcome::Failed(_) => None,
    }
}

fn places(metric: PerformanceMetric, comparisons: &[(usize, &Comparison)]) -> Vec<LeaderboardRow> {
    let mut cells: BTreeMap<AnswerSource, BTreeMap<ScenarioFlow, FlowAccuracy>> = BTreeMap::new();
    for (number, comparison) in comparisons {
        for (by, place, cell) in cells_of(metric, comparison) {
            cells.entry(by).or_default().insert((*number, place), cell);
        }
    }
    let valid = |own: &BTreeMap<ScenarioFlow, FlowAccuracy>| -> BTreeSet<ScenarioFlow> {
        own.iter().filter(|(_, cell)| matches!(cell, FlowAccuracy::Error(_))).map(|(key, _)| *key).collect()
    };
    // An answerer without any figure has no place and does not reduce the common flows.
    cells.retain(|_, own| own.values().any(|cell| matches!(cell, FlowAccuracy::Error(_))));
    let common = cells.values().map(&valid).reduce(|one, other| &one & &other).unwrap_or_default();
    let mut places: Vec<LeaderboardRow> = cells.iter().map(|(by, own)| place(by, metric, own, &common)).collect();
    let mean = |errors: Option<ErrorStatistics>| errors.map_or(f64::INFINITY, |errors| errors.mean);
    places.sort_by(|a, b| mean(a.common).total_cmp(&mean(b.common)).then(mean(a.own).total_cmp(&mean(b.own))));
    places
}

fn place(
    by: &AnswerSource,
    metric: PerformanceMetric,
    own: &BTreeMap<ScenarioFlow, FlowAccuracy>,
    common: &BTreeSet<ScenarioFlow>,
) -> LeaderboardRow {
    let errors = |is_in: &dyn Fn(&ScenarioFlow) -> bool| {
        ErrorStatistics::of(own.iter().filter(|(key, _)| is_in(key)).filter_map(|(_, cell)| match cell {
            FlowAccuracy::Error(error) => Some(*error),
            FlowAccuracy::Unstable | FlowAccuracy::NotAnswered => None,
        }))
    };
    let count = |wanted: FlowAccuracy| own.values().filter(|cell| **cell == wanted).count();
    let all = errors(&|_| true);
    LeaderboardRow {
        by: by.clone(),
        metric,
        valid: all.map_or(0, |errors| errors.valid),
        unstable: count(FlowAccuracy::Unstable),
        not_answered: count(FlowAccuracy::NotAnswered),
        own: all,
        common: errors(&|key| common.contains(key)),
    }
}

/// Returns the results of all answerers but the reference, for flows for which the reference has a figure.
fn cells_of(metric: PerformanceMetric, comparison: &Comparison) -> Vec<(AnswerSource, usize, FlowAccuracy)> {
    let mut cells = Vec::new();
    let reference = comparison.answers.iter().find(|answer| comparison.is_reference(&answer.by));
    let rows = reference.into_iter().flat_map(|answer| &answer.rows).enumerate();
    for (place, row) in
        rows.filter(|(_, row)| row.subject.part == SubjectKind::Flow && row.figures.contains_key(&metric))
    {
        let is_asked = |answer: &&ScenarioAnswer| answer.is_available() && answer.is_asked(&row.subject);
        let others = comparison.answers.iter().filter(|answer| !comparison.is_reference(&answer.by));
        for answer in others.filter(is_asked) {
            let error = comparison.difference(&answer.by, &row.subject, metric).and_then(|one| one.error());
            let status = answer.row(&row.subject).map(|own| &own.status);
            let cell = match (error, status) {
                (Some(error), _) => FlowAccuracy::Error(error),
                (None, Some(AnswerRowStatus::Unstable(_))) => FlowAccuracy::Unstable,
                (None, _) => FlowAccuracy::NotAnswered,
            };
            cells.push((answer.by.clone(), place, cell));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{AnswerRow, AnswerState, EvaluationMethod, MetricValue};

    fn answer(verb: EvaluationMethod, model: Option<&str>, means: &[Option<f64>]) -> ScenarioAnswer {
        let row = |(number, mean): (usize, &Option<f64>)| {
            let mut row = AnswerRow::new(SubjectKind::Flow, format!("f{number}"));
            row.status =
                if mean.is_some() { AnswerRowStatus::Ok } else { AnswerRowStatus::Unstable("rho 1.1 at s1".into()) };
            row.insert_figure(PerformanceMetric::DelayMean, mean.map(MetricValue::exact));
            row
        };
        ScenarioAnswer {
            by: AnswerSource { verb, model: model.map(str::to_owned) },
            state: AnswerState::Answered,
            runs: 1,
            passed: true,
            fidelity: None,
            conditions: String::new(),
            rows: means.iter().enumerate().map(row).collect(),
        }
    }

    fn entry(answers: Vec<ScenarioAnswer>) -> LeaderboardScenario {
        LeaderboardScenario {
            file: "s.toml".into(),
            outcome: ScenarioOutcome::Compared(Box::new(Comparison::new("s", answers, None))),
        }
    }

    #[test]
    fn models_are_compared_on_what_all_of_them_answer() {
        let reference = answer(EvaluationMethod::Simulate, None, &[Some(1.0), Some(2.0), Some(4.0)]);
        let good = answer(EvaluationMethod::Predict, Some("good"), &[Some(1.1), Some(2.2), Some(40.0)]);
        let bad = answer(EvaluationMethod::Predict, Some("bad"), &[Some(1.5), Some(3.0), None]);
        let silent = answer(EvaluationMethod::Predict, Some("silent"), &[None, None, None]);
        let failed = LeaderboardScenario {
            file: "broken.toml".into(),
            outcome: ScenarioOutcome::Failed("broken.toml:3: found `x`".into()),
        };
        let board = Leaderboard::new(vec![entry(vec![good, bad, silent, reference]), failed]);
        let names: Vec<&str> = board.places.iter().filter_map(|place| place.by.model.as_deref()).collect();
        assert_eq!(names, ["good", "bad"], "who answers nothing has no place: {:?}", board.places);
        let [good, bad] = &board.places[..] else { panic!() };
        assert_eq!((good.valid, good.unstable, bad.valid, bad.unstable), (3, 0, 2, 1));
        assert!((good.common.unwrap().mean - 0.1).abs() < 1e-12 && good.common.unwrap().valid == 2);
        assert!((good.own.unwrap().max - 9.0).abs() < 1e-12);
        assert!((bad.common.unwrap().mean - 0.5).abs() < 1e-12);
        assert_eq!(board.entries.len(), 2);
    }
}
