//! What commands cost for the entries that are there, alone and in batches.
use crate::ModelError;
use crate::check::{at_least_one, domain, finite, not_negative};
use serde::{Deserialize, Serialize};

/// How many times cheaper a command is per entry in a batch of q commands than alone: `r0 + r1 q + r2 q²`, which is 1 for q = 1.
///
/// Cheng (2015), equation 4.1, divides by this; its text fits the inverse. Here it is cost alone over cost in the batch, so that dividing is right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Speedup(pub [f64; 3]);

impl Speedup {
    /// Batches make nothing cheaper.
    pub const NONE: Speedup = Speedup([1.0, 0.0, 0.0]);

    /// The speed-up in a batch of that many commands.
    ///
    /// # Errors
    /// It is not above 0 there: the fit does not reach that far.
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

/// What a command costs for each entry that its table holds: P and R of Cheng (2015), table 4.1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Of a command alone, in seconds for each entry.
    pub per_entry_s: f64,
    /// In batches.
    pub speedup: Speedup,
}

impl Overhead {
    /// Nothing, as in tables that are hashes.
    pub const NONE: Overhead = Overhead { per_entry_s: 0.0, speedup: Speedup::NONE };

    /// Seconds of one command of a batch, for all entries of the table.
    ///
    /// # Errors
    /// Negative cost, or a speed-up that is none.
    pub fn of(&self, entries: u64, batch: Batch) -> Result<f64, ModelError> {
        not_negative("P", self.per_entry_s)?;
        Ok(self.per_entry_s / self.speedup.at(batch.counted()?)? * entries as f64)
    }
}

/// Commands that a switch handles together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// How many there are, q.
    pub commands: u32,
    /// How many the switch takes together at most, Q.
    pub most: u32,
}

impl Batch {
    /// A command alone.
    pub const ALONE: Batch = Batch { commands: 1, most: 1 };

    /// How many count.
    fn counted(self) -> Result<u32, ModelError> {
        Ok(at_least_one("q", self.commands)?.min(at_least_one("Q", self.most)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_count_up_to_the_most_a_switch_takes() {
        let overhead = Overhead { per_entry_s: 1e-6, speedup: Speedup([0.9, 0.1, 0.001]) };
        let of = |commands| overhead.of(500, Batch { commands, most: 100 }).unwrap();
        assert_eq!(of(100).to_bits(), of(150).to_bits());
        assert!(of(100) < of(10));
        assert!(Overhead::NONE.of(500, Batch { commands: 0, most: 100 }).is_err());
    }

    #[test]
    fn a_speedup_that_goes_below_nothing_is_refused() {
        let error = Speedup([1.1, -0.1, 0.0]).at(20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "R: found -0.8999999999999999 for a batch of 20, expected a speed-up above 0 for every batch"
        );
    }
}
