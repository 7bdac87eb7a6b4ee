//! Why a model has no answer.

/// Why a model has no answer. There is never a number beside it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A parameter is none that the model is about.
    #[error("{parameter}: found {found}, expected {expected}")]
    Domain {
        /// Which.
        parameter: String,
        /// What it is.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// A queue without limit gets as much as it can serve, or more: it has no steady state.
    #[error("utilisation {rho:.3} at {place}: no steady state; send less to it or make it faster")]
    Unstable {
        /// The station.
        place: String,
        /// What comes, over what can be served.
        rho: f64,
    },
    /// An iteration did not end.
    #[error("{what}: no convergence after {rounds} rounds")]
    NoConvergence {
        /// What was looked for.
        what: String,
        /// How often it was tried.
        rounds: u32,
    },
}

impl ModelError {
    /// The name of its kind: `DOMAIN`, `UNSTABLE` or `NO_CONVERGENCE`.
    pub fn kind(&self) -> &'static str {
        match self {
            ModelError::Domain { .. } => "DOMAIN",
            ModelError::Unstable { .. } => "UNSTABLE",
            ModelError::NoConvergence { .. } => "NO_CONVERGENCE",
        }
    }
}
