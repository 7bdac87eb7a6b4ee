//! Finds zeros of functions of one variable.

/// Most evaluations; bisection alone needs fewer for any two numbers.
const MAX_ROUNDS: u32 = 1200;

/// Default relative precision of a zero.
const PRECISE: f64 = 1e-13;

/// Returns a place between `low` and `high` at which `f` changes its sign; `f` must have different signs there, or be
/// zero. For a discontinuous function it may be a jump. Precise to a relative 1e-13.
pub(crate) fn bracketed(low: f64, high: f64, f: impl FnMut(f64) -> f64) -> f64 {
    bracketed_to(PRECISE, low, high, f)
}

/// Returns a place between `low` and `high` at which `f` changes its sign, to the relative precision `precision`. The
/// method is ITP (Oliveira and Takahashi 2020): at most one round slower than bisection, as fast as the secant method
/// where the function is smooth.
pub(crate) fn bracketed_to(precision: f64, mut low: f64, mut high: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    let (mut at_low, mut at_high) = (f(low), f(high));
    if at_low == 0.0 {
        return low;
    }
    if at_high == 0.0 {
        return high;
    }
    let sign = if at_low < 0.0 { 1.0 } else { -1.0 };
    let width = high - low;
    for round in 0..MAX_ROUNDS {
        let tolerance = precision * low.abs().max(high.abs());
        let middle = low + (high - low) / 2.0;
        if high - low <= tolerance || middle <= low || middle >= high {
            break;
        }
        // Interpolate, truncate, and project into the interval that bisection would have reached.
        let secant = (high * at_low - low * at_high) / (at_low - at_high);
        let toward = (middle - secant).signum();
        let step = (0.2 * (high - low) * ((high - low) / width)).min((middle - secant).abs());
        let left = width * 0.5f64.powi(i32::try_from(round.min(1000)).unwrap_or(1000)) - (high - low) / 2.0;
        let truncated = secant + toward * step;
        let projected = if (truncated - middle).abs() <= left { truncated } else { middle - toward * left.max(0.0) };
        let at = if projected > low && projected < high { projected } else { middle };
        let value = f(at);
        if value == 0.0 {
            return at;
        }
        if value * sign < 0.0 {
            (low, at_low) = (at, value);
        } else {
            (high, at_high) = (at, value);
        }
    }
    low + (high - low) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_and_jumps_are_found() {
        let mut calls = 0;
        let root = bracketed(0.0, 10.0, |x| {
            calls += 1;
            x * x - 2.0
        });
        assert!((root - 2.0f64.sqrt()).abs() < 1e-12 && calls < 20, "{root} {calls}");
        let falling = bracketed(0.0, 1.0, |x| (-5.0 * x).exp() - 0.05);
        assert!((falling - 20.0f64.ln() / 5.0).abs() < 1e-12);
        let jump = bracketed(0.0, 1.0, |x| if x < 0.3 { -1.0 } else { 1.0 });
        assert!((jump - 0.3).abs() < 1e-12, "{jump}");
        assert_eq!(bracketed(1.0, 2.0, |x| x - 1.0), 1.0);
    }
}
