//! Computes medians and quantiles of samples.
use crate::ModelError;
use crate::check::{domain, finite};

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
}
