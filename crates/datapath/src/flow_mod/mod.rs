//! Applies flow-mods to the tables (OpenFlow 1.3.5, 6.4; OpenFlow 1.0.0, 4.6).
mod effect;
mod sweep;
mod undo;

pub use effect::FlowModEffect;
pub(crate) use sweep::{EntrySweep, InvalidEntries, STEP};

use crate::action_set;
use crate::entry_filter::EntryFilter;
use crate::group::GroupTable;
use crate::journal::{Journal, UndoRecord};
use crate::meter::MeterTable;
use crate::program::EntryProgram;
use crate::program_interner::ProgramInterner;
use crate::shape::EntryId;
use crate::table::{FlowCounter, FlowEntry, FlowRemovedNotice, FlowTable, PackedMatch, TableSettings};
use crate::timeouts::{TimeoutWheel, TimerId};
use crate::validate::{self, ActionListKind, KnownFields};
use crate::version_semantics::FlowModSemantics;
use std::borrow::Cow;
use sweep::{EntryAddition, EntryModification};
use weir_openflow::Version;
use weir_openflow::model::error::{BadAction, BadInstruction, BadMatch, FlowModFailed, MeterModFailed};
use weir_openflow::model::monitor::FlowEvent;
use weir_openflow::model::{Action, ErrorType, FlowCommand, FlowFlags, FlowMod, FlowRemovedReason, MeterId, TableId};
use weir_packet::{Field, FlowKey, FlowMask};
use weir_units::Instant;

/// The tables, with everything that changes together with them.
pub(crate) struct TableEditor<'a> {
    pub(crate) tables: &'a mut [FlowTable],
    pub(crate) meters: &'a MeterTable,
    pub(crate) timers: &'a mut TimeoutWheel,
    pub(crate) programs: &'a mut ProgramInterner,
    /// Settings of each table.
    pub(crate) settings: &'a [TableSettings],
    /// The first egress table, if there is one.
    pub(crate) first_egress: Option<u8>,
    pub(crate) groups: &'a GroupTable,
    pub(crate) journal: &'a mut Journal,
}

/// Supported flags. The emergency flag of 1.0 is refused separately.
const FLAGS: u16 = 0b1_1111;

