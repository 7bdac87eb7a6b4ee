//! `weir model`: evaluates one model, for one set of parameters or a file of them. Exit status 0 if there is an
//! answer, 2 for bad input.
mod rows;
mod show;

use anyhow::{Context, bail};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use weir_model::ModelError;
use weir_model::registry::{ModelOutcome, RegisteredModel, find};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  weir model                                        all models
  weir model mahmood                                what it assumes, is asked with and answers
  weir model mahmood lam=500 p=0.2 mu_s=1000 mu_c=150
  weir model mg1 --params '{\"lam\": 700, \"dist\": [\"gamma\", 0.001, 0.4]}' --json
  weir model mm1 --rows loads.csv --csv             a header such as lam,mu and a row for each evaluation")]
pub(crate) struct ModelArgs {
    /// The model; without one, all are listed
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Parameters; values are numbers, lists or words as in JSON. Without any, the model is described
    #[arg(value_name = "PARAMETER=VALUE", value_parser = parameter, conflicts_with_all = ["params", "rows"])]
    values: Vec<(String, Value)>,
    /// Parameters as a JSON object
    #[arg(long, value_name = "JSON", value_parser = object, requires = "name", conflicts_with = "rows")]
    params: Option<Map<String, Value>>,
    /// Evaluate each row of a CSV file whose header names parameters; a column `id` is copied to the answers
    #[arg(long, value_name = "FILE", requires = "name")]
    rows: Option<PathBuf>,
    /// List the models
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// Print the result as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV
    #[arg(long)]
    csv: bool,
}

/// Output format of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelOutputFormat {
    Text,
    Json,
    Csv,
}

/// A model's parameters and its answer to them.
struct ModelEvaluation {
    /// Value of the file's column `id`.
    id: Option<String>,
    given: Map<String, Value>,
    result: Result<ModelOutcome, ModelError>,
}

impl ModelEvaluation {
    /// Returns `OK`, or the kind of the error.
    fn status(&self) -> &'static str {
        self.result.as_ref().map_or_else(ModelError::kind, |_| "OK")
    }
}

pub(crate) fn run(args: ModelArgs) -> anyhow::Result<ExitCode> {
    let form = match (args.json, args.csv) {
        (true, _) => ModelOutputFormat::Json,
        (_, true) => ModelOutputFormat::Csv,
        _ => ModelOutputFormat::Text,
    };
    let Some(name) = &args.name else { return print(&show::list(form)?) };
    let model = find(name)?;
    if let Some(path) = &args.rows {
        return all_rows(model, path, form);
    }
    let given = args.params.unwrap_or_else(|| args.values.into_iter().collect());
    if given.is_empty() {
        return print(&show::description(model, form)?);
    }
    let answer = ModelEvaluation { id: None, result: model.evaluate(&given), given };
    if form != ModelOutputFormat::Text || answer.result.is_ok() {
        print(&show::answer(model, &answer, form)?)?;
    }
    answer.result.map(|_| ExitCode::SUCCESS).with_context(|| format!("model {name}"))
}

/// Evaluates and prints all rows of a file. Rows without a steady state are printed with their status and are no
/// failure.
///
/// # Errors
/// A row that is no input for the model makes the exit status 2.
fn all_rows(model: &RegisteredModel, path: &std::path::Path, form: ModelOutputFormat) -> anyhow::Result<ExitCode> {
    let answers = rows::evaluate(model, path)?;
    print(&show::answers(model, &answers, form)?)?;
    let count = |status: &str| answers.iter().filter(|answer| answer.status() == status).count();
    let unstable = count("UNSTABLE");
    let (answered, all) = (count("OK"), answers.len());
    weir_terminal::progress::tell(&format!("{answered} of {all} rows answered, {unstable} unstable"));
    let wrong = all - answered - unstable;
    if wrong > 0 {
        bail!("{}: {wrong} of {all} rows without an answer: their status and message say why", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("expected a JSON object such as {{\"lam\": 700, \"mu\": 1000}}: {error}"))
}

fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected PARAMETER=VALUE such as lam=700")?;
    Ok((name.trim().to_owned(), value_of(value.trim())))
}

/// Parses a JSON value. Text that is no JSON value becomes a string.
fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Prints a result. Returns success.
fn print(text: &str) -> anyhow::Result<ExitCode> {
    weir_terminal::output::print(text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_lists_or_words() {
        assert_eq!(parameter("lam=700").unwrap(), ("lam".into(), Value::from(700)));
        assert_eq!(parameter("dist=[\"det\", 0.001]").unwrap().1, serde_json::json!(["det", 0.001]));
        assert_eq!(parameter("variant=once").unwrap().1, Value::from("once"));
        assert!(parameter("lam").is_err() && object("[1]").is_err());
    }
}
