//! Keeps the newest events of networks.
use super::record::nanos;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_units::Instant;

/// Most events that are kept; the oldest is forgotten first.
pub const MAX_EVENTS: usize = 10_000;

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The request was refused; there are offers.
    Offered,
    /// The network is reserved.
    Held,
    /// The network was not committed in time.
    HoldExpired,
    /// The network was committed.
    Committed,
    /// The first step on switches begins.
    Provisioning,
    /// All virtual switches were read back.
    Active,
    /// A switch does not have what it should have, or does not answer.
    Degraded,
    /// Switches have what they should have again.
    Recovered,
    /// A stage of bandwidths begins.
    Stage,
    /// Changed rates were read back.
    Resized,
    /// Virtual switches are being removed.
    Releasing,
    /// No virtual switch is left; nothing is reserved any more.
    Released,
    /// The network could not be carried out; nothing of it is left.
    Failed,
    /// The machine's clock went back.
    ClockBack,
}

/// Event of a network, or of the service as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerEvent {
    /// Number of the event, one more than that of the event before.
    pub sequence: u64,
    /// Service time in nanoseconds since 1970.
    #[serde(rename = "time_ns", with = "nanos")]
    pub time: Instant,
    /// Name of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Owner of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Kind of the event.
    pub kind: EventKind,
    /// Description for people.
    pub text: String,
}

/// Newest events, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct ManagerEventLog {
    events: VecDeque<ManagerEvent>,
    /// Number of the newest event.
    newest: u64,
    /// Number of the newest event that was written to the store.
    written: u64,
}

impl ManagerEventLog {
    pub(super) fn restored(events: Vec<ManagerEvent>) -> ManagerEventLog {
        let newest = events.last().map_or(0, |event| event.sequence);
        ManagerEventLog { events: events.into(), newest, written: newest }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ManagerEvent> {
        self.events.iter()
    }

    pub(super) fn push(&mut self, time: Instant, about: Option<(String, String)>, kind: EventKind, text: String) {
        self.newest += 1;
        let (network, owner) = about.unzip();
        self.events.push_back(ManagerEvent { sequence: self.newest, time, network, owner, kind, text });
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
    }

    /// Returns the events that are not written yet, and the number of the oldest that is kept.
    pub(super) fn take_new(&mut self) -> (Vec<ManagerEvent>, u64) {
        let new = self.events.iter().filter(|event| event.sequence > self.written).cloned().collect();
        self.written = self.newest;
        (new, self.events.front().map_or(self.newest + 1, |event| event.sequence))
    }
}
