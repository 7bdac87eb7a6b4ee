//! Computes the distribution of the number of Poisson arrivals during one service time.
use super::{Law, LawShape};
use statrs::function::gamma::ln_gamma;

/// Maximum number of terms computed beyond those requested. The terms after these are below the precision of the sums.
const MAX_BEYOND: usize = 200_000;
/// Ratio of a term to the last requested term below which the following terms are left out, because they do not change
/// a sum.
const NEGLIGIBLE: f64 = 1e-19;
/// Tail, as a share of the total, below which it is summed term by term. Computing it as the total minus the terms
/// before it would lose its precision.
const SMALL: f64 = 1e-6;

/// Distribution of the number A of arrivals during one service, indexed by k. Tail sums keep their relative precision
/// even when they are tiny.
#[derive(Debug)]
pub(crate) struct ArrivalsPerService {
    /// P(A = k).
    pub(crate) exactly: Vec<f64>,
    /// P(A > k).
    pub(crate) more_than: Vec<f64>,
    /// E\[max(A - k, 0)\].
    pub(crate) beyond: Vec<f64>,
}

impl ArrivalsPerService {
    /// Computes the distribution for a Poisson process with `rate` arrivals per second and service times with the
    /// distribution `law`: for 0 to `most` arrivals, and for more as long as the probabilities matter.
    pub(crate) fn new(law: &Law, rate: f64, most: usize) -> ArrivalsPerService {
        let exactly = exactly(law, rate, most);
        let more_than = from_above(&exactly, 1.0);
        // E[(A - k)+] is the sum of P(A > j) from j = k on.
        let sums = from_above(&more_than, rate * law.mean());
        let beyond = std::iter::once(rate * law.mean()).chain(sums).take(exactly.len()).collect();
        ArrivalsPerService { exactly, more_than, beyond }
    }
}

/// Returns, for each term, the sum of the terms after it. `total` is the exact sum of all terms.
fn from_above(terms: &[f64], total: f64) -> Vec<f64> {
    let mut above = vec![0.0; terms.len()];
    for k in (1..terms.len()).rev() {
        above[k - 1] = above[k] + terms[k];
    }
    let mut sum = 0.0;
    for (above, term) in above.iter_mut().zip(terms) {
        sum += term;
        if total - sum > SMALL * total {
            *above = total - sum;
        }
    }
    above
}

fn exactly(law: &Law, rate: f64, most: usize) -> Vec<f64> {
    let mut sums: Vec<f64> = Vec::new();
    for part in law.parts() {
        let of_part = of_shape(&part.shape, rate, most);
        if of_part.len() > sums.len() {
            sums.resize(of_part.len(), 0.0);
        }
        sums.iter_mut().zip(of_part).for_each(|(sum, term)| *sum += part.weight * term);
    }
    sums
}

fn of_shape(shape: &LawShape, rate: f64, most: usize) -> Vec<f64> {
    match *shape {
        LawShape::Constant(value) => poisson(rate * value, most),
        LawShape::Exponential(mean) => negative_binomial(1.0, rate * mean, most),
        LawShape::Gamma { mean, scv } => negative_binomial(1.0 / scv, rate * mean * scv, most),
        LawShape::Uniform { low, high } => over_uniform(rate * low, rate * high, most),
    }
}

/// Collects the terms `term(k)` for k from 0 to `most`, and further ones until a term with k above `mean` is
/// negligible.
fn collect(mean: f64, most: usize, mut term: impl FnMut(usize) -> f64) -> Vec<f64> {
    let mut terms = Vec::new();
    for k in 0..=most + MAX_BEYOND {
        terms.push(term(k));
        if k > most && k as f64 > mean && terms[k] <= NEGLIGIBLE * terms[most] {
            break;
        }
    }
    terms
}

