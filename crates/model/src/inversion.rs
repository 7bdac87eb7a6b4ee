//! Numerical inversion of Laplace transforms by Euler summation (Abate and Whitt 1995, ORSA Journal on Computing 7).
use num_complex::Complex64;

/// Bounds the discretisation error: exp(-A) of the function's largest value, 1.4e-11.
const A: f64 = 25.0;
/// Terms summed as they are. More are taken until the sum no longer changes: with n terms, what happens within `t / n` is smoothed.
const PLAIN_TERMS: [usize; 3] = [40, 120, 400];
/// Partial sums averaged with binomial weights after that, which makes the alternating series converge.
const AVERAGED_TERMS: usize = 15;
/// How many terms earlier the averages begin with which the last is compared.
const EARLIER: [usize; 2] = [5, 12];
/// What the averages may differ by.
const PRECISION: f64 = 1e-7;

/// The value at `t` > 0 of the function from 0 to 1 that has this transform: to 1e-7, but close to jumps and bends, where 400 terms
/// leave what happens within a hundredth of `t` smoothed.
pub(crate) fn invert(transform: impl Fn(Complex64) -> Complex64, t: f64) -> f64 {
    let real = A / (2.0 * t);
    let term = |k: usize| {
        let value = transform(Complex64::new(real, k as f64 * std::f64::consts::PI / t)).re;
        if k.is_multiple_of(2) { value } else { -value }
    };
    let scale = (A / 2.0).exp() / t;
    let mut sums = vec![term(0) / 2.0];
    let mut found = 0.0;
    for plain in PLAIN_TERMS {
        while sums.len() <= plain + AVERAGED_TERMS {
            sums.push(sums[sums.len() - 1] + term(sums.len()));
        }
        found = scale * averaged(&sums, plain);
        let differs = |earlier| (scale * averaged(&sums, plain - earlier) - found).abs() > PRECISION;
        if !EARLIER.into_iter().any(differs) {
            break;
        }
    }
    found
}

/// The binomial average of the partial sums from `first` on.
fn averaged(sums: &[f64], first: usize) -> f64 {
    let (mut average, mut weight) = (0.0, 0.5f64.powi(15));
    for (k, sum) in sums[first..=first + AVERAGED_TERMS].iter().enumerate() {
        average += weight * sum;
        weight *= (AVERAGED_TERMS - k) as f64 / (k + 1) as f64;
    }
    average
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tails_come_back() {
        for t in [1e-6, 0.1, 1.0, 7.0, 20.0] {
            let exponential = invert(|s| (s + 1.0).inv(), t);
            assert!((exponential - (-t).exp()).abs() < 1e-9, "{t} {exponential}");
        }
        // The tail of an Erlang law of two stages.
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
}
