//! Hands out what has to be written to the store, and restores a manager from it.
use super::events::ManagerEventLog;
use super::record::optional_nanos;
use super::{ManagerError, ManagerEvent, ManagerSettings, NetworkManager, NetworkRecord, ServiceClock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_units::Instant;
use weir_vnet::service::{HeldNetwork, NetworkBook, NetworkDesign};

/// Network as the store keeps it. Designs are kept and not made again: after a restart, places, ways, VLAN ids and
/// datapath ids are the ones that switches know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptNetwork {
    /// State of the network.
    pub record: NetworkRecord,
    /// Design, if the network is reserved.
    pub held: Option<KeptDesign>,
}

/// Design of a reserved network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptDesign {
    /// Places, ways and virtual switches.
    pub design: NetworkDesign,
    /// Datapath ids of the virtual switches.
    pub dpids: Vec<u64>,
    /// Number of stages that have begun.
    pub stage: usize,
    /// Service time at which the lifetime ends.
    #[serde(default, rename = "expires_ns", with = "optional_nanos")]
    pub expires: Option<Instant>,
}

impl KeptDesign {
    fn of(held: &HeldNetwork) -> KeptDesign {
        let HeldNetwork { design, dpids, stage, expires } = held.clone();
        KeptDesign { design, dpids, stage, expires }
    }

    fn into_held(self) -> HeldNetwork {
        let KeptDesign { design, dpids, stage, expires } = self;
        HeldNetwork { design, dpids, stage, expires }
    }
}

/// All that a store keeps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeptManager {
    /// Networks by their names.
    pub networks: BTreeMap<String, KeptNetwork>,
    /// Newest events, oldest first.
    pub events: Vec<ManagerEvent>,
    /// Service time.
    pub clock: ServiceClock,
    /// Number of networks that were admitted since the store was made.
    pub admitted: u64,
}

/// Changes that have to be written to the store, all at once.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagerChanges {
    /// Networks that have changed; `None` for one that is forgotten.
    pub networks: BTreeMap<String, Option<KeptNetwork>>,
    /// New events.
    pub events: Vec<ManagerEvent>,
    /// Number of the oldest event that is kept.
    pub first_event: u64,
    /// Service time.
    pub clock: ServiceClock,
    /// Number of networks that were admitted since the store was made.
    pub admitted: u64,
}

impl ManagerChanges {
    /// Returns true if nothing but the time has changed.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.events.is_empty()
    }
}

impl NetworkManager {
    /// Returns what has changed since the last call.
    pub fn take_changes(&mut self) -> ManagerChanges {
        let names = std::mem::take(&mut self.changed);
        let (events, first_event) = self.events.take_new();
        let networks = names.into_iter().map(|name| {
            let kept = self.kept(&name);
            (name, kept)
        });
        let networks = networks.collect();
        ManagerChanges { networks, events, first_event, clock: self.clock, admitted: self.admitted }
    }

    fn kept(&self, name: &str) -> Option<KeptNetwork> {
        let record = self.networks.get(name)?.clone();
        Some(KeptNetwork { record, held: self.book.network(name).map(KeptDesign::of) })
    }

    /// Returns the manager whose changes were written. `book` is empty.
    ///
    /// # Errors
    /// A design does not fit the book's substrate: this is another one than when the network was admitted.
    pub fn restored(
        book: NetworkBook,
        settings: ManagerSettings,
        kept: KeptManager,
    ) -> Result<NetworkManager, ManagerError> {
        let mut manager = NetworkManager::new(book, settings);
        (manager.events, manager.clock, manager.admitted) =
            (ManagerEventLog::restored(kept.events), kept.clock, kept.admitted);
        let mut networks: Vec<(String, KeptNetwork)> = kept.networks.into_iter().collect();
        networks.sort_by_key(|(_, network)| network.record.order);
        for (name, KeptNetwork { record, held }) in networks {
            let wrong = |problem: String| ManagerError::Restore { name: name.clone(), problem };
            if held.is_some() != record.state.is_reserved() {
                return Err(wrong(format!("found the state {} with or without a design", record.state.name())));
            }
            if let Some(held) = held {
                manager.book.restore(held.into_held()).map_err(|error| wrong(error.to_string()))?;
            }
            manager.networks.insert(name, record);
        }
        Ok(manager)
    }
}
