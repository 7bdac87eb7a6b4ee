//! How long something takes.
use crate::{Stream, TrafficError, positive};
use rand_distr::{Distribution, Gamma};

/// Most values of a lattice.
pub const MAX_VALUES: usize = 1024;
/// Longest mean, in seconds.
pub const MAX_SERVICE_S: f64 = 3600.0;

/// How long something takes, as described. Times in seconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Service {
    /// Always the same.
    Constant(f64),
    /// Without memory, of this mean.
    Exponential(f64),
    /// Gamma: anything from nearly constant to much more uneven than exponential.
    Gamma {
        /// Mean.
        mean_s: f64,
        /// Variance over the squared mean.
        scv: f64,
    },
    /// Exponential of one of two means.
    Hyperexponential {
        /// Share of the first, `0.0..=1.0`.
        share: f64,
        /// The means.
        means_s: [f64; 2],
    },
    /// Anything between two times, all alike.
    Uniform {
        /// Shortest.
        from_s: f64,
        /// Longest.
        to_s: f64,
    },
    /// One of several times, each with its weight.
    Lattice(Vec<(f64, f64)>),
}

impl Service {
    /// Two exponentials with this mean and squared coefficient of variation (above 1) of which each makes half of the mean.
    pub fn balanced(mean_s: f64, scv: f64) -> Service {
        let share = 0.5 * (1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt());
        Service::Hyperexponential { share, means_s: [mean_s / (2.0 * share), mean_s / (2.0 * (1.0 - share))] }
    }

    /// The mean, in seconds.
    pub fn mean_s(&self) -> f64 {
        self.moments()[0]
    }

    /// The variance over the squared mean; 0 if it takes no time.
    pub fn scv(&self) -> f64 {
        let [first, second, _] = self.moments();
        if first > 0.0 { (second / (first * first) - 1.0).max(0.0) } else { 0.0 }
    }

    /// The means of the time, its square and its cube.
    pub fn moments(&self) -> [f64; 3] {
        let exponential = |mean: f64| [mean, 2.0 * mean.powi(2), 6.0 * mean.powi(3)];
        match self {
            Service::Constant(s) => [*s, s.powi(2), s.powi(3)],
            Service::Exponential(mean) => exponential(*mean),
            Service::Gamma { mean_s: m, scv } => {
                [*m, m.powi(2) * (1.0 + scv), m.powi(3) * (1.0 + scv) * (1.0 + 2.0 * scv)]
            }
            Service::Hyperexponential { share, means_s } => {
                mixture([(*share, exponential(means_s[0])), (1.0 - share, exponential(means_s[1]))].into_iter())
            }
            Service::Uniform { from_s: a, to_s: b } => {
                [(a + b) / 2.0, (a * a + a * b + b * b) / 3.0, (a + b) * (a * a + b * b) / 4.0]
            }
            Service::Lattice(values) => {
                let total: f64 = values.iter().map(|(_, weight)| weight).sum();
                mixture(values.iter().map(|(s, weight)| (weight / total, [*s, s.powi(2), s.powi(3)])))
            }
        }
    }
}

fn mixture(parts: impl Iterator<Item = (f64, [f64; 3])>) -> [f64; 3] {
    parts.fold([0.0; 3], |sum, (share, moments)| std::array::from_fn(|at| sum[at] + share * moments[at]))
}

/// Draws times.
#[derive(Debug, Clone)]
pub struct Services(Law);

#[derive(Debug, Clone)]
enum Law {
    Constant(f64),
    Exponential(f64),
    Gamma(Gamma<f64>),
    Hyperexponential {
        share: f64,
        means_ns: [f64; 2],
    },
    Uniform {
        from_ns: f64,
        width_ns: f64,
    },
    /// Times, each with the share of itself and those before.
    Lattice(Box<[(f64, f64)]>),
}

impl Services {
    /// Times as described.
    ///
    /// # Errors
    /// A parameter out of its limits: a time that is negative or beyond [`MAX_SERVICE_S`], a share that is none, a mean that is 0 where the law needs
    /// more.
    pub fn new(service: &Service) -> Result<Services, TrafficError> {
        Ok(Services(match service {
            Service::Constant(s) => Law::Constant(time("time", *s)? * 1e9),
            Service::Exponential(mean) => Law::Exponential(above_zero("mean", *mean)? * 1e9),
            Service::Gamma { mean_s, scv } => {
                let (mean_ns, scv) = (above_zero("mean", *mean_s)? * 1e9, positive("scv", *scv)?);
                let refused = |_| TrafficError::parameter("scv", scv, "a number above 0, such as 0.5");
                Law::Gamma(Gamma::new(1.0 / scv, mean_ns * scv).map_err(refused)?)
            }
            Service::Hyperexponential { share, means_s: [a, b] } => {
                if !(0.0..=1.0).contains(share) {
                    return Err(TrafficError::parameter("share", share, "0 to 1"));
                }
                Law::Hyperexponential {
                    share: *share,
                    means_ns: [above_zero("mean", *a)? * 1e9, above_zero("mean", *b)? * 1e9],
                }
            }
            Service::Uniform { from_s, to_s } => {
                let (from_ns, to_ns) = (time("from", *from_s)? * 1e9, time("to", *to_s)? * 1e9);
                if to_ns < from_ns {
                    return Err(TrafficError::parameter(
                        "to",
                        format!("{to_s} s"),
                        format!("at least from, {from_s} s"),
                    ));
                }
                Law::Uniform { from_ns, width_ns: to_ns - from_ns }
            }
            Service::Lattice(values) => lattice(values)?,
        }))
    }

