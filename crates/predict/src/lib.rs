//! Delays, losses and utilisations of a scenario by formulas, for each flow and each device, with the formula used, the
//! reason for it, and its limits.
//!
//! For answers before a network exists: a hundred switches take a fraction of a second. A scenario becomes a network of
//! queues: lines, data paths, agents, the controller. Flows take the shortest route. The load of each queue follows
//! from what the queues before it pass on (`network`). Each queue is solved by the formula for its arrivals, services
//! and places (`station`). A flow's delay is the sum of the parts on its route, as a distribution (`path_delay`).
//! Queues without a steady state are named, and the rest is still answered.
//!
//! Start with:
//!
//! - [`predict()`]: the answer to a `weir_scenario::Scenario`.
//! - [`Prediction`]: its flows, its devices, the bottleneck, assumptions and warnings.
//! - [`PredictSettings`]: what a scenario leaves open.
//!
//! Not in this crate: the formulas (`weir-model`), scenario files (`weir-scenario`), the same scenario packet by packet
//! in virtual time (`weir-sim`).
//!
//! ```
//! use weir_predict::{PredictSettings, PredictionStatus, predict};
//! use weir_scenario::Scenario;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = Scenario::parse(
//!     r#"
//!     [topology]
//!     kind = "single"
//!     host_rate = "100Mbit/s"
//!     [[traffic]]
//!     kind = "udp"
//!     from = "h1"
//!     to = "h2"
//!     rate = "80Mbit/s"
//!     "#,
//!     "example.toml",
//! )?;
//! let prediction = predict(&scenario, &PredictSettings::default())?;
//! let flow = &prediction.flows[0];
//! assert_eq!((flow.status.clone(), flow.loss), (PredictionStatus::Ok, Some(0.0)));
//! assert!(flow.delay.is_some_and(|delay| delay.p99_s >= delay.p50_s));
//! # Ok(())
//! # }
//! ```
mod alternatives;
mod answer;
mod arrivals;
mod choice;
mod combine;
mod controller_returns;
mod data_path;
mod devices;
mod flow_cache;
mod flow_setup;
mod gaps;
mod graph;
mod line_delays;
mod link_impairments;
mod network;
mod path_delay;
mod phase;
mod predict;
mod sizes;
mod station;
mod streams;
mod tcp;
mod trace_rates;
mod traffic_item;
mod virtuals;
mod wakeup;

pub use alternatives::models;
pub use answer::{
    AlternativeAnswer, AlternativeModel, DevicePrediction, FlowPrediction, ModelChoice, PredictedDelay,
    PredictedPromise, Prediction, PredictionStatus, PredictionValidity, StreamExpectation,
};
pub use predict::predict;

use std::time::Duration;
use weir_model::ModelError;
use weir_scenario::defaults;
use weir_units::Bps;

/// Values that a prediction needs and a scenario leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictSettings {
    /// Rate of links for which the scenario has none.
    pub link_rate: Bps,
    /// Time that a sleeping thread takes to wake up for a packet: of a switch without timing, of a host, and of the
    /// thread that delays a link's packets. Zero by default; tens of microseconds in live runs.
    pub wake_up: Duration,
    /// Names of other models to evaluate.
    pub models: Vec<String>,
}

impl Default for PredictSettings {
    fn default() -> PredictSettings {
        PredictSettings { link_rate: defaults::LINK_RATE, wake_up: Duration::ZERO, models: Vec::new() }
    }
}

/// Reason why a scenario cannot be predicted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PredictError {
    /// A device has parameters outside the formulas' domain.
    #[error("{device}: {error}")]
    Model {
        /// Name of the device.
        device: String,
        /// Error of the formula.
        error: ModelError,
    },
    /// An unknown model was requested.
    #[error("--model: found {found}, expected all or one of {expected}")]
    UnknownModel {
        /// Name that was requested.
        found: String,
        /// Names of all models.
        expected: String,
    },
}

impl PredictError {
    pub(crate) fn at(device: &str, error: ModelError) -> PredictError {
        PredictError::Model { device: device.to_owned(), error }
    }
}
