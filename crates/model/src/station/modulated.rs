//! Solves a queue whose sources send at rates that change with a random state.
use crate::ModelError;
use crate::check::stable;
use nalgebra::{DMatrix, DVector};

/// Maximum number of states of all sources together. Sources of more states are put together.
const MAX_STATES: usize = 32;
/// Maximum number of states of one source that are kept.
const MAX_OWN_STATES: usize = 4;
/// Maximum number of rounds of the reduction. Each round squares the remaining error.
const MAX_ROUNDS: u32 = 64;
/// Largest remaining error, relative to the largest coefficient.
const PRECISION: f64 = 1e-13;
/// Least variance of the work in a state, as a share of that in the state with the most.
const LEAST_VARIANCE: f64 = 1e-3;

/// Source of packets at a queue: its rate changes with the state of a Markov process.
#[derive(Debug, Clone, PartialEq)]
pub struct ModulatedSource {
    /// Packets per second, by state; one value if the rate does not change.
    pub rates: Vec<f64>,
    /// Changes per second, by state and next state. The diagonal is ignored.
    pub changes: Vec<Vec<f64>>,
    /// Squared coefficient of variation of the times between packets within a state: 1 for Poisson arrivals, 0 for
    /// constant gaps.
    pub scv: f64,
    /// Mean service time of the packets, in seconds.
    pub service_mean: f64,
    /// Mean square of the service time.
    pub service_square: f64,
}

/// Waiting times of arriving packets, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct ModulatedWaits {
    /// Mean of all packets.
    pub mean: f64,
    /// Mean square of all packets.
    pub square: f64,
    /// Share of the packets that wait, estimated as if states lasted very long.
    pub share: f64,
    /// Mean of each source's packets.
    pub each: Vec<f64>,
}

/// Returns the waiting times in a queue of independent sources with one server and no limit.
///
/// Work in the queue is a Brownian motion, reflected at 0, whose drift and variance change with the sources' states
/// (Karandikar and Kulkarni, Second-order fluid flow models: reflected Brownian motion in a random environment, 1995).
/// With constant rates and Poisson arrivals, the mean is exact (Pollaczek and Khinchine). Otherwise it is an
/// approximation: compared with followed packets of up to six on/off sources, means are within 7 %. Sources of more
/// than 32 states together are put together into sources of two states, with the same mean, variance, third moment
/// and correlation time of their rate.
///
/// # Errors
/// `UNSTABLE` if the load is 1 or more; `NO_CONVERGENCE` if it is barely stable.
pub fn modulated_waits(sources: &[ModulatedSource]) -> Result<ModulatedWaits, ModelError> {
    let parts = parts(sources)?;
    let size: usize = parts.iter().map(|part| part.chain.shares.len()).product();
    let mut generator = DMatrix::<f64>::zeros(1, 1);
    let mut shares = DVector::from_element(1, 1.0);
    for part in &parts {
        let own = part.chain.shares.len();
        let kept = generator.kronecker(&DMatrix::identity(own, own));
        generator = kept + DMatrix::identity(generator.nrows(), generator.nrows()).kronecker(&part.chain.generator());
        shares = shares.kronecker(&part.chain.shares);
    }
    // State of each part in each state of all.
    let own_state = |part: usize, state: usize| {
        let later: usize = parts[part + 1..].iter().map(|part| part.chain.shares.len()).product();
        state / later % parts[part].chain.shares.len()
    };
    let sum = |value: fn(&SourcePart, usize) -> f64| {
        let at = |state| parts.iter().enumerate().map(|(number, part)| value(part, own_state(number, state))).sum();
        DVector::from_iterator(size, (0..size).map(at))
    };
    let rates = sum(|part, state| part.chain.rates[state]);
    let load = sum(|part, state| part.load[state]);
    let variance = sum(|part, state| part.variance[state]);
    let offered = stable("the queue", shares.dot(&load))?;
    let floor = variance.max() * LEAST_VARIANCE;
    if floor <= 0.0 {
        return Ok(ModulatedWaits { mean: 0.0, square: 0.0, share: 0.0, each: vec![0.0; sources.len()] });
    }
    let slope = decay(&generator, &load.map(|load| load - 1.0), &variance.map(|value| value.max(floor)))?;
    // The density at x is a exp(slope x), with a = -shares slope: its integrals are powers of the inverse.
    let inverse = (-slope).try_inverse().ok_or_else(singular)?;
    let first = inverse.tr_mul(&shares);
    let second = inverse.tr_mul(&first) * 2.0;
    let rate = shares.dot(&rates);
    let each_part: Vec<f64> = (0..parts.len())
        .map(|number| {
            let own = DVector::from_iterator(
                size,
                (0..size).map(|state| parts[number].chain.rates[own_state(number, state)]),
            );
            (first.dot(&own) / shares.dot(&own).max(f64::MIN_POSITIVE)).max(0.0)
        })
        .collect();
    let mut each = vec![0.0; sources.len()];
    for (part, mean) in parts.iter().zip(&each_part) {
        part.sources.iter().for_each(|source| each[*source] = *mean);
    }
    if !each_part.iter().chain([&first.sum(), &second.sum()]).all(|value| value.is_finite()) {
        return Err(singular());
    }
    let waiting = |state: usize| shares[state] * rates[state] / rate * load[state].min(1.0);
    Ok(ModulatedWaits {
        mean: (first.dot(&rates) / rate).max(0.0),
        square: (second.dot(&rates) / rate).max(0.0),
        share: (0..size).map(waiting).sum::<f64>().max(offered).min(1.0),
        each,
    })
}

