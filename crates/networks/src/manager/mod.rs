//! Keeps the states of virtual networks, from the request to the release.
//!
//! ```text
//! offered -> held -> committed -> provisioning -> active <-> degraded
//!              |         |             |             |          |
//!              +---------+-------------+-> releasing <----------+
//!                                              |
//!                                    released or failed
//! ```
//!
//! A network that is *held* is reserved, and released if it is not committed in time. It is *active* only after all its
//! virtual switches were read back from the switches. What it has reserved is free again only after none of its
//! virtual switches was found there.
mod caller;
mod changes;
mod clock;
mod error;
mod events;
mod lifecycle;
mod quota;
mod record;
mod requests;

pub use caller::Caller;
pub use changes::{KeptDesign, KeptManager, KeptNetwork, ManagerChanges};
pub use clock::ServiceClock;
pub use error::ManagerError;
pub use events::{EventKind, MAX_EVENTS, ManagerEvent};
pub use lifecycle::ManagedSlice;
pub use quota::{OwnerUsage, Quota, Quotas};
pub use record::{KeptOffer, LifecycleState, NetworkRecord};

use events::ManagerEventLog;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_units::Instant;
use weir_vnet::service::{BookChange, NetworkBook};

/// Most networks that have ended and are still shown; the oldest is forgotten first.
pub const MAX_ENDED: usize = 1000;

/// Settings of a manager.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagerSettings {
    /// Time for which a network is held, or an offer kept, until it is committed or accepted.
    pub hold_time: Duration,
    /// Most networks that have not ended.
    pub most_networks: usize,
    /// Limits of owners.
    pub quotas: Quotas,
}

impl Default for ManagerSettings {
    /// Returns ten minutes of hold time, 1000 networks, and no quotas.
    fn default() -> ManagerSettings {
        ManagerSettings { hold_time: Duration::from_secs(600), most_networks: 1000, quotas: Quotas::default() }
    }
}

/// Virtual networks with their states. All decisions depend on what is kept and on the given time only.
///
/// Methods for users take the [`Caller`] and the machine's time. After each of them, also after an error,
/// [`NetworkManager::take_changes`] returns what has to be written to the store.
#[derive(Debug, Clone)]
pub struct NetworkManager {
    book: NetworkBook,
    settings: ManagerSettings,
    networks: BTreeMap<String, NetworkRecord>,
    events: ManagerEventLog,
    clock: ServiceClock,
    /// Number of networks that were admitted since the store was made.
    admitted: u64,
    /// Names of networks that have changed since the last [`NetworkManager::take_changes`].
    changed: BTreeSet<String>,
}

impl NetworkManager {
    /// Returns a manager without networks. `book` is empty.
    pub fn new(book: NetworkBook, settings: ManagerSettings) -> NetworkManager {
        NetworkManager {
            book,
            settings,
            networks: BTreeMap::new(),
            events: ManagerEventLog::default(),
            clock: ServiceClock::default(),
            admitted: 0,
            changed: BTreeSet::new(),
        }
    }

    /// Returns what is reserved.
    pub fn book(&self) -> &NetworkBook {
        &self.book
    }

    /// Returns all networks in the order of their names.
    pub fn networks(&self) -> impl Iterator<Item = &NetworkRecord> {
        self.networks.values()
    }

    /// Returns a network that the caller may see.
    ///
    /// # Errors
    /// There is none of this name, or it belongs to another user.
    pub fn show(&self, caller: &Caller, name: &str) -> Result<&NetworkRecord, ManagerError> {
        let found = self.networks.get(name).filter(|record| caller.may_see(&record.request.owner));
        found.ok_or_else(|| ManagerError::NoNetwork { name: name.to_owned() })
    }

    /// Returns the networks that the caller may see.
    pub fn list(&self, caller: &Caller) -> Vec<&NetworkRecord> {
        self.networks.values().filter(|record| caller.may_see(&record.request.owner)).collect()
    }

    /// Returns at most `most` events after the one with the number `after`, of networks that the caller may see.
    pub fn events(&self, caller: &Caller, after: u64, most: usize) -> Vec<&ManagerEvent> {
        let seen = self.events.iter().filter(|event| event.sequence > after);
        seen.filter(|event| event.owner.as_ref().map_or(caller.is_operator(), |owner| caller.may_see(owner)))
            .take(most)
            .collect()
    }

    /// Returns the manager's time at the machine's time `wall`.
    fn time(&mut self, wall: Instant) -> Instant {
        let (now, back) = self.clock.advance(wall);
        if let Some(back) = back {
            let text =
                format!("the machine's clock went back by {back:?}; lifetimes, holds and stages go on from here");
            self.events.push(now, None, EventKind::ClockBack, text);
        }
        now
    }

    /// Changes the state of a network, and notes it as an event.
    fn enter(&mut self, now: Instant, name: &str, state: LifecycleState, kind: EventKind, text: String) {
        let Some(record) = self.networks.get_mut(name) else { return };
        (record.state, record.since) = (state, now);
        self.note(now, name, kind, text);
    }

    fn note(&mut self, now: Instant, name: &str, kind: EventKind, text: String) {
        let Some(record) = self.networks.get(name) else { return };
        let about = Some((record.request.name.clone(), record.request.owner.clone()));
        self.events.push(now, about, kind, text);
        self.changed.insert(name.to_owned());
    }

    /// Notes the networks whose rates have changed: switches have to be told, and to be read back.
    fn note_resized(&mut self, change: BookChange) {
        for name in change.resized {
            if let Some(record) = self.networks.get_mut(&name) {
                record.is_settled = false;
                self.changed.insert(name);
            }
        }
    }

    /// Forgets the networks that ended first, beyond [`MAX_ENDED`].
    fn forget_ended(&mut self) {
        let ended = self.networks.values().filter(|record| record.state.has_ended());
        let mut ended: Vec<(Instant, String)> =
            ended.map(|record| (record.since, record.request.name.clone())).collect();
        let beyond = ended.len().saturating_sub(MAX_ENDED);
        ended.sort();
        for (_, name) in ended.into_iter().take(beyond) {
            self.networks.remove(&name);
            self.changed.insert(name);
        }
    }
}
