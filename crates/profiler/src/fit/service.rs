//! Fits a law of service times to measured times.
use crate::ProfilerError;
use weir_model::Law;
use weir_model::fit::groups::LatencyClusters;
use weir_model::fit::line::RegressionLine;
use weir_profile::{Evidence, ServiceTime};

/// Squared coefficient of variation below which times are constant.
const CONSTANT: f64 = 1e-3;
/// Largest relative width of a group of times that counts as a single value, as of a device with a period.
const NARROW: f64 = 0.02;
/// Most such values.
const VALUES: usize = 4;
/// Quantile of the normal distribution for a 95 % interval.
const Z: f64 = 1.96;

/// Fits a law of service times to pairs of length (bytes) and time (s). Returns none for fewer than four times above
/// 0.
pub(crate) fn fit(samples: &[(f64, f64)]) -> Result<Option<(ServiceTime, Evidence)>, ProfilerError> {
    let samples: Vec<(f64, f64)> = samples.iter().copied().filter(|(_, seconds)| *seconds > 0.0).collect();
    if samples.len() < 4 {
        return Ok(None);
    }
    let per_byte_s = per_byte(&samples);
    let times: Vec<f64> = samples.iter().map(|(bytes, seconds)| (seconds - per_byte_s * bytes).max(1e-12)).collect();
    let n = times.len() as f64;
    let mean = times.iter().sum::<f64>() / n;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let law = match lattice(&times)? {
        Some(law) => law,
        None if variance / (mean * mean) < CONSTANT => Law::constant(mean)?,
        None => Law::gamma(mean, variance / (mean * mean))?,
    };
    let half = Z * (variance / n).sqrt();
    // The interval holds the law's mean, which for a lattice is that of its values.
    let mean = law.mean();
    let evidence = Evidence {
        interval: Some([(mean - half).max(0.0), mean + half]),
        samples: Some(samples.len() as u64),
        ..Evidence::default()
    };
    Ok(Some((ServiceTime { law: Some(law), per_byte_s }, evidence)))
}

/// Returns the additional time for each byte, in seconds; 0 if it is not significant.
fn per_byte(samples: &[(f64, f64)]) -> f64 {
    let (bytes, times): (Vec<f64>, Vec<f64>) = samples.iter().copied().unzip();
    RegressionLine::fit(&bytes, &times).map_or(0.0, |line| line.slope_or_zero().max(0.0))
}

fn lattice(times: &[f64]) -> Result<Option<Law>, ProfilerError> {
    let groups = LatencyClusters::find(times, VALUES)?;
    let mut values: Vec<(f64, f64)> = Vec::new();
    for (centre, size) in groups.centres.iter().zip(&groups.sizes) {
        let share = *size as f64 / times.len() as f64;
        match values.last_mut() {
            // Centres closer to each other than the width of a single value.
            Some(last) if *centre < last.0 * (1.0 + 2.0 * NARROW) => {
                last.0 = (last.0 * last.1 + centre * share) / (last.1 + share);
                last.1 += share;
            }
            _ => values.push((*centre, share)),
        }
    }
    let is_narrow = |time: &&f64| values.iter().any(|(value, _)| (**time / value - 1.0).abs() < NARROW);
    if values.len() < 2 || times.iter().filter(is_narrow).count() * 20 < times.len() * 19 {
        return Ok(None);
    }
    let (values, shares): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
    Ok(Some(Law::lattice(&values, &shares)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_are_told_apart() {
        let mut random = fastrand::Rng::with_seed(4);
        let constant: Vec<(f64, f64)> = (0..100).map(|_| (128.0, 2e-3 * (1.0 + 1e-3 * random.f64()))).collect();
        let (time, evidence) = fit(&constant).unwrap().unwrap();
        assert!(time.law.unwrap().scv() == 0.0 && evidence.samples == Some(100));
        let beat: Vec<(f64, f64)> = (0..200).map(|at| (128.0, if at % 4 == 0 { 8e-3 } else { 4e-3 })).collect();
        let law = fit(&beat).unwrap().unwrap().0.law.unwrap();
        assert_eq!(law.parts().len(), 2);
        assert!((law.mean() - 5e-3).abs() < 1e-5);
        let spread: Vec<(f64, f64)> = (0..2000).map(|_| (128.0, -3e-3 * (1.0 - random.f64()).ln())).collect();
        let law = fit(&spread).unwrap().unwrap().0.law.unwrap();
        assert!((law.mean() / 3e-3 - 1.0).abs() < 0.1 && (law.scv() - 1.0).abs() < 0.2, "{law:?}");
        assert_eq!(fit(&constant[..3]).unwrap(), None);
    }

    #[test]
    fn bytes_count_where_they_show() {
        let samples: Vec<(f64, f64)> = (0..100)
            .map(|at| {
                let bytes = f64::from(100 + 900 * (at % 2));
                (bytes, 1e-4 + 8e-9 * bytes)
            })
            .collect();
        let (time, _) = fit(&samples).unwrap().unwrap();
        assert!((time.per_byte_s / 8e-9 - 1.0).abs() < 1e-3);
        assert!((time.law.unwrap().mean() / 1e-4 - 1.0).abs() < 1e-3);
    }
}
