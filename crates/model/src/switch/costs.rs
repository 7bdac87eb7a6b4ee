//! How long one flow-mod takes a switch: equations 4.1 to 4.4 of Cheng (2015), with its defects mended.
use super::speedup::{Batch, Overhead};
use crate::ModelError;
use crate::check::not_negative;
use serde::{Deserialize, Serialize};

/// A cost for tables of one priority, and for tables of several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ByPriorities<T> {
    /// All entries have the same.
    pub single: T,
    /// There are several.
    pub several: T,
}

impl<T: Copy> ByPriorities<T> {
    /// The one for a table with that many different priorities.
    pub fn of(&self, different: usize) -> T {
        if different > 1 { self.several } else { self.single }
    }
}

/// What changes cost one table, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TableCosts {
    /// Adding, for each entry that is there: P and R.
    pub add: ByPriorities<Overhead>,
    /// Modifying, for each entry that is there: P and R.
    pub modify: ByPriorities<Overhead>,
    /// Moving an entry to the place beside it, S.
    pub shift_s: f64,
    /// Searching for the entries that a command is about, M.
    pub search_s: f64,
    /// Writing one entry, W.
    pub write_s: f64,
    /// Taking one entry out, if that is not as long as writing one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_s: Option<f64>,
}

impl TableCosts {
    /// Taking one entry out, in seconds.
    pub fn deleted_s(&self) -> f64 {
        self.delete_s.unwrap_or(self.write_s)
    }
}

/// An entry is added.
#[derive(Debug, Clone, Copy)]
pub struct Adding {
    /// What the table costs for the entries in it.
    pub overhead: Overhead,
    /// Entries in the table, e.
    pub entries: u64,
    /// Entries that have to make place, s: those of strictly lower priority.
    pub shifts: u64,
    /// The commands it comes with, q and Q.
    pub batch: Batch,
    /// Moving an entry, S, in seconds.
    pub shift_s: f64,
    /// Writing an entry, W, in seconds.
    pub write_s: f64,
}

/// What modifying or deleting finds in one table.
#[derive(Debug, Clone, Copy)]
pub struct Changing {
    /// What the table costs for the entries in it; nothing when deleting.
    pub overhead: Overhead,
    /// Entries in the table, e.
    pub entries: u64,
    /// Entries that the command is about, m.
    pub matching: u64,
    /// Searching, M, in seconds.
    pub search_s: f64,
    /// Writing an entry, W, or taking it out when deleting, in seconds.
    pub write_s: f64,
}

/// How long adding an entry takes, in seconds: `P/R(q) e + S s + W`.
///
/// Holds for the device, and the numbers of entries, that the costs were measured on.
///
/// # Errors
/// A cost is negative or no number, or the speed-up does not reach as far as the batch.
pub fn add_s(adding: &Adding) -> Result<f64, ModelError> {
    let shifting = not_negative("S", adding.shift_s)? * adding.shifts as f64;
    Ok(adding.overhead.of(adding.entries, adding.batch)? + shifting + not_negative("W", adding.write_s)?)
}

/// How long modifying entries takes, in seconds: the sum over tables of `P/R(q) e + M + W m`.
///
/// # Errors
/// As [`add_s`].
pub fn modify_s(tables: &[Changing], batch: Batch) -> Result<f64, ModelError> {
    tables.iter().map(|table| Ok(table.overhead.of(table.entries, batch)? + table.found_s()?)).sum()
}

/// How long deleting entries takes, in seconds: the sum over tables of `M + W m`.
///
/// # Errors
/// A cost is negative or no number.
pub fn delete_s(tables: &[Changing]) -> Result<f64, ModelError> {
    tables.iter().map(Changing::found_s).sum()
}

impl Changing {
    fn found_s(&self) -> Result<f64, ModelError> {
        Ok(not_negative("M", self.search_s)? + not_negative("W", self.write_s)? * self.matching as f64)
    }
}
