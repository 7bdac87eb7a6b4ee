//! Represents distributions of delays as sums and mixtures of parts, with tails and quantiles.
use crate::check::{domain, share};
use crate::delay_part::DelayPart;
use crate::law::{Law, LawShape};
use crate::tails::TailProbabilities;
use crate::{ModelError, check};
use num_complex::Complex64;
use std::sync::Arc;

/// Most terms; distributions with more become a product of transforms.
const MAX_TERMS: usize = 256;

/// Distribution of a delay in seconds, composed of constant and independent continuous parts.
///
/// A mixture of terms, each a constant plus a sum of continuous parts. So jumps stay jumps, and only continuous parts
/// are inverted from their transforms. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Distribution {
    terms: Vec<MixtureTerm>,
}

/// Component of a mixture.
#[derive(Debug, Clone)]
pub(crate) struct MixtureTerm {
    pub(crate) weight: f64,
    /// Constant part, in seconds.
    pub(crate) shift: f64,
    /// Independent continuous parts.
    pub(crate) parts: Vec<DelayPart>,
}

impl Distribution {
    /// Returns the distribution of no delay: the empty sum.
    pub fn zero() -> Distribution {
        Distribution { terms: vec![MixtureTerm { weight: 1.0, shift: 0.0, parts: Vec::new() }] }
    }

    /// Returns the distribution of a constant delay, at least 0.
    pub fn constant(delay_s: f64) -> Result<Distribution, ModelError> {
        let shift = check::not_negative("constant delay", delay_s)?;
        Ok(Distribution { terms: vec![MixtureTerm { weight: 1.0, shift, parts: Vec::new() }] })
    }

    /// Returns the exponential distribution with this mean, in seconds.
    pub fn exponential(mean_s: f64) -> Result<Distribution, ModelError> {
        Ok(Distribution::law(&Law::exponential(mean_s)?))
    }

    /// Returns the distribution of a law.
    pub fn law(law: &Law) -> Distribution {
        let term = |(weight, shift, leaves)| MixtureTerm { weight, shift, parts: leaves };
        let terms = law.parts().iter().map(|part| match part.shape {
            LawShape::Constant(value) => term((part.weight, value, Vec::new())),
            shape => term((part.weight, 0.0, vec![DelayPart::Shape(shape)])),
        });
        let all = Distribution { terms: terms.collect() };
        if all.terms.len() > MAX_TERMS { all.whole() } else { all }
    }

    pub(crate) fn of_part(leaf: DelayPart) -> Distribution {
        Distribution { terms: vec![MixtureTerm { weight: 1.0, shift: 0.0, parts: vec![leaf] }] }
    }

