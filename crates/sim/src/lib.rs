//! Networks in virtual time: discrete events over the code that also runs live, with replications and confidence
//! intervals.
//!
//! For results that are equal in each run, and for hours of traffic in seconds. Three levels of detail share one
//! agenda:
//!
//! - [`network`]: whole networks packet by packet, with hosts, flow tables and a controller.
//! - [`FabricNetwork`]: sources, lines and fabrics, by lengths and classes of packets only. [`engine::run`] simulates
//!   it once, [`replicate()`] several times until the results are sure enough, and [`mod@report`] sums up.
//! - [`stations`]: devices as queueing stations. [`queue`] is a single queue with one server, for comparison with
//!   formulas.
//!
//! Start with [`network::simulate`] for a scenario with hosts, and with [`scenario::model`] for a scenario whose
//! packets are made by rule.
//!
//! Not in this crate: scenario files (`weir-scenario`), formulas (`weir-predict`), runs by the machine's clock
//! (`weir-emulator`, `weir-switch`).
//!
//! ```
//! use weir_scenario::Scenario;
//! use weir_sim::SimulationMonitor;
//! use weir_sim::network::{VirtualTimeSettings, simulate};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = Scenario::parse(
//!     r#"
//!     [topology]
//!     kind = "single"
//!     host_delay = "1ms"
//!     [[traffic]]
//!     kind = "ping"
//!     from = "h1"
//!     to = "h2"
//!     count = 3
//!     "#,
//!     "example.toml",
//! )?;
//! let result = simulate(&scenario, &VirtualTimeSettings::default(), &SimulationMonitor::default(), &mut |_| {})?;
//! assert!(result.passed);
//! // Four times the delay of a link, to three digits.
//! assert!(result.traffic[0].rtt.is_some_and(|rtt| (3990.0..4010.0).contains(&rtt.min_us)));
//! # Ok(())
//! # }
//! ```
pub mod agenda;
pub mod engine;
pub mod model;
pub mod network;
pub mod queue;
pub mod replicate;
pub mod report;
pub mod scenario;
mod sources;
pub mod stations;
pub mod stats;
pub mod tally;

pub use agenda::Agenda;
pub use engine::{FabricRunResult, SimulationMonitor, run};
pub use model::{
    FabricHop, FabricModel, FabricNetwork, FabricNetworkError, FabricPath, FabricSource, LineModel, MeasurementGroup,
    PathSplit, SimulationWindow,
};
pub use replicate::{ReplicationLimits, Replications, replicate};
pub use tally::PacketTally;
