//! Applications.
pub mod learning;