/// Rates of a source that change with a state.
#[derive(Debug, Clone)]
struct RateChain {
    rates: Vec<f64>,
    changes: Vec<Vec<f64>>,
    /// Share of the time in each state.
    shares: DVector<f64>,
}

/// Moments of a rate: mean, variance, third central moment, and the time for which it is correlated.
#[derive(Debug, Clone, Copy)]
struct RateMoments {
    mean: f64,
    variance: f64,
    third: f64,
    time_s: f64,
}

/// Group of sources with the same states.
#[derive(Debug, Clone)]
struct SourcePart {
    chain: RateChain,
    /// Work that arrives per second, by state.
    load: Vec<f64>,
    /// Variance of this work per second, by state.
    variance: Vec<f64>,
    /// Numbers of the sources.
    sources: Vec<usize>,
}

/// Returns the sources as parts with at most [`MAX_STATES`] states together.
fn parts(sources: &[ModulatedSource]) -> Result<Vec<SourcePart>, ModelError> {
    let mut parts: Vec<SourcePart> = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let part = SourcePart::of(source, number)?;
        // All sources of constant rate are one part.
        let constant = |part: &SourcePart| part.chain.rates.len() == 1;
        match parts.iter_mut().find(|other| constant(other)).filter(|_| constant(&part)) {
            Some(known) => {
                known.chain.rates[0] += part.chain.rates[0];
                known.load[0] += part.load[0];
                known.variance[0] += part.variance[0];
                known.sources.extend(part.sources);
            }
            None => parts.push(part),
        }
    }
    while parts.iter().map(|part| part.chain.shares.len()).product::<usize>() > MAX_STATES {
        // Those that change the least are put together first.
        let mut order: Vec<(usize, f64)> = parts
            .iter()
            .enumerate()
            .filter(|(_, part)| part.chain.rates.len() > 1)
            .map(|(at, part)| {
                let moments = part.chain.moments();
                (at, moments.variance * moments.time_s)
            })
            .collect();
        order.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (low, high) = (order[0].0.min(order[1].0), order[0].0.max(order[1].0));
        let other = parts.remove(high);
        parts[low] = parts[low].together(&other);
    }
    Ok(parts)
}

impl SourcePart {
    fn of(source: &ModulatedSource, number: usize) -> Result<SourcePart, ModelError> {
        let mut chain = RateChain::new(source.rates.clone(), source.changes.clone())?;
        if chain.rates.len() > MAX_OWN_STATES {
            chain = RateChain::two_states(chain.moments());
        }
        let ModulatedSource { scv, service_mean: mean, service_square: square, .. } = *source;
        let variance = square - mean * mean + scv * mean * mean;
        Ok(SourcePart {
            load: chain.rates.iter().map(|rate| rate * mean).collect(),
            variance: chain.rates.iter().map(|rate| rate * variance.max(0.0)).collect(),
            chain,
            sources: vec![number],
        })
    }

    /// Returns both parts as one of two states.
    fn together(&self, other: &SourcePart) -> SourcePart {
        let (a, b) = (self.chain.moments(), other.chain.moments());
        let variance = a.variance + b.variance;
        let chain = RateChain::two_states(RateMoments {
            mean: a.mean + b.mean,
            variance,
            third: a.third + b.third,
            time_s: (a.variance * a.time_s + b.variance * b.time_s) / variance.max(f64::MIN_POSITIVE),
        });
        let per_packet = |value: fn(&SourcePart) -> &Vec<f64>| {
            let sum = |part: &SourcePart| {
                part.chain.shares.iter().zip(value(part)).map(|(share, one)| share * one).sum::<f64>()
            };
            (sum(self) + sum(other)) / (a.mean + b.mean).max(f64::MIN_POSITIVE)
        };
        let (load, variance) = (per_packet(|part| &part.load), per_packet(|part| &part.variance));
        SourcePart {
            load: chain.rates.iter().map(|rate| rate * load).collect(),
            variance: chain.rates.iter().map(|rate| rate * variance).collect(),
            chain,
            sources: self.sources.iter().chain(&other.sources).copied().collect(),
        }
    }
}

