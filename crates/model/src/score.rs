//! Measures how far the predictions of models are from measured values.
use crate::ModelError;
use crate::check::{domain, finite, positive};
use crate::fit::quantiles::{quantile, sorted};

/// Difference between a value that a model predicts and the measured value, on three scales.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelDeviation {
    /// (measured - model) / measured (Ansell 2017, equation 7.1): at most 1 for predictions that are too low, negative
    /// without bound for predictions that are too high.
    pub scaled: f64,
    /// |ln (model / measured)|, which weighs too high and too low predictions alike; `None` for a prediction of 0.
    pub log_ratio: Option<f64>,
    /// |model - measured| / measured.
    pub error_rate: f64,
}

impl ModelDeviation {
    /// Computes the difference between a predicted value, 0 or more, and a measured one.
    ///
    /// # Errors
    /// `DOMAIN` for a measured value that is not above 0, because differences are divided by it, and for invalid
    /// values.
    pub fn of(measured: f64, model: f64) -> Result<ModelDeviation, ModelError> {
        let measured = positive("measured", measured)?;
        let model = crate::check::not_negative("modelled", model)?;
        let scaled = finite("scaled difference", (measured - model) / measured)?;
        let log_ratio = (model > 0.0).then(|| (model / measured).ln().abs()).filter(|ratio| ratio.is_finite());
        Ok(ModelDeviation { scaled, log_ratio, error_rate: scaled.abs() })
    }
}

/// Returns the mean of |actual - forecast| / |actual| (mean absolute percentage error, MAPE), as a share.
///
/// # Errors
/// `DOMAIN` for empty lists or lists of different lengths, actual values of 0, and invalid values.
pub fn mape(actual: &[f64], forecast: &[f64]) -> Result<f64, ModelError> {
    if actual.len() != forecast.len() || actual.is_empty() {
        let found = format!("{} actual, {} forecast", actual.len(), forecast.len());
        return Err(domain("values", found, "as many actual as forecast ones, one or more"));
    }
    let error = |(actual, forecast): (&f64, &f64)| {
        let related = positive("actual, without its sign", actual.abs())?;
        finite("forecast", (actual - finite("forecast", *forecast)?).abs() / related)
    };
    let errors = actual.iter().zip(forecast).map(error).collect::<Result<Vec<_>, _>>()?;
    finite("MAPE", errors.iter().sum::<f64>() / errors.len() as f64)
}

/// Summary of a model's differences from measured values at many points, with the numbers of points that the averages
/// omit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviationSummary {
    /// Number of points with a prediction.
    pub valid: usize,
    /// Number of points at which the model has no steady state, omitted from the averages.
    pub unstable: usize,
    /// Number of points without a prediction for other reasons, omitted from the averages.
    pub other: usize,
    /// Averages over the points with a prediction; `None` if there are none.
    pub averages: Option<DeviationAverages>,
}

/// Averages of the absolute differences between predicted and measured values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviationAverages {
    /// Mean of the absolute differences.
    pub mean: f64,
    /// Median of the absolute differences.
    pub median: f64,
    /// 95th percentile of the absolute differences.
    pub p95: f64,
}

impl DeviationSummary {
    /// Summarises a model's differences, one for each point; an error stands for a point without a prediction.
    pub fn of(differences: &[Result<f64, ModelError>]) -> DeviationSummary {
        let valid: Vec<f64> = differences.iter().flatten().map(|value| value.abs()).collect();
        let unstable = |answer: &&Result<f64, ModelError>| matches!(answer, Err(ModelError::Unstable { .. }));
        let unstable = differences.iter().filter(unstable).count();
        DeviationSummary {
            valid: valid.len(),
            unstable,
            other: differences.len() - valid.len() - unstable,
            averages: sorted(&valid).ok().map(|sorted| DeviationAverages {
                mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
                median: quantile(&sorted, 0.5),
                p95: quantile(&sorted, 0.95),
            }),
        }
    }
}

/// Returns the indices of the points for which all models have a prediction. Only these points serve to compare models.
/// `models` has a list for each model, with a result for each point.
pub fn common(models: &[&[Result<f64, ModelError>]]) -> Vec<usize> {
    let points = models.iter().map(|answers| answers.len()).min().unwrap_or(0);
    (0..points).filter(|point| models.iter().all(|answers| answers[*point].is_ok())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_both_scales() {
        let high = ModelDeviation::of(10.0, 20.0).unwrap();
        let low = ModelDeviation::of(10.0, 5.0).unwrap();
        assert_eq!((high.scaled, low.scaled, high.error_rate), (-1.0, 0.5, 1.0));
        assert!((high.log_ratio.unwrap() - low.log_ratio.unwrap()).abs() < 1e-15);
        assert_eq!(ModelDeviation::of(1.0, 0.0).unwrap().log_ratio, None);
        for (measured, model) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, f64::NAN), (1.0, -1.0), (f64::MIN_POSITIVE, 1e300)]
        {
            assert_eq!(ModelDeviation::of(measured, model).unwrap_err().kind(), "DOMAIN");
        }
        assert!(mape(&[], &[]).is_err() && mape(&[0.0], &[1.0]).is_err());
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let unstable = || Err(ModelError::Unstable { place: "switch".into(), rho: 1.0 });
        let answers = [Ok(-0.4), unstable(), Ok(0.1), Ok(0.1), Err(domain("p", 2, "less"))];
        let summary = DeviationSummary::of(&answers);
        assert_eq!((summary.valid, summary.unstable, summary.other), (3, 1, 1));
        let averages = summary.averages.unwrap();
        assert!((averages.mean - 0.2).abs() < 1e-15 && averages.median == 0.1 && (averages.p95 - 0.37).abs() < 1e-12);
        assert_eq!(DeviationSummary::of(&[unstable()]).averages, None);
        assert_eq!(common(&[&answers, &[unstable(), Ok(1.0), Ok(1.0), Ok(1.0), Ok(1.0)]]), [2, 3]);
    }
}
