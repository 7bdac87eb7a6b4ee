//! Checks that parameters are in a model's domain.
use crate::ModelError;
use std::fmt::Display;

/// Returns the error for a parameter outside the model's domain.
pub(crate) fn domain(parameter: impl Into<String>, found: impl Display, expected: impl Into<String>) -> ModelError {
    ModelError::Domain { parameter: parameter.into(), found: found.to_string(), expected: expected.into() }
}

/// Checks that a number is finite.
pub(crate) fn finite(parameter: &str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() { Ok(value) } else { Err(domain(parameter, value, "a finite number")) }
}

/// Checks that a rate or time is finite and above 0.
pub(crate) fn positive(parameter: &str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(domain(parameter, value, "a number above 0")) }
}

/// Checks that a rate, time or number is finite and at least 0.
pub(crate) fn not_negative(parameter: &str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(domain(parameter, value, "a number, 0 or more")) }
}

/// Checks that a share or probability is between 0 and 1.
pub(crate) fn share(parameter: &str, value: f64) -> Result<f64, ModelError> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(domain(parameter, value, "a share between 0 and 1")) }
}

/// Checks that a buffer or batch has at least one place.
pub(crate) fn at_least_one(parameter: &str, value: u32) -> Result<u32, ModelError> {
    if value >= 1 { Ok(value) } else { Err(domain(parameter, value, "a whole number, 1 or more")) }
}

/// Checks that a queue has between 1 and `most` places.
pub(crate) fn places(parameter: &str, value: usize, most: usize) -> Result<usize, ModelError> {
    let holds = (1..=most).contains(&value);
    if holds { Ok(value) } else { Err(domain(parameter, value, format!("a whole number from 1 to {most}"))) }
}

/// Checks that the utilisation of an unlimited station is below 1, so that a steady state exists.
pub(crate) fn stable(place: &str, rho: f64) -> Result<f64, ModelError> {
    if rho < 1.0 { Ok(rho) } else { Err(ModelError::Unstable { place: place.to_owned(), rho }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_refused() {
        let no_number = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for value in no_number {
            for check in [finite, positive, not_negative, share] {
                assert_eq!(check("x", value).unwrap_err().kind(), "DOMAIN");
            }
        }
        assert!(positive("x", 0.0).is_err() && not_negative("x", 0.0).is_ok() && share("x", 1.0).is_ok());
        let error = share("p", 1.2).unwrap_err().to_string();
        assert_eq!(error, "p: found 1.2, expected a share between 0 and 1");
        assert!(at_least_one("K", 0).is_err());
    }
}