impl RateChain {
    fn new(rates: Vec<f64>, changes: Vec<Vec<f64>>) -> Result<RateChain, ModelError> {
        let mut chain = RateChain { shares: DVector::from_element(rates.len(), 1.0), rates, changes };
        let mut equations = chain.generator();
        // One equation follows from the others: the shares sum up to 1 instead.
        let last = equations.ncols() - 1;
        equations.set_column(last, &DVector::from_element(equations.nrows(), 1.0));
        let mut right = DVector::zeros(equations.nrows());
        right[last] = 1.0;
        chain.shares = equations.transpose().lu().solve(&right).ok_or_else(singular)?.map(|share| share.max(0.0));
        Ok(chain)
    }

    fn generator(&self) -> DMatrix<f64> {
        let size = self.rates.len();
        let mut matrix =
            DMatrix::from_fn(size, size, |row, column| if row == column { 0.0 } else { self.changes[row][column] });
        for row in 0..size {
            matrix[(row, row)] = -matrix.row(row).sum();
        }
        matrix
    }

    fn moments(&self) -> RateMoments {
        let size = self.rates.len();
        let rates = DVector::from_row_slice(&self.rates);
        let mean = self.shares.dot(&rates);
        let off = rates.map(|rate| rate - mean);
        let variance = self.shares.dot(&off.map(|value| value * value));
        let third = self.shares.dot(&off.map(|value| value.powi(3)));
        // The integral of the autocovariance is shares off (1 shares - Q)^-1 off.
        let whole = DMatrix::from_fn(size, size, |_, column| self.shares[column]) - self.generator();
        let integral = whole.lu().solve(&off).map_or(0.0, |found| self.shares.component_mul(&off).dot(&found));
        RateMoments { mean, variance, third, time_s: integral / variance.max(f64::MIN_POSITIVE) }
    }

    /// Returns the chain of two states with these moments; the low rate is at least 0.
    fn two_states(moments: RateMoments) -> RateChain {
        let RateMoments { mean, variance, third, time_s } = moments;
        let sd = variance.sqrt();
        let skew = third / (variance * sd).max(f64::MIN_POSITIVE);
        let mut high_share = 0.5 * (1.0 - skew / (4.0 + skew * skew).sqrt());
        let (mut low, mut high) = (
            mean - sd * (high_share / (1.0 - high_share)).sqrt(),
            mean + sd * ((1.0 - high_share) / high_share).sqrt(),
        );
        if low < 0.0 {
            (low, high) = (0.0, (variance + mean * mean) / mean);
            high_share = mean / high;
        }
        let away = 1.0 / time_s.max(f64::MIN_POSITIVE);
        let changes = vec![vec![0.0, away * (1.0 - high_share)], vec![away * high_share, 0.0]];
        RateChain { rates: vec![high, low], changes, shares: DVector::from_vec(vec![high_share, 1.0 - high_share]) }
    }
}

/// Returns the matrix K of the density a exp(K x): the solution of K^2 V / 2 - K D + Q = 0 whose eigenvalues have
/// negative real parts. Q is the generator, D and V have drifts and variances on their diagonals. With K = c (U - 1)
/// (U + 1)^-1 the eigenvalues of U are within the unit circle: U is found by cyclic reduction (Bini, Latouche and
/// Meini, Numerical Methods for Structured Markov Chains, 2005, 7.3).
fn decay(generator: &DMatrix<f64>, drift: &DVector<f64>, variance: &DVector<f64>) -> Result<DMatrix<f64>, ModelError> {
    let size = drift.len();
    let one = DMatrix::<f64>::identity(size, size);
    let slope = DMatrix::from_diagonal(&drift.zip_map(variance, |drift, variance| 2.0 * drift / variance));
    let mut rates = generator.clone() * 2.0;
    for column in 0..size {
        rates.column_mut(column).unscale_mut(variance[column]);
    }
    let scale = slope.amax() + rates.amax().sqrt();
    let square = &one * (scale * scale);
    // Coefficients of the transposed equation, without, with, and with the square of the transposed U.
    let constant = (&square + &slope * scale + &rates).transpose();
    let mut linear = (&rates * 2.0 - &square * 2.0).transpose();
    let mut quadratic = (&square - &slope * scale + &rates).transpose();
    let (mut low, mut reduced) = (constant.clone(), linear.clone());
    for _ in 0..MAX_ROUNDS {
        let inverse = linear.clone().try_inverse().ok_or_else(singular)?;
        let down = &low * &inverse;
        let up = &quadratic * &inverse;
        reduced -= &up * &low;
        linear -= &down * &quadratic + &up * &low;
        low = -down * low;
        quadratic = -up * quadratic;
        if low.amax().min(quadratic.amax()) < PRECISION * linear.amax() {
            let transposed = -reduced.lu().solve(&constant).ok_or_else(singular)?;
            let circle = transposed.transpose();
            let plus = (&circle + &one).try_inverse().ok_or_else(singular)?;
            return Ok((circle - one) * plus * scale);
        }
    }
    Err(ModelError::NoConvergence { what: "cyclic reduction".into(), rounds: MAX_ROUNDS })
}