/// Returns the probabilities of 0, 1, 2, ... events of a Poisson distribution, as far as [`collect`] needs them.
/// Computed by logarithms, because exp(-mean) may underflow.
fn poisson(mean: f64, most: usize) -> Vec<f64> {
    collect(mean, most, |k| ln_poisson(k, mean).exp())
}

/// Returns the natural logarithm of the Poisson probability of `k` events.
pub(crate) fn ln_poisson(k: usize, mean: f64) -> f64 {
    if mean == 0.0 {
        return if k == 0 { 0.0 } else { f64::NEG_INFINITY };
    }
    k as f64 * mean.ln() - mean - ln_gamma(k as f64 + 1.0)
}

/// Returns the probabilities of 0, 1, 2, ... arrivals during a gamma-distributed time with the shape parameter
/// `shape`. `per_stage` is the mean number of arrivals divided by `shape`. The distribution is negative binomial.
fn negative_binomial(shape: f64, per_stage: f64, most: usize) -> Vec<f64> {
    let (ln_none, ln_one) = (-shape * per_stage.ln_1p(), -per_stage.recip().ln_1p());
    let (mut ln_choose, mean) = (0.0, shape * per_stage);
    collect(mean, most, |k| {
        let n = k as f64;
        if k > 0 {
            ln_choose += ((shape + n - 1.0) / n).ln();
        }
        (ln_choose + ln_none + n * ln_one).exp()
    })
}

/// Returns the probabilities of 0, 1, 2, ... arrivals during a uniformly distributed time; `low` and `high` are the
/// mean numbers of arrivals during the shortest and the longest time. Each is a difference of two Poisson tails,
/// summed from the last term on to keep precision.
fn over_uniform(low: f64, high: f64, most: usize) -> Vec<f64> {
    let mut terms = poisson(high, most + 1);
    terms.iter_mut().enumerate().for_each(|(k, term)| *term -= ln_poisson(k, low).exp());
    let mut above = 0.0;
    for term in terms.iter_mut().rev() {
        let own = std::mem::replace(term, above / (high - low));
        above += own;
    }
    // In a narrow law, differences that should be tiny are rounding errors.
    terms.iter_mut().for_each(|term| *term = term.max(0.0));
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_and_means_add_up() {
        for law in [
            Law::constant(2.0).unwrap(),
            Law::exponential(2.0).unwrap(),
            Law::gamma(2.0, 0.4).unwrap(),
            Law::gamma(2.0, 7.0).unwrap(),
            Law::uniform(1.0, 3.0).unwrap(),
            Law::uniform(0.0, 4.0).unwrap(),
            Law::lattice(&[1.0, 3.0], &[0.5, 0.5]).unwrap(),
        ] {
            for rate in [0.01, 0.5, 30.0] {
                let arrivals = ArrivalsPerService::new(&law, rate, 5);
                let sum: f64 = arrivals.exactly.iter().sum();
                let mean: f64 = arrivals.exactly.iter().enumerate().map(|(k, p)| k as f64 * p).sum();
                assert!((sum - 1.0).abs() < 1e-11, "{law:?} {rate} {sum}");
                assert!((mean / (rate * 2.0) - 1.0).abs() < 1e-9, "{law:?} {rate} {mean}");
                assert!((arrivals.beyond[1] - (rate * 2.0 - arrivals.more_than[0])).abs() < 1e-11);
            }
        }
    }

    #[test]
    fn tails_keep_their_precision() {
        let arrivals = ArrivalsPerService::new(&Law::exponential(1.0).unwrap(), 0.01, 20);
        // Geometric: P(A > k) = r^(k+1), E[(A-k)+] = r^(k+1) / (1-r).
        let r: f64 = 0.01 / 1.01;
        assert!((arrivals.more_than[20] / r.powi(21) - 1.0).abs() < 1e-10);
        assert!((arrivals.beyond[20] / (r.powi(21) / (1.0 - r)) - 1.0).abs() < 1e-10);
    }
}
