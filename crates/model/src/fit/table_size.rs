//! Infers how many entries fit in a switch's fastest table: Cheng (2015), section 4.2.1.
//!
//! More entries are added than fit. Each is probed once, in random order, so that probing does not bring entries into
//! the table systematically.
use super::groups::LatencyClusters;
use crate::ModelError;
use crate::check::domain;
use statrs::distribution::{Beta, ContinuousCDF};

/// Most table levels that are searched for.
pub const LEVELS_MAX: usize = 4;

/// Size of a fastest table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSize {
    /// Number of entries in it: the size of the fastest group of latencies.
    pub entries: u64,
    /// Interval of the size with 95 % confidence, if probes between groups fall to either side by chance.
    pub interval: (u64, u64),
    /// Groups of latencies.
    pub groups: LatencyClusters,
}

impl TableSize {
    /// Infers the size from the latencies of probes, one for each entry, in any unit. None if they form one group:
    /// all entries are in one table, or the tables are equally fast.
    ///
    /// # Errors
    /// No latency, or one that is not above 0.
    pub fn infer(latencies: &[f64]) -> Result<Option<TableSize>, ModelError> {
        let groups = LatencyClusters::find(latencies, LEVELS_MAX)?;
        if groups.sizes.len() < 2 {
            return Ok(None);
        }
        let (entries, probes) = (groups.sizes[0] as u64, latencies.len() as u64);
        let wrong = at_most(groups.doubtful as u64, probes)?;
        let interval = (entries.saturating_sub(wrong), (entries + wrong).min(probes));
        Ok(Some(TableSize { entries, interval, groups }))
    }

    /// Returns true if a second measurement with more entries finds the same number in the fastest table, within the
    /// interval.
    pub fn confirmed_by(&self, again: &TableSize) -> bool {
        self.interval.0 <= again.entries && again.entries <= self.interval.1
    }
}

/// Returns how many of the probes may be wrong if `doubtful` are doubtful: the upper end of Clopper and Pearson's
/// interval (1934), with 95 % confidence.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of probes")]
fn at_most(doubtful: u64, probes: u64) -> Result<u64, ModelError> {
    if doubtful >= probes {
        return Ok(probes);
    }
    let beta = Beta::new(doubtful as f64 + 1.0, (probes - doubtful) as f64).map_err(|error| {
        domain("probes", format!("{doubtful} doubtful of {probes}: {error}"), "fewer doubtful ones")
    })?;
    Ok((beta.inverse_cdf(0.95) * probes as f64).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_doubtful_probe_in_a_thousand_leaves_three() {
        assert_eq!(at_most(0, 1000).unwrap(), 3);
        assert_eq!(at_most(5, 5).unwrap(), 5);
    }

    #[test]
    fn sizes_come_out_exactly_and_are_confirmed() {
        let mut random = fastrand::Rng::with_seed(11);
        for (fast, slow, third) in [(4093, 907, 0), (128, 4000, 0), (100, 200, 300)] {
            let mut probe = |extra: usize| {
                let levels = [(1e-5, fast), (1e-4, slow + extra), (1e-3, third)];
                let centres = levels.iter().flat_map(|(centre, size)| std::iter::repeat_n(*centre, *size));
                let latencies: Vec<f64> = centres.map(|centre| centre * (0.4 * (random.f64() - 0.5)).exp()).collect();
                TableSize::infer(&latencies).unwrap().unwrap()
            };
            let (first, again) = (probe(0), probe(1));
            assert_eq!((first.entries, first.groups.doubtful), (fast as u64, 0));
            assert!(first.confirmed_by(&again));
            assert!(first.interval.1 - first.interval.0 <= 6);
        }
        assert_eq!(TableSize::infer(&[1.0; 100]).unwrap(), None);
        assert!(TableSize::infer(&[]).is_err());
    }
}
