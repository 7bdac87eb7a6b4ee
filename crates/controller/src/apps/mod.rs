//! Applications of the controller.
pub mod learning;
