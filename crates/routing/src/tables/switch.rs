//! Tables of one switch: what it should have, and what it has as far as it has confirmed.
//!
//! Changes wait in the order in which they were asked for. [`SwitchTables::flush`] sends them in batches
//! (`batch.rs`), and a switch that connects is read first (`reading.rs`).
use super::RouteId;
use super::batch::SentBatch;
use super::entry::{EntryContent, EntryKey};
use super::entry_table::{Desired, EntryHandle, EntryTable, Leaving, TrackedEntry};
use super::groups::SharedGroups;
use super::reading::SyncStage;
use foldhash::fast::RandomState;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use weir_openflow::model::GroupId;

/// Cookie of all entries of a network's controller: `weir` in ASCII, then 1, then a serial number of 24 bits.
pub(super) const COOKIE: u64 = 0x7765_6972_0100_0000;
pub(super) const SERIAL_BITS: u64 = 0x00ff_ffff;

/// Tables of a switch.
#[derive(Debug, Default)]
pub(super) struct SwitchTables {
    pub(super) stage: SyncStage,
    pub(super) entries: EntryTable,
    pub(super) groups: SharedGroups,
    /// Entries that have to be compared with what is desired, the first asked for first.
    pub(super) queue: VecDeque<EntryHandle>,
    /// Number of entries that were put into the queue since the start.
    pub(super) queued: u64,
    /// True if an entry of an application changes: packets that it sends through the tables must not come first.
    pub(super) is_urgent: bool,
    /// Number of entries that have left the queue and whose messages the switch has confirmed.
    pub(super) done: u64,
    /// Entries by the serial numbers in cookies.
    pub(super) by_serial: HashMap<u64, EntryHandle, RandomState>,
    pub(super) last_serial: u64,
    /// Batches of messages that the switch has not confirmed, the oldest first.
    pub(super) batches: VecDeque<SentBatch>,
    pub(super) sent: u64,
    pub(super) confirmed: u64,
}

/// An entry that the switch has removed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LostEntry {
    pub(super) key: EntryKey,
    pub(super) route: Option<RouteId>,
}

/// An entry that the switch has refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RefusedEntry {
    pub(super) handle: EntryHandle,
    pub(super) key: EntryKey,
    pub(super) route: Option<RouteId>,
    pub(super) outcome: RefusalOutcome,
}

/// Outcome of a refusal for the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalOutcome {
    /// Other content of the entry is wanted by now, or none.
    Superseded,
    /// The entry is still wanted, and sent again with [`SwitchTables::retry_refused`].
    Kept,
    /// The entry is not wanted any longer: its time was limited, and would begin again with each attempt.
    Dropped,
}

impl SwitchTables {
    /// Returns empty tables of a switch that is away, with a number that no other tables have.
    pub(super) fn new(number: u32) -> SwitchTables {
        SwitchTables { entries: EntryTable::new(number), ..SwitchTables::default() }
    }

