//! Fits the speed-up of batches: a quadratic that is 1 for a batch of one.
use crate::ModelError;
use crate::check::{at_least_one, domain, positive};
use crate::switch::speedup::BatchSpeedup;

/// Fitted speed-up, with its quality.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedupCurve {
    /// Coefficients of the speed-up.
    pub speedup: BatchSpeedup,
    /// Standard deviation of the points' distances from the curve.
    pub residual_sd: f64,
    /// Smallest and largest batch in the data.
    pub from: (u32, u32),
    /// True if the curve is below 1 between them: batches would make commands more expensive there.
    pub below_one: bool,
}

impl SpeedupCurve {
    /// Fits `1 + b (q - 1) + c (q - 1)²` to measured speed-ups by batch (least squares). With one or two batches
    /// besides 1 it is a straight line, with none constant.
    ///
    /// # Errors
    /// Batches of 0, invalid speed-ups, or a curve that falls to 0 between the batches.
    pub fn fit(points: &[(u32, f64)]) -> Result<SpeedupCurve, ModelError> {
        for (batch, speedup) in points {
            at_least_one("q", *batch)?;
            positive("R", *speedup)?;
        }
        let from = points.iter().fold((1, 1), |(least, most), (batch, _)| (least.min(*batch), most.max(*batch)));
        let away: Vec<(f64, f64)> = points.iter().map(|(q, speedup)| (f64::from(*q) - 1.0, speedup - 1.0)).collect();
        let (b, c) = coefficients(&away);
        let residual: f64 = away.iter().map(|(u, v)| (v - u * (b + c * u)).powi(2)).sum();
        let freedom = points.len() as f64 - 2.0;
        let curve = SpeedupCurve {
            speedup: BatchSpeedup([1.0 - b + c, b - 2.0 * c, c]),
            residual_sd: if freedom > 0.0 { (residual / freedom).sqrt() } else { 0.0 },
            from,
            below_one: lowest(b, c, f64::from(from.1 - 1)) < -1e-9,
        };
        if 1.0 + lowest(b, c, f64::from(from.1 - 1)) <= 0.0 {
            let found = format!("{:?}", curve.speedup.0);
            return Err(domain("R", found, "a curve above 0 between the batches measured: measure more of them"));
        }
        Ok(curve)
    }
}

/// Returns b and c from the normal equations.
fn coefficients(away: &[(f64, f64)]) -> (f64, f64) {
    let sum = |power: i32, value: fn(f64) -> f64| away.iter().map(|(u, v)| u.powi(power) * value(*v)).sum::<f64>();
    let (uu, uuu, uuuu) = (sum(2, |_| 1.0), sum(3, |_| 1.0), sum(4, |_| 1.0));
    let (uv, uuv) = (sum(1, |v| v), sum(2, |v| v));
    let determinant = uu * uuuu - uuu * uuu;
    if determinant > 1e-9 * uu * uuuu {
        ((uv * uuuu - uuv * uuu) / determinant, (uuv * uu - uv * uuu) / determinant)
    } else if uu > 0.0 {
        (uv / uu, 0.0)
    } else {
        (0.0, 0.0)
    }
}

/// Returns the minimum of `b u + c u²` for u between 0 and `most`.
fn lowest(b: f64, c: f64, most: f64) -> f64 {
    let at = |u: f64| u * (b + c * u);
    let turn = if c > 0.0 { (-b / (2.0 * c)).clamp(0.0, most) } else { 0.0 };
    at(turn).min(at(most)).min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quadratic_is_found_again() {
        let truth = BatchSpeedup([0.881, 0.12, -0.001]);
        let points: Vec<(u32, f64)> = [1, 3, 5, 10, 20, 50].map(|q| (q, truth.at(q).unwrap())).into();
        let curve = SpeedupCurve::fit(&points).unwrap();
        curve.speedup.0.iter().zip(truth.0).for_each(|(found, truth)| assert!((found - truth).abs() < 1e-12));
        assert!(!curve.below_one && curve.residual_sd < 1e-12);
        assert_eq!(curve.from, (1, 50));
    }

    #[test]
    fn little_data_gives_simple_curves() {
        assert_eq!(SpeedupCurve::fit(&[]).unwrap().speedup, BatchSpeedup::NONE);
        assert_eq!(SpeedupCurve::fit(&[(1, 1.0)]).unwrap().speedup, BatchSpeedup::NONE);
        assert_eq!(SpeedupCurve::fit(&[(1, 1.0), (3, 2.0)]).unwrap().speedup, BatchSpeedup([0.5, 0.5, 0.0]));
    }

    #[test]
    fn what_makes_commands_dearer_is_said_and_what_falls_to_nothing_refused() {
        assert!(SpeedupCurve::fit(&[(1, 1.0), (10, 0.8), (20, 0.7)]).unwrap().below_one);
        assert!(SpeedupCurve::fit(&[(1, 1.0), (5, 0.05), (10, 0.04), (20, 1.0)]).is_err());
        assert!(SpeedupCurve::fit(&[(0, 1.0)]).is_err() && SpeedupCurve::fit(&[(1, -1.0)]).is_err());
    }
}
