//! Computes tail probabilities and quantiles of a delay's distribution. The distribution is a mixture of terms, each a
//! constant plus continuous parts. Terms with equal continuous parts form a group, whose transform is inverted once for
//! all of them. Values that the inversion needs again are kept.
use crate::delay_part::DelayPart;
use crate::distribution::{Distribution, MixtureTerm};
use crate::inversion::{InvertedTransform, points};
use crate::root::bracketed_to;
use crate::{ModelError, check};
use num_complex::Complex64;
use std::collections::HashMap;

/// Relative precision of quantiles. More digits are useless, because inverted tails are precise to about 1e-9.
const QUANTILE: f64 = 1e-10;
/// Maximum number of doublings in the search for an upper bound of a quantile.
const MAX_DOUBLINGS: u32 = 200;

/// Distribution of a delay whose terms are grouped by their continuous parts.
pub(crate) struct TailProbabilities<'a> {
    delay: &'a Distribution,
    groups: Vec<TermGroup<'a>>,
    /// Constants of all terms, sorted and unique.
    shifts: Vec<f64>,
    /// Shares that were asked for, with their quantiles.
    found: Vec<(f64, f64)>,
}

/// Terms of a distribution that have equal continuous parts, and differ only in their weights and constants.
struct TermGroup<'a> {
    /// Continuous parts, whose sum the terms share.
    parts: &'a [DelayPart],
    /// Weight and constant, in seconds, of each term.
    terms: Vec<(f64, f64)>,
    /// Probability that all continuous parts are 0.
    none: f64,
    /// Inversion of the transform of the continuous parts' tail.
    inverse: InvertedTransform,
}

impl<'a> TailProbabilities<'a> {
    pub(crate) fn of(delay: &'a Distribution) -> TailProbabilities<'a> {
        let mut tails = TailProbabilities { delay, groups: Vec::new(), shifts: Vec::new(), found: Vec::new() };
        tails.gather(delay, 1.0, 0.0, &mut HashMap::new());
        tails.shifts = tails.groups.iter().flat_map(|group| group.terms.iter().map(|(_, shift)| *shift)).collect();
        tails.shifts.sort_by(f64::total_cmp);
        tails.shifts.dedup();
        tails
    }

    /// Adds the terms of a distribution to the groups. Their weights are multiplied by `weight`, and `shift` is added
    /// to their constants. `known` has the index of each group by the identity of its continuous parts.
    fn gather(&mut self, delay: &'a Distribution, weight: f64, shift: f64, known: &mut HashMap<Vec<[u64; 3]>, usize>) {
        for term in delay.terms() {
            let (weight, shift) = (weight * term.weight, shift + term.shift);
            if let [DelayPart::Whole(whole)] = term.parts.as_slice() {
                self.gather(whole, weight, shift, known);
                continue;
            }
            let group = *known.entry(term.parts.iter().map(DelayPart::identity).collect()).or_insert_with(|| {
                self.groups.push(TermGroup::of(term));
                self.groups.len() - 1
            });
            self.groups[group].terms.push((weight, shift));
        }
    }

    /// Returns the probability that the delay exceeds `t` seconds.
    pub(crate) fn above(&mut self, t: f64) -> f64 {
        let mut sum = 0.0;
        for group in &mut self.groups {
            for at in 0..group.terms.len() {
                let (weight, shift) = group.terms[at];
                sum += weight * group.above(t - shift);
            }
        }
        sum.clamp(0.0, 1.0)
    }

    /// Returns the probability that the delay is exactly `at` seconds, where `at` is one of the constants.
    fn jump(&self, at: f64) -> f64 {
        let of = |group: &TermGroup<'_>| {
            let there = group.terms.iter().filter(|(_, shift)| *shift == at).map(|(weight, _)| weight);
            group.none * there.sum::<f64>()
        };
        self.groups.iter().map(of).sum()
    }

