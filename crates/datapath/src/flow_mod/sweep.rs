//! Changes that may be about many entries: non-strict flow-mods, the check for overlaps, entries that go with their group or meter or with
//! their table. They go through the tables in steps, so that packets need not wait for all of it; nothing else changes the tables
//! meanwhile ([`Datapath::is_busy`](crate::Datapath::is_busy)). Where the classifier can tell the few entries in question, only those are looked at.
//!
//! A table is gone through from its end, so that what its entries leave is given back on the way.
use super::{Filter, Manner, Tables};
use crate::journal::{Former, Undo};
use crate::program::Program;
use crate::shape::{EntryId, WordMatches};
use crate::table::{FlowCounter, FlowEntry, FlowTable, Gone};
use std::borrow::Cow;
use std::sync::Arc;
use weir_openflow::Version;
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::monitor::FlowEvent;
use weir_openflow::model::{ErrorType, FlowFlags, FlowMod, FlowRemovedReason, GroupId, MeterId, TableId};
use weir_units::Instant;

/// What a step may cost: some microseconds. A place looked at costs one.
pub(crate) const STEP: usize = 128;

/// What is done at once when a change begins: enough for those that are about few entries.
const FIRST: usize = 64;

/// What a changed entry costs beside looking at it.
const CHANGE: usize = 7;

/// What it costs to find out where to look in a table.
const OPEN: usize = 4;

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Sweep<'a> {
    what: What<'a>,
    /// The table that is gone through.
    table: u8,
    left: Left,
}

#[derive(Debug)]
enum What<'a> {
    Delete(Filter),
    Modify(Box<Modify<'a>>),
    /// Looks for entries that a new one overlaps with; without one it is added.
    Add(Box<Add<'a>>),
    WithGroup(GroupId),
    WithMeter(MeterId),
    /// Entries go without a word.
    Clear(Clear),
}

/// What a modify does.
#[derive(Debug)]
pub(super) struct Modify<'a> {
    pub(super) flow: Cow<'a, FlowMod>,
    pub(super) manner: Manner,
    pub(super) filter: Filter,
    pub(super) program: Arc<Program>,
    pub(super) words: WordMatches,
    pub(super) stamp: u64,
    pub(super) found: bool,
}

/// An entry that is to be added.
#[derive(Debug)]
pub(super) struct Add<'a> {
    pub(super) flow: Cow<'a, FlowMod>,
    pub(super) manner: Manner,
    pub(super) words: WordMatches,
    pub(super) program: Arc<Program>,
}

/// Which entries a change of the pipeline leaves no place for.
#[derive(Debug)]
pub(crate) struct Clear {
    /// By table: whether all of its entries go.
    pub(crate) all_of: Vec<bool>,
    /// Gotos that lead nowhere now: by table, to which.
    pub(crate) dead_ends: Vec<Vec<bool>>,
}

/// What is left to be looked at of a table.
#[derive(Debug)]
enum Left {
    /// All of it.
    All,
    Few(Vec<EntryId>),
    /// Places below this.
    Below(u32),
}

impl<'a> Sweep<'a> {
    fn new(what: What<'a>) -> Sweep<'a> {
        let table = what.only().unwrap_or(0);
        Sweep { what, table, left: Left::All }
    }

    /// Deletes what a filter lets through.
    pub(super) fn delete(filter: Filter) -> Sweep<'a> {
        Sweep::new(What::Delete(filter))
    }

    /// Gives what a filter lets through new instructions.
    pub(super) fn modify(modify: Modify<'a>) -> Sweep<'a> {
        Sweep::new(What::Modify(Box::new(modify)))
    }

    /// Adds an entry if it overlaps with none of its priority.
    pub(super) fn add(add: Add<'a>) -> Sweep<'a> {
        Sweep::new(What::Add(Box::new(add)))
    }

    /// Removes the entries that send to a group that went, or to any with [`GroupId::ALL`] (OpenFlow 1.3.5, 6.5).
    pub(crate) fn with_group(group: GroupId) -> Sweep<'a> {
        Sweep::new(What::WithGroup(group))
    }

    /// Removes the entries that use a meter that is gone, or (`ALL`) any meter (OpenFlow 1.3.5, 6.5).
    pub(crate) fn with_meter(meter: MeterId) -> Sweep<'a> {
        Sweep::new(What::WithMeter(meter))
    }

