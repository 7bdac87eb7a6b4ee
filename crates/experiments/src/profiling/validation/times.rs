//! Holds the times of series of commands or packets, and compares them.
use std::collections::BTreeMap;

/// Times of one series on the switch and as predicted by its profile, in seconds; `None` for items that were not seen.
#[derive(Debug, Clone, Default)]
pub(super) struct SeriesTimes {
    pub(super) measured: Vec<Option<f64>>,
    /// Times of the same series, measured on the switch once more; `None` if it was measured once.
    pub(super) again: Option<Vec<Option<f64>>>,
    /// Times by the profile: one list for each model, which differ in their random numbers.
    pub(super) models: Vec<Vec<Option<f64>>>,
    /// Name of each item's group, such as its kind; one list for each way of grouping.
    pub(super) groups: Vec<Vec<&'static str>>,
}

/// Pairs of times of items that both of two measurements have, in seconds.
pub(super) type TimePairs = Vec<(f64, f64)>;

/// Returns the sum of one side of the pairs.
pub(super) fn sum(pairs: &[(f64, f64)], of: fn(&(f64, f64)) -> f64) -> f64 {
    pairs.iter().map(of).sum()
}

/// Returns the relative difference of the second sum against the first.
pub(super) fn difference(pairs: &[(f64, f64)]) -> f64 {
    sum(pairs, |pair| pair.1) / sum(pairs, |pair| pair.0) - 1.0
}

/// Returns the relative difference of the second median against the first.
pub(super) fn median_difference(pairs: &[(f64, f64)]) -> f64 {
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut times: Vec<f64> = pairs.iter().map(of).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    };
    median(|pair| pair.1) / median(|pair| pair.0) - 1.0
}

/// Returns the pairs of times that both measurements have.
pub(super) fn pairs(measured: &[Option<f64>], other: &[Option<f64>]) -> TimePairs {
    measured.iter().zip(other).filter_map(|(one, other)| (*one).zip(*other)).collect()
}

impl SeriesTimes {
    /// Returns the mean over the models of each item's time; `None` for items that no model saw.
    pub(super) fn foretold(&self) -> Vec<Option<f64>> {
        let mean = |at: usize| {
            let times: Vec<f64> = self.models.iter().filter_map(|times| times.get(at).copied().flatten()).collect();
            (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
        };
        (0..self.models.first().map_or(0, Vec::len)).map(mean).collect()
    }

    /// Returns the times on the switch and by each of the models: a median of means would tell nothing.
    pub(super) fn pooled(&self) -> TimePairs {
        self.models.iter().flat_map(|model| pairs(&self.measured, model)).collect()
    }
}

/// Returns the times on the switch and by each of the models, by group.
pub(super) fn by_group(times: &SeriesTimes) -> BTreeMap<&'static str, TimePairs> {
    let mut groups: BTreeMap<&'static str, TimePairs> = BTreeMap::new();
    for names in &times.groups {
        for model in &times.models {
            for ((name, measured), foretold) in names.iter().zip(&times.measured).zip(model) {
                groups.entry(*name).or_default().extend(measured.zip(*foretold));
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_compared_each_in_its_own_order() {
        assert!((median_difference(&[(1.0, 4.0), (9.0, 3.0), (2.0, 1.0)]) - 0.5).abs() < 1e-12);
        assert!((difference(&[(1.0, 4.0), (9.0, 3.0), (2.0, 1.0)]) + 1.0 / 3.0).abs() < 1e-12);
    }
}
