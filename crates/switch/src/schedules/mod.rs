//! Whole switches under a scheduler that a seed drives, on one thread, in virtual time.
//!
//! What runs is the live switch: its engine, workers and forwarders turn by turn ([`crate::turns`]), the control
//! thread's tasks poll by poll on a tokio runtime whose time stands still until it is told, sessions over connections
//! in memory. The scheduler chooses by the seed which part has its next step, when time passes and by how much, what
//! controllers and hosts send, and which faults come. A seed always gives the same run.
//!
//! A step is one turn of an engine, worker or forwarder, one poll of a task: parts do not stop in the middle of those,
//! so what happens between two instructions of a queue or lock is not looked at here.
//!
//! A failing seed is printed with its last steps and the command that repeats it; `examples/schedules.rs` runs many.
mod cable;
mod checks;
mod controller;
mod dice;
mod faults;
mod frames;
mod ledger;
mod parts;
mod plan;
mod rest;
mod run;
mod script;
mod tenant;
mod wire;

pub use run::{Failure, Report, run};

#[cfg(test)]
mod tests;