    /// Removes the entries that a change of the pipeline leaves no place for.
    pub(crate) fn clear(clear: Clear) -> Sweep<'a> {
        Sweep::new(What::Clear(clear))
    }

    /// The same, independent of the message that it is for.
    pub(crate) fn into_owned(self) -> Sweep<'static> {
        let owned = |flow: Cow<'a, FlowMod>| Cow::Owned(flow.into_owned());
        let what = match self.what {
            What::Modify(modify) => What::Modify(Box::new(Modify { flow: owned(modify.flow), ..*modify })),
            What::Add(add) => What::Add(Box::new(Add { flow: owned(add.flow), ..*add })),
            What::Delete(filter) => What::Delete(filter),
            What::WithGroup(group) => What::WithGroup(group),
            What::WithMeter(meter) => What::WithMeter(meter),
            What::Clear(clear) => What::Clear(clear),
        };
        Sweep { what, table: self.table, left: self.left }
    }
}

/// A number that no table has.
const BEYOND: u8 = TableId::ALL.0;

impl What<'_> {
    /// The table that it is about, if it is about one only: nearly all flow-mods are.
    fn only(&self) -> Option<u8> {
        let table = match self {
            What::Delete(filter) => filter.table,
            What::Modify(modify) => modify.filter.table,
            What::Add(add) => add.flow.table,
            What::WithGroup(_) | What::WithMeter(_) | What::Clear(_) => TableId::ALL,
        };
        Some(table.0).filter(|_| table != TableId::ALL)
    }

    /// Where it goes on behind a table.
    fn after(&self, table: u8) -> u8 {
        if self.only().is_some() { BEYOND } else { table + 1 }
    }

    /// Whether there may be something to look for in a table; most groups and meters have no entries in most tables.
    fn is_about(&self, number: u8, table: &FlowTable) -> bool {
        let is_it = match self {
            What::Delete(filter) => filter.is_about(number),
            What::Modify(modify) => modify.filter.is_about(number),
            What::Add(add) => add.flow.table.0 == number,
            What::WithGroup(group) => table.sends_to(*group),
            What::WithMeter(meter) => table.metered().is_by(*meter),
            What::Clear(clear) => clear.is_about(number),
        };
        is_it && table.len() != 0
    }

    /// Where to look in a table.
    fn open(&self, table: &FlowTable) -> Left {
        let few = match self {
            What::Delete(filter) => filter.few(table),
            What::Modify(modify) => modify.filter.few(table),
            What::Add(add) => table.few_overlapping(add.manner.priority, &add.words),
            What::WithGroup(_) | What::WithMeter(_) | What::Clear(_) => None,
        };
        few.map_or(Left::Below(u32::MAX), Left::Few)
    }

    fn lets(&self, table: u8, entry: &FlowEntry, words: impl FnOnce() -> WordMatches) -> bool {
        match self {
            What::Delete(filter) => filter.lets(entry, words),
            What::Modify(modify) => modify.filter.lets(entry, words),
            What::Add(add) => entry.priority == add.manner.priority && words().overlaps(&add.words),
            What::WithGroup(group) => entry.program.sends_to(*group),
            What::WithMeter(meter) => entry.program.is_metered_by(*meter),
            What::Clear(clear) => clear.takes(table, entry),
        }
    }
}

impl Filter {
    /// The entries of a table that it may let through, where few are to be looked at.
    pub(super) fn few(&self, table: &FlowTable) -> Option<Vec<EntryId>> {
        match self.strict {
            Some(priority) => Some(table.find_in_any_reading(&self.words, priority).into_iter().collect()),
            None => table.few_within(&self.words),
        }
    }
}

