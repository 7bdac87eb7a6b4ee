//! Defines laws of service times: for how long a packet occupies a server.
mod arrivals;
mod form;
mod transform;

pub(crate) use arrivals::{ArrivalsPerService, ln_poisson};

use crate::ModelError;
use crate::check::{domain, not_negative, positive, share};
use serde::{Deserialize, Serialize};

/// Most parts of a law, such as values of a measured histogram.
pub const MAX_PARTS: usize = 4096;

/// Largest deviation of a sum of probabilities from 1, as decimal notation may cause.
const SUM_TOLERANCE: f64 = 1e-6;

/// Law of positive times (or lengths) with all moments. Constructors check their arguments. All laws are mixtures of
/// four shapes.
///
/// In JSON and scenario files: `["exp", mean]`, `["det", value]`, `["gamma", mean, scv]`, `["h2", p, mean_1,
/// mean_2]`, `["uniform", low, high]`, `["lattice", [values], [probabilities]]` and `["mixture", [weights], [laws]]`,
/// or with names: `{"law": "gamma", "mean": 0.001, "scv": 0.4}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "form::LawForm", into = "form::LawForm")]
pub struct Law {
    parts: Vec<LawPart>,
}

/// Component of a mixture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LawPart {
    /// Probability of this component.
    pub weight: f64,
    /// Shape of the component.
    pub shape: LawShape,
}

/// Law that is not a mixture. Times in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LawShape {
    /// Constant law with this value.
    Constant(f64),
    /// Exponential law with this mean.
    Exponential(f64),
    /// Gamma, of any regularity.
    Gamma {
        /// Mean of the law.
        mean: f64,
        /// Squared coefficient of variation: variance over the mean's square.
        scv: f64,
    },
    /// Uniform between two values.
    Uniform {
        /// Smallest value, 0 or more.
        low: f64,
        /// Largest value, above the smallest.
        high: f64,
    },
}

impl Law {
    /// Returns the law of the constant `value`.
    pub fn constant(value: f64) -> Result<Law, ModelError> {
        Ok(Law::of(LawShape::Constant(positive("constant law: value", value)?)))
    }

    /// Returns the exponential law with this mean.
    pub fn exponential(mean: f64) -> Result<Law, ModelError> {
        Ok(Law::of(LawShape::Exponential(positive("exponential law: mean", mean)?)))
    }

    /// Returns the gamma law with this mean and squared coefficient of variation; constant if the latter is 0,
    /// exponential if it is 1.
    pub fn gamma(mean: f64, scv: f64) -> Result<Law, ModelError> {
        let mean = positive("gamma law: mean", mean)?;
        let scv = not_negative("gamma law: scv", scv)?;
        Ok(Law::of(if scv == 0.0 {
            LawShape::Constant(mean)
        } else if scv == 1.0 {
            LawShape::Exponential(mean)
        } else {
            LawShape::Gamma { mean, scv }
        }))
    }

    /// Returns the hyperexponential law: exponential of mean `first` with probability `p`, otherwise of mean
    /// `second`.
    pub fn hyperexponential(p: f64, first: f64, second: f64) -> Result<Law, ModelError> {
        let p = share("hyperexponential law: p", p)?;
        Law::mixture([(p, Law::exponential(first)?), (1.0 - p, Law::exponential(second)?)])
    }

    /// Returns a mixture of two exponentials with this mean and squared coefficient of variation (above 1), each of
    /// which contributes half of the mean.
    pub fn balanced(mean: f64, scv: f64) -> Result<Law, ModelError> {
        let mean = positive("hyperexponential law: mean", mean)?;
        if !(scv > 1.0 && scv.is_finite()) {
            return Err(domain("hyperexponential law: scv", scv, "a number above 1: gamma has the others"));
        }
        let p = 0.5 * (1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt());
        Law::hyperexponential(p, mean / (2.0 * p), mean / (2.0 * (1.0 - p)))
    }

    /// Returns the uniform law from `low`, which may be 0, to `high`.
    pub fn uniform(low: f64, high: f64) -> Result<Law, ModelError> {
        let low = not_negative("uniform law: low", low)?;
        let high = positive("uniform law: high", high)?;
        if low < high {
            Ok(Law::of(LawShape::Uniform { low, high }))
        } else {
            Err(domain("uniform law: high", high, format!("a number above low, which is {low}")))
        }
    }

    /// Returns the law of some values with their probabilities, such as a measured histogram or packet sizes.
    pub fn lattice(values: &[f64], probabilities: &[f64]) -> Result<Law, ModelError> {
        if values.len() != probabilities.len() {
            let expected = format!("as many as values, {}", values.len());
            return Err(domain("lattice law: number of probabilities", probabilities.len(), &expected));
        }
        let constants = values.iter().map(|value| Law::constant(*value)).collect::<Result<Vec<_>, _>>()?;
        Law::mixture(probabilities.iter().copied().zip(constants))
    }

