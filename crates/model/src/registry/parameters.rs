//! Reads a model's parameters from JSON.
use super::{ModelParameter, RegisteredModel};
use crate::check::{self, domain};
use crate::{Law, ModelError};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Largest whole number of a parameter: all below are exact as floating-point numbers, too.
const LARGEST_COUNT: f64 = 9_007_199_254_740_992.0;
/// Most characters of a value that errors repeat.
const SHOWN: usize = 60;

/// Parameters given to a model, all with known names. A null counts as missing.
#[derive(Debug, Clone, Copy)]
pub struct ModelArguments<'a> {
    model: &'a RegisteredModel,
    given: &'a Map<String, Value>,
}

impl<'a> ModelArguments<'a> {
    /// Checks that the model knows all names.
    pub(super) fn check(
        model: &'a RegisteredModel,
        given: &'a Map<String, Value>,
    ) -> Result<ModelArguments<'a>, ModelError> {
        let names = || model.parameters.iter().map(|parameter| parameter.name);
        match given.keys().find(|name| !names().any(|known| known == name.as_str())) {
            None => Ok(ModelArguments { model, given }),
            Some(unknown) => {
                let names: Vec<&str> = names().collect();
                Err(domain("parameter", unknown, format!("{} for {}", names.join(", "), model.name)))
            }
        }
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    /// Returns the expected value for errors: the parameter's meaning with its unit.
    fn expected(&self, name: &str) -> String {
        match self.model.parameters.iter().find(|parameter| parameter.name == name) {
            Some(ModelParameter { unit: "", meaning, .. }) => (*meaning).to_owned(),
            Some(ModelParameter { unit, meaning, .. }) => format!("{meaning} in {unit}"),
            None => "nothing".to_owned(),
        }
    }

    fn wrong(&self, name: &str, value: &Value, kind: &str) -> ModelError {
        let mut found = value.to_string();
        if found.chars().count() > SHOWN {
            found = found.chars().take(SHOWN).chain("...".chars()).collect();
        }
        domain(name, found, format!("{kind}: {}", self.expected(name)))
    }

    fn there<T>(&self, name: &str, value: Option<T>) -> Result<T, ModelError> {
        value.ok_or_else(|| domain(name, "nothing", self.expected(name)))
    }

    /// Returns a number; none if it is missing.
    pub fn optional_number(&self, name: &str) -> Result<Option<f64>, ModelError> {
        let of = |value: &Value| value.as_f64().ok_or_else(|| self.wrong(name, value, "a number"));
        self.value(name).map(of).transpose()
    }

    /// Returns a number.
    pub fn number(&self, name: &str) -> Result<f64, ModelError> {
        self.there(name, self.optional_number(name)?)
    }

    /// Returns a number above 0.
    pub fn positive(&self, name: &str) -> Result<f64, ModelError> {
        check::positive(name, self.number(name)?)
    }

    /// Returns a number from 0 to 1.
    pub fn share(&self, name: &str) -> Result<f64, ModelError> {
        check::share(name, self.number(name)?)
    }

    /// Returns a whole number, 0 or more; none if it is missing.
    pub fn optional_count(&self, name: &str) -> Result<Option<usize>, ModelError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in the range of both, and whole")]
        match value.as_f64() {
            Some(number) if (0.0..=LARGEST_COUNT).contains(&number) && number.fract() == 0.0 => {
                Ok(Some(number as usize))
            }
            _ => Err(self.wrong(name, value, "a whole number, 0 or more")),
        }
    }

    /// Returns a whole number, 0 or more.
    pub fn count(&self, name: &str) -> Result<usize, ModelError> {
        self.there(name, self.optional_count(name)?)
    }

    /// Returns a law of times.
    pub fn law(&self, name: &str) -> Result<Law, ModelError> {
        self.read(name, "a law such as [\"gamma\", mean, scv]")
    }

    /// Returns a flag; false if it is missing.
    pub fn flag(&self, name: &str) -> Result<bool, ModelError> {
        match self.value(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(name, value, "true or false")),
        }
    }

    /// Returns the value of one of several words; that of the first if it is missing.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, ModelError> {
        let value = self.value(name);
        let chosen = match value {
            None => choices.first(),
            Some(value) => choices.iter().find(|(word, _)| value.as_str() == Some(word)),
        };
        chosen.map(|(_, chosen)| *chosen).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            self.wrong(name, value.unwrap_or(&Value::Null), &format!("one of {}", words.join(", ")))
        })
    }

    /// Reads any type from JSON; `kind` describes it in errors.
    pub fn read<T: DeserializeOwned>(&self, name: &str, kind: &str) -> Result<T, ModelError> {
        self.there(name, self.optional(name, kind)?)
    }

    /// Reads any type from JSON; none if the parameter is missing. `kind` describes it in errors.
    pub fn optional<T: DeserializeOwned>(&self, name: &str, kind: &str) -> Result<Option<T>, ModelError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        T::deserialize(value).map(Some).map_err(|error| self.wrong(name, value, &format!("{kind} ({error})")))
    }
}
