//! Goodness of fit of times between packets to their law (Kolmogorov-Smirnov test).
use crate::{ArrivalProcess, OnOff};
use serde::{Deserialize, Serialize};
use weir_model::{Distribution, Law};

/// Law of independent times between packets.
#[derive(Debug, Clone)]
pub enum GapLaw {
    /// Constant times: no test of fit applies, only the error of each time.
    Constant,
    /// Exponential with this mean, in seconds.
    Exponential(f64),
    /// Pareto with a minimum time and a shape.
    Pareto {
        /// Minimum time in seconds.
        least_s: f64,
        /// Shape of the distribution.
        shape: f64,
    },
    /// Any other distribution, in seconds.
    Other(Distribution),
}

impl GapLaw {
    /// Returns the law for arrivals of this rate; `None` if times between them are dependent or the law cannot be
    /// tested.
    pub fn of(arrival: &ArrivalProcess, per_second: f64) -> Option<GapLaw> {
        let mean_s = 1.0 / per_second;
        match arrival {
            ArrivalProcess::Constant => Some(GapLaw::Constant),
            ArrivalProcess::Poisson => Some(GapLaw::Exponential(mean_s)),
            ArrivalProcess::Pareto(shape) => {
                Some(GapLaw::Pareto { least_s: mean_s * (shape - 1.0) / shape, shape: *shape })
            }
            ArrivalProcess::Renewal(law) => of_law(law, mean_s),
            ArrivalProcess::TwoState(_)
            | ArrivalProcess::Mmpp(_)
            | ArrivalProcess::ParetoOnOff(_)
            | ArrivalProcess::OnOff(OnOff { .. }) => None,
        }
    }

    /// Returns the probability that a time is at most `t_s` seconds; `None` for constant times.
    pub fn cdf(&self, t_s: f64) -> Option<f64> {
        match self {
            GapLaw::Constant => None,
            GapLaw::Exponential(mean) => Some(-(-t_s / mean).exp_m1()),
            GapLaw::Pareto { least_s, shape } if t_s > *least_s => Some(1.0 - (least_s / t_s).powf(*shape)),
            GapLaw::Pareto { .. } => Some(0.0),
            GapLaw::Other(distribution) => Some(distribution.cdf(t_s)),
        }
    }
}

/// Returns the law of renewal times, scaled to mean `mean_s`. A law with jumps is not tested, because rounding to
/// nanoseconds alone would move times across the jumps.
fn of_law(law: &Law, mean_s: f64) -> Option<GapLaw> {
    let jumps = law.parts().iter().any(|part| matches!(part.shape, weir_model::LawShape::Constant(_)));
    if jumps && law.scv() == 0.0 {
        return Some(GapLaw::Constant);
    }
    let scaled = law.scaled(mean_s / law.mean()).ok()?;
    (!jumps).then(|| GapLaw::Other(Distribution::law(&scaled)))
}

/// Result of a test of fit (Kolmogorov-Smirnov).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GoodnessOfFit {
    /// Maximum difference between the empirical distribution and the law.
    pub distance: f64,
    /// Probability of a distance at least this large by chance, if the times follow the law.
    pub p_value: f64,
    /// Number of times tested.
    pub samples: u64,
}

impl GoodnessOfFit {
    /// Returns true if the test does not reject the law at a significance level of 5 %.
    pub fn fits(&self) -> bool {
        self.p_value >= 0.05
    }

    /// Tests times against a law, and sorts them. Returns `None` without times, or for a law that cannot be tested.
    pub fn test(times_s: &mut [f64], law: &GapLaw) -> Option<GoodnessOfFit> {
        times_s.sort_by(f64::total_cmp);
        let n = times_s.len() as f64;
        let mut distance = 0.0_f64;
        for (at, time) in times_s.iter().enumerate() {
            let expected = law.cdf(*time)?;
            let (below, above) = (at as f64 / n, (at + 1) as f64 / n);
            distance = distance.max((expected - below).abs()).max((above - expected).abs());
        }
        let scaled = (n.sqrt() + 0.12 + 0.11 / n.sqrt()) * distance;
        (n > 0.0).then(|| GoodnessOfFit { distance, p_value: kolmogorov(scaled), samples: times_s.len() as u64 })
    }