    /// Returns the distribution of the sum of independent delays.
    pub fn sum<'a>(delays: impl IntoIterator<Item = &'a Distribution>) -> Distribution {
        delays.into_iter().fold(Distribution::zero(), |sum, delay| sum.plus(delay))
    }

    /// Returns the mixture of several distributions. The probabilities must sum to 1.
    pub fn mixture(delays: &[(f64, Distribution)]) -> Result<Distribution, ModelError> {
        let mut sum = 0.0;
        let mut terms = Vec::new();
        for (weight, delay) in delays {
            sum += share("mixture of delays: weight", *weight)?;
            let weighted = delay.terms.iter().map(|term| MixtureTerm { weight: term.weight * weight, ..term.clone() });
            terms.extend(weighted.filter(|term| term.weight > 0.0));
        }
        if (sum - 1.0).abs() > 1e-9 {
            return Err(domain("mixture of delays: sum of the weights", sum, "1"));
        }
        let all = Distribution { terms };
        Ok(if all.terms.len() > MAX_TERMS { all.whole() } else { all })
    }

    /// Returns the distribution of a delay that a `share` of the packets has; the others have none.
    ///
    /// # Errors
    /// `DOMAIN` for a share that is not between 0 and 1.
    pub fn for_share(&self, share: f64) -> Result<Distribution, ModelError> {
        let share = check::share("share of the packets", share)?;
        if let [MixtureTerm { shift: 0.0, parts, .. }] = self.terms.as_slice()
            && let [DelayPart::Waiting(waiting, known)] = parts.as_slice()
        {
            return Ok(Distribution::of_part(DelayPart::Waiting(Arc::clone(waiting), known * share)));
        }
        Distribution::mixture(&[(1.0 - share, Distribution::zero()), (share, self.clone())])
    }

    fn plus(&self, other: &Distribution) -> Distribution {
        if self.terms.len() * other.terms.len() > MAX_TERMS {
            // The distribution with more terms becomes a single term, which smooths its jumps a little.
            return if self.terms.len() >= other.terms.len() {
                self.whole().plus(other)
            } else {
                self.plus(&other.whole())
            };
        }
        let both = |a: &MixtureTerm, b: &MixtureTerm| MixtureTerm {
            weight: a.weight * b.weight,
            shift: a.shift + b.shift,
            parts: a.parts.iter().chain(&b.parts).cloned().collect(),
        };
        Distribution { terms: self.terms.iter().flat_map(|a| other.terms.iter().map(move |b| both(a, b))).collect() }
    }

    /// Returns the distribution as a single term.
    fn whole(&self) -> Distribution {
        Distribution::of_part(DelayPart::Whole(Arc::new(self.clone())))
    }

    pub(crate) fn terms(&self) -> &[MixtureTerm] {
        &self.terms
    }

    /// Returns the probability of no delay.
    pub(crate) fn none(&self) -> f64 {
        let at_once = self.terms.iter().filter(|term| term.shift == 0.0);
        at_once.map(|term| term.weight * term.parts.iter().map(DelayPart::none).product::<f64>()).sum()
    }

    /// Returns the mean in seconds.
    pub fn mean(&self) -> f64 {
        self.terms.iter().map(|term| term.weight * term.mean()).sum()
    }

    /// Returns the variance in seconds squared.
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        let of = |term: &MixtureTerm| term.weight * (term.variance() + (term.mean() - mean).powi(2));
        self.terms.iter().map(of).sum()
    }

    /// Returns the standard deviation in seconds.
    pub fn sd(&self) -> f64 {
        self.variance().sqrt()
    }

    /// Returns the Laplace-Stieltjes transform at `s`, whose real part must not be negative.
    pub fn lst(&self, s: Complex64) -> Complex64 {
        self.terms.iter().map(|term| (-s * term.shift).exp() * term.lst(s) * term.weight).sum()
    }

    /// Returns the probability of more than `t` seconds.
    pub fn tail(&self, t: f64) -> f64 {
        TailProbabilities::of(self).above(t)
    }

    /// Returns the probability of at most `t` seconds.
    pub fn cdf(&self, t: f64) -> f64 {
        1.0 - self.tail(t)
    }

    /// Returns the smallest delay in seconds that a share `p` of the packets do not exceed; `p` is between 0 and 1,
    /// both excluded. Tails are precise to about 1e-9, so shares closer to 1 are meaningless; near jumps and bends of a
    /// continuous part a quantile may be off by some thousandths.
    ///
    /// # Errors
    /// `DOMAIN` for an invalid share, `NO_CONVERGENCE` if no upper bound of the delay is found.
    pub fn quantile(&self, p: f64) -> Result<f64, ModelError> {
        TailProbabilities::of(self).quantile(p)
    }

    /// Returns the quantiles of several shares, which rise with their shares; inversions for one share are reused for
    /// the others.
    ///
    /// # Errors
    /// See [`Distribution::quantile`].
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Result<[f64; N], ModelError> {
        let (mut tails, mut found) = (TailProbabilities::of(self), [0.0; N]);
        for (found, p) in found.iter_mut().zip(shares) {
            *found = tails.quantile(p)?;
        }
        Ok(found)
    }

    /// Returns pairs of share and delay in seconds for these shares; shares without an answer are omitted.
    pub fn curve(&self, shares: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
        let mut tails = TailProbabilities::of(self);
        shares.into_iter().filter_map(|p| Some((p, tails.quantile(p).ok()?))).collect()
    }
}

impl MixtureTerm {
    fn mean(&self) -> f64 {
        self.shift + self.parts.iter().map(DelayPart::mean).sum::<f64>()
    }

    fn variance(&self) -> f64 {
        self.parts.iter().map(DelayPart::variance).sum()
    }

    /// Transform of the continuous parts, without the constant.
    fn lst(&self, s: Complex64) -> Complex64 {
        self.parts.iter().map(|leaf| leaf.lst(s)).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::station;

    #[test]
    fn a_delay_of_some_packets_is_a_mixture_with_none() {
        let waiting = station::mg1_waiting(700.0, &Law::constant(0.001).unwrap()).unwrap();
        let some = waiting.for_share(0.25).unwrap();
        let mixed = Distribution::mixture(&[(0.75, Distribution::zero()), (0.25, waiting)]).unwrap();
        assert!((some.mean() / mixed.mean() - 1.0).abs() < 1e-12 && (some.none() - mixed.none()).abs() < 1e-12);
        assert!((some.variance() / mixed.variance() - 1.0).abs() < 1e-12);
        for t in [0.0, 0.0005, 0.002, 0.01] {
            assert!((some.tail(t) - mixed.tail(t)).abs() < 1e-7, "{t}: {} {}", some.tail(t), mixed.tail(t));
        }
        assert!(some.for_share(1.5).is_err());
    }
}