    /// The next time, in nanoseconds.
    #[inline]
    pub fn draw_ns(&self, random: &mut Stream) -> f64 {
        match &self.0 {
            Law::Constant(ns) => *ns,
            Law::Exponential(mean) => mean * random.exponential(),
            Law::Gamma(gamma) => gamma.sample(random),
            Law::Hyperexponential { share, means_ns } => {
                means_ns[usize::from(random.unit() >= *share)] * random.exponential()
            }
            Law::Uniform { from_ns, width_ns } => from_ns + width_ns * random.unit(),
            Law::Lattice(values) => {
                let point = random.unit();
                let at = values.partition_point(|(_, below)| *below <= point);
                values[at.min(values.len() - 1)].0
            }
        }
    }
}

fn lattice(values: &[(f64, f64)]) -> Result<Law, TrafficError> {
    if values.is_empty() || values.len() > MAX_VALUES {
        return Err(TrafficError::parameter("values", values.len(), format!("1 to {MAX_VALUES}")));
    }
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    if !(total.is_finite() && total > 0.0) || values.iter().any(|(_, weight)| *weight < 0.0) {
        return Err(TrafficError::parameter("probs", format!("{total} in all"), "numbers of 0 or more, not all 0"));
    }
    let mut below = 0.0;
    let cumulated = values.iter().map(|(s, weight)| {
        below += weight / total;
        Ok((time("values", *s)? * 1e9, below))
    });
    Ok(Law::Lattice(cumulated.collect::<Result<_, _>>()?))
}

/// `s`, if it is a time within limits.
fn time(what: &'static str, s: f64) -> Result<f64, TrafficError> {
    if (0.0..=MAX_SERVICE_S).contains(&s) {
        Ok(s)
    } else {
        Err(TrafficError::parameter(what, format!("{s} s"), format!("0 to {MAX_SERVICE_S} s")))
    }
}

/// `s`, if it is a time within limits that is not 0.
fn above_zero(what: &'static str, s: f64) -> Result<f64, TrafficError> {
    if s > 0.0 { time(what, s) } else { Err(TrafficError::parameter(what, format!("{s} s"), "a time above 0")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laws() -> Vec<Service> {
        vec![
            Service::Constant(0.003),
            Service::Exponential(0.002),
            Service::Gamma { mean_s: 0.004, scv: 0.4 },
            Service::Gamma { mean_s: 0.004, scv: 2.5 },
            Service::Hyperexponential { share: 0.9, means_s: [0.001, 0.01] },
            Service::balanced(0.002, 4.0),
            Service::Uniform { from_s: 0.004, to_s: 0.016 },
            Service::Lattice(vec![(0.004, 5.0), (0.008, 3.0), (0.012, 2.0)]),
        ]
    }

    #[test]
    fn samples_have_the_moments_that_are_promised() {
        let n = 400_000;
        for law in laws() {
            let services = Services::new(&law).unwrap();
            let mut random = Stream::new(5, 0, 1);
            let (mut first, mut second) = (0.0, 0.0);
            for _ in 0..n {
                let s = services.draw_ns(&mut random) / 1e9;
                first += s;
                second += s * s;
            }
            let (first, second) = (first / f64::from(n), second / f64::from(n));
            let [mean, square, _] = law.moments();
            assert!((first / mean - 1.0).abs() < 0.01, "{law:?}: mean {first}, expected {mean}");
            assert!((second / square - 1.0).abs() < 0.04, "{law:?}: second moment {second}, expected {square}");
        }
    }

    #[test]
    fn moments_are_those_of_the_books() {
        assert_eq!(Service::Constant(2.0).moments(), [2.0, 4.0, 8.0]);
        assert_eq!(Service::Uniform { from_s: 0.0, to_s: 2.0 }.moments(), [1.0, 4.0 / 3.0, 2.0]);
        let gamma = Service::Gamma { mean_s: 2.0, scv: 1.0 };
        assert_eq!(gamma.moments(), Service::Exponential(2.0).moments());
        let balanced = Service::balanced(3.0, 4.0);
        assert!((balanced.mean_s() - 3.0).abs() < 1e-12 && (balanced.scv() - 4.0).abs() < 1e-12, "{balanced:?}");
        assert_eq!(Service::Constant(0.0).scv(), 0.0);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for law in [
            Service::Constant(-1.0),
            Service::Constant(f64::NAN),
            Service::Constant(4000.0),
            Service::Exponential(0.0),
            Service::Gamma { mean_s: 1.0, scv: 0.0 },
            Service::Gamma { mean_s: f64::INFINITY, scv: 1.0 },
            Service::Hyperexponential { share: 1.1, means_s: [1.0, 1.0] },
            Service::Uniform { from_s: 2.0, to_s: 1.0 },
            Service::Lattice(Vec::new()),
            Service::Lattice(vec![(1.0, 0.0)]),
            Service::Lattice(vec![(1.0, -1.0), (1.0, 3.0)]),
            Service::Lattice(vec![(-1.0, 1.0)]),
        ] {
            assert!(Services::new(&law).is_err(), "{law:?}");
        }
    }
}
