//! Defines the answer of a model evaluated by name.
use crate::answer::{StationUtilisation, SwitchSteadyState, Warning};
use crate::{Distribution, ModelError};
use serde::Serialize;

/// Quantiles of the delay that are reported.
const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// Named numbers with units, and warnings.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ModelOutcome {
    /// Results of the model.
    pub metrics: Vec<ModelMetric>,
    /// Reasons to trust them less.
    pub warnings: Vec<Warning>,
}

/// Number with its name and unit.
#[derive(Debug, Clone, Serialize)]
pub struct ModelMetric {
    /// Name of the number.
    pub name: String,
    /// Unit: `s`, `1/s`, ... or empty.
    pub unit: &'static str,
    /// Finite value, not negative unless added by [`ModelOutcome::with_signed`].
    pub value: f64,
    #[serde(skip)]
    signed: bool,
}

impl ModelOutcome {
    /// Adds a number that must not be negative.
    pub fn with(self, name: impl Into<String>, unit: &'static str, value: f64) -> ModelOutcome {
        self.push(ModelMetric { name: name.into(), unit, value, signed: false })
    }

    /// Adds a number that may be negative, such as a difference or slope.
    pub fn with_signed(self, name: impl Into<String>, unit: &'static str, value: f64) -> ModelOutcome {
        self.push(ModelMetric { name: name.into(), unit, value, signed: true })
    }

    /// Adds a number if there is one.
    pub fn with_some(self, name: impl Into<String>, unit: &'static str, value: Option<f64>) -> ModelOutcome {
        match value {
            Some(value) => self.with(name, unit, value),
            None => self,
        }
    }

    /// Adds the quantiles of a delay as `<prefix>p50` and so on.
    pub fn with_percentiles(mut self, prefix: &str, delay: &Distribution) -> Result<ModelOutcome, ModelError> {
        let found = delay.quantiles(PERCENTILES.map(|(_, share)| share))?;
        for ((name, _), delay_s) in PERCENTILES.into_iter().zip(found) {
            self = self.with(format!("{prefix}{name}"), "s", delay_s);
        }
        Ok(self)
    }

    /// Adds warnings for stations near saturation.
    pub fn with_loads(mut self, loads: &[StationUtilisation]) -> ModelOutcome {
        self.warnings.extend(loads.iter().filter_map(StationUtilisation::warning));
        self
    }

    /// Adds a warning.
    pub fn with_warning(mut self, warning: Warning) -> ModelOutcome {
        self.warnings.push(warning);
        self
    }

    /// Returns the outputs common to all models of a switch and its controller: `T`, `T_data`, `T_ctrl`, `loss`, `f`,
    /// percentiles, utilisations.
    pub fn of_switch(state: &SwitchSteadyState) -> Result<ModelOutcome, ModelError> {
        let mut outcome = ModelOutcome::default()
            .with("T", "s", state.sojourn_s)
            .with("T_data", "s", state.data_s)
            .with_some("T_ctrl", "s", state.control_s)
            .with("loss", "", state.loss)
            .with("f", "", state.control_share)
            .with_percentiles("", &state.sojourn)?
            .with_loads(&state.loads);
        for load in &state.loads {
            outcome = outcome.with(format!("rho_{}", load.place), "", load.utilisation);
        }
        Ok(outcome)
    }

    /// Returns the number of this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value)
    }

    fn push(mut self, metric: ModelMetric) -> ModelOutcome {
        self.metrics.push(metric);
        self
    }

    /// Checks that all numbers are finite and not negative unless they may be. Extreme parameters can violate this.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        match self.metrics.iter().find(|metric| !metric.value.is_finite() || (metric.value < 0.0 && !metric.signed)) {
            None => Ok(()),
            Some(metric) => {
                Err(ModelError::NoConvergence { what: format!("{} ({})", metric.name, metric.value), rounds: 1 })
            }
        }
    }
}
