//! Fits straight lines by least squares.
use crate::ModelError;
use crate::check::{domain, finite};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Line through points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegressionLine {
    /// Value of y at x = 0, in units of y.
    pub intercept: f64,
    /// Slope in units of y for each unit of x.
    pub slope: f64,
    /// Interval of the slope with 95 % confidence, if the residuals are independent and normal; none for two points.
    pub slope_ci95: Option<(f64, f64)>,
    /// Share of the variance of y that the line explains.
    pub r2: f64,
    /// Standard deviation of the residuals, in units of y; 0 for two points.
    pub residual_sd: f64,
    /// Number of points.
    pub points: usize,
}

impl RegressionLine {
    /// Fits a line to the points (ordinary least squares).
    ///
    /// # Errors
    /// Fewer than two points, values that are not finite, all x equal, or lists of different lengths.
    pub fn fit(x: &[f64], y: &[f64]) -> Result<RegressionLine, ModelError> {
        if x.len() != y.len() || x.len() < 2 {
            return Err(domain("points", format!("{} x, {} y", x.len(), y.len()), "as many x as y, two or more"));
        }
        x.iter().chain(y).try_for_each(|value| finite("points", *value).map(drop))?;
        let n = x.len() as f64;
        let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
        let sum =
            |product: fn(f64, f64) -> f64| x.iter().zip(y).map(|(x, y)| product(x - mean_x, y - mean_y)).sum::<f64>();
        let (xx, xy, yy) = (sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y));
        if xx <= 0.0 {
            return Err(domain("x", format!("{mean_x} everywhere"), "two different values or more"));
        }
        let slope = xy / xx;
        let residual = sum_of_squares(x.iter().zip(y).map(|(x, y)| y - mean_y - slope * (x - mean_x)));
        let freedom = n - 2.0;
        let residual_sd = if freedom > 0.0 { (residual / freedom).sqrt() } else { 0.0 };
        let line = RegressionLine {
            intercept: finite("intercept", mean_y - slope * mean_x)?,
            slope: finite("slope", slope)?,
            slope_ci95: interval(slope, residual_sd / xx.sqrt(), freedom),
            r2: if yy > 0.0 { (1.0 - residual / yy).max(0.0) } else { 1.0 },
            residual_sd,
            points: x.len(),
        };
        finite("sum of squares", residual).map(|_| line)
    }

    /// Returns the slope, or 0 if its interval includes 0.
    pub fn slope_or_zero(&self) -> f64 {
        if self.is_flat() { 0.0 } else { self.slope }
    }

    /// Returns true if the slope is not significantly different from 0.
    pub fn is_flat(&self) -> bool {
        self.slope == 0.0 || self.slope_ci95.is_some_and(|(low, high)| low <= 0.0 && high >= 0.0)
    }
}

fn sum_of_squares(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum()
}

fn interval(slope: f64, error: f64, freedom: f64) -> Option<(f64, f64)> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);
    Some((slope - t * error, slope + t * error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Medians of a switch's delays in us by bytes: Ansell (2017), table 4.3.
    const BYTES: [f64; 8] = [100.0, 200.0, 400.0, 600.0, 800.0, 1000.0, 1200.0, 1400.0];
    const DELAY_US: [f64; 8] = [4.11, 4.68, 6.92, 8.04, 9.72, 11.1, 13.2, 14.3];

    #[test]
    fn the_line_of_published_delays() {
        let line = RegressionLine::fit(&BYTES, &DELAY_US).unwrap();
        assert!((line.intercept - 3.33859564165).abs() < 1e-9 && (line.slope - 0.00795811138015).abs() < 1e-12);
        let (low, high) = line.slope_ci95.unwrap();
        assert!(low > 0.0074 && high < 0.0085 && !line.is_flat() && line.r2 > 0.99, "{line:?}");
    }

    #[test]
    fn a_slope_that_may_be_none_is_none() {
        let noise = RegressionLine::fit(&BYTES, &[1.0, 2.0, 1.5, 0.5, 1.7, 0.9, 1.1, 1.6]).unwrap();
        assert!(noise.is_flat() && noise.slope != 0.0);
        assert_eq!(noise.slope_or_zero(), 0.0);
        assert!(RegressionLine::fit(&BYTES, &[3.0; 8]).unwrap().is_flat());
    }

    #[test]
    fn two_points_have_no_interval_and_one_has_no_line() {
        let line = RegressionLine::fit(&[1.0, 2.0], &[3.0, 5.0]).unwrap();
        assert_eq!((line.slope, line.intercept, line.slope_ci95, line.residual_sd), (2.0, 1.0, None, 0.0));
        assert!(RegressionLine::fit(&[1.0], &[1.0]).is_err() && RegressionLine::fit(&[1.0, 1.0], &[1.0, 2.0]).is_err());
        assert!(
            RegressionLine::fit(&[1.0, f64::NAN], &[1.0, 2.0]).is_err()
                && RegressionLine::fit(&[0.0, f64::MAX], &[0.0, f64::MAX]).is_err()
        );
    }
}
