//! Computes leader boards: errors of all answerers against the reference over many scenarios.
use crate::answer::{Answer, Answerer, Metric, Part, Status};
use crate::comparison::Comparison;
use crate::score::Errors;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Metrics of a board.
const METRICS: [Metric; 5] = [Metric::DelayMean, Metric::DelayP95, Metric::DelayP99, Metric::Loss, Metric::Rate];

/// Leader board over several scenarios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Board {
    /// True if an answer is partial.
    pub partial: bool,
    /// Places by metric, then from the smallest mean error to the largest.
    pub places: Vec<Place>,
    /// Scenarios, in the order in which they were asked.
    pub entries: Vec<Entry>,
}

/// Scenario of a board.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// File of the scenario.
    pub file: String,
    /// Comparison, or the reason why there is none.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Outcome for a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", content = "result", rename_all = "snake_case")]
pub enum Outcome {
    /// The answers were compared.
    Compared(Box<Comparison>),
    /// The scenario could not be read, or there was no answer, for this reason.
    Failed(String),
}

/// Place of an answerer for a metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Place {
    /// Answerer of the place.
    pub by: Answerer,
    /// Metric of the place.
    pub metric: Metric,
    /// Number of flows that could be compared.
    pub valid: usize,
    /// Number of flows for which it has no steady state.
    pub unstable: usize,
    /// Number of flows that it does not answer for other reasons.
    pub not_answered: usize,
    /// Errors over its own valid flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<Errors>,
    /// Errors over the flows that all answerers with a place answer. Only these compare answerers with each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common: Option<Errors>,
}

/// Result of an answerer for a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    Error(f64),
    Unstable,
    NotAnswered,
}

/// Flow of a scenario: index of the entry, and index of the row in the reference.
type Key = (usize, usize);

impl Board {
    /// Makes the board of these scenarios.
    pub fn new(entries: Vec<Entry>) -> Board {
        let comparisons: Vec<(usize, &Comparison)> = entries.iter().enumerate().filter_map(compared).collect();
        let places = METRICS.into_iter().flat_map(|metric| places(metric, &comparisons)).collect();
        let partial = comparisons.iter().any(|(_, comparison)| comparison.partial);
        Board { partial, places, entries }
    }
}

fn compared((number, entry): (usize, &Entry)) -> Option<(usize, &Comparison)> {
    match &entry.outcome {
        Outcome::Compared(comparison) => Some((number, comparison)),
        Outcome::Failed(_) => None,
    }
}

fn places(metric: Metric, comparisons: &[(usize, &Comparison)]) -> Vec<Place> {
    let mut cells: BTreeMap<Answerer, BTreeMap<Key, Cell>> = BTreeMap::new();
    for (number, comparison) in comparisons {
        for (by, place, cell) in cells_of(metric, comparison) {
            cells.entry(by).or_default().insert((*number, place), cell);
        }
    }
    let valid = |own: &BTreeMap<Key, Cell>| -> BTreeSet<Key> {
        own.iter().filter(|(_, cell)| matches!(cell, Cell::Error(_))).map(|(key, _)| *key).collect()
    };
    // An answerer without any figure has no place and does not reduce the common flows.
    cells.retain(|_, own| own.values().any(|cell| matches!(cell, Cell::Error(_))));
    let common = cells.values().map(&valid).reduce(|one, other| &one & &other).unwrap_or_default();
    let mut places: Vec<Place> = cells.iter().map(|(by, own)| place(by, metric, own, &common)).collect();
    let mean = |errors: Option<Errors>| errors.map_or(f64::INFINITY, |errors| errors.mean);
    places.sort_by(|a, b| mean(a.common).total_cmp(&mean(b.common)).then(mean(a.own).total_cmp(&mean(b.own))));
    places
}

fn place(by: &Answerer, metric: Metric, own: &BTreeMap<Key, Cell>, common: &BTreeSet<Key>) -> Place {
    let errors = |is_in: &dyn Fn(&Key) -> bool| {
        Errors::of(own.iter().filter(|(key, _)| is_in(key)).filter_map(|(_, cell)| match cell {
            Cell::Error(error) => Some(*error),
            Cell::Unstable | Cell::NotAnswered => None,
        }))
    };
    let count = |wanted: Cell| own.values().filter(|cell| **cell == wanted).count();
    let all = errors(&|_| true);
    Place {
        by: by.clone(),
        metric,
        valid: all.map_or(0, |errors| errors.valid),
        unstable: count(Cell::Unstable),
        not_answered: count(Cell::NotAnswered),
        own: all,
        common: errors(&|key| common.contains(key)),
    }
}

/// Returns the results of all answerers but the reference, for flows for which the reference has a figure.
fn cells_of(metric: Metric, comparison: &Comparison) -> Vec<(Answerer, usize, Cell)> {
    let mut cells = Vec::new();
    let reference = comparison.answers.iter().find(|answer| comparison.is_reference(&answer.by));
    let rows = reference.into_iter().flat_map(|answer| &answer.rows).enumerate();
    for (place, row) in rows.filter(|(_, row)| row.subject.part == Part::Flow && row.figures.contains_key(&metric)) {
        let is_asked = |answer: &&Answer| answer.is_there() && answer.is_asked(&row.subject);
        let others = comparison.answers.iter().filter(|answer| !comparison.is_reference(&answer.by));
        for answer in others.filter(is_asked) {
            let error = comparison.difference(&answer.by, &row.subject, metric).and_then(|one| one.error());
            let status = answer.row(&row.subject).map(|own| &own.status);
            let cell = match (error, status) {
                (Some(error), _) => Cell::Error(error),
                (None, Some(Status::Unstable(_))) => Cell::Unstable,
                (None, _) => Cell::NotAnswered,
            };
            cells.push((answer.by.clone(), place, cell));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Figure, Row, State, Verb};

    fn answer(verb: Verb, model: Option<&str>, means: &[Option<f64>]) -> Answer {
        let row = |(number, mean): (usize, &Option<f64>)| {
            let mut row = Row::new(Part::Flow, format!("f{number}"));
            row.status = if mean.is_some() { Status::Ok } else { Status::Unstable("rho 1.1 at s1".into()) };
            row.put(Metric::DelayMean, mean.map(Figure::exact));
            row
        };
        Answer {
            by: Answerer { verb, model: model.map(str::to_owned) },
            state: State::Answered,
            runs: 1,
            passed: true,
            conditions: String::new(),
            rows: means.iter().enumerate().map(row).collect(),
        }
    }

    fn entry(answers: Vec<Answer>) -> Entry {
        Entry { file: "s.toml".into(), outcome: Outcome::Compared(Box::new(Comparison::new("s", answers, None))) }
    }

    #[test]
    fn models_are_compared_on_what_all_of_them_answer() {
        let reference = answer(Verb::Simulate, None, &[Some(1.0), Some(2.0), Some(4.0)]);
        let good = answer(Verb::Predict, Some("good"), &[Some(1.1), Some(2.2), Some(40.0)]);
        let bad = answer(Verb::Predict, Some("bad"), &[Some(1.5), Some(3.0), None]);
        let silent = answer(Verb::Predict, Some("silent"), &[None, None, None]);
        let failed = Entry { file: "broken.toml".into(), outcome: Outcome::Failed("broken.toml:3: found `x`".into()) };
        let board = Board::new(vec![entry(vec![good, bad, silent, reference]), failed]);
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
