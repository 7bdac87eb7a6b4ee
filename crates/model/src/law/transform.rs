//! Computes Laplace-Stieltjes transforms, E[exp(-sX)].
//!
//! Differences from 1 are computed directly, not by subtraction: inverting a transform multiplies rounding errors by
//! 10^5.
use super::{Law, LawPart, LawShape};
use num_complex::Complex64;

/// Modulus below which the power series is more precise than the quotient.
const SERIES_BELOW: f64 = 0.5;
/// Terms of the series; the first one omitted is below 10^-17 of the sum.
const SERIES_TERMS: u32 = 16;

impl Law {
    /// Returns the transform at `s`, whose real part must not be negative.
    pub fn lst(&self, s: Complex64) -> Complex64 {
        self.parts.iter().map(|part| part.shape.lst(s) * part.weight).sum()
    }

    /// Returns the transform of the *excess*, the rest of a service observed at a random time: (1 - S*(s)) / (s
    /// E\[S\]).
    pub fn excess_lst(&self, s: Complex64) -> Complex64 {
        let of = |part: &LawPart| part.shape.excess_lst(s) * (part.weight * part.shape.moment(1));
        self.parts.iter().map(of).sum::<Complex64>() / self.mean()
    }
}

impl LawShape {
    pub(crate) fn lst(&self, s: Complex64) -> Complex64 {
        match *self {
            LawShape::Constant(value) => (-s * value).exp(),
            LawShape::Exponential(mean) => (s * mean + 1.0).inv(),
            LawShape::Gamma { mean, scv } => (-ln_1p(s * (mean * scv)) / scv).exp(),
            LawShape::Uniform { low, high } => (phi_1(s * high) * high - phi_1(s * low) * low) / (high - low),
        }
    }

    fn excess_lst(&self, s: Complex64) -> Complex64 {
        if s == Complex64::ZERO {
            return Complex64::ONE;
        }
        match *self {
            LawShape::Constant(value) => phi_1(s * value),
            LawShape::Exponential(mean) => (s * mean + 1.0).inv(),
            LawShape::Gamma { mean, scv } => -exp_m1(-ln_1p(s * (mean * scv)) / scv) / (s * mean),
            LawShape::Uniform { low, high } => {
                let area = |x: f64| phi_2(s * x) * (x * x);
                (area(high) - area(low)) * 2.0 / (high * high - low * low)
            }
        }
    }
}

/// Returns ln(1 + z), precise for small z.
pub(crate) fn ln_1p(z: Complex64) -> Complex64 {
    Complex64::new(0.5 * (2.0 * z.re + z.norm_sqr()).ln_1p(), z.im.atan2(1.0 + z.re))
}

/// Returns exp(z) - 1, precise for small z.
pub(crate) fn exp_m1(z: Complex64) -> Complex64 {
    let half = (z.im / 2.0).sin();
    Complex64::new(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, z.re.exp() * z.im.sin())
}

/// Returns (1 - exp(-z)) / z: the transform of the uniform law from 0 to 1.
fn phi_1(z: Complex64) -> Complex64 {
    if z == Complex64::ZERO { Complex64::ONE } else { -exp_m1(-z) / z }
}

/// Returns (exp(-z) - 1 + z) / z^2: half the transform of the excess of the uniform law from 0 to 1.
fn phi_2(z: Complex64) -> Complex64 {
    if z.norm() > SERIES_BELOW {
        return (exp_m1(-z) + z) / (z * z);
    }
    // Sum over k of (-z)^k / (k+2)!.
    let mut term = Complex64::new(0.5, 0.0);
    let mut sum = term;
    for k in 1..SERIES_TERMS {
        term *= -z / f64::from(k + 2);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laws() -> Vec<Law> {
        vec![
            Law::constant(1.5).unwrap(),
            Law::exponential(0.7).unwrap(),
            Law::gamma(1.0, 0.3).unwrap(),
            Law::gamma(1.0, 4.0).unwrap(),
            Law::hyperexponential(0.9, 0.5, 5.0).unwrap(),
            Law::uniform(0.5, 2.5).unwrap(),
            Law::uniform(0.0, 2.0).unwrap(),
            Law::lattice(&[1.0, 2.0, 4.0], &[0.2, 0.5, 0.3]).unwrap(),
        ]
    }

    #[test]
    fn excess_is_what_its_definition_says() {
        for law in laws() {
            for s in [Complex64::new(0.9, 0.0), Complex64::new(0.3, 2.0), Complex64::new(2.0, -40.0)] {
                let by_definition = (Complex64::ONE - law.lst(s)) / (s * law.mean());
                assert!((law.excess_lst(s) - by_definition).norm() < 1e-12, "{law:?} {s}");
            }
        }
    }

    #[test]
    fn near_zero_transforms_are_their_moments() {
        for law in laws() {
            for s in [1e-9, 1e-5, 1e-3] {
                let [m1, m2, m3] = [law.mean(), law.second_moment(), law.third_moment()];
                let series = 1.0 - s * m2 / (2.0 * m1) + s * s * m3 / (6.0 * m1);
                let found = law.excess_lst(s.into());
                assert!(
                    (found.re - series).abs() < 100.0 * s.powi(3) + 1e-14 && found.im == 0.0,
                    "{law:?} {s} {found}"
                );
            }
            assert!((law.excess_lst(Complex64::ZERO) - 1.0).norm() < 1e-15);
        }
    }
}
