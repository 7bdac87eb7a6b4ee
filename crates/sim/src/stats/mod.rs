//! Delays measured in a run, and confidence intervals over several runs.
mod delays;
mod interval;

pub use delays::{DelaySummary, DelayTally};
pub use interval::{Confidence, Estimate, estimate, student_t};
