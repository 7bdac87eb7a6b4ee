//! Inverts Laplace transforms numerically by Euler summation (Abate and Whitt 1995, ORSA Journal on Computing 7), for
//! many times from the same values of a transform.
//!
//! A transform F is evaluated at the points (A / 2 + i k pi) / T, k = 0, 1, ... The Fourier series exp(A t / 2T) / T
//! (F_0 / 2 + sum over k of Re F_k exp(i k pi t / T)) is f(t) + exp(-A) f(t + 2T) + ... for any t below 2T. At t = T
//! it alternates, and is summed as by Abate and Whitt, by repeatedly averaging partial sums S_n. For other t the
//! average is (S_(n+1) - z S_n) / (1 - z), with z = exp(i pi t / T), which is -1 at T. The farther z is from 1, the
//! faster this converges. So T is taken from a fixed set of *lines*: the smallest that is not below t. Because lines
//! are fixed, delays with common parts can share the transform's values of these parts.
use num_complex::Complex64;
use std::f64::consts::PI;
use std::ops::Range;

/// Bound of the discretisation error: exp(-A) of the function's largest value, 1.4e-11.
const A: f64 = 25.0;
/// Lines for each octave of times.
const PER_OCTAVE: f64 = 2.0;
/// Largest line number, to either side of a second; times beyond use the last line. Squares of the points are still
/// finite.
const FARTHEST: f64 = 900.0;
/// Terms summed without averaging, by stage. Stages are added until the sum no longer changes. With n terms, details
/// shorter than `t / n` are smoothed.
const PLAIN_TERMS: [usize; STAGES] = [40, 120, 400];
/// Number of stages.
const STAGES: usize = 3;
/// Number of averaged partial sums, less one.
const AVERAGED_TERMS: usize = 15;
/// Numbers of terms by which earlier averages start, which are compared with the last one.
const EARLIER: [usize; 2] = [5, 12];
/// Largest difference of the averages.
const PRECISION: f64 = 1e-7;

/// Set of points at which a transform is evaluated, for times up to a certain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct InversionLine(i16);

impl InversionLine {
    /// Returns the line for a time above 0.
    fn of(t: f64) -> InversionLine {
        #[expect(clippy::cast_possible_truncation, reason = "cut to what fits")]
        let number = (PER_OCTAVE * t.log2()).ceil().clamp(-FARTHEST, FARTHEST) as i16;
        // Corrects rounding.
        if InversionLine(number).time() < t { InversionLine(number + 1) } else { InversionLine(number) }
    }

    /// Returns T, in seconds.
    fn time(self) -> f64 {
        (f64::from(self.0) / PER_OCTAVE).exp2()
    }

    /// Returns the k-th point.
    pub(crate) fn point(self, k: usize) -> Complex64 {
        Complex64::new(A / 2.0, k as f64 * PI) / self.time()
    }
}

/// Returns the points of a stage, which are evaluated together.
pub(crate) fn points(stage: usize) -> Range<usize> {
    let end = |stage: usize| PLAIN_TERMS[stage] + AVERAGED_TERMS + 1;
    let start = if stage == 0 { 0 } else { end(stage - 1) };
    start..end(stage)
}

/// Values of a transform on one line.
#[derive(Debug)]
pub(crate) struct TransformSamples {
    values: Vec<Complex64>,
    stages: usize,
}

/// Function from 0 to 1, known by its transform, to be evaluated at any time above 0.
#[derive(Debug, Default)]
pub(crate) struct InvertedTransform {
    lines: Vec<(InversionLine, TransformSamples)>,
}

impl InvertedTransform {
    /// Returns the value at `t` > 0, precise to 1e-7 except near jumps and bends, where 400 terms smooth details
    /// shorter than some thousandths of `t`. `transform` returns the transform's values on a line at the points of a
    /// stage.
    pub(crate) fn at(&mut self, t: f64, mut transform: impl FnMut(InversionLine, usize) -> Vec<Complex64>) -> f64 {
        let line = InversionLine::of(t);
        let known = self.lines.iter().position(|(known, _)| *known == line).unwrap_or_else(|| {
            self.lines.push((line, TransformSamples { values: Vec::new(), stages: 0 }));
            self.lines.len() - 1
        });
        let samples = &mut self.lines[known].1;
        let mut series = EulerSummation::new(t, line);
        let mut found = 0.0;
        for (stage, plain) in PLAIN_TERMS.into_iter().enumerate() {
            if stage == samples.stages {
                samples.values.extend(transform(line, stage));
                samples.stages += 1;
            }
            series.add(&samples.values[points(stage)]);
            found = series.averaged(plain);
            let differs = |earlier| (series.averaged(plain - earlier) - found).abs() > PRECISION;
            if !EARLIER.into_iter().any(differs) {
                break;
            }
        }
        found
    }
}

