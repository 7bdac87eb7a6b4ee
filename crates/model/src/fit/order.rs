//! Medians and quantiles of samples.
use crate::ModelError;
use crate::check::{domain, finite};

/// Samples, by their middle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Middle {
    /// As many are below as above.
    pub median: f64,
    /// What the middle half spans.
    pub iqr: f64,
    /// Samples.
    pub samples: usize,
}

impl Middle {
    /// Of samples.
    ///
    /// # Errors
    /// There are none, or one is no number.
    pub fn of(samples: &[f64]) -> Result<Middle, ModelError> {
        let sorted = sorted(samples)?;
        let iqr = quantile(&sorted, 0.75) - quantile(&sorted, 0.25);
        Ok(Middle { median: quantile(&sorted, 0.5), iqr, samples: samples.len() })
    }
}

/// Samples in order.
///
/// # Errors
/// There are none, or one is no number.
pub(crate) fn sorted(samples: &[f64]) -> Result<Vec<f64>, ModelError> {
    if samples.is_empty() {
        return Err(domain("samples", "none", "one or more"));
    }
    samples.iter().try_for_each(|sample| finite("sample", *sample).map(drop))?;
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Ok(sorted)
}

/// The value below which this share of samples lies; samples are in order, and there are some. Between two it is interpolated.
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
        assert_eq!(Middle::of(&[4.0, 1.0, 3.0, 2.0]).unwrap(), Middle { median: 2.5, iqr: 1.5, samples: 4 });
        assert_eq!(Middle::of(&[7.0]).unwrap().iqr, 0.0);
        assert!(Middle::of(&[]).is_err() && Middle::of(&[f64::NAN]).is_err());
    }
}
