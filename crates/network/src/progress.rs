//! Progress of runs.
use std::time::Duration;

/// Progress of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum LabProgress {
    /// Current step, before and after traffic.
    Step(&'static str),
    /// The scenario's traffic runs.
    Traffic {
        /// Items that have finished.
        done: usize,
        /// Number of all items.
        items: usize,
        /// Time since traffic began.
        elapsed: Duration,
        /// Expected length of the traffic.
        expected: Duration,
    },
    /// Hosts ping each other.
    Pings {
        /// Pings that were answered or timed out.
        done: usize,
        /// Number of all pings.
        pings: usize,
        /// Time since the pings began.
        elapsed: Duration,
    },
}
