//! What is measured in a run, and how sure it is over several.
mod delays;
mod interval;

pub use delays::{DelaySummary, Delays};
pub use interval::{Confidence, Estimate, estimate, student_t};
