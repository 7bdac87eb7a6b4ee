//! Configures which device's delays a switch imitates.
use weir_profile::Profile;

/// A profile to imitate and the seed of its random times.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileConfig {
    /// Measured timing of the device.
    pub profile: Box<Profile>,
    /// Seed of the random times; equal seeds give equal times.
    pub seed: u64,
}
