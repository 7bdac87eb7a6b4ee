//! Defines the error of a profile that cannot be emulated.

/// Reason why a profile cannot be emulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TimingError {
    /// A part of the profile is only for formulas and simulations.
    #[error("profile {profile}: found {found}, expected {expected}")]
    Unsuitable {
        /// Name of the profile.
        profile: String,
        /// Part that was found.
        found: &'static str,
        /// Part that would be suitable.
        expected: &'static str,
    },
    /// A law cannot be sampled.
    #[error(transparent)]
    Law(#[from] weir_traffic::TrafficError),
    /// A cost has no value.
    #[error(transparent)]
    Model(#[from] weir_model::ModelError),
}
