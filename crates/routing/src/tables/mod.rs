//! Keeps the flow tables of all switches as they are asked for.
mod batch;
mod config;
mod entry;
mod entry_table;
mod event;
mod groups;
mod keeper;
mod messages;
mod reading;
mod route;
mod switch;
mod switches;
#[cfg(test)]
mod tests;
mod work;

pub use config::TableConfig;
pub use entry::{DesiredEntry, EntryKey};
pub use event::TableEvent;
pub use keeper::TableKeeper;
pub use route::{Hop, HopKind, HopOutput, HopPlace, Route, RouteId, RouteState};