    pub(super) fn is_away(&self) -> bool {
        matches!(self.stage, SyncStage::Away)
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.stage, SyncStage::Ready)
    }

    /// Returns true if nothing is desired and the switch is away, so that it can be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.is_away() && self.entries.entries().all(|entry| entry.desired.is_none())
    }

    /// Returns the number of entries that are desired, and of those that are in the switch.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let count = |is: fn(&&TrackedEntry) -> bool| self.entries.entries().filter(is).count();
        (count(|entry| entry.desired.is_some()), count(|entry| entry.present.is_some()))
    }

    /// Asks for an entry. Returns it, and the route that waits for its deletion, which is not deleted now.
    pub(super) fn set(
        &mut self,
        key: EntryKey,
        content: Arc<EntryContent>,
        route: Option<RouteId>,
    ) -> (EntryHandle, Option<RouteId>) {
        let handle = self.entries.track(key);
        let Some(entry) = self.entries.get_mut(handle) else { return (handle, None) };
        let overtaken = entry.leaving.take().and_then(|leaving| leaving.route);
        match &mut entry.desired {
            Some(desired) if *desired.content == *content && !desired.is_refused => desired.route = route,
            desired => {
                *desired = Some(Desired { content, route, is_refused: false });
                self.enqueue(handle);
                self.is_urgent |= route.is_none();
            }
        }
        (handle, overtaken)
    }

    /// Withdraws the entry with a key.
    pub(super) fn remove_key(&mut self, key: &EntryKey) {
        if let Some(handle) = self.entries.find(key) {
            self.remove(handle, None);
        }
    }

    /// Withdraws an entry.
    pub(super) fn remove(&mut self, handle: EntryHandle, route: Option<RouteId>) {
        let is_away = self.is_away();
        let Some(entry) = self.entries.get_mut(handle) else { return };
        if entry.desired.take().is_none() {
            return;
        }
        if is_away {
            self.entries.forget_if_idle(handle);
        } else {
            entry.leaving = Some(Leaving { route, batch: None });
            self.enqueue(handle);
            self.is_urgent |= route.is_none();
        }
    }

    /// Lets an entry be compared with what is desired.
    pub(super) fn enqueue(&mut self, handle: EntryHandle) {
        if let Some(entry) = self.entries.get_mut(handle)
            && !std::mem::replace(&mut entry.is_queued, true)
        {
            self.queue.push_back(handle);
            self.queued += 1;
        }
    }

    /// Returns true if the switch has confirmed an entry as it is desired.
    pub(super) fn is_confirmed(&self, handle: EntryHandle) -> bool {
        let Some(entry) = self.entries.get(handle) else { return false };
        entry.present.as_ref().is_some_and(|present| present.batch <= self.confirmed) && entry.is_as_desired()
    }

    /// Returns true if the switch has confirmed that it does not have an entry that was withdrawn.
    pub(super) fn is_gone(&self, handle: EntryHandle) -> bool {
        self.entries.get(handle).is_none_or(|entry| entry.leaving.is_none())
    }

    /// Returns how many changes were asked for, and how many of them, the oldest first, the switch has confirmed.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.queued, self.done)
    }

    /// Notes that the switch has refused a flow-mod with this cookie. Returns the entry.
    pub(super) fn refuse(&mut self, cookie: u64) -> Option<RefusedEntry> {
        if cookie & !SERIAL_BITS != COOKIE {
            return None;
        }
        let handle = *self.by_serial.get(&(cookie & SERIAL_BITS))?;
        let entry = self.entries.get_mut(handle)?;
        let (key, is_wanted) = ((*entry.key).clone(), entry.is_as_desired());
        let present = entry.present.as_mut()?;
        present.content = None;
        if let Some(group) = present.group.take() {
            self.groups.release(group);
        }
        let Some(desired) = entry.desired.as_mut().filter(|_| is_wanted) else {
            return Some(RefusedEntry { handle, key, route: None, outcome: RefusalOutcome::Superseded });
        };
        let route = desired.route;
        if desired.content.hard_timeout == 0 {
            desired.is_refused = true;
            return Some(RefusedEntry { handle, key, route, outcome: RefusalOutcome::Kept });
        }
        entry.desired = None;
        // The switch may have other content of the entry.
        self.enqueue(handle);
        Some(RefusedEntry { handle, key, route, outcome: RefusalOutcome::Dropped })
    }

    /// Asks again for the entries that the switch has refused.
    pub(super) fn retry_refused(&mut self) {
        for handle in self.entries.handles() {
            let desired = self.entries.get_mut(handle).and_then(|entry| entry.desired.as_mut());
            if desired.is_some_and(|desired| std::mem::replace(&mut desired.is_refused, false)) {
                self.enqueue(handle);
            }
        }
    }

    /// Forgets a group that the switch has refused.
    pub(super) fn refuse_group(&mut self, group: GroupId) {
        self.groups.forget(group);
    }

    /// Notes that the switch has removed an entry with this cookie. With `expired` it is no longer desired, otherwise
    /// it is sent again. Returns it.
    pub(super) fn lose(&mut self, cookie: u64, expired: bool) -> Option<LostEntry> {
        if cookie & !SERIAL_BITS != COOKIE {
            return None;
        }
        let handle = self.by_serial.remove(&(cookie & SERIAL_BITS))?;
        let entry = self.entries.get_mut(handle)?;
        let present = entry.present.take()?;
        present.group.into_iter().for_each(|group| self.groups.release(group));
        let route = entry.desired.as_ref().and_then(|desired| desired.route);
        let key = (*entry.key).clone();
        if expired {
            entry.desired = None;
            self.entries.forget_if_idle(handle);
        } else {
            self.enqueue(handle);
        }
        Some(LostEntry { key, route })
    }
}
