//! Describes bursts of commands as sums of cost terms: the time of a burst is the sum of these, each multiplied by
//! its cost. So one linear fit over all bursts determines the costs, even if entries moved between levels meanwhile.
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use weir_device::ProfiledTables;

/// Cost of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostTerm {
    /// Constant time of every burst.
    Constant,
    /// Revalidation of a flow in the switch's cache.
    Revalidate,
    /// Wait for further commands, of bursts that do not fill a batch.
    Waiting,
    /// Search for the entries of a command, in all levels together: only the sum can be measured.
    Search,
    /// Time for each present entry when one is added.
    Add {
        /// Level, from 0.
        level: usize,
        /// True if the level's entries have several priorities.
        several: bool,
        /// Number of commands in the batch.
        batch: u32,
    },
    /// Time for each present entry when one is modified.
    Modify {
        /// Level, from 0.
        level: usize,
        /// True if the level's entries have several priorities.
        several: bool,
        /// Number of commands in the batch.
        batch: u32,
    },
    /// Move of an entry to the adjacent place.
    Shift {
        /// Level, from 0.
        level: usize,
    },
    /// Write of an entry that is added or modified.
    Write {
        /// Level, from 0.
        level: usize,
    },
    /// Deletion of an entry.
    Delete {
        /// Level, from 0.
        level: usize,
    },
}

impl fmt::Display for CostTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let priorities = |several: &bool| if *several { "several" } else { "single" };
        match self {
            CostTerm::Constant => f.write_str("constant"),
            CostTerm::Revalidate => f.write_str("revalidate"),
            CostTerm::Waiting => f.write_str("waiting"),
            CostTerm::Search => f.write_str("search"),
            CostTerm::Add { level, several, batch } => write!(f, "add.{level}.{}.{batch}", priorities(several)),
            CostTerm::Modify { level, several, batch } => write!(f, "modify.{level}.{}.{batch}", priorities(several)),
            CostTerm::Shift { level } => write!(f, "shift.{level}"),
            CostTerm::Write { level } => write!(f, "write.{level}"),
            CostTerm::Delete { level } => write!(f, "delete.{level}"),
        }
    }
}

impl FromStr for CostTerm {
    type Err = String;

    fn from_str(text: &str) -> Result<CostTerm, String> {
        let wrong = || format!("found `{text}`, expected a cost such as add.0.single.1");
        let parts: Vec<&str> = text.split('.').collect();
        let level = |text: &str| text.parse::<usize>().ok().filter(|level| *level < weir_profile::MAX_LEVELS);
        let batched = |at: &[&str]| {
            let several = match at.get(1) {
                Some(&"single") => false,
                Some(&"several") => true,
                _ => return None,
            };
            Some((level(at.first()?)?, several, at.get(2)?.parse().ok()?))
        };
        match parts.as_slice() {
            ["constant"] => Some(CostTerm::Constant),
            ["revalidate"] => Some(CostTerm::Revalidate),
            ["waiting"] => Some(CostTerm::Waiting),
            ["search"] => Some(CostTerm::Search),
            ["add", rest @ ..] => batched(rest).map(|(level, several, batch)| CostTerm::Add { level, several, batch }),
            ["modify", rest @ ..] => {
                batched(rest).map(|(level, several, batch)| CostTerm::Modify { level, several, batch })
            }
            ["shift", at] => level(at).map(|level| CostTerm::Shift { level }),
            ["write", at] => level(at).map(|level| CostTerm::Write { level }),
            ["delete", at] => level(at).map(|level| CostTerm::Delete { level }),
            _ => None,
        }
        .ok_or_else(wrong)
    }
}

/// Multiplicity of each cost in a burst.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostTermCounts(pub BTreeMap<CostTerm, f64>);

impl CostTermCounts {
    fn add(&mut self, column: CostTerm, times: f64) {
        if times != 0.0 {
            *self.0.entry(column).or_default() += times;
        }
    }

    /// Returns the terms of a burst without its commands. `is_waited_for` is true if the switch waits for more
    /// commands.
    pub(crate) fn burst(is_waited_for: bool) -> CostTermCounts {
        let mut terms = CostTermCounts::default();
        terms.add(CostTerm::Constant, 1.0);
        terms.add(CostTerm::Waiting, f64::from(u8::from(is_waited_for)));
        terms
    }

    /// Adds the term of a burst whose changes had to pass a cache with so many flows.
    pub(crate) fn revalidating(&mut self, flows: usize) {
        self.add(CostTerm::Revalidate, flows as f64);
    }

    /// Adds the terms of adding an entry, in a batch of `batch` commands; none if all levels are full.
    pub(crate) fn adding(&mut self, tables: &ProfiledTables, priority: u16, batch: u32) {
        for visit in tables.visits(priority).into_iter().flatten() {
            let level = visit.level;
            self.add(CostTerm::Add { level, several: visit.different > 1, batch }, visit.entries as f64);
            self.add(CostTerm::Shift { level }, visit.shifts as f64);
            self.add(CostTerm::Write { level }, 1.0);
        }
    }

    /// Adds the terms of modifying an entry.
    pub(crate) fn modifying(&mut self, tables: &ProfiledTables, entry: u64, batch: u32) {
        for (level, entries) in tables.occupancy().into_iter().enumerate() {
            self.add(CostTerm::Modify { level, several: tables.different(level) > 1, batch }, entries as f64);
        }
        self.add(CostTerm::Search, 1.0);
        if let Some(level) = tables.level_of(entry) {
            self.add(CostTerm::Write { level }, 1.0);
        }
    }

    /// Adds the terms of deleting entries by one command.
    pub(crate) fn deleting(&mut self, tables: &ProfiledTables, entries: impl IntoIterator<Item = u64>) {
        self.add(CostTerm::Search, 1.0);
        for level in entries.into_iter().filter_map(|entry| tables.level_of(entry)) {
            self.add(CostTerm::Delete { level }, 1.0);
        }
    }
}

impl fmt::Display for CostTermCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (column, times) in &self.0 {
            write!(f, "{between}{column}={times}")?;
            between = " ";
        }
        Ok(())
    }
}

impl FromStr for CostTermCounts {
    type Err = String;

    fn from_str(text: &str) -> Result<CostTermCounts, String> {
        let mut terms = CostTermCounts::default();
        for part in text.split_whitespace() {
            let (column, times) = part.split_once('=').ok_or_else(|| format!("found `{part}`, expected COST=TIMES"))?;
            let times: f64 = times.parse().map_err(|_| format!("found `{times}`, expected a number"))?;
            if !times.is_finite() {
                return Err(format!("found `{part}`, expected a number"));
            }
            terms.add(column.parse()?, times);
        }
        Ok(terms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_as_they_were_written() {
        let mut terms = CostTermCounts::burst(true);
        for column in [
            CostTerm::Search,
            CostTerm::Revalidate,
            CostTerm::Add { level: 1, several: true, batch: 20 },
            CostTerm::Modify { level: 0, several: false, batch: 1 },
            CostTerm::Shift { level: 2 },
            CostTerm::Write { level: 0 },
            CostTerm::Delete { level: 7 },
        ] {
            terms.add(column, 12.5);
        }
        assert_eq!(terms.to_string().parse(), Ok(terms));
        for wrong in ["add=1", "add.0.both.1=1", "shift.99=1", "write.0=much", "write.0", "write.0=NaN"] {
            assert!(wrong.parse::<CostTermCounts>().is_err(), "{wrong}");
        }
    }
}
