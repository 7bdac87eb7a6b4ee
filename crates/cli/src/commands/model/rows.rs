//! Evaluates a model for each row of a CSV file of parameters.
use super::{ModelEvaluation, value_of};
use anyhow::{Context, bail, ensure};
use serde_json::Map;
use std::path::Path;
use weir_model::registry::RegisteredModel;

/// Column that identifies a row.
const ID: &str = "id";
/// Maximum number of rows.
const MAX_ROWS: usize = 1_000_000;

/// Evaluates every row; a parameter with an empty cell is omitted.
pub(super) fn evaluate(model: &RegisteredModel, path: &Path) -> anyhow::Result<Vec<ModelEvaluation>> {
    let of_file = || format!("--rows: {}", path.display());
    let mut file = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).with_context(of_file)?;
    let header: Vec<String> = file.headers().with_context(of_file)?.iter().map(str::to_owned).collect();
    check(model, &header).with_context(of_file)?;
    let mut answers = Vec::new();
    for record in file.records() {
        ensure!(answers.len() < MAX_ROWS, "{}: expected at most {MAX_ROWS} rows", of_file());
        let record = record.with_context(of_file)?;
        let (mut id, mut given) = (None, Map::new());
        for (name, cell) in header.iter().zip(&record).filter(|(_, cell)| !cell.is_empty()) {
            if name == ID {
                id = Some(cell.to_owned());
            } else {
                given.insert(name.clone(), value_of(cell));
            }
        }
        answers.push(ModelEvaluation { id, result: model.evaluate(&given), given });
    }
    Ok(answers)
}

/// Rejects columns that are no parameters, before any row is evaluated.
fn check(model: &RegisteredModel, header: &[String]) -> anyhow::Result<()> {
    let names = || model.parameters.iter().map(|parameter| parameter.name);
    for (index, column) in header.iter().enumerate() {
        if column != ID && !names().any(|name| name == column) {
            let names: Vec<&str> = names().collect();
            bail!("found column `{column}`, expected {ID} or parameters of {}: {}", model.name, names.join(", "));
        }
        ensure!(!header[..index].contains(column), "found column `{column}` twice");
    }
    Ok(())
}
