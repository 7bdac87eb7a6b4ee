//! Sends traffic on ports, and records with one clock when its packets leave and arrive.
//!
//! The `traffic` crate draws the times and lengths of the packets to send and evaluates the received ones; this crate
//! has the ports, the clock and the frames. Reading order: [`TrafficRun`] (sources, ports and taps of a run),
//! `traffic_run::run` (the loop), `frames` (packets of flows), `replay` (captures), [`TrafficRunReport`], [`per_visit`]
//! (service time from several reports).
mod clock;
mod frames;
pub mod per_visit;
mod replay;
mod report;
mod taps;
mod traffic_run;

pub use clock::StampClock;
pub use frames::{FrameSpec, MAX_FLOW_ADDRESSES};
pub use replay::{CaptureReplay, MAX_REPLAY_BYTES};
pub use report::{DelayWithoutRig, SentReport, TrafficRunReport};
pub use traffic_run::{TrafficRun, TrafficRunConfig, TrafficSenderConfig};
pub use weir_units::Epoch;

/// Reason why traffic could not be sent or recorded.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorError {
    /// A port could not be opened or used.
    #[error(transparent)]
    Port(#[from] weir_port::PortError),
    /// The traffic description is not valid.
    #[error(transparent)]
    Traffic(#[from] weir_traffic::TrafficError),
    /// A parameter of this crate is not valid.
    #[error("{what}: found {found}, expected {expected}")]
    Wrong {
        /// Name of the parameter.
        what: &'static str,
        /// Value that was found.
        found: String,
        /// Description of a valid value.
        expected: String,
    },
    /// A capture cannot be read.
    #[error("cannot read {file}: {problem}")]
    Capture {
        /// Name of the file.
        file: String,
        /// Description of the problem.
        problem: String,
    },
}

impl GeneratorError {
    pub(crate) fn wrong(what: &'static str, found: impl ToString, expected: impl ToString) -> GeneratorError {
        GeneratorError::Wrong { what, found: found.to_string(), expected: expected.to_string() }
    }
}
