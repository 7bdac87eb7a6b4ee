//! Computes delays, losses and utilisations of queues, switches and controllers by formulas, without a clock, a
//! socket or a simulation.
//!
//! Rates are per second, times in seconds, lengths in bytes. Each function states its assumptions, whether its answer
//! is exact under them, and its source.
mod answer;
mod check;
pub mod control_path;
mod delay_part;
mod distribution;
mod error;
pub mod fit;
mod inversion;
mod law;
pub mod literature;
pub mod mechanism;
pub mod registry;
mod root;
pub mod score;
pub mod station;
pub mod switch;
mod tails;

pub use answer::{NEAR_SATURATION, StationUtilisation, SwitchSteadyState, Warning};
pub use distribution::Distribution;
pub use error::ModelError;
pub use law::{Law, LawPart, LawShape, MAX_PARTS};
