//! Simulates devices as queueing stations, with the service times that a scenario gives for its switches and its
//! controller.
//!
//! A packet starts at its host and takes the shortest path. A switch that takes time is a data path. It may have a
//! gate (ticks, batches) in front of the data path or behind it. Packets that begin a flow also take a control path:
//! agents with the controller between them, or a bottleneck as measured from outside. A packet that returns writes an
//! entry, which seizes the data path. The packet then leaves or passes the data path again. Links are lines with a
//! buffer of bytes and a delay.
//!
//! Formulas of performance models describe the same system, so a formula can be compared with the system that it
//! simplifies. [`fn@plan`] makes a plan of a scenario, [`run()`] simulates it once, [`mod@report`] sums up
//! replications. Memory does not grow with the length of a run.
mod installed_entries;
mod plan;
pub mod report;
mod run;
mod scenario;
mod station;
mod tally;

pub use plan::QueueingPlan;
pub use run::run;
pub use scenario::{has_stations, has_timing, plan};
pub use station::MAX_WAITING;
pub use tally::{FlowTally, QueueingRunResult, StationTally, SwitchTally};
