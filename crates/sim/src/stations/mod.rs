//! Devices as queueing stations: what a scenario's packets wait for if its switches and its controller take the times that it says.
//!
//! A packet enters at its host and takes the shortest way. A switch that takes time is a data path, maybe with a gate in front of it or behind it (ticks,
//! batches), and for packets that begin a flow a control path: agents and the controller between them, or a bottleneck as measured from outside. What comes
//! back writes an entry, which seizes the data path, and leaves or passes the data path again. Links are lines with a buffer of bytes, and a delay.
//!
//! This is what the formulas of performance models are about, event by event, so a formula can be compared with what it simplifies. [`fn@plan`] makes a plan of a
//! scenario, [`run()`] simulates it once, [`mod@report`] sums replications up. Memory does not grow with the length of a run.
mod entries;
mod plan;
pub mod report;
mod run;
mod scenario;
mod station;
mod tally;

pub use plan::Plan;
pub use run::run;
pub use scenario::{has_timing, plan};
pub use station::MAX_WAITING;
pub use tally::{FlowTally, StationTally, StationsRun, SwitchTally};