    /// Returns a mixture of laws with probabilities, which must sum to 1.
    pub fn mixture(laws: impl IntoIterator<Item = (f64, Law)>) -> Result<Law, ModelError> {
        let (mut parts, mut sum) = (Vec::new(), 0.0);
        for (weight, law) in laws {
            let weight = share("mixture: weight", weight)?;
            sum += weight;
            let weighted = law.parts.iter().map(|part| LawPart { weight: weight * part.weight, shape: part.shape });
            parts.extend(weighted.filter(|part| part.weight > 0.0));
            if parts.len() > MAX_PARTS {
                return Err(domain("mixture: parts", parts.len(), format!("at most {MAX_PARTS}")));
            }
        }
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(domain("mixture: sum of the probabilities", sum, "1"));
        }
        parts.iter_mut().for_each(|part| part.weight /= sum);
        Ok(Law { parts })
    }

    fn of(shape: LawShape) -> Law {
        Law { parts: vec![LawPart { weight: 1.0, shape }] }
    }

    /// Returns the components; a single one if the law is no mixture.
    pub fn parts(&self) -> &[LawPart] {
        &self.parts
    }

    /// Returns the law of times `factor` times as long.
    pub fn scaled(&self, factor: f64) -> Result<Law, ModelError> {
        let factor = positive("scaled law: factor", factor)?;
        let scale = |part: &LawPart| LawPart { weight: part.weight, shape: part.shape.scaled(factor) };
        Ok(Law { parts: self.parts.iter().map(scale).collect() })
    }

    /// Returns the mean.
    pub fn mean(&self) -> f64 {
        self.moment(1)
    }

    /// Returns the mean of the square.
    pub fn second_moment(&self) -> f64 {
        self.moment(2)
    }

    /// Returns the mean of the cube.
    pub fn third_moment(&self) -> f64 {
        self.moment(3)
    }

    fn moment(&self, order: u8) -> f64 {
        self.parts.iter().map(|part| part.weight * part.shape.moment(order)).sum()
    }

    /// Returns the variance: within the components plus between them, so that no digits cancel.
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        let of = |part: &LawPart| part.weight * (part.shape.variance() + (part.shape.moment(1) - mean).powi(2));
        self.parts.iter().map(of).sum()
    }

    /// Returns the squared coefficient of variation: 0 constant, 1 exponential.
    pub fn scv(&self) -> f64 {
        self.variance() / self.mean().powi(2)
    }
}

impl LawShape {
    /// Returns mean (order 1), mean square (2) or mean cube (3).
    pub(crate) fn moment(&self, order: u8) -> f64 {
        let n = i32::from(order);
        match *self {
            LawShape::Constant(value) => value.powi(n),
            LawShape::Exponential(mean) => mean.powi(n) * (1..=order).map(f64::from).product::<f64>(),
            LawShape::Gamma { mean, scv } => {
                mean.powi(n) * (0..order).map(|k| 1.0 + f64::from(k) * scv).product::<f64>()
            }
            // Mean of low^i high^(n-i).
            LawShape::Uniform { low, high } => {
                (0..=n).map(|i| low.powi(i) * high.powi(n - i)).sum::<f64>() / f64::from(n + 1)
            }
        }
    }

    pub(crate) fn variance(&self) -> f64 {
        match *self {
            LawShape::Constant(_) => 0.0,
            LawShape::Exponential(mean) => mean * mean,
            LawShape::Gamma { mean, scv } => mean * mean * scv,
            LawShape::Uniform { low, high } => (high - low).powi(2) / 12.0,
        }
    }

    fn scaled(&self, factor: f64) -> LawShape {
        match *self {
            LawShape::Constant(value) => LawShape::Constant(value * factor),
            LawShape::Exponential(mean) => LawShape::Exponential(mean * factor),
            LawShape::Gamma { mean, scv } => LawShape::Gamma { mean: mean * factor, scv },
            LawShape::Uniform { low, high } => LawShape::Uniform { low: low * factor, high: high * factor },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_text_books() {
        let h2 = Law::hyperexponential(0.9, 1.0, 10.0).unwrap();
        assert!((h2.mean() - 1.9).abs() < 1e-12 && (h2.second_moment() - 21.8).abs() < 1e-12);
        assert!((h2.variance() - (21.8 - 1.9 * 1.9)).abs() < 1e-12);
        let balanced = Law::balanced(3.0, 4.0).unwrap();
        assert!((balanced.mean() - 3.0).abs() < 1e-12 && (balanced.scv() - 4.0).abs() < 1e-12);
        let uniform = Law::uniform(0.004, 0.016).unwrap();
        assert!((uniform.mean() - 0.01).abs() < 1e-15 && (uniform.variance() - 1.2e-5).abs() < 1e-15);
        assert!((uniform.third_moment() - (0.016f64.powi(4) - 0.004f64.powi(4)) / 0.048).abs() < 1e-18);
        let gamma = Law::gamma(2.0, 0.5).unwrap();
        assert!((gamma.second_moment() - 6.0).abs() < 1e-12 && (gamma.third_moment() - 24.0).abs() < 1e-12);
        let lattice = Law::lattice(&[4.0, 8.0, 12.0], &[0.5, 0.3, 0.2]).unwrap();
        assert!((lattice.mean() - 6.8).abs() < 1e-12 && (lattice.variance() - 9.76).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_law_is_refused_by_name() {
        for (law, parameter) in [
            (Law::constant(0.0), "constant law: value"),
            (Law::exponential(f64::NAN), "exponential law: mean"),
            (Law::gamma(1.0, -0.1), "gamma law: scv"),
            (Law::hyperexponential(1.5, 1.0, 2.0), "hyperexponential law: p"),
            (Law::balanced(1.0, 1.0), "hyperexponential law: scv"),
            (Law::uniform(2.0, 1.0), "uniform law: high"),
            (Law::lattice(&[1.0], &[0.5, 0.5]), "lattice law: number of probabilities"),
            (Law::lattice(&[1.0, 2.0], &[0.5, 0.4]), "mixture: sum of the probabilities"),
            (Law::lattice(&[], &[]), "mixture: sum of the probabilities"),
        ] {
            let error = law.unwrap_err();
            assert_eq!(error.kind(), "DOMAIN");
            assert!(error.to_string().starts_with(parameter), "{error}");
        }
    }
}
