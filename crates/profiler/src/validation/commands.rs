//! Draws random commands, each adding, modifying or deleting one entry, at exponentially distributed distances, and
//! measures when a switch carries them out.
use super::{Became, Known, bench};
use crate::bench::{Bench, Change, Way};
use crate::device::Device;
use crate::rules::{GROUP_ENTRIES, Rule, number};
use crate::{ProfilerError, Settings};
use std::time::Duration;
use weir_profile::MatchKind;
use weir_traffic::Stream;

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
pub struct Commands {
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
    there: Vec<Rule>,
    commands: Vec<(Duration, Change)>,
}

/// State of an entry during the draw.
struct Entry {
    rule: Rule,
    way: Way,
    /// Index of the last command on the entry, plus 1; 0 if there was none.
    last: usize,
}

struct Drawing<'a> {
    entries: Vec<Entry>,
    /// Number of the next entry.
    next: u32,
    random: &'a mut Stream,
}

impl CommandSeries {
    /// Draws commands. Adding, modifying and deleting are equally likely, except that the number of entries stays at
    /// or below `entries_most` and does not fall below half of the initial number.
    ///
    /// # Errors
    /// A parameter is out of range; the error names it.
    pub fn draw(commands: &Commands, random: &mut Stream) -> Result<CommandSeries, ProfilerError> {
        let Commands { count, per_second, entries, entries_most } = *commands;
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
        let mut drawing = Drawing { entries: Vec::new(), next: 0, random };
        let there: Vec<Rule> = (0..entries).map(|_| drawing.rule()).collect();
        drawing.entries = there.iter().map(|rule| Entry { rule: *rule, way: Way::On, last: 0 }).collect();
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
                Change::Add(_) => 0,
                Change::Modify(..) => 1,
                Change::Delete(_) | Change::DeleteGroup(_) => 2,
            }] += 1;
        }
        kinds
    }
}

impl Drawing<'_> {
    fn rule(&mut self) -> Rule {
        let [low, high] = PRIORITIES;
        let above = u16::try_from(self.random.below(u64::from(high - low) + 1)).unwrap_or(0);
        self.next += 1;
        Rule { number: number(GROUP, self.next - 1), priority: low + above, kind: MatchKind::L2L3 }
    }

    fn change(&mut self, at: usize, least: u32, most: u32) -> Change {
        let (are, kind) = (self.entries.len(), self.random.below(3));
        let found = self.alone(at);
        match (kind, found) {
            (1, Some(found)) => self.modified(at, found),
            (2, Some(found)) if are > least as usize => Change::Delete(self.entries.swap_remove(found).rule),
            (_, Some(found)) if are >= most as usize => self.modified(at, found),
            _ if are < most as usize => {
                let rule = self.rule();
                self.entries.push(Entry { rule, way: Way::On, last: at + 1 });
                Change::Add(rule)
            }
            // All entries were used lately and there is no room: take the one used longest ago.
            _ => {
                let oldest = (0..are).min_by_key(|at| self.entries[*at].last).unwrap_or(0);
                self.modified(at, oldest)
            }
        }
    }

    fn modified(&mut self, at: usize, found: usize) -> Change {
        let entry = &mut self.entries[found];
        entry.last = at + 1;
        entry.way = if entry.way == Way::On { Way::Aside } else { Way::On };
        Change::Modify(entry.rule, entry.way)
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
    device: &mut dyn Device,
    known: &Known,
    settings: Settings,
    series: &CommandSeries,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Vec<Became>, ProfilerError> {
    let mut bench = bench(device, known, settings, stop)?;
    let became = measured(&mut bench, series);
    if became.is_err() {
        bench.leave();
    }
    became
}

fn measured(bench: &mut Bench<'_>, series: &CommandSeries) -> Result<Vec<Became>, ProfilerError> {
    bench.during = "adding entries before random commands".to_owned();
    let taken = bench.fill(&series.there)?;
    if taken < series.there.len() {
        let found = format!("{taken} of {}", series.there.len());
        return Err(ProfilerError::wrong("entries before random commands", found, "room for all of them"));
    }
    bench.rest(bench.settings.grace)?;
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
        let commands = Commands { count: 3000, per_second: 100.0, entries: 100, entries_most: 150 };
        let series = CommandSeries::draw(&commands, &mut Stream::new(5, 0, 0)).unwrap();
        let mut there: HashMap<Rule, Way> = series.there.iter().map(|rule| (*rule, Way::On)).collect();
        let mut before = Duration::ZERO;
        for (at, change) in &series.commands {
            assert!(*at >= before);
            before = *at;
            match change {
                Change::Add(rule) => assert_eq!(there.insert(*rule, Way::On), None),
                Change::Modify(rule, way) => assert_ne!(there.insert(*rule, *way), Some(*way), "it goes elsewhere"),
                Change::Delete(rule) => assert!(there.remove(rule).is_some()),
                Change::DeleteGroup(_) => panic!("one at a time"),
            }
            assert!((50..=150).contains(&there.len()), "{}", there.len());
        }
        assert!(series.kinds().iter().all(|kind| *kind > 800), "{:?}", series.kinds());
        assert!((before.as_secs_f64() / 30.0 - 1.0).abs() < 0.1, "{before:?}");
        assert!(there.keys().map(|rule| rule.priority).min() < Some(4000));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let right = Commands { count: 10, per_second: 100.0, entries: 4, entries_most: 4 };
        let mut random = Stream::new(1, 0, 0);
        assert!(CommandSeries::draw(&right, &mut random).is_ok(), "no entry more: all are modified in turn");
        for wrong in [
            Commands { count: 0, ..right },
            Commands { entries: 5, ..right },
            Commands { entries: 0, ..right },
            Commands { per_second: f64::NAN, ..right },
            Commands { entries_most: u32::MAX, ..right },
        ] {
            assert!(CommandSeries::draw(&wrong, &mut random).is_err(), "{wrong:?}");
        }
    }
}
