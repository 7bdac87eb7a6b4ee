//! Defines the form of files as written: every value with its position, without defaults.
mod profile;
mod timing;

pub(crate) use profile::{ByPriorities, Document, Forward, Level, Overhead};
pub(crate) use timing::{Agents, Order, Returns};
pub use timing::{Law, Timing};
