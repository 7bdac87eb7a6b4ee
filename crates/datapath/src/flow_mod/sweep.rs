//! Applies changes that may concern many entries: non-strict flow-mods, the check for overlaps, and the removal of
//! entries together with their group, meter or table. A sweep goes through the tables in steps, so that packets wait
//! only for one step. Nothing else changes the tables between the steps
//! ([`Datapath::is_busy`](crate::Datapath::is_busy)). If the classifier can name the few entries that may match, only
//! those are examined.
//!
//! A table is examined from its end, so that memory of removed entries is freed on the way.
use super::TableEditor;
use crate::entry_filter::EntryFilter;
use crate::journal::{FormerEntryState, UndoRecord};
use crate::program::EntryProgram;
use crate::shape::{EntryId, WordMatches};
use crate::table::{FlowCounter, FlowEntry, FlowRemovedNotice, FlowTable};
use crate::version_semantics::FlowModSemantics;
use std::borrow::Cow;
use std::sync::Arc;
use weir_openflow::Version;
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::monitor::FlowEvent;
use weir_openflow::model::{ErrorType, FlowFlags, FlowMod, FlowRemovedReason, GroupId, MeterId, TableId};
use weir_units::Instant;

/// Cost of a step: a few microseconds. Examining a place costs 1.
pub(crate) const STEP: usize = 128;

/// Cost of the first step, which is enough for changes of few entries.
const FIRST: usize = 64;

/// Additional cost of changing an entry.
const CHANGE: usize = 7;

/// Cost of finding out which places of a table to examine.
const OPEN: usize = 4;

/// A change in progress, with its position.
#[derive(Debug)]
pub(crate) struct EntrySweep<'a> {
    what: SweepKind<'a>,
    /// Number of the present table.
    table: u8,
    left: SweepRemainder,
}

#[derive(Debug)]
enum SweepKind<'a> {
    Delete(EntryFilter),
    Modify(Box<EntryModification<'a>>),
    /// Looks for entries that a new one overlaps. If there is none, the new one is added.
    Add(Box<EntryAddition<'a>>),
    WithGroup(GroupId),
    WithMeter(MeterId),
    /// Removes entries without any notice.
    Clear(InvalidEntries),
}

/// The parameters of a modify.
#[derive(Debug)]
pub(super) struct EntryModification<'a> {
    pub(super) flow: Cow<'a, FlowMod>,
    pub(super) manner: FlowModSemantics,
    pub(super) filter: EntryFilter,
    pub(super) program: Arc<EntryProgram>,
    pub(super) words: WordMatches,
    pub(super) stamp: u64,
    pub(super) found: bool,
}

/// An entry to be added.
#[derive(Debug)]
pub(super) struct EntryAddition<'a> {
    pub(super) flow: Cow<'a, FlowMod>,
    pub(super) manner: FlowModSemantics,
    pub(super) words: WordMatches,
    pub(super) program: Arc<EntryProgram>,
}

/// The entries that a change of the pipeline makes invalid.
#[derive(Debug)]
pub(crate) struct InvalidEntries {
    /// True for tables whose entries are all removed.
    pub(crate) all_of: Vec<bool>,
    /// Invalid gotos: by table, true for each invalid target table.
    pub(crate) dead_ends: Vec<Vec<bool>>,
}

/// Part of the present table that is not examined yet.
#[derive(Debug)]
enum SweepRemainder {
    /// The whole table.
    All,
    Few(Vec<EntryId>),
    /// The places below this one.
    Below(u32),
}

impl<'a> EntrySweep<'a> {
    fn new(what: SweepKind<'a>) -> EntrySweep<'a> {
        let table = what.only().unwrap_or(0);
        EntrySweep { what, table, left: SweepRemainder::All }
    }

    /// Returns a sweep that deletes the entries a filter selects.
    pub(super) fn delete(filter: EntryFilter) -> EntrySweep<'a> {
        EntrySweep::new(SweepKind::Delete(filter))
    }

