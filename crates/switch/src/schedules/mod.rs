//! Runs whole switches under a scheduler driven by a seed, on one thread, in virtual time.
//!
//! The live switch runs: its engine, workers and forwarders turn by turn ([`crate::turns`]), and the control thread's
//! tasks poll by poll on a tokio runtime with paused time. Sessions use connections in memory. The scheduler chooses
//! by the seed which part takes its next step, when time passes and by how much, what controllers and hosts send, and
//! which faults occur. A seed always gives the same run.
//!
//! A step is one turn of an engine, worker or forwarder, or one poll of a task. Parts do not stop within a step, so
//! interleavings between single instructions of a queue or lock are not explored here.
//!
//! A failing seed is printed with its last steps and the command that repeats it; `examples/schedules.rs` runs many
//! seeds.
mod cable;
mod checks;
mod controller;
mod faults;
mod forwarding_oracle;
mod frames;
mod memory_connection;
mod plan;
mod quiesce;
mod run;
mod schedule_rng;
mod scheduled_switch;
mod script;
mod tenant;

pub use run::{ScheduleFailure, ScheduleReport, run};

#[cfg(test)]
mod tests;
