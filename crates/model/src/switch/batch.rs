//! Groups commands into the batches that a switch handles together.
use crate::ModelError;
use crate::check::{at_least_one, domain, finite, not_negative};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Rule by which commands are handled together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CommandBatching {
    /// Time-out, α, in seconds: commands closer to each other than this share a batch.
    pub timeout_s: f64,
    /// Most commands of a batch, Q.
    pub most: u32,
}

impl CommandBatching {
    /// No batching: each command alone.
    pub const NONE: CommandBatching = CommandBatching { timeout_s: 0.0, most: 1 };

    /// Returns the batches of commands that arrive at these times, in seconds, in order. Commands i to i + n are n +
    /// 1 (Cheng 2015 prints n - 1).
    ///
    /// # Errors
    /// Times that are not in order or not finite, or a largest batch of 0.
    pub fn batches(&self, times_s: &[f64]) -> Result<Vec<Range<usize>>, ModelError> {
        not_negative("alpha", self.timeout_s)?;
        let most = at_least_one("Q", self.most)? as usize;
        times_s.iter().try_for_each(|time| finite("time", *time).map(drop))?;
        let mut batches: Vec<Range<usize>> = Vec::new();
        for (at, time) in times_s.iter().enumerate() {
            let gap = if at == 0 { 0.0 } else { time - times_s[at - 1] };
            if gap < 0.0 {
                return Err(domain("times", format!("{time} after {}", times_s[at - 1]), "times in order"));
            }
            match batches.last_mut() {
                Some(batch) if gap < self.timeout_s && batch.len() < most => batch.end = at + 1,
                _ => batches.push(at..at + 1),
            }
        }
        Ok(batches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_or_a_full_batch_ends_a_batch() {
        let batching = CommandBatching { timeout_s: 0.001, most: 3 };
        let batches = batching.batches(&[0.0, 0.0005, 0.0015, 0.0016, 0.0017, 0.0018, 0.5]).unwrap();
        assert_eq!(batches, [0..2, 2..5, 5..6, 6..7], "a gap of the time-out itself ends one");
        assert_eq!(batching.batches(&[]).unwrap(), []);
        assert_eq!(CommandBatching::NONE.batches(&[0.0, 0.0]).unwrap().len(), 2);
        assert!(batching.batches(&[1.0, 0.0]).is_err() && batching.batches(&[f64::NAN]).is_err());
        assert!(CommandBatching { most: 0, ..batching }.batches(&[]).is_err());
    }
}
