//! Fits parameters to raw runs, with the evidence for each.
pub mod build;
pub(crate) mod cases;
pub mod costs;
pub mod effect;
pub(crate) mod forwarding;
mod gaps;
mod isotonic;
pub mod linear;
pub(crate) mod service;
mod spread;
pub(crate) mod stairs;
mod step_place;
