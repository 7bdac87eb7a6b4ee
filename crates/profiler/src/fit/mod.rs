//! From raw runs to parameters, with what each rests on.
pub mod build;
pub mod costs;
pub mod effect;
pub(crate) mod forwarding;
pub mod linear;
pub(crate) mod service;
mod spread;
