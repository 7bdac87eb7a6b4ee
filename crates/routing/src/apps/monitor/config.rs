//! Settings of the monitor.
use serde::Deserialize;
use std::time::Duration;
use weir_units::{Bps, TimeSpan};

/// Shortest and longest time between two measurements.
pub const INTERVALS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(3600)];

/// Settings of the monitor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct MonitorConfig {
    /// Time between two measurements of the links' loads.
    pub interval: TimeSpan,
    /// Weight of a new measurement in the load, above 0 and at most 1; 1 for no smoothing.
    pub weight: f64,
    /// Time between two measurements of flows.
    pub flow_interval: TimeSpan,
    /// Rate from which a flow is an elephant flow.
    pub elephant_rate: Bps,
}

impl Default for MonitorConfig {
    fn default() -> Self {
        MonitorConfig {
            interval: TimeSpan(Duration::from_secs(1)),
            weight: 0.5,
            flow_interval: TimeSpan(Duration::from_secs(5)),
            elephant_rate: Bps(100_000_000),
        }
    }
}

impl MonitorConfig {
    /// Checks what the types of the fields leave open.
    ///
    /// # Errors
    /// The key that is wrong, what was found and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let [shortest, longest] = INTERVALS;
        for (key, interval) in [("interval", self.interval), ("flow-interval", self.flow_interval)] {
            if !(shortest..=longest).contains(&interval.0) {
                return Err(format!("`{key}`: found {interval}, expected a time from {shortest:?} to {longest:?}"));
            }
        }
        if self.weight > 0.0 && self.weight <= 1.0 {
            return Ok(());
        }
        Err(format!("`weight`: found {}, expected a number above 0 and at most 1", self.weight))
    }
}
