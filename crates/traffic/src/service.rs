//! Draws service times by a law.
use crate::{RandomStream, TrafficError};
use rand_distr::{Distribution, Gamma};
use weir_model::{Law, LawShape};

/// Draws times by a law.
#[derive(Debug, Clone)]
pub struct LawSampler {
    /// Parts of the mixture with their cumulative weights.
    parts: Box<[(f64, ShapeSampler)]>,
}

/// Distribution of times in nanoseconds.
#[derive(Debug, Clone)]
enum ShapeSampler {
    Constant(f64),
    Exponential(f64),
    Gamma(Gamma<f64>),
    Uniform { from: f64, width: f64 },
}

impl LawSampler {
    /// Creates a sampler of the law's times, which are in seconds; without a law, all times are zero.
    ///
    /// # Errors
    /// A gamma law with parameters from which no number can be drawn.
    pub fn new(law: Option<&Law>) -> Result<LawSampler, TrafficError> {
        let mut below = 0.0;
        let parts = law.map(Law::parts).unwrap_or_default().iter().map(|part| {
            below += part.weight;
            Ok((below, ShapeSampler::new(&part.shape)?))
        });
        let mut parts = parts.collect::<Result<Vec<_>, TrafficError>>()?;
        if parts.is_empty() {
            parts.push((1.0, ShapeSampler::Constant(0.0)));
        }
        Ok(LawSampler { parts: parts.into() })
    }

    /// Draws the next time in nanoseconds.
    #[inline]
    pub fn draw_ns(&self, random: &mut RandomStream) -> f64 {
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

impl ShapeSampler {
    fn new(shape: &LawShape) -> Result<ShapeSampler, TrafficError> {
        Ok(match *shape {
            LawShape::Constant(s) => ShapeSampler::Constant(s * 1e9),
            LawShape::Exponential(mean) => ShapeSampler::Exponential(mean * 1e9),
            LawShape::Gamma { mean, scv } => {
                let refused = |_| TrafficError::parameter("scv", scv, "a number above 0, such as 0.5");
                ShapeSampler::Gamma(Gamma::new(1.0 / scv, mean * 1e9 * scv).map_err(refused)?)
            }
            LawShape::Uniform { low, high } => ShapeSampler::Uniform { from: low * 1e9, width: (high - low) * 1e9 },
        })
    }

    #[inline]
    fn draw_ns(&self, random: &mut RandomStream) -> f64 {
        match self {
            ShapeSampler::Constant(ns) => *ns,
            ShapeSampler::Exponential(mean) => mean * random.exponential(),
            ShapeSampler::Gamma(gamma) => gamma.sample(random),
            ShapeSampler::Uniform { from, width } => from + width * random.unit(),
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
            let services = LawSampler::new(Some(&law)).unwrap();
            let mut random = RandomStream::new(5, 0, 1);
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
        assert_eq!(LawSampler::new(None).unwrap().draw_ns(&mut RandomStream::new(1, 0, 0)), 0.0);
    }
}