fn singular() -> ModelError {
    ModelError::NoConvergence { what: "equations of the process without a solution".into(), rounds: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_state(rate: f64, high: f64, low: f64, high_s: f64, service_s: f64) -> ModulatedSource {
        let low_s = high_s * (high - 1.0) / (1.0 - low);
        ModulatedSource {
            rates: vec![high * rate, low * rate],
            changes: vec![vec![0.0, 1.0 / high_s], vec![1.0 / low_s, 0.0]],
            scv: 1.0,
            service_mean: service_s,
            service_square: service_s * service_s,
        }
    }

    #[test]
    fn constant_rates_are_mg1() {
        let source = |rate, scv, mean: f64, square| ModulatedSource {
            rates: vec![rate],
            changes: vec![vec![0.0]],
            scv,
            service_mean: mean,
            service_square: square,
        };
        let found = modulated_waits(&[source(300.0, 1.0, 1e-3, 2e-6), source(200.0, 1.0, 1e-3, 2e-6)]).unwrap();
        assert!((found.mean - 1e-3).abs() < 1e-9, "M/M/1 at half load waits one service: {found:?}");
        assert!(found.each.iter().all(|mean| (mean - 1e-3).abs() < 1e-9));
        let none = modulated_waits(&[source(300.0, 0.0, 1e-3, 1e-6)]).unwrap();
        assert_eq!((none.mean, none.share), (0.0, 0.0));
        assert!(modulated_waits(&[source(1000.0, 1.0, 1e-3, 1e-6)]).is_err());
    }

    #[test]
    fn it_is_close_to_the_exact_queue_with_exponential_services() {
        let service_s = 1e-3;
        for (rate, high, low, high_s) in [(600.0, 1.5, 0.5, 0.02), (500.0, 2.0, 0.0, 0.1), (500.0, 3.0, 0.5, 0.5)] {
            let source = ModulatedSource {
                service_square: 2.0 * service_s * service_s,
                ..two_state(rate, high, low, high_s, service_s)
            };
            let exact = crate::literature::ModulatedPoisson {
                rates: [source.rates[0], source.rates[1]],
                changes: [source.changes[0][1], source.changes[1][0]],
            };
            let exact = crate::literature::mmpp2_m1(&exact, 1.0 / service_s).unwrap().0 - service_s;
            let found = modulated_waits(&[source]).unwrap();
            assert!((found.mean / exact - 1.0).abs() < 0.07, "{} {exact}", found.mean);
            assert!(found.square > found.mean * found.mean);
        }
    }

    #[test]
    fn sources_that_burst_wait_longer_than_smooth_ones() {
        let steady =
            ModulatedSource { rates: vec![250.0], changes: vec![vec![0.0]], ..two_state(1.0, 2.0, 0.0, 1.0, 1e-3) };
        let found = modulated_waits(&[two_state(250.0, 3.0, 0.0, 0.05, 1e-3), steady]).unwrap();
        assert!(found.each[0] > 1.5 * found.each[1], "{found:?}");
        let mixed = (found.each[0] + found.each[1]) / 2.0;
        assert!((mixed / found.mean - 1.0).abs() < 1e-9);
    }

    #[test]
    fn many_sources_are_put_together() {
        let few: Vec<_> = (0..4).map(|_| two_state(150.0, 2.0, 0.5, 0.02, 1e-3)).collect();
        let many: Vec<_> =
            (0..40).map(|number| two_state(15.0, 2.0, 0.5, 0.02 + 1e-4 * f64::from(number), 1e-3)).collect();
        let (few, many) = (modulated_waits(&few).unwrap(), modulated_waits(&many).unwrap());
        let poisson = 0.6 * 1e-3 / (2.0 * 0.4);
        assert!(many.mean > poisson && many.mean < few.mean, "{} {} {poisson}", many.mean, few.mean);
    }
}
