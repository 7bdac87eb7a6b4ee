//! Draws random commands, each adding, modifying or deleting one entry, at exponentially distributed distances, and
//! measures when a switch carries them out.
use super::{CommandCompletion, KnownSwitchTiming, bench};
use crate::bench::{TestBench, TestEntryChange, TestEntryOutput};
use crate::device::DeviceUnderTest;
use crate::rules::{GROUP_ENTRIES, TestFlowEntry, number};
use crate::terms::CostTermCounts;
use crate::{MeasurementSettings, ProfilerError};
use std::time::Duration;
use weir_profile::MatchLayers;
use weir_traffic::RandomStream;

/// Group of the entries.
const GROUP: u32 = 7;
/// Lowest and highest priority, as published.
const PRIORITIES: [u16; 2] = [501, 65_535];
/// Number of commands for which an entry is left alone after one, so that packets can show each.
const ALONE: usize = 64;
/// Most draws of an entry until one is found that can be used.
const DRAWS: u32 = 32;
/// Most commands of a series, and most entries.
const MOST: u32 = GROUP_ENTRIES / 2;

/// Parameters of the draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommandSeriesParams {
    /// Number of commands.
    pub count: u32,
    /// Mean rate of commands, per second.
    pub per_second: f64,
    /// Entries present before the first command.
    pub entries: u32,
    /// Most entries present.
    pub entries_most: u32,
}

/// Random series of commands.
#[derive(Debug, Clone)]
pub struct CommandSeries {
    /// Entries present before, in the order in which they are added.
    there: Vec<TestFlowEntry>,
    commands: Vec<(Duration, TestEntryChange)>,
}

/// State of an entry during the draw.
struct DrawnFlowEntry {
    rule: TestFlowEntry,
    way: TestEntryOutput,
    /// Index of the last command on the entry, plus 1; 0 if there was none.
    last: usize,
}

struct CommandSeriesDraw<'a> {
    entries: Vec<DrawnFlowEntry>,
    /// Number of the next entry.
    next: u32,
    random: &'a mut RandomStream,
}

impl CommandSeries {
    /// Draws commands. Adding, modifying and deleting are equally likely, except that the number of entries stays at
    /// or below `entries_most` and does not fall below half of the initial number.
    ///
    /// # Errors
    /// A parameter is out of range; the error names it.
    pub fn draw(commands: &CommandSeriesParams, random: &mut RandomStream) -> Result<CommandSeries, ProfilerError> {
        let CommandSeriesParams { count, per_second, entries, entries_most } = *commands;
        if !(1..=MOST).contains(&count) {
            return Err(ProfilerError::wrong("commands of a series", count, format!("1 to {MOST}")));
        }
        if !(1..=entries_most).contains(&entries) || entries_most > MOST {
            let found = format!("{entries} of {entries_most}");
            return Err(ProfilerError::wrong("entries before a series", found, format!("1 to {MOST}")));
        }
        if !(per_second.is_finite() && per_second > 0.0) {
            return Err(ProfilerError::wrong("commands a second", per_second, "a number above 0"));
        }
        let mut drawing = CommandSeriesDraw { entries: Vec::new(), next: 0, random };
        let there: Vec<TestFlowEntry> = (0..entries).map(|_| drawing.rule()).collect();
        drawing.entries =
            there.iter().map(|rule| DrawnFlowEntry { rule: *rule, way: TestEntryOutput::On, last: 0 }).collect();
        let (mut at_s, mut drawn) = (0.0, Vec::new());
        for at in 0..count as usize {
            at_s += drawing.random.exponential() / per_second;
            let after = Duration::try_from_secs_f64(at_s).unwrap_or(Duration::MAX);
            drawn.push((after, drawing.change(at, entries / 2, entries_most)));
        }
        Ok(CommandSeries { there, commands: drawn })
    }

    /// Returns the numbers of commands that add, modify and delete.
    pub fn kinds(&self) -> [usize; 3] {
        let mut kinds = [0; 3];
        for (_, change) in &self.commands {
            kinds[match change {
                TestEntryChange::Add(_) => 0,
                TestEntryChange::Modify(..) => 1,
                TestEntryChange::Delete(_) | TestEntryChange::DeleteGroup(_) => 2,
            }] += 1;
        }
        kinds
    }

    /// Returns when each command is sent, after the start of the series.
    pub fn sent_after(&self) -> impl Iterator<Item = Duration> {
        self.commands.iter().map(|(after, _)| *after)
    }

    /// Returns the name of each command's kind, in the plural.
    pub fn kind_of_each(&self) -> Vec<&'static str> {
        let name = |change: &TestEntryChange| match change {
            TestEntryChange::Add(_) => "additions",
            TestEntryChange::Modify(..) => "modifications",
            TestEntryChange::Delete(_) | TestEntryChange::DeleteGroup(_) => "deletions",
        };
        self.commands.iter().map(|(_, change)| name(change)).collect()
    }
}

