//! Files as written: every value with its place, defaults not filled in.
mod profile;
mod timing;

pub(crate) use profile::{ByPriorities, Document, Forward, Level, Overhead};
pub(crate) use timing::{Agents, Order, Returns};
pub use timing::{Law, Timing};