impl TableEditor<'_> {
    /// Applies a flow-mod. Removed entries that ask for a flow-removed message are appended to `gone`. Returns the
    /// rest of the work if many entries are concerned.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn apply<'a>(
        &mut self,
        now: Instant,
        flow: &'a FlowMod,
        manner: FlowModSemantics,
        gone: &mut Vec<FlowRemovedNotice>,
    ) -> Result<Option<EntrySweep<'a>>, ErrorType> {
        let (key, mask) = flow.matching.key_and_mask()?;
        self.check_table(flow)?;
        check_flags(flow)?;
        let words = manner.reading.words(&key, &mask);
        // In a large table the entry is not in the processor's cache. It is fetched while the rest of the message is
        // checked.
        let table = self.tables.get(usize::from(flow.table.0));
        let fetched = table.and_then(|table| table.fetch(&words));
        if is_delete(flow) {
            if let Some(table) = table {
                table.fetch_entry(fetched);
            }
            return self.begin(now, EntrySweep::delete(EntryFilter::of_delete(flow, manner, words)), gone);
        }
        let program = self.check(flow, manner.version, key, mask)?;
        let program = self.programs.share(program);
        if let Some(table) = self.tables.get(usize::from(flow.table.0)) {
            table.fetch_entry(fetched);
        }
        let flow = Cow::Borrowed(flow);
        if flow.command != FlowCommand::Add {
            let filter = EntryFilter::of_flow_mod(&flow, manner, words.clone());
            let stamp = self.timers.stamp();
            let modify = EntryModification { flow, manner, filter, program, words, stamp, found: false };
            return self.begin(now, EntrySweep::modify(modify), gone);
        }
        let add = EntryAddition { flow, manner, words, program };
        if add.flow.flags.contains(FlowFlags::CHECK_OVERLAP) {
            return self.begin(now, EntrySweep::add(add), gone);
        }
        self.add(now, &add, gone).map(|()| None)
    }

    /// Applies a flow-mod completely, unlike [`TableEditor::apply`].
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn apply_whole(
        &mut self,
        now: Instant,
        flow: &FlowMod,
        manner: FlowModSemantics,
        gone: &mut Vec<FlowRemovedNotice>,
    ) -> Result<(), ErrorType> {
        let left = self.apply(now, flow, manner, gone)?;
        self.finish(now, left, gone)
    }

    /// Checks that a flow-mod names a table of the pipeline, or all tables if it deletes.
    fn check_table(&self, flow: &FlowMod) -> Result<(), ErrorType> {
        let is_one_table = self.settings.get(usize::from(flow.table.0)).is_some_and(|table| table.is_there);
        if is_one_table || is_delete(flow) && flow.table == TableId::ALL {
            return Ok(());
        }
        Err(FlowModFailed::BadTableId.into())
    }

    /// Checks a flow-mod that adds or modifies entries, and returns its compiled instructions.
    fn check(&self, flow: &FlowMod, version: Version, key: FlowKey, mask: FlowMask) -> Result<EntryProgram, ErrorType> {
        let is_egress = self.first_egress.is_some_and(|first| flow.table.0 >= first);
        let n_tables = u8::try_from(self.tables.len()).unwrap_or(u8::MAX);
        // Goto may not lead from another table into an egress table (OpenFlow 1.5.1, 5.1).
        let end = self.first_egress.filter(|_| !is_egress).unwrap_or(n_tables);
        let program = EntryProgram::compile(&flow.instructions, flow.table.0, end)?;
        if is_egress {
            check_egress_set(&program)?;
        }
        self.check_meters(&program)?;
        let known = KnownFields::new(key, mask);
        validate::actions(program.apply.iter().flat_map(|list| list.iter()), &known, ActionListKind::Entry, version)?;
        // The action set is checked in its order of execution.
        let mut set: Vec<_> = program.write.iter().flat_map(|list| list.iter()).collect();
        set.sort_by_key(|action| action_set::rank(action));
        validate::actions(set, &known, ActionListKind::Entry, version)?;
        self.groups.check_actions(program.actions())?;
        self.check_settings(flow, &mask, &program)?;
        Ok(program)
    }

    /// Checks an entry against the restrictions of its table.
    fn check_settings(&self, flow: &FlowMod, mask: &FlowMask, program: &EntryProgram) -> Result<(), ErrorType> {
        let table = &self.settings[usize::from(flow.table.0)];
        if program.goto.is_some_and(|next| !self.settings[usize::from(next)].is_there) {
            return Err(BadInstruction::BadTableId.into());
        }
        if mask.get(Field::Metadata) & !u128::from(table.metadata_match) != 0 {
            return Err(BadMatch::BadMask.into());
        }
        if program.metadata.is_some_and(|(_, mask)| mask & !table.metadata_write != 0) {
            return Err(BadInstruction::UnsupMetadataMask.into());
        }
        let Some(limits) = &table.limits else { return Ok(()) };
        let is_miss = flow.priority == 0 && mask.is_empty();
        limits.check(&flow.matching, is_miss, program)
    }

    /// Checks that the meters of an entry exist.
    fn check_meters(&self, program: &EntryProgram) -> Result<(), ErrorType> {
        let is_there = |meter: MeterId| meter <= MeterId::MAX && self.meters.contains(meter);
        match program.meter {
            Some(meter) if meter == MeterId(0) || meter > MeterId::MAX => Err(MeterModFailed::InvalidMeter.into()),
            Some(meter) if !is_there(meter) => Err(MeterModFailed::UnknownMeter.into()),
            _ if !program.meters().iter().all(|meter| is_there(*meter)) => Err(BadAction::BadMeter.into()),
            _ => Ok(()),
        }
    }

    /// Adds an entry. The caller has checked for overlaps.
    fn add(
        &mut self,
        now: Instant,
        add: &EntryAddition<'_>,
        gone: &mut Vec<FlowRemovedNotice>,
    ) -> Result<(), ErrorType> {
        let EntryAddition { flow, manner, words, program } = add;
        let table = &mut self.tables[usize::from(flow.table.0)];
        let same = table.find(words, manner.priority);
        if same.is_none() {
            // Memory is reserved before another entry is evicted.
            table.make_room(words).map_err(|_| FlowModFailed::TableFull)?;
        }
        let other = same.is_none().then(|| table.find_in_other_reading(words, manner.priority)).flatten();
        let former = same.or(other).map(|id| table.counter_of(id)).unwrap_or_default();
        if let Some(other) = other {
            // An entry of the other reading matches other packets, so it cannot be replaced in place.
            self.discard(flow.table.0, other);
        }
        let table = &mut self.tables[usize::from(flow.table.0)];
        if same.is_none() && table.len() >= self.settings[usize::from(flow.table.0)].max_entries as usize {
            let victim = table.victim(flow.importance).ok_or(FlowModFailed::TableFull)?;
            self.remove(now, flow.table.0, victim, FlowRemovedReason::Eviction, gone);
        }
        let table = &mut self.tables[usize::from(flow.table.0)];
        // 1.0 has no flag for this and always resets the counters.
        let resets = manner.version == Version::V10 || flow.flags.contains(FlowFlags::RESET_COUNTS);
        let counter = if resets { FlowCounter::default() } else { former };
        let stamp = self.timers.stamp();
        let entry = FlowEntry {
            matching: PackedMatch::new(&flow.matching, manner.reading),
            priority: manner.priority,
            asked_priority: flow.priority,
            cookie: flow.cookie,
            importance: flow.importance,
            flags: flow.flags,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            created: now,
            stamp,
            timer: TimerId::NONE,
            changed: stamp,
            program: program.clone(),
        };
        let deadline = entry.deadline(now).map(|(at, _)| at);
        let id = match same {
            Some(id) => {
                let replaced = table.replace(id, entry);
                if let Some(replaced) = &replaced {
                    self.timers.stop(replaced.timer);
                }
                self.note_removed(flow.table.0, id, replaced, former);
                id
            }
            None => {
                let id = table.insert(entry, words);
                self.journal.note(|| UndoRecord::Added(flow.table.0, id));
                id
            }
        };
        let added = self.tables[usize::from(flow.table.0)].get(id);
        self.journal.changed(FlowEvent::Added, None, flow.table.0, added, None);
        self.tables[usize::from(flow.table.0)].start_counter(id, FlowCounter { used: now, ..counter });
        self.start_timer(deadline, flow.table.0, id);
        Ok(())
    }

    /// Starts the timer of an entry that has none, if the entry has a deadline.
    pub(crate) fn start_timer(&mut self, deadline: Option<Instant>, table: u8, id: EntryId) {
        let timer = deadline.map_or(TimerId::NONE, |at| self.timers.start(at, table, id));
        if let Some(entry) = self.tables[usize::from(table)].get_mut(id) {
            entry.timer = timer;
        }
    }

    fn note_removed(&mut self, table: u8, id: EntryId, entry: Option<FlowEntry>, counter: FlowCounter) {
        if let Some(entry) = entry.filter(|_| self.journal.is_on()) {
            self.journal.note(|| UndoRecord::Removed(table, id, Box::new((entry, counter))));
        }
    }

    /// Removes an entry and records its flow-removed message in `gone` if the entry asks for one.
    fn remove(
        &mut self,
        now: Instant,
        table: u8,
        id: EntryId,
        reason: FlowRemovedReason,
        gone: &mut Vec<FlowRemovedNotice>,
    ) {
        let own = &self.tables[usize::from(table)];
        let Some(entry) = own.get(id) else { return };
        if entry.flags.contains(FlowFlags::SEND_FLOW_REM) {
            gone.push(entry.removed(now, table, reason, own.counter_of(id)));
        }
        self.journal.changed(FlowEvent::Removed, Some(reason), table, Some(entry), None);
        self.discard(table, id);
    }

    /// Removes an entry without any notice.
    fn discard(&mut self, table: u8, id: EntryId) {
        let Some(entry) = self.tables[usize::from(table)].remove(id) else { return };
        let counter = self.tables[usize::from(table)].counter_of(id);
        self.timers.stop(entry.timer);
        self.note_removed(table, id, Some(entry), counter);
        self.programs.step();
    }

    /// Removes expired entries, in at most `most` small steps. Returns the time of the next call.
    pub(crate) fn expire(&mut self, now: Instant, most: usize, gone: &mut Vec<FlowRemovedNotice>) -> Option<Instant> {
        let mut most = most;
        while let Some((table, id)) = self.timers.pop_due(now, &mut most) {
            let used = self.tables[usize::from(table)].counter_of(id).used;
            let deadline = self.tables[usize::from(table)].get(id).and_then(|entry| entry.deadline(used));
            match deadline {
                Some((at, reason)) if at <= now => {
                    // The entry's timer has ended, so none has to be stopped.
                    let entry = self.tables[usize::from(table)].remove(id);
                    let counter = self.tables[usize::from(table)].counter_of(id);
                    self.journal.changed(FlowEvent::Removed, Some(reason), table, entry.as_ref(), None);
                    let told = entry.filter(|entry| entry.flags.contains(FlowFlags::SEND_FLOW_REM));
                    gone.extend(told.map(|entry| entry.removed(now, table, reason, counter)));
                    self.programs.step();
                }
                later => self.start_timer(later.map(|(at, _)| at), table, id),
            }
        }
        self.timers.next()
    }
}

