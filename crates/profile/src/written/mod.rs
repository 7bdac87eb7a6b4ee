//! Defines the form of files as written: every value with its position, without defaults.
mod profile;
mod timing;

pub(crate) use profile::{ForwardingToml, LevelToml, PerEntryCostToml, PriorityCostsToml, ProfileToml};
pub(crate) use timing::{AgentsToml, ReturnOrder, ReturnsToml};
pub use timing::{LawToml, TimingToml};
