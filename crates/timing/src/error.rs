//! Why a profile cannot be lived up to.

/// Why a profile cannot be lived up to.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TimingError {
    /// A part of it is for formulas and simulations alone.
    #[error("profile {profile}: found {found}, expected {expected}")]
    Unsuitable {
        /// Its name.
        profile: String,
        /// What it has.
        found: &'static str,
        /// What would do.
        expected: &'static str,
    },
    /// A law cannot be drawn from.
    #[error(transparent)]
    Law(#[from] weir_traffic::TrafficError),
    /// A cost has no value.
    #[error(transparent)]
    Model(#[from] weir_model::ModelError),
}