fn is_delete(flow: &FlowMod) -> bool {
    matches!(flow.command, FlowCommand::Delete | FlowCommand::DeleteStrict)
}

fn check_flags(flow: &FlowMod) -> Result<(), ErrorType> {
    // Deletes concern entries with any flags, and there are no emergency entries to delete.
    if flow.flags.contains(FlowFlags::EMERG) && !is_delete(flow) {
        // OpenFlow 1.0.0, 5.3.3: emergency entries must have no time-outs.
        if (flow.idle_timeout, flow.hard_timeout) != (0, 0) {
            return Err(FlowModFailed::BadTimeout.into());
        }
        // There is no emergency cache, so an emergency entry never fits (Open vSwitch replies with this error, too).
        return Err(FlowModFailed::TableFull.into());
    }
    if flow.flags.0 & !(FLAGS | FlowFlags::EMERG.0) != 0 { Err(FlowModFailed::BadFlags.into()) } else { Ok(()) }
}

/// Checks that an entry of an egress table does not change the output of its packets' action set (OpenFlow 1.5.1,
/// 5.1).
fn check_egress_set(program: &EntryProgram) -> Result<(), ErrorType> {
    let problem = program.write.iter().flat_map(|list| list.iter()).find_map(|action| match action {
        Action::Output { .. } => Some(BadAction::BadOutPort),
        Action::Group(_) => Some(BadAction::BadOutGroup),
        _ => None,
    });
    problem.map_or(Ok(()), |problem| Err(problem.into()))
}
