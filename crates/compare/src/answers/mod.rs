//! Makes answers of the engines' results.
pub mod lab;
pub mod names;
pub mod predict;
pub mod stations;
pub mod streams;

use crate::answer::MetricValue;
use weir_sim::stats::{Confidence, estimate};

/// Standard deviations of a 95 % interval of the normal distribution.
const DEVIATIONS: f64 = 1.96;

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

/// Returns the 95 % interval of a percentile by order statistics: the number of `samples` below the percentile is
/// binomial, so the ranks `share` ± 1.96 standard deviations bound it (normal approximation). `quantiles` are shares
/// with their delays, ascending. `None` if one of the ranks lies outside of what they tell, or without samples.
fn order_interval(quantiles: &[(f64, f64)], share: f64, samples: u64) -> Option<[f64; 2]> {
    let half = DEVIATIONS * (share * (1.0 - share) / (samples > 0).then_some(samples as f64)?).sqrt();
    Some([quantile(quantiles, share - half)?, quantile(quantiles, share + half)?])
}

/// Returns the delay at a share, interpolated; `None` outside of the known shares.
fn quantile(quantiles: &[(f64, f64)], share: f64) -> Option<f64> {
    let after = quantiles.iter().position(|(known, _)| *known >= share)?;
    let (upper_share, upper) = quantiles[after];
    if upper_share <= share {
        return Some(upper);
    }
    let (lower_share, lower) = *quantiles.get(after.checked_sub(1)?)?;
    Some(lower + (upper - lower) * (share - lower_share) / (upper_share - lower_share))
}

/// Returns the 95 % interval of a share, of which `count` of `samples` were seen (Wilson's, which needs no large
/// number); `None` without samples.
fn share_interval(count: u64, samples: u64) -> Option<[f64; 2]> {
    let samples = (samples > 0).then_some(samples as f64)?;
    let (share, square) = (count as f64 / samples, DEVIATIONS * DEVIATIONS);
    let middle = (share + square / (2.0 * samples)) / (1.0 + square / samples);
    let half = DEVIATIONS * (share * (1.0 - share) / samples + square / (4.0 * samples * samples)).sqrt()
        / (1.0 + square / samples);
    Some([(middle - half).max(0.0), (middle + half).min(1.0)])
}

/// Returns a percentile or a share with the wider of its intervals, over rounds and by counts of samples. Samples of
/// a round depend on each other, so that the second one alone may be too narrow; rounds may agree by chance, or be only
/// one.
fn widened(figure: MetricValue, interval: Option<[f64; 2]>) -> MetricValue {
    let by_order = interval.map(|[low, high]| (figure.value - low).max(high - figure.value).max(0.0));
    let half_width = [figure.half_width, by_order].into_iter().flatten().reduce(f64::max);
    MetricValue { half_width, ..figure }
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
    fn order_statistics_bound_percentiles() {
        let even: Vec<(f64, f64)> = (0..=100).map(|share| (f64::from(share) / 100.0, f64::from(share))).collect();
        // 1.96 * sqrt(0.25 / 400) is 0.049.
        let [low, high] = order_interval(&even, 0.5, 400).unwrap();
        assert!((low - 45.1).abs() < 1e-9 && (high - 54.9).abs() < 1e-9, "{low} {high}");
        assert_eq!(order_interval(&even, 0.99, 100), None, "100 samples do not bound the 99th percentile");
        assert_eq!((order_interval(&even, 0.5, 0), order_interval(&[], 0.5, 9)), (None, None));
        let half = |half_width, interval| widened(MetricValue { value: 50.0, half_width }, interval).half_width;
        assert_eq!(half(None, Some([48.0, 51.0])), Some(2.0));
        assert_eq!(half(Some(3.0), Some([48.0, 51.0])), Some(3.0));
        assert_eq!((half(Some(3.0), None), half(None, None)), (Some(3.0), None));
    }

    #[test]
    fn shares_of_few_packets_are_known_little() {
        let [low, high] = share_interval(3, 50).unwrap();
        assert!((low - 0.0206).abs() < 1e-4 && (high - 0.1622).abs() < 1e-4, "{low} {high}");
        let [low, high] = share_interval(1_000, 20_000).unwrap();
        assert!((low - 0.0471).abs() < 1e-4 && (high - 0.0531).abs() < 1e-4, "{low} {high}");
        assert_eq!(share_interval(0, 0), None);
    }

    #[test]
    fn distributions_are_averaged_at_their_shares() {
        let rounds = [vec![(0.5, 1.0), (0.9, 3.0)], Vec::new(), vec![(0.5, 3.0), (0.9, 5.0)]];
        assert_eq!(mean_quantiles(&rounds), [(0.5, 2.0), (0.9, 4.0)]);
        assert!(mean_quantiles(&[]).is_empty());
    }
}
