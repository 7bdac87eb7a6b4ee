//! What a scenario's packets will meet, answered by formulas in a moment: delays, losses and utilisations by flow and by device, which
//! formula was used and why, and when not to trust it.
//!
//! A scenario becomes a network of queues: lines, data paths, agents, the controller. Flows go the shortest way; what each queue gets follows from
//! what those before it let through (`network`), each is solved by the formula that its arrivals, services and places ask for (`station`), and a
//! flow's delay is the sum of what it meets, as a distribution (`way`). Queues without a steady state are told by name; the rest is still
//! answered.
mod alternatives;
mod answer;
mod arrivals;
mod before_entry;
mod choice;
mod compose;
mod devices;
mod gather;
mod graph;
mod impaired;
mod item;
mod network;
mod phase;
mod returns;
mod sizes;
mod station;
mod streams;
mod tcp;
mod virtuals;
mod waking;
mod way;

pub use alternatives::models;
pub use answer::{
    Alternative, AlternativeAnswer, Delays, DeviceAnswer, Expected, FlowAnswer, ModelChoice, Prediction, Status,
};
pub use compose::predict;

use std::time::Duration;
use weir_model::ModelError;
use weir_scenario::native;
use weir_units::Bps;

/// What a scenario leaves open and a prediction has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Rate of links for which the scenario has none.
    pub link_rate: Bps,
    /// How long a thread that sleeps takes to wake up for a packet: of a switch that the scenario says nothing of, of a host, of whoever holds the
    /// packets of a link with a delay. None by themselves; live, tens of microseconds.
    pub wake_up: Duration,
    /// Other models that are asked, too, by name.
    pub models: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { link_rate: native::LINK_RATE, wake_up: Duration::ZERO, models: Vec::new() }
    }
}

/// Why there is no prediction at all.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PredictError {
    /// A device is none that formulas are about.
    #[error("{device}: {error}")]
    Model {
        /// Its name.
        device: String,
        /// Why.
        error: ModelError,
    },
    /// A model of another name was asked for.
    #[error("--model: found {found}, expected all or one of {expected}")]
    UnknownModel {
        /// What was found.
        found: String,
        /// The names that there are.
        expected: String,
    },
}

impl PredictError {
    pub(crate) fn at(device: &str, error: ModelError) -> PredictError {
        PredictError::Model { device: device.to_owned(), error }
    }
}
