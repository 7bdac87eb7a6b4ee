//! Fits parameters to raw runs, with the evidence for each.
pub mod build;
pub mod costs;
pub mod effect;
pub(crate) mod forwarding;
pub mod linear;
pub(crate) mod service;
mod spread;
