//! What a burst of commands consists of, in the units of a profile: its time is the sum of these, each times what it costs. So costs are found by one
//! linear fit over everything that was measured, whatever moved between levels meanwhile.
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use weir_timing::Tables;

/// A cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// What every burst takes, whatever is in it.
    Constant,
    /// Waiting for more commands that might come: bursts that do not fill a batch.
    Waiting,
    /// Searching for what a command is about; that of all levels together, which is all that shows.
    Search,
    /// An entry that is there when one is added.
    Add {
        /// The level, from 0.
        level: usize,
        /// Whether its entries have several priorities.
        several: bool,
        /// Commands of the batch.
        batch: u32,
    },
    /// An entry that is there when one is modified.
    Modify {
        /// The level.
        level: usize,
        /// Whether its entries have several priorities.
        several: bool,
        /// Commands of the batch.
        batch: u32,
    },
    /// Moving an entry to the place beside it.
    Shift {
        /// The level.
        level: usize,
    },
    /// Writing an entry that is added or modified.
    Write {
        /// The level.
        level: usize,
    },
    /// Deleting an entry.
    Delete {
        /// The level.
        level: usize,
    },
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let priorities = |several: &bool| if *several { "several" } else { "single" };
        match self {
            Column::Constant => f.write_str("constant"),
            Column::Waiting => f.write_str("waiting"),
            Column::Search => f.write_str("search"),
            Column::Add { level, several, batch } => write!(f, "add.{level}.{}.{batch}", priorities(several)),
            Column::Modify { level, several, batch } => write!(f, "modify.{level}.{}.{batch}", priorities(several)),
            Column::Shift { level } => write!(f, "shift.{level}"),
            Column::Write { level } => write!(f, "write.{level}"),
            Column::Delete { level } => write!(f, "delete.{level}"),
        }
    }
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Column, String> {
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
            ["constant"] => Some(Column::Constant),
            ["waiting"] => Some(Column::Waiting),
            ["search"] => Some(Column::Search),
            ["add", rest @ ..] => batched(rest).map(|(level, several, batch)| Column::Add { level, several, batch }),
            ["modify", rest @ ..] => {
                batched(rest).map(|(level, several, batch)| Column::Modify { level, several, batch })
            }
            ["shift", at] => level(at).map(|level| Column::Shift { level }),
            ["write", at] => level(at).map(|level| Column::Write { level }),
            ["delete", at] => level(at).map(|level| Column::Delete { level }),
            _ => None,
        }
        .ok_or_else(wrong)
    }
}

/// How often each cost arises.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms(pub BTreeMap<Column, f64>);

impl Terms {
    fn add(&mut self, column: Column, times: f64) {
        if times != 0.0 {
            *self.0.entry(column).or_default() += times;
        }
    }

    /// A burst: what it takes beside its commands.
    pub(crate) fn burst(is_waited_for: bool) -> Terms {
        let mut terms = Terms::default();
        terms.add(Column::Constant, 1.0);
        terms.add(Column::Waiting, f64::from(u8::from(is_waited_for)));
        terms
    }

    /// An entry is added, of a batch of so many commands; nothing if all levels are full.
    pub(crate) fn adding(&mut self, tables: &Tables, priority: u16, batch: u32) {
        for visit in tables.visits(priority).into_iter().flatten() {
            let level = visit.level;
            self.add(Column::Add { level, several: visit.different > 1, batch }, visit.entries as f64);
            self.add(Column::Shift { level }, visit.shifts as f64);
            self.add(Column::Write { level }, 1.0);
        }
    }

    /// An entry is modified.
    pub(crate) fn modifying(&mut self, tables: &Tables, entry: u64, batch: u32) {
        for (level, entries) in tables.occupancy().into_iter().enumerate() {
            self.add(Column::Modify { level, several: tables.different(level) > 1, batch }, entries as f64);
        }
        self.add(Column::Search, 1.0);
        if let Some(level) = tables.level_of(entry) {
            self.add(Column::Write { level }, 1.0);
        }
    }

    /// Entries are deleted by one command.
    pub(crate) fn deleting(&mut self, tables: &Tables, entries: impl IntoIterator<Item = u64>) {
        self.add(Column::Search, 1.0);
        for level in entries.into_iter().filter_map(|entry| tables.level_of(entry)) {
            self.add(Column::Delete { level }, 1.0);
        }
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (column, times) in &self.0 {
            write!(f, "{between}{column}={times}")?;
            between = " ";
        }
        Ok(())
    }
}

impl FromStr for Terms {
    type Err = String;

    fn from_str(text: &str) -> Result<Terms, String> {
        let mut terms = Terms::default();
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
        let mut terms = Terms::burst(true);
        for column in [
            Column::Search,
            Column::Add { level: 1, several: true, batch: 20 },
            Column::Modify { level: 0, several: false, batch: 1 },
            Column::Shift { level: 2 },
            Column::Write { level: 0 },
            Column::Delete { level: 7 },
        ] {
            terms.add(column, 12.5);
        }
        assert_eq!(terms.to_string().parse(), Ok(terms));
        for wrong in ["add=1", "add.0.both.1=1", "shift.99=1", "write.0=much", "write.0", "write.0=NaN"] {
            assert!(wrong.parse::<Terms>().is_err(), "{wrong}");
        }
    }
}
