//! Formats models and their answers as text, JSON and CSV.
use super::{ModelEvaluation, ModelOutputFormat};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use weir_model::registry::{ModelMetric, ModelOutcome, RegisteredModel, models};
use weir_terminal::table::ReportTable;
use weir_units::Seconds;

/// Significant digits of a number in a table.
const DIGITS: i32 = 6;

/// Lists all models, one line each.
pub(super) fn list(form: ModelOutputFormat) -> anyhow::Result<String> {
    if form == ModelOutputFormat::Json {
        return Ok(serde_json::to_string_pretty(&models().collect::<Vec<_>>())? + "\n");
    }
    if form == ModelOutputFormat::Csv {
        let rows = models().map(|model| vec![model.name.to_owned(), model.title.to_owned()]);
        return csv_of(std::iter::once(vec!["name".to_owned(), "title".to_owned()]).chain(rows));
    }
    let mut table = ReportTable::new(["model", "what"]);
    for model in models() {
        table.row([model.name, model.title]);
    }
    Ok(format!("{table}\n\n`weir model NAME` says what a model assumes and is asked with\n"))
}

/// Describes a model: assumptions, parameters and outputs.
pub(super) fn description(model: &RegisteredModel, form: ModelOutputFormat) -> anyhow::Result<String> {
    if form != ModelOutputFormat::Text {
        return Ok(serde_json::to_string_pretty(model)? + "\n");
    }
    let RegisteredModel { name, title, assumes, validity, source, .. } = model;
    let mut text = format!("{name}: {title}\n\nAssumes   {assumes}\nValidity  {validity}\nSource    {source}\n\n");
    let mut table = ReportTable::new(["parameter", "unit", "default", "what"]);
    for parameter in model.parameters {
        table.row([parameter.name, parameter.unit, parameter.default.unwrap_or(""), parameter.meaning]);
    }
    let _ = writeln!(text, "{table}\n");
    let mut table = ReportTable::new(["answer", "unit", "what"]);
    for output in model.outputs {
        table.row([output.name, output.unit, output.meaning]);
    }
    let _ = writeln!(text, "{table}");
    Ok(text)
}

/// Formats one answer.
pub(super) fn answer(
    model: &RegisteredModel,
    answer: &ModelEvaluation,
    form: ModelOutputFormat,
) -> anyhow::Result<String> {
    match (form, &answer.result) {
        (ModelOutputFormat::Json, _) => Ok(serde_json::to_string_pretty(&as_json(model, answer))? + "\n"),
        (ModelOutputFormat::Text, Ok(outcome)) => Ok(as_text(model, outcome)),
        _ => answers(model, std::slice::from_ref(answer), form),
    }
}

/// Formats answers, one row each.
pub(super) fn answers(
    model: &RegisteredModel,
    answers: &[ModelEvaluation],
    form: ModelOutputFormat,
) -> anyhow::Result<String> {
    if form == ModelOutputFormat::Json {
        let all: Vec<Value> = answers.iter().map(|answer| as_json(model, answer)).collect();
        return Ok(serde_json::to_string_pretty(&all)? + "\n");
    }
    let columns = EvaluationColumns::of(model, answers);
    let rows = answers.iter().map(|answer| columns.row(answer, form));
    if form == ModelOutputFormat::Csv {
        return csv_of(std::iter::once(columns.header(form)).chain(rows));
    }
    let mut table = ReportTable::new(columns.header(form));
    for row in rows {
        table.row(row);
    }
    Ok(format!("{table}\n"))
}

fn as_text(model: &RegisteredModel, outcome: &ModelOutcome) -> String {
    let mut table = ReportTable::new(["answer", "value", "what"]).numbers(1..2);
    for metric in &outcome.metrics {
        table.row([metric.name.as_str(), &shown(metric), meaning(model, &metric.name)]);
    }
    let mut text = format!("{}\n\n{table}\n\n", model.title);
    for warning in &outcome.warnings {
        let _ = writeln!(text, "Warning   {warning}");
    }
    let _ = writeln!(text, "Assumes   {}\nValidity  {}\nSource    {}", model.assumes, model.validity, model.source);
    text
}

/// Returns the meaning of a metric. A metric's name may contain a number or a station, for which the output's name
/// has `<i>`.
fn meaning<'a>(model: &'a RegisteredModel, name: &str) -> &'a str {
    let stands_for = |pattern: &str| match (pattern.split_once('<'), pattern.split_once('>')) {
        (Some((before, _)), Some((_, after))) => name.starts_with(before) && name.ends_with(after),
        _ => pattern == name,
    };
    model.outputs.iter().find(|output| stands_for(output.name)).map_or("", |output| output.meaning)
}

