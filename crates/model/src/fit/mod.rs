//! Parameters from measurements: lines and curves with what is to be thought of them, levels, groups, jumps, and the switch models' parameters by
//! means of these.
//!
//! Nothing here is random: groups of latencies lie on a line, where the best ones can be found exactly, without restarts.
pub mod batching;
pub mod cache_policy;
pub mod control;
pub mod curve;
pub mod forwarding;
pub mod groups;
pub mod levels;
pub mod line;
pub mod order;
pub mod table_size;