impl CommandSeriesDraw<'_> {
    fn rule(&mut self) -> TestFlowEntry {
        let [low, high] = PRIORITIES;
        let above = u16::try_from(self.random.below(u64::from(high - low) + 1)).unwrap_or(0);
        self.next += 1;
        TestFlowEntry { number: number(GROUP, self.next - 1), priority: low + above, kind: MatchLayers::L2L3 }
    }

    fn change(&mut self, at: usize, least: u32, most: u32) -> TestEntryChange {
        let (are, kind) = (self.entries.len(), self.random.below(3));
        let found = self.alone(at);
        match (kind, found) {
            (1, Some(found)) => self.modified(at, found),
            (2, Some(found)) if are > least as usize => TestEntryChange::Delete(self.entries.swap_remove(found).rule),
            (_, Some(found)) if are >= most as usize => self.modified(at, found),
            _ if are < most as usize => {
                let rule = self.rule();
                self.entries.push(DrawnFlowEntry { rule, way: TestEntryOutput::On, last: at + 1 });
                TestEntryChange::Add(rule)
            }
            // All entries were used lately and there is no room: take the one used longest ago.
            _ => {
                let oldest = (0..are).min_by_key(|at| self.entries[*at].last).unwrap_or(0);
                self.modified(at, oldest)
            }
        }
    }

    fn modified(&mut self, at: usize, found: usize) -> TestEntryChange {
        let entry = &mut self.entries[found];
        entry.last = at + 1;
        entry.way = if entry.way == TestEntryOutput::On { TestEntryOutput::Aside } else { TestEntryOutput::On };
        TestEntryChange::Modify(entry.rule, entry.way)
    }

    /// Returns the index of a random entry that no recent command was about.
    fn alone(&mut self, at: usize) -> Option<usize> {
        (0..DRAWS).find_map(|_| {
            let found = usize::try_from(self.random.below(self.entries.len() as u64)).ok()?;
            let entry = self.entries.get(found)?;
            (entry.last == 0 || entry.last + ALONE <= at + 1).then_some(found)
        })
    }
}

/// Runs a series on a switch, and returns the result of each command. All entries of the switch are deleted before
/// and afterwards.
///
/// # Errors
/// The switch does not answer, refuses a request that measuring needs, or has no room for the initial entries.
pub fn commands(
    device: &mut dyn DeviceUnderTest,
    known: &KnownSwitchTiming,
    settings: MeasurementSettings,
    series: &CommandSeries,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Vec<CommandCompletion>, ProfilerError> {
    if device.version().is_none() {
        let expected = "its control channel, such as tcp:192.0.2.1:6653: commands are to be sent";
        return Err(ProfilerError::wrong("a device for random commands", "none with OpenFlow", expected));
    }
    let mut bench = bench(device, known, settings, stop)?;
    let became = run_commands(&mut bench, series, false);
    if became.is_err() {
        bench.leave();
    }
    Ok(became?.into_iter().map(|(became, _)| became).collect())
}

/// Runs a series on a bench with an empty switch, and deletes its entries. With `fills_cache`, each initial entry gets
/// a packet before the first command. Returns the result of each command with the terms of its cost.
pub(crate) fn run_commands(
    bench: &mut TestBench<'_>,
    series: &CommandSeries,
    fills_cache: bool,
) -> Result<Vec<(CommandCompletion, CostTermCounts)>, ProfilerError> {
    bench.during = "adding entries before random commands".to_owned();
    let taken = bench.fill(&series.there)?;
    if taken < series.there.len() {
        let found = format!("{taken} of {}", series.there.len());
        return Err(ProfilerError::wrong("entries before random commands", found, "room for all of them"));
    }
    bench.rest(bench.settings.grace)?;
    if fills_cache {
        bench.fill_cache()?;
    }
    bench.during = "measuring random commands".to_owned();
    let became = bench.series(&series.commands)?;
    bench.rest(bench.settings.grace)?;
    bench.clear()?;
    Ok(became)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn commands_are_about_entries_that_are_there() {
        let commands = CommandSeriesParams { count: 3000, per_second: 100.0, entries: 100, entries_most: 150 };
        let series = CommandSeries::draw(&commands, &mut RandomStream::new(5, 0, 0)).unwrap();
        let mut there: HashMap<TestFlowEntry, TestEntryOutput> =
            series.there.iter().map(|rule| (*rule, TestEntryOutput::On)).collect();
        let mut before = Duration::ZERO;
        for (at, change) in &series.commands {
            assert!(*at >= before);
            before = *at;
            match change {
                TestEntryChange::Add(rule) => assert_eq!(there.insert(*rule, TestEntryOutput::On), None),
                TestEntryChange::Modify(rule, way) => {
                    assert_ne!(there.insert(*rule, *way), Some(*way), "it goes elsewhere")
                }
                TestEntryChange::Delete(rule) => assert!(there.remove(rule).is_some()),
                TestEntryChange::DeleteGroup(_) => panic!("one at a time"),
            }
            assert!((50..=150).contains(&there.len()), "{}", there.len());
        }
        assert!(series.kinds().iter().all(|kind| *kind > 800), "{:?}", series.kinds());
        let named = |name| series.kind_of_each().iter().filter(|kind| **kind == name).count();
        assert_eq!(["additions", "modifications", "deletions"].map(named), series.kinds());
        assert!((before.as_secs_f64() / 30.0 - 1.0).abs() < 0.1, "{before:?}");
        assert!(there.keys().map(|rule| rule.priority).min() < Some(4000));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let right = CommandSeriesParams { count: 10, per_second: 100.0, entries: 4, entries_most: 4 };
        let mut random = RandomStream::new(1, 0, 0);
        assert!(CommandSeries::draw(&right, &mut random).is_ok(), "no entry more: all are modified in turn");
        for wrong in [
            CommandSeriesParams { count: 0, ..right },
            CommandSeriesParams { entries: 5, ..right },
            CommandSeriesParams { entries: 0, ..right },
            CommandSeriesParams { per_second: f64::NAN, ..right },
            CommandSeriesParams { entries_most: u32::MAX, ..right },
        ] {
            assert!(CommandSeries::draw(&wrong, &mut random).is_err(), "{wrong:?}");
        }
    }
}
