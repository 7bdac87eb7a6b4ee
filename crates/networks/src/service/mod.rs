//! Puts manager, store and switches together.
//!
//! Each change is decided on a copy of the manager, written to the store, and only then taken over and carried out. So
//! a service that is killed at any moment and opened again finds in the store what it was about to do, on the switches
//! what it has done, and makes the plan for the rest.
mod rounds;
mod verdicts;

use crate::manager::{ManagedSlice, ManagerChanges, ManagerError, ManagerSettings, NetworkManager};
use crate::plan::{PlannedSlice, SliceSpec};
use crate::store::{StateStore, StoreError};
use crate::switches::{SwitchAccess, SwitchBackoff};
use std::collections::BTreeMap;
use std::fmt;
use weir_slicing::VirtualSwitch;
use weir_units::Instant;
use weir_vnet::service::{HeldNetwork, NetworkBook};

/// Makes a virtual switch of a network's slice with this index, with its present rates.
pub type SliceWriter = Box<dyn Fn(&NetworkBook, &HeldNetwork, usize) -> VirtualSwitch + Send + Sync>;

/// Error of the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkServiceError {
    /// The request is not possible.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// The store cannot be read or written. Nothing has changed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Service that keeps virtual networks and carries them out.
pub struct NetworkService<S, A> {
    manager: NetworkManager,
    store: S,
    switches: A,
    write_slice: SliceWriter,
    /// Switches that did not answer lately.
    backoff: BTreeMap<String, SwitchBackoff>,
    /// Time of the last look at all switches.
    looked: Option<Instant>,
}

impl<S, A> fmt::Debug for NetworkService<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkService").field("manager", &self.manager).finish_non_exhaustive()
    }
}

impl<S: StateStore, A: SwitchAccess> NetworkService<S, A> {
    /// Opens a service with what the store keeps. `book` is empty; its substrate is that of the switches.
    ///
    /// # Errors
    /// The store cannot be read, or has networks that do not fit the substrate.
    pub fn open(
        book: NetworkBook,
        settings: ManagerSettings,
        store: S,
        switches: A,
        write_slice: SliceWriter,
    ) -> Result<NetworkService<S, A>, NetworkServiceError> {
        let manager = NetworkManager::restored(book, settings, store.load()?)?;
        Ok(NetworkService { manager, store, switches, write_slice, backoff: BTreeMap::new(), looked: None })
    }

    /// Returns the networks with their states.
    pub fn manager(&self) -> &NetworkManager {
        &self.manager
    }

    /// Makes a change, such as [`NetworkManager::request`], and writes it to the store.
    ///
    /// # Errors
    /// The change is refused, or cannot be written: nothing has changed then, except that refused requests with offers
    /// are kept.
    pub fn change<T>(
        &mut self,
        change: impl FnOnce(&mut NetworkManager) -> Result<T, ManagerError>,
    ) -> Result<T, NetworkServiceError> {
        let mut next = self.manager.clone();
        let result = change(&mut next);
        let changes: ManagerChanges = next.take_changes();
        if !changes.is_empty() {
            self.store.write(&changes)?;
        }
        self.manager = next;
        Ok(result?)
    }

    /// Returns the virtual switches that switches may have because of networks.
    fn planned(&self) -> Vec<PlannedSlice> {
        let planned = |slice: ManagedSlice<'_>| {
            let designed = &slice.held.design.slices[slice.slice];
            PlannedSlice {
                network: slice.held.design.request.name.clone(),
                switch: designed.switch.clone(),
                spec: SliceSpec::from(&(self.write_slice)(self.manager.book(), slice.held, slice.slice)),
                is_end: slice.is_end(),
                is_wanted: slice.is_wanted,
                is_new: slice.is_new,
            }
        };
        self.manager.slices().into_iter().map(planned).collect()
    }
}
