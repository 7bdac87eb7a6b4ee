//! Knows which datapath ids are connected, over all hubs of a controller. Looked at when connections begin and end.
use crate::ConnectionId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Main connections by datapath id.
#[derive(Debug, Default)]
pub(crate) struct SwitchRegistry(Mutex<HashMap<u64, RegisteredSwitch>>);

/// Main connection of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisteredSwitch {
    /// Number of the hub that has the connection.
    pub(crate) shard: usize,
    pub(crate) id: ConnectionId,
    pub(crate) peer: String,
}

impl SwitchRegistry {
    /// Registers a main connection.
    ///
    /// # Errors
    /// The connection that has the datapath id.
    pub(crate) fn claim(&self, dpid: u64, switch: RegisteredSwitch) -> Result<(), RegisteredSwitch> {
        match self.lock().entry(dpid) {
            std::collections::hash_map::Entry::Occupied(taken) => Err(taken.get().clone()),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(switch);
                Ok(())
            }
        }
    }

    pub(crate) fn find(&self, dpid: u64) -> Option<RegisteredSwitch> {
        self.lock().get(&dpid).cloned()
    }

    pub(crate) fn release(&self, dpid: u64) {
        self.lock().remove(&dpid);
    }

    /// Releases all switches of a hub that has ended.
    pub(crate) fn release_shard(&self, shard: usize) {
        self.lock().retain(|_, switch| switch.shard != shard);
    }

    /// The map is changed by single calls, so it is whole even after a panic.
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, RegisteredSwitch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
