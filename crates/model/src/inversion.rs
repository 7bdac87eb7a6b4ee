//! Numerical inversion of Laplace transforms by Euler summation (Abate and Whitt 1995, ORSA Journal on Computing 7).
use num_complex::Complex64;

/// Bounds the discretisation error: exp(-A) of the function's largest value, 1.4e-11.
const A: f64 = 25.0;
/// Terms summed as they are.
const PLAIN_TERMS: u32 = 40;
/// Partial sums averaged with binomial weights after that, which makes the alternating series converge.
const AVERAGED_TERMS: u32 = 15;

/// The value at `t` > 0 of the function from 0 to 1 that has this transform; precise to 1e-9 or so where the function is smooth.
pub(crate) fn invert(transform: impl Fn(Complex64) -> Complex64, t: f64) -> f64 {
    let real = A / (2.0 * t);
    let term = |k: u32| {
        let value = transform(Complex64::new(real, f64::from(k) * std::f64::consts::PI / t)).re;
        if k.is_multiple_of(2) { value } else { -value }
    };
    let mut sum = term(0) / 2.0;
    for k in 1..=PLAIN_TERMS {
        sum += term(k);
    }
    let (mut averaged, mut choose) = (0.0, 0.5f64.powi(AVERAGED_TERMS as i32));
    for k in 0..=AVERAGED_TERMS {
        averaged += choose * sum;
        choose *= f64::from(AVERAGED_TERMS - k) / f64::from(k + 1);
        sum += term(PLAIN_TERMS + k + 1);
    }
    (A / 2.0).exp() / t * averaged
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
}
