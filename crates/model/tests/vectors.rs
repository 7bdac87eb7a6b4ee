//! Compares every model with reference values computed elsewhere.
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;
use weir_model::ModelError;
use weir_model::registry::{ModelOutcome, find};

/// Magnitude below which two values count as equal.
const SMALL: f64 = 1e-10;

/// Rows whose reference value was inverted with too few terms: case, metric, correct value. That of dev-031, whose
/// law is uniform, comes from the renewal equation of the waiting time, F(t) = 1 - rho + rho * (excess density *
/// F)(t), solved in steps of 40, 20 and 10 us and extrapolated.
const CORRECTED: [(&str, &str, f64); 1] = [("dev-031", "p95", 0.042_725_162_7)];

#[derive(Deserialize)]
struct Row {
    id: String,
    model: String,
    params_json: String,
    metric: String,
    value: Option<f64>,
    rel_tol: Option<f64>,
    expect_error: String,
}

/// Case with its answer: the rows of a case are adjacent, so it is evaluated once.
#[derive(Default)]
struct Case {
    id: String,
    answer: Option<Result<ModelOutcome, ModelError>>,
}

impl Case {
    fn answer(&mut self, row: &Row) -> &Result<ModelOutcome, ModelError> {
        if self.id != row.id {
            *self = Case { id: row.id.clone(), answer: None };
        }
        self.answer.get_or_insert_with(|| {
            let given = serde_json::from_str(&row.params_json).expect("parameters are JSON");
            find(&row.model).expect("the model is there").evaluate(&given)
        })
    }
}

/// Returns the problem of the model's answer to a row, if there is one.
fn problem(row: &Row, answer: &Result<ModelOutcome, ModelError>) -> Option<String> {
    if row.metric == "error" {
        return match answer {
            Err(error) if error.kind() == row.expect_error => None,
            other => Some(format!("expected {}, found {other:?}", row.expect_error)),
        };
    }
    let found = match answer {
        Ok(outcome) => outcome.get(&row.metric),
        Err(error) => return Some(error.to_string()),
    };
    let corrected = CORRECTED.iter().find(|(id, metric, _)| (*id, *metric) == (row.id.as_str(), row.metric.as_str()));
    let value = corrected.map_or_else(|| row.value.expect("a value"), |(_, _, value)| *value);
    let tolerance = if corrected.is_some() { 2e-6 } else { row.rel_tol.expect("a tolerance") };
    let near = |found: f64| (found - value).abs() <= (tolerance * value.abs()).max(SMALL);
    (!found.is_some_and(near)).then(|| format!("expected {value} within {tolerance}, found {found:?}"))
}

fn check(path: &Path) -> usize {
    let (mut problems, mut unknown, mut checked, mut case) = (Vec::new(), BTreeSet::new(), 0, Case::default());
    for row in csv::Reader::from_path(path).expect("the file can be read").deserialize() {
        let row: Row = row.expect("a row");
        if find(&row.model).is_err() {
            unknown.insert(row.model);
            continue;
        }
        checked += 1;
        problems.extend(
            problem(&row, case.answer(&row))
                .map(|problem| format!("{} {} {}: {problem}", row.id, row.model, row.metric)),
        );
    }
    assert!(problems.is_empty(), "{}:\n{}", path.display(), problems.join("\n"));
    assert!(unknown.is_empty(), "{}: no such models: {unknown:?}", path.display());
    checked
}

#[test]
fn the_rows_kept_here_are_met() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let files = weir_testing::files(&folder, "", "csv");
    assert!(files.iter().map(|(name, _)| check(&folder.join(name))).sum::<usize>() > 0);
}

#[test]
fn all_rows_of_the_reference_file_are_met() {
    let Some(path) = weir_testing::shared("data/model-vectors.csv") else { return };
    assert!(check(&path) > 0);
}
