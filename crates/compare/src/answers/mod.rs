//! Makes answers of the engines' results.
pub mod lab;
pub mod names;
pub mod predict;
pub mod stations;
pub mod streams;

use crate::answer::MetricValue;
use weir_sim::stats::{Confidence, estimate};

/// Returns the mean of the rounds' values with its interval.
fn over<T>(rounds: &[T], value: impl Fn(&T) -> Option<f64>) -> Option<MetricValue> {
    let values: Vec<f64> = rounds.iter().filter_map(value).collect();
    estimate(&values, Confidence::P95).map(MetricValue::from)
}

/// Combines the distributions of several rounds: the mean of their quantiles at each share.
fn mean_quantiles(rounds: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    let known: Vec<&Vec<(f64, f64)>> = rounds.iter().filter(|quantiles| !quantiles.is_empty()).collect();
    let Some(first) = known.first() else { return Vec::new() };
    let at = |place: usize| known.iter().filter_map(|quantiles| quantiles.get(place)).map(|pair| pair.1).sum::<f64>();
    (0..first.len()).map(|place| (first[place].0, at(place) / known.len() as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_means_with_intervals() {
        let found = over(&[1.0, 2.0, 3.0], |value| Some(*value)).unwrap();
        assert!(
            (found.value - 2.0).abs() < 1e-12 && (found.half_width.unwrap() - 4.302_652_7 / 3f64.sqrt()).abs() < 1e-6
        );
        assert_eq!(over(&[1.0], |value| Some(*value)).unwrap().half_width, None);
        assert_eq!(over(&[1.0, 2.0], |_| None), None);
    }

    #[test]
    fn distributions_are_averaged_at_their_shares() {
        let rounds = [vec![(0.5, 1.0), (0.9, 3.0)], Vec::new(), vec![(0.5, 3.0), (0.9, 5.0)]];
        assert_eq!(mean_quantiles(&rounds), [(0.5, 2.0), (0.9, 4.0)]);
        assert!(mean_quantiles(&[]).is_empty());
    }
}
