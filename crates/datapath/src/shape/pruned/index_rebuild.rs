//! Rebuilds an index whose tuples are no longer in the order of their priorities: a few tuples and entries at a time,
//! while the old one serves lookups.
//!
//! Places are assigned in the order in which tuples are created, and a tuple's priority changes with its entries. A
//! search probes tuples in the order of places, and ends where no better entry can follow. In a table that was filled
//! from its lowest priority upwards it therefore probes all tuples for each packet.
use super::index::{IndexBudget, PrunerIndex};
use crate::shape::hash::{EntryHashTable, TupleId};
use crate::shape::{EntryId, WordMatches};
use std::time::Duration;
use weir_units::Instant;

/// Divisor: while the table changes, its index is rebuilt only after more than one entry in `CHANGED_PART` has changed.
/// The work of rebuilding thus stays in proportion to the work of the changes.
const CHANGED_PART: usize = 2;

/// Time without changes of the table after which its index is rebuilt, per entry of the table; at least [`MIN_QUIET`].
/// Rebuilding takes a microsecond per entry.
const QUIET_PER_ENTRY: Duration = Duration::from_micros(20);
const MIN_QUIET: Duration = Duration::from_millis(100);

/// Rebuild of an index: see the [module](self).
#[derive(Debug, Default)]
pub(super) struct IndexRebuild {
    /// New index under construction.
    next: Option<Box<PrunerIndex>>,
    /// Number of changes of the table since the last renewal began.
    changes: usize,
    /// Value of `changes` when it was last examined, and the time since which it has had this value (`since`).
    seen: usize,
    since: Instant,
}

impl IndexRebuild {
    /// Updates the new index after an entry was inserted.
    pub(super) fn added(&mut self, entries: &EntryHashTable, id: EntryId, tuple: TupleId, words: &WordMatches) {
        self.changes += 1;
        if let Some(next) = &mut self.next {
            next.added(entries, id, tuple, words);
        }
    }

    /// Updates the new index after an entry was removed.
    pub(super) fn removed(&mut self, entries: &EntryHashTable, id: EntryId, tuple: TupleId, words: &WordMatches) {
        self.changes += 1;
        if let Some(next) = &mut self.next {
            next.removed(entries, id, tuple, words);
        }
    }

    /// Begins a renewal if enough entries have changed and none is under way.
    pub(super) fn begin_if_much_has_changed(&mut self, entries: &EntryHashTable, index: &PrunerIndex) {
        if self.changes > entries.len() / CHANGED_PART && self.next.is_none() {
            self.begin(entries, index);
        }
    }

    /// Begins a renewal if the table has not changed for a while. Returns the time of the next call if the wait or
    /// the renewal is not over.
    pub(super) fn begin_if_quiet(
        &mut self,
        now: Instant,
        entries: &EntryHashTable,
        index: &PrunerIndex,
    ) -> Option<Instant> {
        if self.next.is_some() {
            return Some(now);
        }
        if self.changes == 0 {
            return None;
        }
        if self.seen != self.changes {
            (self.seen, self.since) = (self.changes, now);
        }
        let quiet = MIN_QUIET.max(QUIET_PER_ENTRY.saturating_mul(u32::try_from(entries.len()).unwrap_or(u32::MAX)));
        if now < self.since + quiet {
            return Some(self.since + quiet);
        }
        self.begin(entries, index);
        self.next.is_some().then_some(now)
    }

    fn begin(&mut self, entries: &EntryHashTable, index: &PrunerIndex) {
        (self.changes, self.seen) = (0, 0);
        self.next = index.places.are_disordered().then(|| Box::new(PrunerIndex::new(entries)));
    }

    /// Continues the renewal. Returns the new index when it is complete.
    pub(super) fn step(&mut self, entries: &EntryHashTable, step: IndexBudget) -> Option<Box<PrunerIndex>> {
        self.next.as_mut()?.step(entries, step);
        self.next.take_if(|next| next.is_complete())
    }
}