    /// Returns a sweep that gives the entries a filter selects new instructions.
    pub(super) fn modify(modify: EntryModification<'a>) -> EntrySweep<'a> {
        EntrySweep::new(SweepKind::Modify(Box::new(modify)))
    }

    /// Returns a sweep that adds an entry if it overlaps none of its priority.
    pub(super) fn add(add: EntryAddition<'a>) -> EntrySweep<'a> {
        EntrySweep::new(SweepKind::Add(Box::new(add)))
    }

    /// Returns a sweep that removes the entries that send to a deleted group, or with [`GroupId::ALL`] to any group
    /// (OpenFlow 1.3.5, 6.5).
    pub(crate) fn with_group(group: GroupId) -> EntrySweep<'a> {
        EntrySweep::new(SweepKind::WithGroup(group))
    }

    /// Returns a sweep that removes the entries that use a deleted meter, or with `ALL` any meter (OpenFlow 1.3.5,
    /// 6.5).
    pub(crate) fn with_meter(meter: MeterId) -> EntrySweep<'a> {
        EntrySweep::new(SweepKind::WithMeter(meter))
    }

    /// Returns a sweep that removes the entries that a change of the pipeline makes invalid.
    pub(crate) fn clear(clear: InvalidEntries) -> EntrySweep<'a> {
        EntrySweep::new(SweepKind::Clear(clear))
    }

    /// Copies the borrowed message into the sweep.
    pub(crate) fn into_owned(self) -> EntrySweep<'static> {
        let owned = |flow: Cow<'a, FlowMod>| Cow::Owned(flow.into_owned());
        let what = match self.what {
            SweepKind::Modify(modify) => {
                SweepKind::Modify(Box::new(EntryModification { flow: owned(modify.flow), ..*modify }))
            }
            SweepKind::Add(add) => SweepKind::Add(Box::new(EntryAddition { flow: owned(add.flow), ..*add })),
            SweepKind::Delete(filter) => SweepKind::Delete(filter),
            SweepKind::WithGroup(group) => SweepKind::WithGroup(group),
            SweepKind::WithMeter(meter) => SweepKind::WithMeter(meter),
            SweepKind::Clear(clear) => SweepKind::Clear(clear),
        };
        EntrySweep { what, table: self.table, left: self.left }
    }
}

/// Table number beyond all tables.
const BEYOND: u8 = TableId::ALL.0;

impl SweepKind<'_> {
    /// Returns the table concerned if it is a single one, as for nearly all flow-mods.
    fn only(&self) -> Option<u8> {
        let table = match self {
            SweepKind::Delete(filter) => filter.table,
            SweepKind::Modify(modify) => modify.filter.table,
            SweepKind::Add(add) => add.flow.table,
            SweepKind::WithGroup(_) | SweepKind::WithMeter(_) | SweepKind::Clear(_) => TableId::ALL,
        };
        Some(table.0).filter(|_| table != TableId::ALL)
    }

    /// Returns the number of the table after `table`.
    fn after(&self, table: u8) -> u8 {
        if self.only().is_some() { BEYOND } else { table + 1 }
    }

    /// Returns true if a table may hold entries concerned. Most groups and meters have no entries in most tables.
    fn is_about(&self, number: u8, table: &FlowTable) -> bool {
        let is_it = match self {
            SweepKind::Delete(filter) => filter.is_about(number),
            SweepKind::Modify(modify) => modify.filter.is_about(number),
            SweepKind::Add(add) => add.flow.table.0 == number,
            SweepKind::WithGroup(group) => table.sends_to(*group),
            SweepKind::WithMeter(meter) => table.metered().is_by(*meter),
            SweepKind::Clear(clear) => clear.is_about(number),
        };
        is_it && table.len() != 0
    }

    /// Returns the part of a table to examine.
    fn open(&self, table: &FlowTable) -> SweepRemainder {
        let few = match self {
            SweepKind::Delete(filter) => filter.few(table),
            SweepKind::Modify(modify) => modify.filter.few(table),
            SweepKind::Add(add) => table.few_overlapping(add.manner.priority, &add.words),
            SweepKind::WithGroup(_) | SweepKind::WithMeter(_) | SweepKind::Clear(_) => None,
        };
        few.map_or(SweepRemainder::Below(u32::MAX), SweepRemainder::Few)
    }

    fn lets(&self, table: u8, entry: &FlowEntry, words: impl FnOnce() -> WordMatches) -> bool {
        match self {
            SweepKind::Delete(filter) => filter.lets(entry, words),
            SweepKind::Modify(modify) => modify.filter.lets(entry, words),
            SweepKind::Add(add) => entry.priority == add.manner.priority && words().overlaps(&add.words),
            SweepKind::WithGroup(group) => entry.program.sends_to(*group),
            SweepKind::WithMeter(meter) => entry.program.is_metered_by(*meter),
            SweepKind::Clear(clear) => clear.takes(table, entry),
        }
    }
}

