//! Tables of all switches, and those in which something changes.
use super::entry::{EntryContent, EntryKey};
use super::entry_table::EntryHandle;
use super::route::RouteId;
use super::switch::SwitchTables;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tables of all switches.
#[derive(Debug, Default)]
pub(super) struct AllTables {
    switches: BTreeMap<u64, SwitchTables>,
    /// Switches whose tables may differ from what is wanted.
    pub(super) unsent: BTreeSet<u64>,
    /// Routes that waited for the deletion of an entry which another route has asked for since then.
    pub(super) overtaken: BTreeSet<RouteId>,
    /// Number of tables that there were since the start.
    n_tables: u32,
}

impl AllTables {
    pub(super) fn get(&self, dpid: u64) -> Option<&SwitchTables> {
        self.switches.get(&dpid)
    }

    pub(super) fn get_mut(&mut self, dpid: u64) -> Option<&mut SwitchTables> {
        self.switches.get_mut(&dpid)
    }

    /// Returns the tables of a switch, which are kept from now on.
    pub(super) fn of(&mut self, dpid: u64) -> &mut SwitchTables {
        let n_tables = &mut self.n_tables;
        self.switches.entry(dpid).or_insert_with(|| {
            *n_tables = n_tables.wrapping_add(1);
            SwitchTables::new(*n_tables)
        })
    }

    /// Forgets the tables of a switch if nothing is wanted of it and it is away.
    pub(super) fn forget_if_idle(&mut self, dpid: u64) {
        if self.switches.get(&dpid).is_some_and(SwitchTables::is_idle) {
            self.switches.remove(&dpid);
        }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &SwitchTables> + '_ {
        self.switches.values()
    }

    /// Asks for an entry of a route.
    pub(super) fn set(
        &mut self,
        id: Option<RouteId>,
        dpid: u64,
        key: EntryKey,
        content: Arc<EntryContent>,
    ) -> EntryHandle {
        self.unsent.insert(dpid);
        let (entry, overtaken) = self.of(dpid).set(key, content, id);
        self.overtaken.extend(overtaken);
        entry
    }

    /// Withdraws an entry of a route.
    pub(super) fn remove(&mut self, id: RouteId, dpid: u64, entry: EntryHandle) {
        if let Some(switch) = self.switches.get_mut(&dpid) {
            switch.remove(entry, Some(id));
            self.unsent.insert(dpid);
        }
    }

    /// Returns true if a switch has confirmed an entry, or is away.
    pub(super) fn is_confirmed(&self, dpid: u64, entry: EntryHandle) -> bool {
        self.switches.get(&dpid).is_none_or(|switch| switch.is_away() || switch.is_confirmed(entry))
    }

    /// Returns true if a switch has confirmed that it does not have an entry that was withdrawn.
    pub(super) fn is_gone(&self, dpid: u64, entry: EntryHandle) -> bool {
        self.switches.get(&dpid).is_none_or(|switch| switch.is_gone(entry))
    }
}
