//! Simulates networks in virtual time: discrete events over the live fabric, datapath and controller code.
//!
//! A [`FabricNetwork`] has sources, lines and fabrics, and knows only lengths and classes of packets. [`engine::run`]
//! simulates it once, [`replicate()`] several times until the results are sure enough, and [`mod@report`] sums up
//! with confidence intervals. [`scenario`] makes models of scenario files. [`network`] simulates whole networks
//! packet by packet, with hosts, flow tables and a controller. [`stations`] simulates devices as queueing stations.
//! [`queue`] is a single queue with one server, for comparison with formulas.
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
