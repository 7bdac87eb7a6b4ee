//! Sends traffic by rule on ports, and records what becomes of it, by one clock.
//!
//! What is sent when is drawn by the `traffic` crate, which works out what became of it, too; here are the ports, the clock and the frames.
//! Reading order: [`Rig`] (what is sent where, what is looked at), `rig::run` (the loop), `frames` (packets of flows), `replay` (captures),
//! [`Report`], [`per_visit`] (several reports to one service time).
mod clock;
mod frames;
pub mod per_visit;
mod replay;
mod report;
mod rig;
mod taps;

pub use clock::StampClock;
pub use frames::{FrameSpec, MAX_FLOW_ADDRESSES};
pub use replay::{MAX_REPLAY_BYTES, Replay};
pub use report::{Net, Report, SentReport};
pub use rig::{Rig, RigConfig, Source};
pub use weir_units::Epoch;

/// Why traffic could not be sent or recorded.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorError {
    /// A port could not be opened or used.
    #[error(transparent)]
    Port(#[from] weir_port::PortError),
    /// What is to be sent cannot be as described.
    #[error(transparent)]
    Traffic(#[from] weir_traffic::TrafficError),
    /// Something else that was asked for cannot be.
    #[error("{what}: found {found}, expected {expected}")]
    Wrong {
        /// What was asked for.
        what: &'static str,
        /// What was found.
        found: String,
        /// What would do.
        expected: String,
    },
    /// A capture cannot be read.
    #[error("cannot read {file}: {problem}")]
    Capture {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl GeneratorError {
    pub(crate) fn wrong(what: &'static str, found: impl ToString, expected: impl ToString) -> GeneratorError {
        GeneratorError::Wrong { what, found: found.to_string(), expected: expected.to_string() }
    }
}
