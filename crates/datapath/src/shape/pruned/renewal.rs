//! A new index in place of one whose tuples are not in the order of their priorities any more: made a few tuples and entries at a time,
//! while the old one answers.
//!
//! Places are given as tuples come, and tuples' priorities change with their entries. A search asks in the order of places and ends where
//! nothing better can come, so a table that was filled from its lowest priority upwards is searched through for each packet.
use super::index::{Index, Step};
use crate::shape::hash::{EntryHash, TupleId};
use crate::shape::{EntryId, WordMatches};
use std::time::Duration;
use weir_units::Instant;

/// So much of the table's entries must have changed for a renewal amid changes: their work stays a part of that of the changes.
const CHANGED_PART: usize = 2;

/// So long a table must have been left alone otherwise: for each entry (whose part of a renewal takes a microsecond), and at least.
const QUIET_PER_ENTRY: Duration = Duration::from_micros(20);
const MIN_QUIET: Duration = Duration::from_millis(100);

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    /// What is being made.
    next: Option<Box<Index>>,
    /// Changes of the table since the last renewal began.
    changes: usize,
    /// How many they were when that was last looked at, and since when they are as many.
    seen: usize,
    since: Instant,
}

impl Renewal {
    /// Notes that an entry was added.
    pub(super) fn added(&mut self, entries: &EntryHash, id: EntryId, tuple: TupleId, words: &WordMatches) {
        self.changes += 1;
        if let Some(next) = &mut self.next {
            next.added(entries, id, tuple, words);
        }
    }

    /// Notes that an entry was removed.
    pub(super) fn removed(&mut self, entries: &EntryHash, id: EntryId, tuple: TupleId, words: &WordMatches) {
        self.changes += 1;
        if let Some(next) = &mut self.next {
            next.removed(entries, id, tuple, words);
        }
    }

    /// Begins if the table is another than it was.
    pub(super) fn begin_if_much_has_changed(&mut self, entries: &EntryHash, index: &Index) {
        if self.changes > entries.len() / CHANGED_PART && self.next.is_none() {
            self.begin(entries, index);
        }
    }

    /// Begins if nobody changes the table; says when to ask again, if that is still to be seen or something is to be done.
    pub(super) fn begin_if_quiet(&mut self, now: Instant, entries: &EntryHash, index: &Index) -> Option<Instant> {
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

    fn begin(&mut self, entries: &EntryHash, index: &Index) {
        (self.changes, self.seen) = (0, 0);
        self.next = index.places.are_disordered().then(|| Box::new(Index::new(entries)));
    }

    /// Goes on; gives the new index when it is complete.
    pub(super) fn step(&mut self, entries: &EntryHash, step: Step) -> Option<Box<Index>> {
        self.next.as_mut()?.step(entries, step);
        self.next.take_if(|next| next.is_complete())
    }
}
