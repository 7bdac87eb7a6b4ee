//! Computes the cost of commands for each present entry, alone and in batches.
use crate::ModelError;
use crate::check::{at_least_one, domain, finite, not_negative};
use serde::{Deserialize, Serialize};

/// Speed-up per entry of a command in a batch of q commands: `r0 + r1 q + r2 q²`, which is 1 for q = 1.
///
/// Cheng (2015), equation 4.1, divides by this; its text fits the inverse. Here it is the cost alone over the cost in
/// the batch, so that dividing is right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchSpeedup(pub [f64; 3]);

impl BatchSpeedup {
    /// No speed-up by batches.
    pub const NONE: BatchSpeedup = BatchSpeedup([1.0, 0.0, 0.0]);

    /// Returns the speed-up in a batch of `batch` commands.
    ///
    /// # Errors
    /// The value is not above 0: the fit does not reach that far.
    pub fn at(self, batch: u32) -> Result<f64, ModelError> {
        for (name, value) in ["r0", "r1", "r2"].into_iter().zip(self.0) {
            finite(name, value)?;
        }
        let (q, [r0, r1, r2]) = (f64::from(batch), self.0);
        let speedup = r0 + q * (r1 + q * r2);
        if speedup.is_finite() && speedup > 0.0 {
            Ok(speedup)
        } else {
            Err(domain("R", format!("{speedup} for a batch of {batch}"), "a speed-up above 0 for every batch"))
        }
    }
}

/// Cost of a command for each entry that its table holds: P and R of Cheng (2015), table 4.1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PerEntryCost {
    /// Cost of a single command, in seconds for each entry.
    pub per_entry_s: f64,
    /// Speed-up in batches.
    pub speedup: BatchSpeedup,
}

impl PerEntryCost {
    /// No cost, as in hash tables.
    pub const NONE: PerEntryCost = PerEntryCost { per_entry_s: 0.0, speedup: BatchSpeedup::NONE };

    /// Returns the cost of one command of a batch for all entries of the table, in seconds.
    ///
    /// # Errors
    /// A negative cost, or an invalid speed-up.
    pub fn of(&self, entries: u64, batch: CommandBatch) -> Result<f64, ModelError> {
        not_negative("P", self.per_entry_s)?;
        Ok(self.per_entry_s / self.speedup.at(batch.counted()?)? * entries as f64)
    }
}

/// Commands that a switch handles together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandBatch {
    /// Number of commands, q.
    pub commands: u32,
    /// Most commands that the switch handles together, Q.
    pub most: u32,
}

impl CommandBatch {
    /// Batch of a single command.
    pub const ALONE: CommandBatch = CommandBatch { commands: 1, most: 1 };

    /// Returns the number of commands that counts for the speed-up.
    fn counted(self) -> Result<u32, ModelError> {
        Ok(at_least_one("q", self.commands)?.min(at_least_one("Q", self.most)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_count_up_to_the_most_a_switch_takes() {
        let overhead = PerEntryCost { per_entry_s: 1e-6, speedup: BatchSpeedup([0.9, 0.1, 0.001]) };
        let of = |commands| overhead.of(500, CommandBatch { commands, most: 100 }).unwrap();
        assert_eq!(of(100).to_bits(), of(150).to_bits());
        assert!(of(100) < of(10));
        assert!(PerEntryCost::NONE.of(500, CommandBatch { commands: 0, most: 100 }).is_err());
    }

    #[test]
    fn a_speedup_that_goes_below_nothing_is_refused() {
        let error = BatchSpeedup([1.1, -0.1, 0.0]).at(20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "R: found -0.8999999999999999 for a batch of 20, expected a speed-up above 0 for every batch"
        );
    }
}