    /// Returns the smallest delay that a share `p` of the packets do not exceed, in seconds.
    ///
    /// The quantile is not below those found so far for smaller shares, and not above those for larger ones. An
    /// inverted tail alone would not guarantee this: near a jump or a bend it may rise a little.
    pub(crate) fn quantile(&mut self, p: f64) -> Result<f64, ModelError> {
        let sought = self.search(p)?;
        let of = |wanted: fn(&f64, &f64) -> bool| {
            self.found.iter().filter(move |(share, _)| wanted(share, &p)).map(|(_, quantile)| *quantile)
        };
        let sought = of(f64::le).fold(sought, f64::max);
        let sought = of(f64::ge).fold(sought, f64::min);
        self.found.push((p, sought));
        Ok(sought)
    }

    /// Searches for the quantile of a share.
    ///
    /// 1. Find the smallest constant that the delay exceeds with probability 1 - p at most. It is the quantile if the
    ///    delay is this constant or more with a probability above 1 - p.
    /// 2. Otherwise the quantile is between this constant and the previous one, or above the last; the tail is
    ///    continuous there.
    fn search(&mut self, p: f64) -> Result<f64, ModelError> {
        if !(p > 0.0 && p < 1.0) {
            return Err(check::domain("quantile", p, "a number between 0 and 1, neither included"));
        }
        let over = 1.0 - p;
        let shifts = std::mem::take(&mut self.shifts);
        let next = shifts.partition_point(|shift| self.above(*shift) > over);
        let (low, high) = (next.checked_sub(1).map(|before| shifts[before]), shifts.get(next).copied());
        self.shifts = shifts;
        let (low, high) = match (low, high) {
            (None, high) => return Ok(high.unwrap_or(0.0)),
            (_, Some(high)) if self.above(high) + self.jump(high) > over => return Ok(high),
            (Some(low), Some(high)) => (low, high),
            (Some(low), None) => (low, self.beyond(low, p)?),
        };
        // If the tail is constant at the wanted value over a range, the beginning of the range is the quantile. So a
        // difference of 0 counts as below.
        let strictly = |above: f64| if above > 0.0 { above } else { above.min(-f64::MIN_POSITIVE) };
        Ok(bracketed_to(QUANTILE, low, high, |t| strictly(self.above(t) - over)))
    }

    /// Returns a value above `low` that the delay exceeds with probability 1 - p at most.
    fn beyond(&mut self, low: f64, p: f64) -> Result<f64, ModelError> {
        let mut high = low.max(self.delay.mean() + 3.0 * self.delay.sd());
        for _ in 0..MAX_DOUBLINGS {
            if self.above(high) <= 1.0 - p {
                return Ok(high);
            }
            high *= 2.0;
        }
        Err(ModelError::NoConvergence { what: format!("quantile {p} of a delay"), rounds: MAX_DOUBLINGS })
    }
}

