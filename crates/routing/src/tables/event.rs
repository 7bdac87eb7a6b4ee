//! News of tables for the parts of the controller that asked for entries and routes.
use super::entry::EntryKey;
use super::route::{RouteId, RouteState};

/// News of the keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableEvent {
    /// A route is in another state.
    Route(RouteId, RouteState),
    /// All switches have deleted the entries of a route that was withdrawn.
    Removed(RouteId),
    /// A switch has removed an entry of a route because no packet used it.
    Expired(RouteId),
    /// A switch refused an entry of an application.
    EntryRefused {
        /// Datapath id of the switch.
        dpid: u64,
        /// The entry.
        key: EntryKey,
        /// The error that the switch sent.
        reason: String,
    },
}