impl Clear {
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

impl Tables<'_> {
    /// Begins a sweep; gives it back if there is more to do.
    ///
    /// # Errors
    /// As the agent answers; nothing changed.
    pub(crate) fn begin<'a>(
        &mut self,
        now: Instant,
        mut sweep: Sweep<'a>,
        gone: &mut Vec<Gone>,
    ) -> Result<Option<Sweep<'a>>, ErrorType> {
        let is_done = self.go_on(now, &mut sweep, &mut { FIRST }, gone)?;
        Ok((!is_done).then_some(sweep))
    }

    /// Carries out the rest of a sweep.
    ///
    /// # Errors
    /// As the agent answers; nothing changed.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        sweep: Option<Sweep<'_>>,
        gone: &mut Vec<Gone>,
    ) -> Result<(), ErrorType> {
        let Some(mut sweep) = sweep else { return Ok(()) };
        while !self.go_on(now, &mut sweep, &mut { STEP }, gone)? {}
        Ok(())
    }

    /// Goes on with a sweep until it is done or has cost `most`, which goes down by what it costs. Whether it is done.
    ///
    /// # Errors
    /// As the agent answers; nothing changed.
    pub(crate) fn go_on(
        &mut self,
        now: Instant,
        sweep: &mut Sweep<'_>,
        most: &mut usize,
        gone: &mut Vec<Gone>,
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

    /// The next entry to be looked at; none at the end, or if there is nothing left to spend.
    fn next_of(&self, sweep: &mut Sweep<'_>, most: &mut usize) -> Option<(u8, EntryId)> {
        let number = &mut sweep.table;
        while *most > 0
            && let Some(table) = self.tables.get(usize::from(*number))
        {
            let (found, is_through) = match &mut sweep.left {
                _ if !sweep.what.is_about(*number, table) => (None, true),
                Left::All => {
                    *most = most.saturating_sub(OPEN);
                    sweep.left = sweep.what.open(table);
                    continue;
                }
                Left::Few(few) => (few.pop(), true),
                Left::Below(end) => {
                    let found = table.last_below(end, most).map(|(id, _)| id);
                    (found, *end == 0)
                }
            };
            match found {
                Some(id) => return Some((*number, id)),
                None if is_through => (*number, sweep.left) = (sweep.what.after(*number), Left::All),
                None => {}
            }
        }
        None
    }

    /// Does to an entry what the sweep is for.
    fn change(
        &mut self,
        now: Instant,
        sweep: &mut Sweep<'_>,
        table: u8,
        id: EntryId,
        gone: &mut Vec<Gone>,
    ) -> Result<(), ErrorType> {
        match &mut sweep.what {
            What::Delete(_) => self.remove(now, table, id, FlowRemovedReason::Delete, gone),
            What::Modify(modify) => self.modify(now, modify, table, id),
            What::Add(_) => return Err(FlowModFailed::Overlap.into()),
            What::WithGroup(_) => self.remove(now, table, id, FlowRemovedReason::GroupDelete, gone),
            What::WithMeter(_) => self.remove(now, table, id, FlowRemovedReason::MeterDelete, gone),
            What::Clear(_) => {
                if let Some(entry) = self.tables[usize::from(table)].remove(id) {
                    self.timers.stop(entry.timer);
                    self.programs.step();
                }
            }
        }
        Ok(())
    }

    /// Gives an entry new instructions.
    fn modify(&mut self, now: Instant, modify: &mut Modify<'_>, table: u8, id: EntryId) {
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
        self.journal.note(|| Undo::Modified(table, id, Former { program: former, cookie, counter }));
        if modify.flow.flags.contains(FlowFlags::RESET_COUNTS) {
            let reset = FlowCounter { used: counter.used.min(now), ..FlowCounter::default() };
            entries.start_counter(id, reset);
        }
    }

    /// All has been looked at. Whether that was all there is to do.
    fn end(&mut self, now: Instant, sweep: &mut Sweep<'_>, gone: &mut Vec<Gone>) -> Result<bool, ErrorType> {
        match &mut sweep.what {
            // 1.0 adds what it does not find to modify.
            What::Modify(modify) if !modify.found && modify.manner.version == Version::V10 => {
                let Modify { flow, manner, program, words, .. } = &**modify;
                let (flow, program, words) = (Cow::Owned(flow.clone().into_owned()), program.clone(), words.clone());
                let add = Add { flow, manner: *manner, words, program };
                if !add.flow.flags.contains(FlowFlags::CHECK_OVERLAP) {
                    return self.add(now, &add, gone).map(|()| true);
                }
                *sweep = Sweep::add(add);
                Ok(false)
            }
            What::Add(add) => self.add(now, add, gone).map(|()| true),
            _ => Ok(true),
        }
    }
}