impl<'a> TermGroup<'a> {
    fn of(term: &'a MixtureTerm) -> TermGroup<'a> {
        let none = term.parts.iter().map(DelayPart::none).product();
        TermGroup { parts: &term.parts, terms: Vec::new(), none, inverse: InvertedTransform::default() }
    }

    /// Returns the probability that the sum of the continuous parts exceeds `t` seconds.
    fn above(&mut self, t: f64) -> f64 {
        match self.parts {
            _ if t < 0.0 => 1.0,
            [] => 0.0,
            [leaf] => leaf.tail(t).unwrap_or_else(|| self.inverted(t)),
            _ => self.inverted(t),
        }
    }

    fn inverted(&mut self, t: f64) -> f64 {
        if t == 0.0 {
            return 1.0 - self.none;
        }
        let leaves = self.parts;
        let found = self.inverse.at(t, |line, stage| {
            let mut product = vec![Complex64::ONE; points(stage).len()];
            leaves.iter().for_each(|leaf| leaf.multiply(line, stage, &mut product));
            product.iter().zip(points(stage)).map(|(all, k)| (Complex64::ONE - all) / line.point(k)).collect()
        });
        found.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Law;
    use crate::station::{mg1_waiting, mg1k};

    /// Two queues, then a packet of three lengths.
    fn way() -> Distribution {
        let service = Law::lattice(&[1.0, 9.0, 24.0], &[0.6, 0.3, 0.1]).unwrap();
        let waits = [0.02, 0.05].map(|rate| mg1_waiting(rate, &service).unwrap());
        Distribution::sum([&waits[0], &waits[1], &Distribution::law(&service), &Distribution::constant(5.0).unwrap()])
    }

    #[test]
    fn terms_with_the_same_parts_are_one_group() {
        let way = way();
        let tails = TailProbabilities::of(&way);
        assert_eq!((tails.groups.len(), tails.groups[0].terms.len()), (1, 3));
        assert_eq!(tails.shifts, [6.0, 14.0, 29.0]);
    }

    #[test]
    fn who_waits_for_nothing_has_just_the_constants() {
        let way = way();
        let idle = (1.0 - 0.02 * 5.7) * (1.0 - 0.05 * 5.7);
        for (p, expected) in [(0.6 * idle - 1e-6, 6.0), (0.01, 6.0)] {
            assert_eq!(way.quantile(p).unwrap(), expected, "{p}");
        }
        // The step between just before a constant and at it is the probability of this delay.
        let mut tails = TailProbabilities::of(&way);
        let jump = tails.above(14.0 - 1e-7) - tails.above(14.0);
        assert!((jump - 0.3 * idle).abs() < 1e-6 && (tails.jump(14.0) - 0.3 * idle).abs() < 1e-12, "{jump}");
        let within = 1.0 - tails.above(14.0) - jump / 2.0;
        assert_eq!(tails.quantile(within).unwrap(), 14.0);
    }

    #[test]
    fn a_quantile_is_where_the_tail_is_its_share() {
        let way = way();
        for p in [0.3, 0.45, 0.5, 0.7, 0.8, 0.95, 0.99, 0.999] {
            let found = way.quantile(p).unwrap();
            let (before, after) = (way.cdf(found * (1.0 - 1e-6)), way.cdf(found * (1.0 + 1e-6)));
            assert!(before <= p + 1e-6 && p - 1e-6 <= after, "{p}: {found}, {before} to {after}");
        }
    }

    #[test]
    fn quantiles_of_larger_shares_are_not_smaller() {
        // Services of two lengths under overload: the sojourn is a sum of many, and its tail bends often.
        let (long, short) = (0.999_711_735_050_080_2, 0.000_288_264_949_919_883_1);
        let service = Law::lattice(&[1.282_069_807_458_325_2e-8, 3.846_209_422_374_975_6e-8], &[short, long]).unwrap();
        let state = mg1k(12.971_087_467_125_939 / service.mean(), &service, 25).unwrap();
        let shares = [0.01, 0.3, 0.5, 0.9, 0.99, 0.999, 0.9999];
        let rising = state.sojourn.quantiles(shares).unwrap();
        assert!(rising.is_sorted(), "{rising:?}");
        let mut shares = shares;
        shares.reverse();
        let mut falling = state.sojourn.quantiles(shares).unwrap();
        falling.reverse();
        assert!(falling.is_sorted(), "{falling:?}");
        let near = |(a, b): (&f64, &f64)| (a / b - 1.0).abs() < 0.01;
        assert!(rising.iter().zip(&falling).all(near), "{rising:?} {falling:?}");
    }

    #[test]
    fn many_terms_are_asked_as_they_are() {
        // More terms than a sum keeps separate.
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        let law = Distribution::law(&Law::lattice(&values, &vec![0.001; 1000]).unwrap());
        for (p, expected) in [(0.4995, 500.0), (0.0001, 1.0), (0.9999, 1000.0)] {
            assert_eq!(law.quantile(p).unwrap(), expected, "{p}");
        }
    }
}
