//! Formulas for delays, losses and utilisations of queues, switches and controllers, without a clock, a socket or a
//! simulation.
//!
//! For predictions that take microseconds, and for checking measurements and simulations. Rates are per second, times
//! in seconds, lengths in bytes. Each function states its assumptions, whether its answer is exact under them, and its
//! source.
//!
//! Start with:
//!
//! - [`Law`]: a distribution of service times or lengths.
//! - [`station`]: single queues, such as [`mg1`](station::mg1) and [`mg1k`](station::mg1k).
//! - [`Distribution`]: delays with mean, tail and percentiles, which can be added up along a path.
//! - [`control_path`] and [`switch`]: switches that ask a controller; what table changes cost.
//! - [`registry`]: every model by name, with its assumptions, parameters and outputs.
//! - [`fit`]: parameters from measurements.
//!
//! Not in this crate: whole networks (`weir-predict` composes these formulas), random numbers and arrivals
//! (`weir-traffic`), simulation (`weir-sim`), parameters of real devices (`weir-profile`).
//!
//! ```
//! use weir_model::Law;
//! use weir_model::station::mg1;
//! # fn main() -> Result<(), weir_model::ModelError> {
//! // 70,000 packets a second at a line that takes 12 us for each.
//! let queue = mg1(70_000.0, &Law::constant(12e-6)?)?;
//! assert!((queue.utilisation - 0.84).abs() < 1e-9);
//! assert!((queue.sojourn_s - 43.5e-6).abs() < 1e-9);
//! assert!(queue.sojourn.quantile(0.99)? > 3.0 * queue.sojourn_s);
//! # Ok(())
//! # }
//! ```
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
