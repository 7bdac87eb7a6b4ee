//! Measures how long a switch takes to add, modify and delete flow entries. The times are measured on a grid: order of
//! priorities, number of entries in the table, and number of commands sent at once (Cheng 2015, section 4.1).
use crate::bench::{CommandBurstOutcome, CompletionSign, EntryWatch, TestBench, TestEntryChange, TestEntryOutput};
use crate::rules::{GROUP_ENTRIES, TestFlowEntry, number};
use crate::store::{RawDataRow, RawDataStore};
use crate::terms::CostTermCounts;
use crate::{MeasurementGrid, PriorityOrder, ProfilerError, ProgressReporter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weir_profile::MatchLayers;

/// Number of the group ([`number`]) of entries that are in the table before a burst.
const THERE: u32 = 1;
/// Number of the group of entries that a burst adds.
const ADDED: u32 = 100;
/// Number of the group of entries that one command deletes.
const DELETED: u32 = 200;
/// Lowest priority used: start of ascending priorities. Switches may reserve priorities up to 500.
const LOWEST: u16 = 501;
/// Highest priority used: start of descending priorities.
const HIGHEST: u16 = 65_000;
/// Priority of all entries if they have equal ones. Also the number of different ascending or descending priorities.
const MIDDLE: u16 = 32_000;
/// Maximum number of attempts to time a burst. An attempt is repeated if its time is imprecise (blurred), because the
/// measuring machine was busy.
const ATTEMPTS: u32 = 3;
/// Minimum number of table sizes that are measured in each level.
const PLACES: u64 = 3;

/// Kind of the commands in a timed burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimedCommandKind {
    /// Adds entries, one by each command.
    Add,
    /// Modifies entries, one by each command.
    Modify,
    /// Deletes entries, one by each command.
    Delete,
    /// Deletes several entries by one command.
    DeleteMany,
}

/// Measured time of a burst: commands that were sent at once.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredBurst {
    /// Kind of the commands.
    pub command: TimedCommandKind,
    /// Order of the priorities of the entries in the table and of the added ones.
    pub priorities: PriorityOrder,
    /// Number of entries in the table, by the grid.
    pub entries: u64,
    /// Number of commands; for [`TimedCommandKind::DeleteMany`], number of entries that the command deletes.
    pub batch: u32,
    /// Index of the repetition, from 0.
    pub run: u32,
    /// Lower bound of the time from sending the burst to its completion, in seconds.
    pub low_s: f64,
    /// Upper bound of the time from sending the burst to its completion, in seconds.
    pub high_s: f64,
    /// Time from sending the burst to the reply of its barrier, in seconds.
    pub barrier_s: f64,
    /// True if commands were certainly not carried out in the order in which they were sent.
    pub reordered: bool,
    /// Cost terms of the burst.
    pub terms: CostTermCounts,
}

impl MeasuredBurst {
    /// Returns the time from sending the burst to its completion, in seconds: the middle between the bounds.
    pub fn seconds(&self) -> f64 {
        (self.low_s + self.high_s) / 2.0
    }

    /// Returns the time from the burst's completion to the barrier's reply, in seconds; negative if the reply came
    /// first.
    pub fn lag_s(&self) -> f64 {
        self.barrier_s - self.seconds()
    }

    fn of(case: CommandBurstCase, outcome: CommandBurstOutcome) -> Option<MeasuredBurst> {
        let (low, high) = outcome.completed()?;
        let since = |at: weir_units::Instant| at.since(outcome.started).as_secs_f64();
        Some(MeasuredBurst {
            command: case.command,
            priorities: case.priorities,
            entries: case.entries.into(),
            batch: case.batch,
            run: case.run,
            low_s: since(low),
            high_s: since(high),
            barrier_s: since(outcome.barrier),
            reordered: outcome.is_reordered(),
            terms: outcome.terms,
        })
    }
}

/// Measurement to be made: cell of the grid, and index of its repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CommandBurstCase {
    command: TimedCommandKind,
    priorities: PriorityOrder,
    entries: u32,
    batch: u32,
    run: u32,
}

/// Measurement of the grid in progress.
struct ControlGridRun<'e, 'a> {
    bench: &'e mut TestBench<'a>,
    grid: &'e MeasurementGrid,
    store: &'e mut RawDataStore,
    progress: &'e mut ProgressReporter<'a>,
    /// Number of entries the switch has room for.
    room: u64,
    /// Measurements that have been made.
    done: BTreeSet<CommandBurstCase>,
    timed: Vec<MeasuredBurst>,
    /// Number within its group of the next added entry.
    next: u32,
    /// True in the last attempt to time a burst: the time is kept even if it is blurred.
    keeps_blurred: bool,
    /// True if the time of a burst was blurred and not kept.
    was_blurred: bool,
}