impl InvalidEntries {
    fn is_about(&self, table: u8) -> bool {
        let table = usize::from(table);
        self.all_of.get(table).is_some_and(|all| *all)
            || self.dead_ends.get(table).is_some_and(|ends| ends.contains(&true))
    }

    fn takes(&self, table: u8, entry: &FlowEntry) -> bool {
        let leads = |ends: &Vec<bool>, next: u8| ends.get(usize::from(next)).is_some_and(|is_dead| *is_dead);
        let dead_ends = self.dead_ends.get(usize::from(table));
        self.all_of.get(usize::from(table)).is_some_and(|all| *all)
            || entry.program.goto.is_some_and(|next| dead_ends.is_some_and(|ends| leads(ends, next)))
    }
}

impl TableEditor<'_> {
    /// Begins a sweep. Returns the sweep if more steps are needed.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn begin<'a>(
        &mut self,
        now: Instant,
        mut sweep: EntrySweep<'a>,
        gone: &mut Vec<FlowRemovedNotice>,
    ) -> Result<Option<EntrySweep<'a>>, ErrorType> {
        let is_done = self.go_on(now, &mut sweep, &mut { FIRST }, gone)?;
        Ok((!is_done).then_some(sweep))
    }

    /// Runs the remaining steps of a sweep.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        sweep: Option<EntrySweep<'_>>,
        gone: &mut Vec<FlowRemovedNotice>,
    ) -> Result<(), ErrorType> {
        let Some(mut sweep) = sweep else { return Ok(()) };
        while !self.go_on(now, &mut sweep, &mut { STEP }, gone)? {}
        Ok(())
    }

    /// Continues a sweep until it is done or its cost reaches `most`, which is reduced by the cost. Returns true if
    /// it is done.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn go_on(
        &mut self,
        now: Instant,
        sweep: &mut EntrySweep<'_>,
        most: &mut usize,
        gone: &mut Vec<FlowRemovedNotice>,
    ) -> Result<bool, ErrorType> {
        loop {
            let Some((table, id)) = self.next_of(sweep, most) else {
                let is_through = usize::from(sweep.table) >= self.tables.len();
                return Ok(is_through && self.end(now, sweep, gone)?);
            };
            let entries = &self.tables[usize::from(table)];
            let lets = |entry: &FlowEntry| sweep.what.lets(table, entry, || entries.words_of(id, entry));
            if entries.get(id).is_some_and(lets) {
                *most = most.saturating_sub(CHANGE);
                self.change(now, sweep, table, id, gone)?;
            }
        }
    }

    /// Returns the next entry to examine, or `None` at the end or when `most` is used up.
    fn next_of(&self, sweep: &mut EntrySweep<'_>, most: &mut usize) -> Option<(u8, EntryId)> {
        let number = &mut sweep.table;
        while *most > 0
            && let Some(table) = self.tables.get(usize::from(*number))
        {
            let (found, is_through) = match &mut sweep.left {
                _ if !sweep.what.is_about(*number, table) => (None, true),
                SweepRemainder::All => {
                    *most = most.saturating_sub(OPEN);
                    sweep.left = sweep.what.open(table);
                    continue;
                }
                SweepRemainder::Few(few) => (few.pop(), true),
                SweepRemainder::Below(end) => {
                    let found = table.last_below(end, most).map(|(id, _)| id);
                    (found, *end == 0)
                }
            };
            match found {
                Some(id) => return Some((*number, id)),
                None if is_through => (*number, sweep.left) = (sweep.what.after(*number), SweepRemainder::All),
                None => {}
            }
        }
        None
    }

    /// Applies the sweep's change to an entry.
    fn change(
        &mut self,
        now: Instant,
        sweep: &mut EntrySweep<'_>,
        table: u8,
        id: EntryId,
        gone: &mut Vec<FlowRemovedNotice>,
    ) -> Result<(), ErrorType> {
        match &mut sweep.what {
            SweepKind::Delete(_) => self.remove(now, table, id, FlowRemovedReason::Delete, gone),
            SweepKind::Modify(modify) => self.modify(now, modify, table, id),
            SweepKind::Add(_) => return Err(FlowModFailed::Overlap.into()),
            SweepKind::WithGroup(_) => self.remove(now, table, id, FlowRemovedReason::GroupDelete, gone),
            SweepKind::WithMeter(_) => self.remove(now, table, id, FlowRemovedReason::MeterDelete, gone),
            SweepKind::Clear(_) => {
                if let Some(entry) = self.tables[usize::from(table)].remove(id) {
                    self.timers.stop(entry.timer);
                    self.programs.step();
                }
            }
        }
        Ok(())
    }

    /// Gives an entry new instructions.
    fn modify(&mut self, now: Instant, modify: &mut EntryModification<'_>, table: u8, id: EntryId) {
        let entries = &mut self.tables[usize::from(table)];
        let Some(former) = entries.set_program(id, modify.program.clone()) else { return };
        modify.found = true;
        let counter = entries.counter_of(id);
        let Some(entry) = entries.get_mut(id) else { return };
        let cookie = entry.cookie;
        if modify.manner.version == Version::V10 {
            entry.cookie = modify.flow.cookie;
        }
        if entry.cookie != cookie || *former != *modify.program {
            entry.changed = modify.stamp;
            self.journal.changed(FlowEvent::Modified, None, table, Some(entry), Some(&former));
        }
        self.journal.note(|| UndoRecord::Modified(table, id, FormerEntryState { program: former, cookie, counter }));
        if modify.flow.flags.contains(FlowFlags::RESET_COUNTS) {
            let reset = FlowCounter { used: counter.used.min(now), ..FlowCounter::default() };
            entries.start_counter(id, reset);
        }
    }

    /// Finishes a sweep after all entries have been examined. Returns true if no work is left.
    fn end(
        &mut self,
        now: Instant,
        sweep: &mut EntrySweep<'_>,
        gone: &mut Vec<FlowRemovedNotice>,
    ) -> Result<bool, ErrorType> {
        match &mut sweep.what {
            // 1.0's modify adds an entry if none matches.
            SweepKind::Modify(modify) if !modify.found && modify.manner.version == Version::V10 => {
                let EntryModification { flow, manner, program, words, .. } = &**modify;
                let (flow, program, words) = (Cow::Owned(flow.clone().into_owned()), program.clone(), words.clone());
                let add = EntryAddition { flow, manner: *manner, words, program };
                if !add.flow.flags.contains(FlowFlags::CHECK_OVERLAP) {
                    return self.add(now, &add, gone).map(|()| true);
                }
                *sweep = EntrySweep::add(add);
                Ok(false)
            }
            SweepKind::Add(add) => self.add(now, add, gone).map(|()| true),
            _ => Ok(true),
        }
    }
}
