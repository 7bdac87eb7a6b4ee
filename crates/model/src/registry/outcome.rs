//! What a model answers when it is asked by name.
use crate::answer::{Load, SwitchState, Warning};
use crate::{Distribution, ModelError};
use serde::Serialize;

/// The shares of packets for which delays are given.
const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// Named numbers with units, and what is to be said about them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Outcome {
    /// The numbers.
    pub metrics: Vec<Metric>,
    /// Reasons for trusting them less.
    pub warnings: Vec<Warning>,
}

/// A named number.
#[derive(Debug, Clone, Serialize)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Its unit: `s`, `1/s`, ... or nothing.
    pub unit: &'static str,
    /// The number: finite, and not negative unless it may be.
    pub value: f64,
    #[serde(skip)]
    signed: bool,
}

impl Outcome {
    /// With one more number, which may not be negative.
    pub fn with(self, name: impl Into<String>, unit: &'static str, value: f64) -> Outcome {
        self.push(Metric { name: name.into(), unit, value, signed: false })
    }

    /// With one more number, which may be negative: differences, slopes.
    pub fn with_signed(self, name: impl Into<String>, unit: &'static str, value: f64) -> Outcome {
        self.push(Metric { name: name.into(), unit, value, signed: true })
    }

    /// With one more number if there is one.
    pub fn with_some(self, name: impl Into<String>, unit: &'static str, value: Option<f64>) -> Outcome {
        match value {
            Some(value) => self.with(name, unit, value),
            None => self,
        }
    }

    /// With the delays, `<prefix>p50` and so on, that these shares of the packets do not exceed.
    pub fn with_percentiles(mut self, prefix: &str, delay: &Distribution) -> Result<Outcome, ModelError> {
        let found = delay.quantiles(PERCENTILES.map(|(_, share)| share))?;
        for ((name, _), delay_s) in PERCENTILES.into_iter().zip(found) {
            self = self.with(format!("{prefix}{name}"), "s", delay_s);
        }
        Ok(self)
    }

    /// With warnings of those near saturation.
    pub fn with_loads(mut self, loads: &[Load]) -> Outcome {
        self.warnings.extend(loads.iter().filter_map(Load::warning));
        self
    }

    /// With one more warning.
    pub fn with_warning(mut self, warning: Warning) -> Outcome {
        self.warnings.push(warning);
        self
    }

    /// What every model of a switch and its controller answers: `T`, `T_data`, `T_ctrl`, `loss`, `f`, percentiles, utilisations.
    pub fn of_switch(state: &SwitchState) -> Result<Outcome, ModelError> {
        let mut outcome = Outcome::default()
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

    /// The number of this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value)
    }

    fn push(mut self, metric: Metric) -> Outcome {
        self.metrics.push(metric);
        self
    }

    /// Whether numbers are numbers: parameters at the ends of what numbers can be may leave none.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        match self.metrics.iter().find(|metric| !metric.value.is_finite() || (metric.value < 0.0 && !metric.signed)) {
            None => Ok(()),
            Some(metric) => {
                Err(ModelError::NoConvergence { what: format!("{} ({})", metric.name, metric.value), rounds: 1 })
            }
        }
    }
}
