//! Fits parameters to measurements: lines and curves with their quality, levels, groups, jumps, and with these the
//! switch models' parameters.
//!
//! No fit uses random numbers: latencies are grouped on a line, where the optimum can be found exactly.
pub mod batching;
pub mod cache_policy;
pub mod change;
pub mod control;
pub mod curve;
pub mod forwarding;
pub mod groups;
pub mod levels;
pub mod line;
pub mod quantiles;
pub mod table_size;