fn as_json(model: &RegisteredModel, answer: &ModelEvaluation) -> Value {
    let mut object = Map::new();
    object.insert("model".into(), model.name.into());
    if let Some(id) = &answer.id {
        object.insert("id".into(), id.clone().into());
    }
    object.insert("params".into(), Value::Object(answer.given.clone()));
    object.insert("status".into(), answer.status().into());
    match &answer.result {
        Err(error) => {
            object.insert("message".into(), error.to_string().into());
        }
        Ok(outcome) => {
            let metrics =
                |metric: &ModelMetric| (metric.name.clone(), json!({"value": metric.value, "unit": metric.unit}));
            object.insert("metrics".into(), Value::Object(outcome.metrics.iter().map(metrics).collect()));
            object.insert("warnings".into(), json!(outcome.warnings));
        }
    }
    for (key, text) in [("assumes", model.assumes), ("validity", model.validity), ("source", model.source)] {
        object.insert(key.into(), text.into());
    }
    Value::Object(object)
}

/// Columns of a table of answers: the given parameters, the status, then every metric that any answer has.
struct EvaluationColumns {
    has_id: bool,
    given: Vec<String>,
    metrics: Vec<(String, &'static str)>,
}

impl EvaluationColumns {
    fn of(model: &RegisteredModel, answers: &[ModelEvaluation]) -> EvaluationColumns {
        let is_given = |name: &str| answers.iter().any(|answer| answer.given.contains_key(name));
        let names = model.parameters.iter().map(|parameter| parameter.name);
        let mut metrics: Vec<(String, &'static str)> = Vec::new();
        for metric in
            answers.iter().filter_map(|answer| answer.result.as_ref().ok()).flat_map(|outcome| &outcome.metrics)
        {
            if !metrics.iter().any(|(name, _)| *name == metric.name) {
                metrics.push((metric.name.clone(), metric.unit));
            }
        }
        EvaluationColumns {
            has_id: answers.iter().any(|answer| answer.id.is_some()),
            given: names.filter(|name| is_given(name)).map(str::to_owned).collect(),
            metrics,
        }
    }

    /// Returns the header. Units appear with the values in a text table, with the names in CSV.
    fn header(&self, form: ModelOutputFormat) -> Vec<String> {
        let named = |(name, unit): &(String, &str)| match *unit {
            "" => name.clone(),
            _ if form == ModelOutputFormat::Text => name.clone(),
            unit => format!("{name} [{unit}]"),
        };
        let id = self.has_id.then(|| "id".to_owned());
        let metrics = self.metrics.iter().map(named);
        id.into_iter()
            .chain(self.given.iter().cloned())
            .chain(["status".to_owned()])
            .chain(metrics)
            .chain(["message".to_owned()])
            .collect()
    }

    fn row(&self, answer: &ModelEvaluation, form: ModelOutputFormat) -> Vec<String> {
        let id = self.has_id.then(|| answer.id.clone().unwrap_or_default());
        let given = self.given.iter().map(|name| answer.given.get(name).map_or(String::new(), plain));
        let outcome = answer.result.as_ref().ok();
        let metric = |name: &str| outcome.and_then(|outcome| outcome.metrics.iter().find(|metric| metric.name == name));
        let value = |metric: &ModelMetric| {
            if form == ModelOutputFormat::Text { shown(metric) } else { metric.value.to_string() }
        };
        let values = self.metrics.iter().map(|(name, _)| metric(name).map_or(String::new(), value));
        let message = match &answer.result {
            Err(error) => error.to_string(),
            Ok(outcome) => outcome.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        };
        id.into_iter().chain(given).chain([answer.status().to_owned()]).chain(values).chain([message]).collect()
    }
}

/// Formats a value for output: strings without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats a metric's value with its unit.
fn shown(metric: &ModelMetric) -> String {
    match metric.unit {
        "s" => Seconds(metric.value).to_string(),
        "" => digits(metric.value),
        unit => format!("{} {unit}", digits(metric.value)),
    }
}

/// Formats a number with [`DIGITS`] significant digits, without trailing zeros.
fn digits(value: f64) -> String {
    let text = format!("{value:.*e}", (DIGITS - 1) as usize);
    let rounded: f64 = text.parse().unwrap_or(value);
    if rounded == 0.0 || (1e-4..1e9).contains(&rounded.abs()) { rounded.to_string() } else { format!("{rounded:e}") }
}

fn csv_of(rows: impl Iterator<Item = Vec<String>>) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(row)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(0.7, "0.7"), (2.333_333_333, "2.33333"), (0.0, "0"), (3.035_996e-20, "3.036e-20"), (1e12, "1e12")]
        {
            assert_eq!(digits(value), text);
        }
    }

    #[test]
    fn metrics_with_numbers_have_their_meaning() {
        let model = weir_model::registry::find("mahmood_multi").unwrap();
        assert_eq!(meaning(model, "path0_T"), "mean time along a path");
        assert!(meaning(model, "rho_switch 12").contains("a switch serves"));
    }
}
