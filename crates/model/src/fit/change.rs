//! Finds from where on the observations of a series are of another kind, when single observations say little.
//!
//! Samples of both kinds show how often each looks like the other. From that follows the probability of each place
//! (Bayes; all places are equally likely before, and together as likely as no change at all).
use crate::ModelError;
use crate::check::finite;
use crate::fit::quantiles::sorted;

/// Least and, as its complement, largest share of observations above the threshold that is counted with. A few samples
/// do not show rarer exceptions, and a disturbance affects several observations at once.
const RAREST: f64 = 0.05;
/// Least difference of both shares at which observations tell the kinds apart.
const TELLING: f64 = 0.3;
/// Probability of no change before anything is observed.
const NONE_BEFORE: f64 = 0.5;
/// Probability outside of the range of places.
const OUTSIDE: f64 = 0.05;

/// Two kinds of values, told apart by a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoKinds {
    /// Threshold in the values' unit.
    pub threshold: f64,
    /// Share of the low kind's values above the threshold.
    pub low_above: f64,
    /// Share of the high kind's values above it.
    pub high_above: f64,
}

impl TwoKinds {
    /// Finds the threshold that tells samples of both kinds apart best. `None` if none does: too many values of each
    /// kind look like the other.
    ///
    /// # Errors
    /// A kind has no samples, or one that is not finite.
    pub fn of(low: &[f64], high: &[f64]) -> Result<Option<TwoKinds>, ModelError> {
        let (low, high) = (sorted(low)?, sorted(high)?);
        let above = |samples: &[f64], threshold: f64| {
            let below = samples.partition_point(|sample| *sample <= threshold);
            (samples.len() - below) as f64 / samples.len() as f64
        };
        let mut edges: Vec<f64> = low.iter().chain(&high).copied().collect();
        edges.sort_by(f64::total_cmp);
        // Between two samples, so that equal conditions later fall on the same side.
        let between = edges.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
        let apart = |threshold: f64| above(&high, threshold) - above(&low, threshold);
        let (mut best, mut most) = (Vec::new(), 0.0);
        for threshold in between {
            let found = apart(threshold);
            if found > most {
                (best, most) = (vec![threshold], found);
            } else if found >= most {
                best.push(threshold);
            }
        }
        // Of thresholds that are equally good, the one in the middle is farthest from both kinds.
        let (Some(first), Some(last), true) = (best.first(), best.last(), most >= TELLING) else { return Ok(None) };
        let middle = f64::midpoint(*first, *last);
        let threshold = if apart(middle) >= most { middle } else { best[best.len() / 2] };
        let share = |samples: &[f64]| above(samples, threshold).clamp(RAREST, 1.0 - RAREST);
        Ok(Some(TwoKinds { threshold, low_above: share(&low), high_above: share(&high) }))
    }

    /// Returns by how much the logarithm of an observation's probability is greater for the high kind.
    fn evidence(&self, value: f64) -> f64 {
        if value > self.threshold {
            (self.high_above / self.low_above).ln()
        } else {
            ((1.0 - self.high_above) / (1.0 - self.low_above)).ln()
        }
    }
}

/// Place of a change from the low to the high kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KindChange {
    /// Probability that no observation is of the high kind.
    pub none: f64,
    /// Index of the first observation of the high kind, most likely; the number of observations if there is none.
    pub place: usize,
    /// Range of indices that contains the place with 95 % probability, if there is one.
    pub range: [usize; 2],
}

