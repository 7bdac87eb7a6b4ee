//! Computes medians and quantiles of samples.
use crate::ModelError;
use crate::check::{domain, finite};

/// Interquartile range of a normal distribution, in standard deviations.
pub const NORMAL_IQR: f64 = 1.349;

/// Median and spread of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianAndSpread {
    /// Median, in the samples' unit.
    pub median: f64,
    /// Interquartile range, in the samples' unit.
    pub iqr: f64,
    /// Number of samples.
    pub samples: usize,
}

impl MedianAndSpread {
    /// Computes median and interquartile range of samples.
    ///
    /// # Errors
    /// No samples, or one that is not finite.
    pub fn of(samples: &[f64]) -> Result<MedianAndSpread, ModelError> {
        let sorted = sorted(samples)?;
        let iqr = quantile(&sorted, 0.75) - quantile(&sorted, 0.25);
        Ok(MedianAndSpread { median: quantile(&sorted, 0.5), iqr, samples: samples.len() })
    }

    /// Returns half of the width of the median's interval with 95 % confidence, for samples that are about normal.
    pub fn half_interval(&self) -> f64 {
        1.96 * 1.253 * self.iqr / NORMAL_IQR / (self.samples as f64).sqrt()
    }
}

/// Returns an interval that contains the median of the samples' law with the given confidence, whatever the law is: it
/// ends at two of the sorted samples, whose places follow from the binomial law (normal approximation).
///
/// # Errors
/// No samples, or one that is not finite.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "places in the list")]
pub fn median_interval(samples: &[f64], normal_quantile: f64) -> Result<[f64; 2], ModelError> {
    let sorted = sorted(samples)?;
    let n = sorted.len() as f64;
    let half = normal_quantile * n.sqrt() / 2.0;
    let low = (n / 2.0 - half).floor().max(0.0) as usize;
    Ok([sorted[low], sorted[sorted.len() - 1 - low]])
}

/// Returns the samples in rising order.
///
/// # Errors
/// No samples, or one that is not finite.
pub(crate) fn sorted(samples: &[f64]) -> Result<Vec<f64>, ModelError> {
    if samples.is_empty() {
        return Err(domain("samples", "none", "one or more"));
    }
    samples.iter().try_for_each(|sample| finite("sample", *sample).map(drop))?;
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Ok(sorted)
}

/// Returns the value below which a share of the samples lies, linearly interpolated. The samples must be sorted and
/// not empty.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of samples")]
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = sorted[place.floor() as usize];
    below + (sorted[(place.ceil() as usize).min(last)] - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_what_the_middle_half_spans() {
        assert_eq!(
            MedianAndSpread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap(),
            MedianAndSpread { median: 2.5, iqr: 1.5, samples: 4 }
        );
        assert_eq!(MedianAndSpread::of(&[7.0]).unwrap().iqr, 0.0);
        assert!(MedianAndSpread::of(&[]).is_err() && MedianAndSpread::of(&[f64::NAN]).is_err());
    }

    #[test]
    fn the_interval_of_a_median_holds_for_any_law() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(median_interval(&ten, 1.96).unwrap(), [2.0, 9.0]);
        assert_eq!(median_interval(&[5.0], 1.96).unwrap(), [5.0, 5.0]);
        assert!(median_interval(&[], 1.96).is_err());
        let mut random = fastrand::Rng::with_seed(7);
        let covered = |random: &mut fastrand::Rng| {
            // The median of a Pareto law with index 1 is 2.
            let samples: Vec<f64> = (0..101).map(|_| 1.0 / (1.0 - random.f64())).collect();
            let [low, high] = median_interval(&samples, 1.96).unwrap();
            u32::from((low..=high).contains(&2.0))
        };
        let covered: u32 = (0..1000).map(|_| covered(&mut random)).sum();
        assert!((930..=975).contains(&covered), "{covered}");
    }
}
