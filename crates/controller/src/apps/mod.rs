//! Applications of the controller.
pub mod chain;
pub mod discovery;
pub mod learning;
