//! Defines the errors of models.

/// Reason why a model has no answer. No number is returned with an error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A parameter is outside the model's domain.
    #[error("{parameter}: found {found}, expected {expected}")]
    Domain {
        /// Name of the parameter.
        parameter: String,
        /// Value that was found.
        found: String,
        /// Description of the allowed values.
        expected: String,
    },
    /// An unlimited queue gets as much as it can serve, or more, so there is no steady state.
    #[error("utilisation {rho:.3} at {place}: no steady state; send less to it or make it faster")]
    Unstable {
        /// Name of the station.
        place: String,
        /// Offered load over capacity.
        rho: f64,
    },
    /// An iteration did not converge.
    #[error("{what}: no convergence after {rounds} rounds")]
    NoConvergence {
        /// Quantity that was computed.
        what: String,
        /// Number of rounds.
        rounds: u32,
    },
}

impl ModelError {
    /// Returns the name of the error's kind: `DOMAIN`, `UNSTABLE` or `NO_CONVERGENCE`.
    pub fn kind(&self) -> &'static str {
        match self {
            ModelError::Domain { .. } => "DOMAIN",
            ModelError::Unstable { .. } => "UNSTABLE",
            ModelError::NoConvergence { .. } => "NO_CONVERGENCE",
        }
    }
}
