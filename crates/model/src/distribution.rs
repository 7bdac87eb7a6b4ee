//! Distributions of delays: sums and mixtures of what packets meet on their way, with tails and quantiles.
use crate::check::{domain, share};
use crate::law::{Law, Shape};
use crate::leaf::Leaf;
use crate::tails::Tails;
use crate::{ModelError, check};
use num_complex::Complex64;
use std::sync::Arc;

/// Most terms; what would have more is kept as a product of transforms.
const MAX_TERMS: usize = 256;

/// The distribution of a delay in seconds, of which parts are constant and others independent of each other.
///
/// A mixture of terms, each a constant and a sum of continuous parts: so jumps stay jumps, and only what is smooth is inverted from
/// its transform. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Distribution {
    terms: Vec<Term>,
}

/// One of the cases of a mixture.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) weight: f64,
    /// What is constant of it.
    pub(crate) shift: f64,
    /// What is continuous.
    pub(crate) leaves: Vec<Leaf>,
}

impl Distribution {
    /// No delay at all: the empty sum.
    pub fn zero() -> Distribution {
        Distribution { terms: vec![Term { weight: 1.0, shift: 0.0, leaves: Vec::new() }] }
    }

    /// A delay that is always the same, 0 or more.
    pub fn constant(delay_s: f64) -> Result<Distribution, ModelError> {
        let shift = check::not_negative("constant delay", delay_s)?;
        Ok(Distribution { terms: vec![Term { weight: 1.0, shift, leaves: Vec::new() }] })
    }

    /// Exponential.
    pub fn exponential(mean_s: f64) -> Result<Distribution, ModelError> {
        Ok(Distribution::law(&Law::exponential(mean_s)?))
    }

    /// A law's own.
    pub fn law(law: &Law) -> Distribution {
        let term = |(weight, shift, leaves)| Term { weight, shift, leaves };
        let terms = law.parts().iter().map(|part| match part.shape {
            Shape::Constant(value) => term((part.weight, value, Vec::new())),
            shape => term((part.weight, 0.0, vec![Leaf::Shape(shape)])),
        });
        let all = Distribution { terms: terms.collect() };
        if all.terms.len() > MAX_TERMS { all.whole() } else { all }
    }

    pub(crate) fn leaf(leaf: Leaf) -> Distribution {
        Distribution { terms: vec![Term { weight: 1.0, shift: 0.0, leaves: vec![leaf] }] }
    }

    /// One after the other, independent of each other.
    pub fn sum<'a>(delays: impl IntoIterator<Item = &'a Distribution>) -> Distribution {
        delays.into_iter().fold(Distribution::zero(), |sum, delay| sum.plus(delay))
    }

    /// One of several, each with its probability; these have to be one together.
    pub fn mixture(delays: &[(f64, Distribution)]) -> Result<Distribution, ModelError> {
        let mut sum = 0.0;
        let mut terms = Vec::new();
        for (weight, delay) in delays {
            sum += share("mixture of delays: weight", *weight)?;
            let weighted = delay.terms.iter().map(|term| Term { weight: term.weight * weight, ..term.clone() });
            terms.extend(weighted.filter(|term| term.weight > 0.0));
        }
        if (sum - 1.0).abs() > 1e-9 {
            return Err(domain("mixture of delays: sum of the weights", sum, "1"));
        }
        let all = Distribution { terms };
        Ok(if all.terms.len() > MAX_TERMS { all.whole() } else { all })
    }

    fn plus(&self, other: &Distribution) -> Distribution {
        if self.terms.len() * other.terms.len() > MAX_TERMS {
            // The one of more terms becomes a single term, whose jumps are smoothed a little.
            return if self.terms.len() >= other.terms.len() {
                self.whole().plus(other)
            } else {
                self.plus(&other.whole())
            };
        }
        let both = |a: &Term, b: &Term| Term {
            weight: a.weight * b.weight,
            shift: a.shift + b.shift,
            leaves: a.leaves.iter().chain(&b.leaves).cloned().collect(),
        };
        Distribution { terms: self.terms.iter().flat_map(|a| other.terms.iter().map(move |b| both(a, b))).collect() }
    }

    /// The same as one term.
    fn whole(&self) -> Distribution {
        Distribution::leaf(Leaf::Whole(Arc::new(self.clone())))
    }

    pub(crate) fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The probability of no delay at all.
    pub(crate) fn none(&self) -> f64 {
        let at_once = self.terms.iter().filter(|term| term.shift == 0.0);
        at_once.map(|term| term.weight * term.leaves.iter().map(Leaf::none).product::<f64>()).sum()
    }

    /// Mean in seconds.
    pub fn mean(&self) -> f64 {
        self.terms.iter().map(|term| term.weight * term.mean()).sum()
    }

    /// Variance in seconds squared.
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        let of = |term: &Term| term.weight * (term.variance() + (term.mean() - mean).powi(2));
        self.terms.iter().map(of).sum()
    }

    /// Standard deviation in seconds.
    pub fn sd(&self) -> f64 {
        self.variance().sqrt()
    }

    /// Laplace-Stieltjes transform at `s`, whose real part is not negative.
    pub fn lst(&self, s: Complex64) -> Complex64 {
        self.terms.iter().map(|term| (-s * term.shift).exp() * term.lst(s) * term.weight).sum()
    }

    /// The probability of more than `t` seconds.
    pub fn tail(&self, t: f64) -> f64 {
        Tails::of(self).above(t)
    }

    /// The probability of `t` seconds at most.
    pub fn cdf(&self, t: f64) -> f64 {
        1.0 - self.tail(t)
    }

    /// The smallest delay that a share `p` of the packets do not exceed, in seconds; `p` between 0 and 1, neither included. Tails
    /// are precise to 1e-9 or so: shares nearer to 1 than that have no meaning.
    ///
    /// # Errors
    /// `DOMAIN` for a share that is none, `NO_CONVERGENCE` where the delay has no end that can be found.
    pub fn quantile(&self, p: f64) -> Result<f64, ModelError> {
        Tails::of(self).quantile(p)
    }

    /// The quantiles of several shares: what is inverted for one serves the others.
    ///
    /// # Errors
    /// As [`Distribution::quantile`].
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Result<[f64; N], ModelError> {
        let (mut tails, mut found) = (Tails::of(self), [0.0; N]);
        for (found, p) in found.iter_mut().zip(shares) {
            *found = tails.quantile(p)?;
        }
        Ok(found)
    }

    /// The delays of a curve through these shares, with them; those without an answer are left out.
    pub fn curve(&self, shares: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
        let mut tails = Tails::of(self);
        shares.into_iter().filter_map(|p| Some((p, tails.quantile(p).ok()?))).collect()
    }
}

impl Term {
    fn mean(&self) -> f64 {
        self.shift + self.leaves.iter().map(Leaf::mean).sum::<f64>()
    }

    fn variance(&self) -> f64 {
        self.leaves.iter().map(Leaf::variance).sum()
    }

    /// Without the shift.
    fn lst(&self, s: Complex64) -> Complex64 {
        self.leaves.iter().map(|leaf| leaf.lst(s)).product()
    }
}
