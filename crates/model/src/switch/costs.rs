//! Computes how long a flow-mod takes a switch: equations 4.1 to 4.4 of Cheng (2015), with their defects corrected.
use super::speedup::{CommandBatch, PerEntryCost};
use crate::ModelError;
use crate::check::not_negative;
use serde::{Deserialize, Serialize};

/// Cost for tables with one priority, and for tables with several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PriorityCosts<T> {
    /// Cost if all entries have equal priorities.
    pub single: T,
    /// Cost if there are several priorities.
    pub several: T,
}

impl<T: Copy> PriorityCosts<T> {
    /// Returns the cost for a table with this number of different priorities.
    pub fn of(&self, different: usize) -> T {
        if different > 1 { self.several } else { self.single }
    }
}

/// Costs of changing one table, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TableCosts {
    /// Cost of adding for each present entry: P and R.
    pub add: PriorityCosts<PerEntryCost>,
    /// Cost of modifying for each present entry: P and R.
    pub modify: PriorityCosts<PerEntryCost>,
    /// Cost of moving an entry to the adjacent place, S.
    pub shift_s: f64,
    /// Cost of searching the entries of a command, M.
    pub search_s: f64,
    /// Cost of writing one entry, W.
    pub write_s: f64,
    /// Cost of deleting one entry, if it differs from writing one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_s: Option<f64>,
}

impl TableCosts {
    /// Returns the cost of deleting one entry, in seconds.
    pub fn deleted_s(&self) -> f64 {
        self.delete_s.unwrap_or(self.write_s)
    }
}

/// Parameters of adding an entry.
#[derive(Debug, Clone, Copy)]
pub struct AddCostInputs {
    /// Cost of the table for each present entry.
    pub overhead: PerEntryCost,
    /// Entries in the table, e.
    pub entries: u64,
    /// Entries that have to shift, s: those of strictly lower priority.
    pub shifts: u64,
    /// Batch of the command, q and Q.
    pub batch: CommandBatch,
    /// Moving an entry, S, in seconds.
    pub shift_s: f64,
    /// Writing an entry, W, in seconds.
    pub write_s: f64,
}

/// Parameters of modifying or deleting entries in one table.
#[derive(Debug, Clone, Copy)]
pub struct ChangeCostInputs {
    /// Cost of the table for each present entry; none for deleting.
    pub overhead: PerEntryCost,
    /// Entries in the table, e.
    pub entries: u64,
    /// Entries that the command matches, m.
    pub matching: u64,
    /// Searching, M, in seconds.
    pub search_s: f64,
    /// Writing an entry, W, or deleting it, in seconds.
    pub write_s: f64,
}

/// Returns the duration of adding an entry, in seconds: `P/R(q) e + S s + W`.
///
/// Valid for the device, and the numbers of entries, that the costs were measured on.
///
/// # Errors
/// A cost is negative or not finite, or the speed-up is not positive for this batch.
pub fn add_s(adding: &AddCostInputs) -> Result<f64, ModelError> {
    let shifting = not_negative("S", adding.shift_s)? * adding.shifts as f64;
    Ok(adding.overhead.of(adding.entries, adding.batch)? + shifting + not_negative("W", adding.write_s)?)
}

/// Returns the duration of modifying entries, in seconds: the sum over tables of `P/R(q) e + M + W m`.
///
/// # Errors
/// See [`add_s`].
pub fn modify_s(tables: &[ChangeCostInputs], batch: CommandBatch) -> Result<f64, ModelError> {
    tables.iter().map(|table| Ok(table.overhead.of(table.entries, batch)? + table.found_s()?)).sum()
}

/// Returns the duration of deleting entries, in seconds: the sum over tables of `M + W m`.
///
/// # Errors
/// A cost is negative or not finite.
pub fn delete_s(tables: &[ChangeCostInputs]) -> Result<f64, ModelError> {
    tables.iter().map(ChangeCostInputs::found_s).sum()
}

impl ChangeCostInputs {
    fn found_s(&self) -> Result<f64, ModelError> {
        Ok(not_negative("M", self.search_s)? + not_negative("W", self.write_s)? * self.matching as f64)
    }
}
