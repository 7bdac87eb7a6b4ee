//! Lists every model by name, with its assumptions, its parameters as JSON, and its outputs with units.
//!
//! Each group of models has a file with a table, `MODELS`, and an element of [`GROUPS`].
mod control_paths;
mod fits;
mod literature;
mod mechanisms;
mod outcome;
mod parameters;
mod stations;
mod switches;

pub use outcome::{ModelMetric, ModelOutcome};
pub use parameters::ModelArguments;

use crate::ModelError;
use crate::check::domain;
use serde::Serialize;
use serde_json::{Map, Value};

/// All groups of models.
pub const GROUPS: &[&[RegisteredModel]] =
    &[stations::MODELS, literature::MODELS, control_paths::MODELS, mechanisms::MODELS, switches::MODELS, fits::MODELS];

/// Model that can be evaluated by name.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RegisteredModel {
    /// Name, as users write it.
    pub name: &'static str,
    /// Title, in one line.
    pub title: &'static str,
    /// Assumptions of the model.
    pub assumes: &'static str,
    /// Range of validity: whether the answer is exact under the assumptions, and where not to trust it.
    pub validity: &'static str,
    /// Source of the model.
    pub source: &'static str,
    /// Parameters that the model accepts.
    pub parameters: &'static [ModelParameter],
    /// Numbers that the model computes.
    pub outputs: &'static [ModelOutput],
    /// Function that evaluates the model.
    #[serde(skip)]
    pub evaluate: fn(&ModelArguments) -> Result<ModelOutcome, ModelError>,
}

/// Parameter of a model.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ModelParameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Unit; empty for none.
    pub unit: &'static str,
    /// Meaning of the parameter.
    pub meaning: &'static str,
    /// Default in words; none if the parameter is required.
    pub default: Option<&'static str>,
}

/// Output of a model.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ModelOutput {
    /// Name of the output; `<i>` stands for a number from 0.
    pub name: &'static str,
    /// Unit; empty for none.
    pub unit: &'static str,
    /// Meaning of the output.
    pub meaning: &'static str,
}

/// Returns a required parameter.
pub(crate) const fn required(name: &'static str, unit: &'static str, meaning: &'static str) -> ModelParameter {
    ModelParameter { name, unit, meaning, default: None }
}

/// Returns an optional parameter.
pub(crate) const fn optional(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    default: &'static str,
) -> ModelParameter {
    ModelParameter { name, unit, meaning, default: Some(default) }
}

/// Returns an output.
pub(crate) const fn output(name: &'static str, unit: &'static str, meaning: &'static str) -> ModelOutput {
    ModelOutput { name, unit, meaning }
}

/// Returns all models in the order of their groups.
pub fn models() -> impl Iterator<Item = &'static RegisteredModel> {
    GROUPS.iter().copied().flatten()
}

/// Returns the model of this name.
///
/// # Errors
/// `DOMAIN` with a list of all names.
pub fn find(name: &str) -> Result<&'static RegisteredModel, ModelError> {
    models().find(|model| model.name == name).ok_or_else(|| {
        let names: Vec<&str> = models().map(|model| model.name).collect();
        domain("model", name, format!("one of {}", names.join(", ")))
    })
}

impl RegisteredModel {
    /// Evaluates the model for these parameters.
    ///
    /// # Errors
    /// `DOMAIN` if a parameter is unknown, missing or invalid; the model's own errors.
    pub fn evaluate(&self, given: &Map<String, Value>) -> Result<ModelOutcome, ModelError> {
        let outcome = (self.evaluate)(&ModelArguments::check(self, given)?)?;
        outcome.check()?;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, parameters: &str) -> Result<ModelOutcome, ModelError> {
        let Value::Object(given) = serde_json::from_str(parameters).unwrap() else { panic!("no object") };
        find(name)?.evaluate(&given)
    }

    #[test]
    fn names_are_told_when_they_are_wrong() {
        let error = ask("mm2", "{}").unwrap_err().to_string();
        assert!(error.starts_with("model: found mm2, expected one of mm1, mm1k"), "{error}");
        let error = ask("mm1", r#"{"lam": 1, "mu": 2, "nu": 3}"#).unwrap_err().to_string();
        assert_eq!(error, "parameter: found nu, expected lam, mu for mm1");
        let error = ask("mm1", r#"{"lam": 1}"#).unwrap_err().to_string();
        assert_eq!(error, "mu: found nothing, expected the service rate in 1/s");
        let error = ask("mm1", r#"{"lam": 1, "mu": "fast"}"#).unwrap_err().to_string();
        assert_eq!(error, "mu: found \"fast\", expected a number: the service rate in 1/s");
        let error = ask("mm1k", r#"{"lam": 1, "mu": 2, "K": 2.5}"#).unwrap_err().to_string();
        assert!(error.starts_with("K: found 2.5, expected a whole number"), "{error}");
    }

    #[test]
    fn near_saturation_is_part_of_the_answer() {
        let outcome = ask("mm1", r#"{"lam": 95, "mu": 100}"#).unwrap();
        assert_eq!(outcome.warnings[0].kind, "NEAR_SATURATION");
        assert!(ask("mm1", r#"{"lam": 50, "mu": 100}"#).unwrap().warnings.is_empty());
    }

    #[test]
    fn every_model_says_what_it_is_and_its_name_is_its_own() {
        let mut names = std::collections::BTreeSet::new();
        for model in models() {
            assert!(names.insert(model.name), "{} is there twice", model.name);
            for text in [model.title, model.assumes, model.validity, model.source] {
                assert!(!text.is_empty(), "{}", model.name);
            }
            assert!(!model.parameters.is_empty() && !model.outputs.is_empty(), "{}", model.name);
        }
    }
}