/// Partial sums for one time.
struct EulerSummation {
    scale: f64,
    z: Complex64,
    power: Complex64,
    sums: Vec<Complex64>,
    weights: [Complex64; AVERAGED_TERMS + 1],
}

impl EulerSummation {
    fn new(t: f64, line: InversionLine) -> EulerSummation {
        let part = (t / line.time()).clamp(0.5, 1.0);
        let z = Complex64::from_polar(1.0, PI * part);
        EulerSummation {
            scale: (A / 2.0 * part).exp() / line.time(),
            z,
            power: Complex64::ONE,
            sums: Vec::with_capacity(points(0).end),
            weights: weights(z),
        }
    }

    fn add(&mut self, values: &[Complex64]) {
        let mut sum = self.sums.last().copied().unwrap_or_default();
        for value in values {
            let halved = if self.sums.is_empty() { 0.5 } else { 1.0 };
            sum += value * self.power * halved;
            self.power *= self.z;
            self.sums.push(sum);
        }
    }

    /// Returns the average of the partial sums from `first` on.
    fn averaged(&self, first: usize) -> f64 {
        let sums = &self.sums[first..=first + AVERAGED_TERMS];
        self.scale
            * self.weights.iter().zip(sums).map(|(weight, sum)| weight.re * sum.re - weight.im * sum.im).sum::<f64>()
    }
}

/// Returns the weights of repeated averaging: the terms of ((S - z) / (1 - z))^15 as a polynomial in S.
fn weights(z: Complex64) -> [Complex64; AVERAGED_TERMS + 1] {
    let whole = (Complex64::ONE - z).inv();
    let mut weights = [Complex64::ZERO; AVERAGED_TERMS + 1];
    let mut weight = (0..AVERAGED_TERMS).fold(Complex64::ONE, |power, _| power * -z * whole);
    for (k, next) in weights.iter_mut().enumerate() {
        *next = weight;
        weight *= -z.conj() * ((AVERAGED_TERMS - k) as f64 / (k + 1) as f64);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inverts a transform at a single time.
    fn invert(transform: impl Fn(Complex64) -> Complex64, t: f64) -> f64 {
        InvertedTransform::default().at(t, |line, stage| points(stage).map(|k| transform(line.point(k))).collect())
    }

    #[test]
    fn known_tails_come_back() {
        for t in [1e-6, 0.1, 1.0, 1.001, 1.2, 1.41, 7.0, 20.0] {
            let exponential = invert(|s| (s + 1.0).inv(), t);
            assert!((exponential - (-t).exp()).abs() < 1e-9, "{t} {exponential}");
        }
        // Tail of an Erlang law of two stages.
        let erlang = invert(|s| (Complex64::ONE - (s + 1.0).powi(-2)) / s, 3.0);
        assert!((erlang - 4.0 * (-3.0f64).exp()).abs() < 1e-9);
    }

    #[test]
    fn bends_are_found_with_more_terms() {
        // Uniform from 0 to 1: the tail bends at 1.
        let uniform = |t: f64| invert(|s| (Complex64::ONE - (Complex64::ONE - (-s).exp()) / s) / s, t);
        for (t, tail, tolerance) in
            [(0.5, 0.5, 1e-6), (0.95, 0.05, 1e-5), (0.999, 0.001, 1e-3), (1.05, 0.0, 1e-5), (1.5, 0.0, 1e-6)]
        {
            assert!((uniform(t) - tail).abs() < tolerance, "{t} {}", uniform(t));
        }
    }

    #[test]
    fn a_transform_is_asked_once_for_a_line() {
        let (mut inverse, mut asked) = (InvertedTransform::default(), 0);
        for step in 0..50 {
            // All times are on the line up to 1.
            let t = 0.72 + 0.28 * f64::from(step) / 50.0;
            let found = inverse.at(t, |line, stage| {
                asked += 1;
                points(stage).map(|k| (line.point(k) + 1.0).inv()).collect()
            });
            assert!((found - (-t).exp()).abs() < 1e-9, "{t} {found}");
        }
        assert_eq!(asked, 1);
    }

    #[test]
    fn times_without_measure_are_no_accident() {
        for t in [f64::MIN_POSITIVE, 1e-300, 1e300, f64::MAX] {
            let found = invert(|s| (s + 1.0).inv(), t);
            assert!((found - (-t).exp()).abs() < 1e-9, "{t} {found}");
        }
    }
}
