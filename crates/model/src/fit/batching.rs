//! Fits how a switch batches commands, after Cheng (2015), section 4.2.2, with a statistical test instead of reading
//! a figure.
use crate::ModelError;
use crate::check::{at_least_one, domain, not_negative, positive};

/// Jump in a series of measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Last place before the jump, in the series' unit.
    pub last_before: f64,
    /// First place after the jump.
    pub first_after: f64,
    /// Mean value before the jump.
    pub before: f64,
    /// Mean value after the jump.
    pub after: f64,
}

impl ChangePoint {
    /// Returns the jump that best splits the series into two levels, if two levels fit better than one. The series
    /// has pairs of place and value, sorted by place; several values may share a place.
    ///
    /// # Errors
    /// Fewer than four values, invalid values, or places out of order.
    pub fn find(row: &[(f64, f64)]) -> Result<Option<ChangePoint>, ModelError> {
        if row.len() < 4 {
            return Err(domain("row", format!("{} values", row.len()), "four or more"));
        }
        for (place, value) in row {
            not_negative("place", *place)?;
            not_negative("value", *value)?;
        }
        if let Some(pair) = row.windows(2).find(|pair| pair[1].0 < pair[0].0) {
            return Err(domain("row", format!("{} after {}", pair[1].0, pair[0].0), "places in order"));
        }
        let splits = (1..row.len()).filter(|at| row[*at].0 > row[at - 1].0);
        let squares = |at: usize| within(&row[..at]).1 + within(&row[at..]).1;
        let best = splits.map(|at| (squares(at), at)).min_by(|left, right| left.0.total_cmp(&right.0));
        let Some((two, at)) = best else { return Ok(None) };
        let (n, one) = (row.len() as f64, within(row).1);
        // Schwarz's criterion (1978). The place counts as two parameters: it is selected among all, which fits noise
        // better than a mean does.
        let better = one > 0.0 && n * (two / one).ln() + 3.0 * n.ln() < 0.0;
        let jump = ChangePoint {
            last_before: row[at - 1].0,
            first_after: row[at].0,
            before: within(&row[..at]).0,
            after: within(&row[at..]).0,
        };
        Ok(better.then_some(jump))
    }
}

/// Returns the mean, and the sum of squared distances from it.
fn within(row: &[(f64, f64)]) -> (f64, f64) {
    let mean = row.iter().map(|(_, value)| value).sum::<f64>() / row.len() as f64;
    (mean, row.iter().map(|(_, value)| (value - mean).powi(2)).sum())
}

/// Returns the batch time-out α in seconds: commands closer to each other than this are handled together.
/// `completions` has pairs of time between commands and time from the last command to completion, in seconds, for
/// rising times between commands, in steps as fine as the wanted precision of α. None if completion does not jump.
///
/// # Errors
/// See [`ChangePoint::find`].
pub fn timeout_s(completions: &[(f64, f64)]) -> Result<Option<f64>, ModelError> {
    Ok(ChangePoint::find(completions)?.map(|jump| jump.first_after))
}

/// Batch, with the time that each of its commands took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchTime {
    /// Number of commands, q.
    pub commands: u32,
    /// Mean time of a command, in seconds.
    pub mean_s: f64,
    /// Standard error of the mean, in seconds.
    pub error_s: f64,
}

/// Returns the most commands that a switch handles together, Q: the smallest batch whose time for a command is within
/// one standard error of the fastest batch's.
///
/// # Errors
/// No batch, or an invalid one.
pub fn most(batches: &[BatchTime]) -> Result<u32, ModelError> {
    for batch in batches {
        at_least_one("q", batch.commands)?;
        positive("time of a command", batch.mean_s)?;
        not_negative("standard error", batch.error_s)?;
    }
    let fastest = batches.iter().min_by(|left, right| left.mean_s.total_cmp(&right.mean_s));
    let limit = fastest.ok_or_else(|| domain("batches", "none", "one or more"))?;
    let limit_s = limit.mean_s + limit.error_s;
    let within = batches.iter().filter(|batch| batch.mean_s <= limit_s).map(|batch| batch.commands);
    Ok(within.min().unwrap_or(limit.commands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_out_is_where_completion_jumps() {
        let mut random = fastrand::Rng::with_seed(2);
        for alpha in [300e-6, 1e-3, 4.2e-3] {
            let mut row = |jump: f64| -> Vec<(f64, f64)> {
                let step = |at: u32| {
                    let gap = f64::from(at) * 100e-6;
                    let level = if gap + 1e-9 < alpha { 0.01 } else { 0.01 + jump };
                    (gap, level + 0.001 * random.f64())
                };
                (0..60).map(step).collect()
            };
            let found = timeout_s(&row(0.02)).unwrap().unwrap();
            assert!((found - alpha).abs() < 1e-9, "{found}");
            assert_eq!(timeout_s(&row(0.0)).unwrap(), None, "noise alone is no jump");
        }
        assert_eq!(timeout_s(&[(0.0, 1.0); 5]).unwrap(), None);
        assert!(timeout_s(&[(0.0, 1.0)]).is_err());
    }

    #[test]
    fn the_largest_batch_is_the_smallest_of_the_fast_ones() {
        let batch = |(commands, mean_s)| BatchTime { commands, mean_s, error_s: 0.05 };
        let batches = [(1, 5.0), (5, 2.0), (20, 1.04), (50, 1.0), (100, 1.02)].map(batch);
        assert_eq!(most(&batches).unwrap(), 20);
        assert!(most(&[]).is_err() && most(&[batch((0, 1.0))]).is_err());
    }
}