    /// Returns the maximum difference between the distribution functions of two samples: 0 identical, 1 disjoint;
    /// `None` if one is empty. Sorts both.
    pub fn between(one: &mut [f64], other: &mut [f64]) -> Option<f64> {
        if one.is_empty() || other.is_empty() {
            return None;
        }
        one.sort_by(f64::total_cmp);
        other.sort_by(f64::total_cmp);
        let (mut at, mut distance) = ([0; 2], 0.0_f64);
        while at[0] < one.len() && at[1] < other.len() {
            let value = one[at[0]].min(other[at[1]]);
            at[0] += one[at[0]..].iter().take_while(|time| **time <= value).count();
            at[1] += other[at[1]..].iter().take_while(|time| **time <= value).count();
            distance = distance.max((at[0] as f64 / one.len() as f64 - at[1] as f64 / other.len() as f64).abs());
        }
        Some(distance)
    }
}

/// Returns the probability that Kolmogorov's distribution exceeds `x` (with Stephens' correction for small samples in
/// `x`).
fn kolmogorov(x: f64) -> f64 {
    if x < 0.2 {
        // The series does not converge there; the probability is 1 to twelve digits.
        return 1.0;
    }
    let term = |k: i32| {
        let k = f64::from(k);
        (-2.0 * k * k * x * x).exp()
    };
    let sum: f64 = (1..=100).map(|k| if k % 2 == 1 { term(k) } else { -term(k) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrivalSampler, RandomStream};

    fn drawn(arrival: &ArrivalProcess, per_second: f64, seed: u64, count: usize) -> Vec<f64> {
        let mut random = RandomStream::new(seed, 0, 0);
        let mut arrivals = ArrivalSampler::new(arrival, per_second, &mut random).unwrap();
        (0..count).map(|_| arrivals.next(&mut random) as f64 / 1e9).collect()
    }

    #[test]
    fn kolmogorovs_distribution_is_as_tables_have_it() {
        for (x, p) in [(1.2239, 0.10), (1.3581, 0.05), (1.6276, 0.01), (0.8276, 0.5), (0.1, 1.0)] {
            assert!((kolmogorov(x) - p).abs() < 1e-4, "{x}: {}", kolmogorov(x));
        }
    }

    #[test]
    fn every_law_fits_itself_and_no_other() {
        let laws = [
            ArrivalProcess::Poisson,
            ArrivalProcess::Pareto(2.5),
            ArrivalProcess::Renewal(Law::gamma(1.0, 0.3).unwrap()),
            ArrivalProcess::Renewal(Law::uniform(1.0, 3.0).unwrap()),
            ArrivalProcess::Renewal(Law::balanced(1.0, 4.0).unwrap()),
        ];
        for (i, source) in laws.iter().enumerate() {
            for (j, law) in laws.iter().enumerate() {
                let mut times = drawn(source, 2000.0, 3, 2000);
                let found = GoodnessOfFit::test(&mut times, &GapLaw::of(law, 2000.0).unwrap()).unwrap();
                assert_eq!(found.fits(), i == j, "{source:?} against {law:?}: {found:?}");
            }
        }
    }

    #[test]
    fn a_true_law_is_refused_one_time_in_twenty() {
        let law = GapLaw::of(&ArrivalProcess::Poisson, 1e4).unwrap();
        let fits =
            |seed| GoodnessOfFit::test(&mut drawn(&ArrivalProcess::Poisson, 1e4, seed, 500), &law).unwrap().fits();
        let refused = (0..400).filter(|seed| !fits(*seed)).count();
        assert!((8..=34).contains(&refused), "{refused} of 400");
    }

    #[test]
    fn what_cannot_be_tested_is_not() {
        assert!(GoodnessOfFit::test(&mut [1.0, 2.0], &GapLaw::Constant).is_none());
        assert!(GoodnessOfFit::test(&mut [], &GapLaw::Exponential(1.0)).is_none());
        assert!(GapLaw::of(&ArrivalProcess::Renewal(Law::lattice(&[1.0, 2.0], &[0.5, 0.5]).unwrap()), 1.0).is_none());
    }

    #[test]
    fn the_distance_of_two_samples() {
        assert_eq!(GoodnessOfFit::between(&mut [1.0, 2.0], &mut [3.0, 4.0]), Some(1.0));
        assert_eq!(GoodnessOfFit::between(&mut [1.0, 2.0, 2.0], &mut [2.0, 1.0, 2.0]), Some(0.0));
        assert_eq!(GoodnessOfFit::between(&mut [1.0, 2.0, 3.0, 4.0], &mut [3.0, 4.0]), Some(0.5));
        assert_eq!(GoodnessOfFit::between(&mut [], &mut [3.0]), None);
    }
}