impl KindChange {
    /// Finds the place in a series of observations.
    ///
    /// # Errors
    /// An observation is not finite.
    pub fn find(values: &[f64], kinds: &TwoKinds) -> Result<KindChange, ModelError> {
        values.iter().try_for_each(|value| finite("observation", *value).map(drop))?;
        let n = values.len();
        // Logarithm of each place's likelihood, beside that of no change.
        let mut likely = vec![0.0; n];
        let mut sum = 0.0;
        for (at, value) in values.iter().enumerate().rev() {
            sum += kinds.evidence(*value);
            likely[at] = sum;
        }
        let most = likely.iter().copied().fold(0.0_f64, f64::max);
        let of_none = NONE_BEFORE * (-most).exp();
        let each = (1.0 - NONE_BEFORE) / n.max(1) as f64;
        let places: Vec<f64> = likely.iter().map(|likely| each * (likely - most).exp()).collect();
        let of_some: f64 = places.iter().sum();
        let none = of_none / (of_none + of_some);
        let best = (0..n).fold(None::<usize>, |best, at| match best {
            Some(best) if places[best] >= places[at] => Some(best),
            _ => Some(at),
        });
        let Some(place) = best else { return Ok(KindChange { none: 1.0, place: 0, range: [0, 0] }) };
        let side = |mut order: Box<dyn Iterator<Item = usize>>| {
            let mut left = of_some * OUTSIDE / 2.0;
            order.find(|at| {
                left -= places[*at];
                left < 0.0
            })
        };
        let (low, high) = (side(Box::new(0..n)), side(Box::new((0..n).rev())));
        let range = [low.unwrap_or(place).min(place), high.unwrap_or(place).max(place)];
        Ok(KindChange { none, place, range })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(random: &mut fastrand::Rng, is_high: bool) -> f64 {
        f64::from(u8::from(is_high)) + 1.2 * (random.f64() + random.f64() - 1.0)
    }

    #[test]
    fn the_threshold_lies_between_kinds_that_are_apart() {
        let kinds = TwoKinds::of(&[0.0, 1.0, 0.5], &[3.0, 4.0]).unwrap().unwrap();
        assert_eq!(kinds, TwoKinds { threshold: 2.0, low_above: RAREST, high_above: 1.0 - RAREST });
        assert_eq!(TwoKinds::of(&[0.0, 1.0, 2.0], &[0.0, 1.0, 2.0]).unwrap(), None);
        assert_eq!(TwoKinds::of(&[3.0; 9], &[1.0; 9]).unwrap(), None, "the wrong way round");
        assert!(TwoKinds::of(&[], &[1.0]).is_err() && TwoKinds::of(&[f64::NAN], &[1.0]).is_err());
    }

    #[test]
    fn a_place_is_found_in_noise_and_none_where_there_is_none() {
        let (mut inside, mut found, mut none) = (0, 0, 0);
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut some = |is_high| (0..100).map(|_| noisy(&mut random, is_high)).collect::<Vec<_>>();
            let kinds = TwoKinds::of(&some(false), &some(true)).unwrap().unwrap();
            let place = 20 + usize::try_from(seed).unwrap() % 60;
            let series: Vec<f64> = (0..100).map(|at| noisy(&mut random, at >= place)).collect();
            let change = KindChange::find(&series, &kinds).unwrap();
            found += u32::from(change.none < 0.01);
            inside += u32::from((change.range[0]..=change.range[1]).contains(&place));
            let same: Vec<f64> = (0..100).map(|_| noisy(&mut random, false)).collect();
            none += u32::from(KindChange::find(&same, &kinds).unwrap().none > 0.5);
        }
        assert!(found == 200 && inside >= 185 && none >= 196, "{found} {inside} {none}");
    }

    #[test]
    fn clear_series_have_one_place() {
        let kinds = TwoKinds { threshold: 0.5, low_above: RAREST, high_above: 1.0 - RAREST };
        let find = |text: &str| {
            let values: Vec<f64> = text.chars().map(|one| f64::from(u8::from(one == '1'))).collect();
            KindChange::find(&values, &kinds).unwrap()
        };
        let found = find("00000001111111111");
        assert_eq!((found.place, found.range), (7, [6, 8]), "a single observation may be wrong");
        assert!(found.none < 1e-6 && find("0000000000000000").none > 0.9 && find("").none > 0.9);
        assert_eq!(find("0000100000001101111111").place, 12);
        assert_eq!(find("1111111111").place, 0);
        assert!(KindChange::find(&[f64::INFINITY], &kinds).is_err());
    }
}