/// Measures the cells of the grid that are not in the store yet. `room` is the number of entries the switch has room
/// for; `None` if unlimited. Returns the times of all bursts, including those from the store, and the error that ended
/// the measurement early, if there was one.
pub(crate) fn measure<'a>(
    bench: &mut TestBench<'a>,
    grid: &MeasurementGrid,
    room: Option<u64>,
    store: &mut RawDataStore,
    progress: &mut ProgressReporter<'a>,
) -> (Vec<MeasuredBurst>, Result<(), ProfilerError>) {
    let timed = match store.timed() {
        Ok(timed) => timed,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let done = timed.iter().map(CommandBurstCase::of).collect();
    let room = room.unwrap_or(u64::MAX);
    let (next, keeps_blurred, was_blurred) = (0, false, false);
    let mut measuring =
        ControlGridRun { bench, grid, store, progress, room, done, timed, next, keeps_blurred, was_blurred };
    let ended = measuring.all();
    (measuring.timed, ended)
}

/// Returns the numbers of entries in the table at which bursts are measured, ascending: the numbers of `grid`, as far
/// as `least` more entries fit in `room`. If fewer than [`PLACES`] of them lie in a level (`sizes`), [`PLACES`] numbers
/// in this level are added, up to `most`.
fn beside(grid: &[u32], sizes: &[Option<u64>], least: u64, room: u64, most: u64) -> Vec<u32> {
    let mut entries: BTreeSet<u64> = grid
        .iter()
        .map(|entries| u64::from(*entries))
        .filter(|entries| entries.saturating_add(least) <= room)
        .collect();
    let mut from = 0_u64;
    for size in sizes {
        let end = size.map_or(most, |size| from.saturating_add(size)).min(most);
        let places = end.saturating_sub(from).saturating_sub(least);
        if places > 0 && (entries.range(from + 1..=from + places).count() as u64) < PLACES {
            entries.extend((1..=PLACES).map(|part| from + places * part / PLACES).filter(|entries| *entries > from));
        }
        from = end;
    }
    entries.into_iter().filter_map(|entries| u32::try_from(entries).ok()).collect()
}

impl CommandBurstCase {
    fn of(timed: &MeasuredBurst) -> CommandBurstCase {
        CommandBurstCase {
            command: timed.command,
            priorities: timed.priorities,
            entries: u32::try_from(timed.entries).unwrap_or(u32::MAX),
            batch: timed.batch,
            run: timed.run,
        }
    }
}

impl ControlGridRun<'_, '_> {
    fn all(&mut self) -> Result<(), ProfilerError> {
        let grid = self.grid;
        let entries = self.beside();
        let bursts: usize = entries.iter().map(|entries| 3 * self.batches(*entries).count()).sum();
        let each = grid.runs as usize;
        self.progress.expect(grid.priorities.len() * each * (bursts + grid.deletions.len()));
        for priorities in &grid.priorities {
            self.bench.clear()?;
            self.deletions(*priorities)?;
            self.bench.clear()?;
            for entries in &entries {
                self.with_entries(*priorities, *entries)?;
            }
        }
        Ok(())
    }

    /// Returns the burst sizes of the grid that fit in the table together with `entries` entries.
    fn batches(&self, entries: u32) -> impl Iterator<Item = u32> {
        let room = self.room;
        self.grid.batches.iter().copied().filter(move |batch| u64::from(entries) + u64::from(*batch) <= room)
    }

    /// Returns the numbers of entries in the table at which bursts are measured: those of the grid as far as there is
    /// room, and further ones in levels with few of them, so that each level's costs can be determined.
    fn beside(&self) -> Vec<u32> {
        let least = self.grid.batches.first().copied().unwrap_or(1).into();
        let most = self.room.min(self.grid.entries_max.into());
        let sizes =
            self.bench.model().map_or(Vec::new(), |model| model.levels.iter().map(|level| level.size).collect());
        beside(&self.grid.entries, &sizes, least, self.room, most)
    }

    /// Measures the times of single commands that each delete several entries.
    fn deletions(&mut self, priorities: PriorityOrder) -> Result<(), ProfilerError> {
        let (grid, room) = (self.grid, self.room);
        for matching in grid.deletions.iter().filter(|matching| u64::from(**matching) <= room) {
            for run in 0..grid.runs {
                let case = CommandBurstCase {
                    command: TimedCommandKind::DeleteMany,
                    priorities,
                    entries: 0,
                    batch: *matching,
                    run,
                };
                self.progress.step(&format!("deleting {matching} entries at once"));
                if self.done.contains(&case) {
                    continue;
                }
                self.bench.during = format!("deleting {matching} entries at once");
                self.until_clear(|this| {
                    let rules = this.rules(DELETED, priorities, 0, *matching);
                    this.bench.fill(&rules)?;
                    let watch = EntryWatch { command: 0, rule: rules[rules.len() - 1], sign: CompletionSign::Gone };
                    let outcome = this.bench.burst(&[TestEntryChange::DeleteGroup(DELETED)], &[], &[watch])?;
                    this.keep(case, outcome)
                })?;
            }
        }
        Ok(())
    }

    /// Returns `count` new entries of a group, with priorities that continue those of `from` entries in the table.
    fn rules(&mut self, group: u32, priorities: PriorityOrder, from: u32, count: u32) -> Vec<TestFlowEntry> {
        (0..count)
            .map(|at| {
                let place = u16::try_from((from + at) % u32::from(MIDDLE)).unwrap_or(MIDDLE);
                let priority = match priorities {
                    PriorityOrder::Same => MIDDLE,
                    PriorityOrder::Ascending => LOWEST + place,
                    PriorityOrder::Descending => HIGHEST - place,
                    PriorityOrder::Random => self.bench.random.u16(LOWEST..HIGHEST),
                };
                TestFlowEntry { number: number(group, (from + at) % GROUP_ENTRIES), priority, kind: MatchLayers::L2L3 }
            })
            .collect()
    }

    /// Measures the times of all bursts with `entries` entries in the table.
    fn with_entries(&mut self, priorities: PriorityOrder, entries: u32) -> Result<(), ProfilerError> {
        let grid = self.grid;
        let batches: Vec<u32> = self.batches(entries).collect();
        let wanted = batches.iter().flat_map(|batch| {
            (0..grid.runs).flat_map(move |run| {
                [TimedCommandKind::Modify, TimedCommandKind::Add, TimedCommandKind::Delete]
                    .map(|command| CommandBurstCase { command, priorities, entries, batch: *batch, run })
            })
        });
        if wanted.clone().all(|case| self.done.contains(&case)) {
            wanted.for_each(|_| self.progress.step("measured before"));
            return Ok(());
        }
        self.there(priorities, entries)?;
        if grid.priorities.last() == Some(&priorities) {
            // The cache is fuller than before, so that its part in the times shows.
            self.bench.fill_cache()?;
        }
        for batch in &batches {
            for run in 0..grid.runs {
                let name = priorities.name();
                self.bench.during = format!("{batch} commands beside {entries} entries, priorities {name}");
                let case = |command| CommandBurstCase { command, priorities, entries, batch: *batch, run };
                self.progress.step("modifying");
                self.until_clear(|this| this.modify(case(TimedCommandKind::Modify)))?;
                self.progress.step("adding");
                self.progress.step("deleting");
                self.until_clear(|this| {
                    this.add_and_delete(case(TimedCommandKind::Add), case(TimedCommandKind::Delete))
                })?;
            }
        }
        Ok(())
    }

    /// Adds entries until the table has `entries` of them.
    fn there(&mut self, priorities: PriorityOrder, entries: u32) -> Result<(), ProfilerError> {
        let are = u32::try_from(self.bench.entries()).unwrap_or(u32::MAX);
        if are < entries {
            self.bench.during = format!("adding {} entries", entries - are);
            let rules = self.rules(THERE, priorities, are, entries - are);
            self.bench.fill(&rules)?;
        }
        Ok(())
    }

    fn modify(&mut self, case: CommandBurstCase) -> Result<(), ProfilerError> {
        if self.done.contains(&case) || self.bench.entries() < case.batch as usize {
            return Ok(());
        }
        let mut rules: Vec<(TestFlowEntry, TestEntryOutput)> = self.bench.rules().collect();
        self.bench.random.shuffle(&mut rules);
        rules.truncate(case.batch as usize);
        let other = |way| if way == TestEntryOutput::On { TestEntryOutput::Aside } else { TestEntryOutput::On };
        let changes: Vec<TestEntryChange> =
            rules.iter().map(|(rule, way)| TestEntryChange::Modify(*rule, other(*way))).collect();
        let sign = |way| CompletionSign::Leaves(self.bench.interface(other(way)));
        let watches: Vec<EntryWatch> = rules
            .iter()
            .enumerate()
            .map(|(command, (rule, way))| EntryWatch { command, rule: *rule, sign: sign(*way) })
            .collect();
        let outcome = self.bench.burst(&changes, &[], &watches)?;
        self.keep(case, outcome)
    }

    /// Measures the times of a burst that adds entries, and of a burst that deletes them, one by each command.
    fn add_and_delete(&mut self, add: CommandBurstCase, delete: CommandBurstCase) -> Result<(), ProfilerError> {
        if self.done.contains(&add) && self.done.contains(&delete) {
            return Ok(());
        }
        if self.bench.entries() as u64 + u64::from(add.batch) > self.room {
            // Refilling has used up the room beside the grid's entries: start again.
            self.bench.clear()?;
            self.there(add.priorities, add.entries)?;
        }
        let from = u32::try_from(self.bench.entries()).unwrap_or(u32::MAX);
        let mut rules = self.rules(ADDED, add.priorities, from, add.batch);
        for rule in &mut rules {
            // Each entry has a number of its own, so that no packets of former entries match it.
            rule.number = number(ADDED, self.next);
            self.next = (self.next + 1) % GROUP_ENTRIES;
        }
        let changes: Vec<TestEntryChange> = rules.iter().copied().map(TestEntryChange::Add).collect();
        // If the traffic decides which entries the switch moves to another level, packets to one entry of the burst
        // would change the level of the next one. Then only the last entry gets packets.
        let first_watched = if self.bench.packets_decide() { rules.len().saturating_sub(1) } else { 0 };
        let watches: Vec<EntryWatch> = rules
            .iter()
            .enumerate()
            .skip(first_watched)
            .map(|(command, rule)| EntryWatch { command, rule: *rule, sign: CompletionSign::Leaves(1) })
            .collect();
        let outcome = self.bench.burst(&changes, &[], &watches)?;
        let refused = outcome.refused.clone();
        if refused.is_empty() {
            self.keep(add, outcome)?;
        }
        let mut at = 0;
        rules.retain(|_| {
            at += 1;
            !refused.contains(&(at - 1))
        });
        if rules.is_empty() {
            return Ok(());
        }
        let changes: Vec<TestEntryChange> = rules.iter().copied().map(TestEntryChange::Delete).collect();
        let last = rules.len() - 1;
        let watch = EntryWatch { command: last, rule: rules[last], sign: CompletionSign::Gone };
        let outcome = self.bench.burst(&changes, &[], &[watch])?;
        if refused.is_empty() {
            self.keep(delete, outcome)?;
        }
        self.refill(add.priorities)
    }

    /// Adds entries until the first level is full again, if there are entries in lower levels. Deleting entries that
    /// had displaced others leaves room there, into which the next entries would be inserted.
    fn refill(&mut self, priorities: PriorityOrder) -> Result<(), ProfilerError> {
        let (Some(tables), Some(model)) = (self.bench.tables(), self.bench.model()) else { return Ok(()) };
        let below: u64 = tables.occupancy().iter().skip(1).sum();
        let free = model.levels[0].size.map_or(0, |size| size.saturating_sub(tables.entries(0)));
        let left = self.room.saturating_sub(self.bench.entries() as u64);
        let missing = if below > 0 { u32::try_from(free.min(left)).unwrap_or(0) } else { 0 };
        if missing == 0 {
            return Ok(());
        }
        let from = u32::try_from(self.bench.entries()).unwrap_or(u32::MAX);
        let mut rules = self.rules(THERE, priorities, from, missing);
        for (at, rule) in rules.iter_mut().enumerate() {
            rule.number = number(THERE + 1, (self.next + u32::try_from(at).unwrap_or(0)) % GROUP_ENTRIES);
        }
        self.next = (self.next + missing) % GROUP_ENTRIES;
        self.bench.fill(&rules).map(drop)
    }

    /// Runs a measurement, and repeats it while its time is blurred; at most [`ATTEMPTS`] attempts.
    fn until_clear(&mut self, measure: impl Fn(&mut Self) -> Result<(), ProfilerError>) -> Result<(), ProfilerError> {
        for attempt in 1..=ATTEMPTS {
            (self.keeps_blurred, self.was_blurred) = (attempt == ATTEMPTS, false);
            measure(self)?;
            if !self.was_blurred {
                break;
            }
        }
        Ok(())
    }

    fn keep(&mut self, case: CommandBurstCase, outcome: CommandBurstOutcome) -> Result<(), ProfilerError> {
        if outcome.is_blurred && !self.keeps_blurred {
            self.was_blurred = true;
            return Ok(());
        }
        if let Some(timed) = MeasuredBurst::of(case, outcome)
            && self.done.insert(case)
        {
            self.store.write(&RawDataRow::Timed(&timed))?;
            self.timed.push(timed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_places_in_it() {
        let grid = [1, 10, 20, 40];
        assert_eq!(beside(&grid, &[None], 1, u64::MAX, 1000), [1, 10, 20, 40], "the grid has enough");
        let two = beside(&grid, &[Some(30), Some(60)], 1, 90, 90);
        assert_eq!(
            two,
            [1, 10, 20, 40, 49, 69, 89],
            "one of the second level was too few; one more has room beside the last"
        );
        assert_eq!(beside(&grid, &[Some(30), None], 2, u64::MAX, 64), [1, 10, 20, 40, 51, 62]);
        assert_eq!(beside(&grid, &[Some(2)], 1, 2, 2), [1]);
        assert_eq!(beside(&grid, &[Some(0), Some(3)], 1, 3, 3), [1, 2]);
    }
}
