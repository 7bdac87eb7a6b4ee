//! Draws service times by a law.
use crate::{Stream, TrafficError};
use rand_distr::{Distribution, Gamma};
use weir_model::{Law, Shape};

/// Draws times by a law.
#[derive(Debug, Clone)]
pub struct Services {
    /// Parts of the mixture with their cumulative weights.
    parts: Box<[(f64, Draw)]>,
}

/// Distribution of times in nanoseconds.
#[derive(Debug, Clone)]
enum Draw {
    Constant(f64),
    Exponential(f64),
    Gamma(Gamma<f64>),
    Uniform { from: f64, width: f64 },
}

impl Services {
    /// Creates a sampler of the law's times, which are in seconds; without a law, all times are zero.
    ///
    /// # Errors
    /// A gamma law with parameters from which no number can be drawn.
    pub fn new(law: Option<&Law>) -> Result<Services, TrafficError> {
        let mut below = 0.0;
        let parts = law.map(Law::parts).unwrap_or_default().iter().map(|part| {
            below += part.weight;
            Ok((below, Draw::new(&part.shape)?))
        });
        let mut parts = parts.collect::<Result<Vec<_>, TrafficError>>()?;
        if parts.is_empty() {
            parts.push((1.0, Draw::Constant(0.0)));
        }
        Ok(Services { parts: parts.into() })
    }

    /// Draws the next time in nanoseconds.
    #[inline]
    pub fn draw_ns(&self, random: &mut Stream) -> f64 {
        match &*self.parts {
            [(_, only)] => only.draw_ns(random),
            parts => {
                let point = random.unit();
                let at = parts.partition_point(|(below, _)| *below <= point);
                parts[at.min(parts.len() - 1)].1.draw_ns(random)
            }
        }
    }
}

impl Draw {
    fn new(shape: &Shape) -> Result<Draw, TrafficError> {
        Ok(match *shape {
            Shape::Constant(s) => Draw::Constant(s * 1e9),
            Shape::Exponential(mean) => Draw::Exponential(mean * 1e9),
            Shape::Gamma { mean, scv } => {
                let refused = |_| TrafficError::parameter("scv", scv, "a number above 0, such as 0.5");
                Draw::Gamma(Gamma::new(1.0 / scv, mean * 1e9 * scv).map_err(refused)?)
            }
            Shape::Uniform { low, high } => Draw::Uniform { from: low * 1e9, width: (high - low) * 1e9 },
        })
    }

    #[inline]
    fn draw_ns(&self, random: &mut Stream) -> f64 {
        match self {
            Draw::Constant(ns) => *ns,
            Draw::Exponential(mean) => mean * random.exponential(),
            Draw::Gamma(gamma) => gamma.sample(random),
            Draw::Uniform { from, width } => from + width * random.unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_moments_of_their_law() {
        let laws = [
            Law::constant(0.003),
            Law::exponential(0.002),
            Law::gamma(0.004, 0.4),
            Law::gamma(0.004, 2.5),
            Law::hyperexponential(0.9, 0.001, 0.01),
            Law::balanced(0.002, 4.0),
            Law::uniform(0.004, 0.016),
            Law::lattice(&[0.004, 0.008, 0.012], &[0.5, 0.3, 0.2]),
        ];
        let n = 400_000;
        for law in laws {
            let law = law.unwrap();
            let services = Services::new(Some(&law)).unwrap();
            let mut random = Stream::new(5, 0, 1);
            let (mut first, mut second) = (0.0, 0.0);
            for _ in 0..n {
                let s = services.draw_ns(&mut random) / 1e9;
                first += s;
                second += s * s;
            }
            let (first, second) = (first / f64::from(n), second / f64::from(n));
            let (mean, square) = (law.mean(), law.second_moment());
            assert!((first / mean - 1.0).abs() < 0.01, "{law:?}: mean {first}, expected {mean}");
            assert!((second / square - 1.0).abs() < 0.04, "{law:?}: second moment {second}, expected {square}");
        }
    }

    #[test]
    fn no_law_takes_no_time() {
        assert_eq!(Services::new(None).unwrap().draw_ns(&mut Stream::new(1, 0, 0)), 0.0);
    }
}
