//! Computes confidence intervals over independent replications.
use serde::{Deserialize, Serialize};

/// Confidence level of an interval: probability that it contains the estimated value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Confidence {
    /// Confidence level of 90 %.
    #[serde(rename = "90%")]
    P90,
    /// Confidence level of 95 %.
    #[default]
    #[serde(rename = "95%")]
    P95,
    /// Confidence level of 99 %.
    #[serde(rename = "99%")]
    P99,
}

impl Confidence {
    /// Returns the probability `p` whose quantile of Student's distribution bounds a two-sided interval of this level.
    fn quantile(self) -> f64 {
        match self {
            Confidence::P90 => 0.95,
            Confidence::P95 => 0.975,
            Confidence::P99 => 0.995,
        }
    }
}

/// Mean with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean over the replications that had a value.
    pub mean: f64,
    /// Half the width of the interval; `None` with fewer than two replications.
    pub half_width: Option<f64>,
    /// Number of replications that had a value.
    pub replications: usize,
}

impl Estimate {
    /// Returns the half width divided by the mean; `None` if there is no interval, or the mean is 0 and the interval
    /// is not.
    pub fn relative(&self) -> Option<f64> {
        let half = self.half_width?;
        if half == 0.0 { Some(0.0) } else { (self.mean != 0.0).then(|| half / self.mean.abs()) }
    }
}

/// Returns the mean of `values`, one value for each independent replication, and its confidence interval by Student's
/// distribution; `None` without values.
pub fn estimate(values: &[f64], confidence: Confidence) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let half_width = (values.len() > 1).then(|| {
        let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0);
        student_t(confidence.quantile(), values.len() - 1) * (variance / n).sqrt()
    });
    Some(Estimate { mean, half_width, replications: values.len() })
}

/// Returns the `p`-quantile (`0.5..1.0`) of Student's distribution with `degrees` degrees of freedom (at least 1).
/// Bisects the distribution function, to about ten digits.
pub fn student_t(p: f64, degrees: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_below(high, degrees) < p && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if student_below(middle, degrees) < p { low = middle } else { high = middle }
    }
    high
}

/// Returns the distribution function of Student's distribution at `t` >= 0, by the finite sums 26.7.3 and 26.7.4 of
/// Abramowitz and Stegun.
fn student_below(t: f64, degrees: usize) -> f64 {
    let n = degrees.max(1);
    let angle = (t / (n as f64).sqrt()).atan();
    let (sine, cosine) = (angle.sin(), angle.cos());
    let squared = cosine * cosine;
    // Sums powers of the cosine in steps of two. Their coefficients are products of ratios.
    let sum = |first: f64, from: usize| {
        let (mut term, mut sum) = (first, first);
        let mut k = from;
        while k + 2 < n {
            term *= squared * (k as f64) / (k as f64 + 1.0);
            sum += term;
            k += 2;
        }
        sum
    };
    let inside = match n {
        1 => 2.0 * angle / std::f64::consts::PI,
        n if n % 2 == 1 => 2.0 / std::f64::consts::PI * (angle + sine * sum(cosine, 2)),
        _ => sine * sum(1.0, 1),
    };
    0.5 + inside / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (p, degrees, expected) in [
            (0.975, 1, 12.706_204_736),
            (0.975, 2, 4.302_652_730),
            (0.975, 3, 3.182_446_305),
            (0.975, 9, 2.262_157_163),
            (0.95, 4, 2.131_846_786),
            (0.995, 29, 2.756_385_904),
            (0.975, 1000, 1.962_339_081),
        ] {
            let found = student_t(p, degrees);
            assert!((found - expected).abs() < 1e-7, "t({p}, {degrees}) = {found}, expected {expected}");
        }
    }

    #[test]
    fn intervals_are_student_s() {
        let found = estimate(&[1.0, 2.0, 3.0], Confidence::P95).unwrap();
        assert_eq!(found.mean, 2.0);
        assert!((found.half_width.unwrap() - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-7);
        assert_eq!(estimate(&[5.0], Confidence::P95).unwrap().half_width, None);
        assert_eq!(estimate(&[], Confidence::P95), None);
        assert_eq!(estimate(&[0.0, 0.0], Confidence::P95).unwrap().relative(), Some(0.0));
        assert_eq!(estimate(&[-1.0, 1.0], Confidence::P95).unwrap().relative(), None);
    }

    /// Checks that 90 % intervals contain the mean in 90 % of the trials.
    #[test]
    fn intervals_hold_what_they_should() {
        let mut random = weir_traffic::RandomStream::new(1, 2, 3);
        let trials = 4000;
        let held = (0..trials)
            .filter(|_| {
                let sample = |random: &mut weir_traffic::RandomStream| (0..12).map(|_| random.unit()).sum::<f64>();
                let values: Vec<f64> = (0..5).map(|_| sample(&mut random)).collect();
                let found = estimate(&values, Confidence::P90).unwrap();
                (found.mean - 6.0).abs() <= found.half_width.unwrap()
            })
            .count();
        let share = held as f64 / f64::from(trials);
        assert!((share - 0.9).abs() < 0.02, "{share}");
    }
}
