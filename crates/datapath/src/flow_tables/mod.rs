//! Owns the flow tables and all that changes together with them: settings, timers and compiled programs.
//!
//! Packets and messages read the tables as one slice ([`FlowTables::all`]). Entries change only through a
//! [`TableEditor`] ([`FlowTables::edit`]), and every change increments the generation.
mod features;
mod settings;
mod shapes;
mod walk;

pub(crate) use features::actions_of;
pub use walk::FlowWalk;

use crate::flow_mod::TableEditor;
use crate::group::GroupTable;
use crate::journal::Journal;
use crate::meter::MeterTable;
use crate::program_interner::ProgramInterner;
use crate::table::{FlowTable, TableSettings};
use crate::timeouts::TimeoutWheel;
use crate::{EntryChange, LookupMethod, flow_mod};
use std::time::Duration;
use weir_openflow::model::{GroupId, MeterId, TableId};
use weir_units::Instant;

/// Minimum time between two steps of pending work on a table's index. A step takes some tens of microseconds.
const SETTLE_EVERY: Duration = Duration::from_micros(250);

/// The flow tables of a datapath.
#[derive(Debug)]
pub(crate) struct FlowTables {
    tables: Vec<FlowTable>,
    /// Settings of each table, indexed by table number.
    settings: Vec<TableSettings>,
    /// The first egress table, if there is one (OpenFlow 1.5.1, 5.1).
    first_egress: Option<u8>,
    /// Maximum number of entries that a controller may set for a table.
    max_entries: u32,
    /// True if at least one table has vacancy events switched on.
    watches_vacancy: bool,
    timers: TimeoutWheel,
    programs: ProgramInterner,
    /// Incremented whenever the tables may have changed.
    generation: u64,
}

impl FlowTables {
    /// Returns `n_tables` empty tables of at most `max_entries` entries each.
    pub(crate) fn new(n_tables: u8, max_entries: u32, lookup: LookupMethod) -> FlowTables {
        FlowTables {
            tables: (0..n_tables).map(|_| FlowTable::new(lookup)).collect(),
            settings: (0..n_tables).map(|table| TableSettings::new(TableId(table), max_entries)).collect(),
            first_egress: None,
            max_entries,
            watches_vacancy: false,
            timers: TimeoutWheel::default(),
            programs: ProgramInterner::default(),
            generation: 0,
        }
    }

    /// Returns the tables, indexed by table number.
    #[inline]
    pub(crate) fn all(&self) -> &[FlowTable] {
        &self.tables
    }

    /// Returns the first egress table, if there is one.
    #[inline]
    pub(crate) fn first_egress(&self) -> Option<u8> {
        self.first_egress
    }

    /// Returns a number that is incremented whenever the tables may have changed.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Records that the tables may change now.
    pub(crate) fn start_generation(&mut self) {
        self.generation += 1;
    }

    /// Returns true if a table is part of the pipeline.
    pub(crate) fn has_table(&self, table: TableId) -> bool {
        self.settings.get(usize::from(table.0)).is_some_and(|table| table.is_there)
    }

    /// Returns the number of tables, including those that left the pipeline.
    fn n_tables(&self) -> u8 {
        u8::try_from(self.tables.len()).unwrap_or(u8::MAX)
    }

    /// Returns the numbers of the tables in the pipeline.
    fn numbers(&self) -> impl Iterator<Item = u8> {
        (0..self.n_tables()).filter(|table| self.has_table(TableId(*table)))
    }

    /// Returns an editor, which changes flow entries.
    pub(crate) fn edit<'a>(
        &'a mut self,
        groups: &'a GroupTable,
        meters: &'a MeterTable,
        journal: &'a mut Journal,
    ) -> TableEditor<'a> {
        self.start_generation();
        TableEditor {
            tables: &mut self.tables,
            meters,
            timers: &mut self.timers,
            programs: &mut self.programs,
            settings: &self.settings,
            first_egress: self.first_egress,
            groups,
            journal,
        }
    }

    /// Returns a stamp that is later than those of all entries.
    pub(crate) fn stamp(&mut self) -> u64 {
        self.timers.stamp()
    }

    /// Adds counters for another worker.
    pub(crate) fn add_worker(&mut self) {
        self.tables.iter_mut().for_each(FlowTable::add_worker);
    }

    /// Returns the number of entries that send packets to a group.
    pub(crate) fn entries_of_group(&self, group: GroupId) -> u32 {
        self.tables.iter().map(|table| table.entries_of_group(group)).sum()
    }

    /// Returns the number of entries that use a meter.
    pub(crate) fn entries_of_meter(&self, meter: MeterId) -> u32 {
        self.tables.iter().map(|table| table.metered().by(meter)).sum()
    }

    /// Hides later changes of entries from packets, until [`FlowTables::reveal`].
    pub(crate) fn hold(&mut self) {
        self.tables.iter_mut().for_each(FlowTable::hold);
    }

    /// Reveals hidden changes to packets and frees the hidden former state, a bounded amount per call. Returns true if
    /// that is done.
    pub(crate) fn reveal(&mut self) -> bool {
        self.tables.iter_mut().for_each(FlowTable::reveal);
        let mut most = flow_mod::STEP;
        self.tables.iter_mut().all(|table| table.tidy(&mut most))
    }

    /// Frees some of the memory of removed entries and ended timers. Returns true if no more is left to free.
    pub(crate) fn give_back(&mut self) -> bool {
        self.tables.iter_mut().fold(self.timers.give_back(), |all, table| table.give_back() & all)
    }

    /// Continues pending work on the tables' indexes, until one table has more work to do at once. Returns the time of
    /// the next call if work is left.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Instant> {
        let mut next = None::<Instant>;
        for at in self.tables.iter_mut().filter_map(|table| table.settle(now)) {
            next = Some(next.map_or(at, |next| next.min(at)));
            if at <= now {
                break;
            }
        }
        // Not at once, because packets have priority.
        next.map(|at| at.max(now + SETTLE_EVERY))
    }

    /// Starts recording changes of entries.
    pub(crate) fn watch(&mut self) {
        self.tables.iter_mut().for_each(FlowTable::watch);
    }

    /// Appends the changes of entries since the last call, table by table.
    pub(crate) fn take_changes(&mut self, into: &mut Vec<EntryChange>) {
        self.tables.iter_mut().for_each(|table| table.take_changes(into));
    }
}
