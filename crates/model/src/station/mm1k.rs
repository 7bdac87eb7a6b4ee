//! Solves the M/M/1/K queue.
use super::SteadyState;
use crate::check::{places, positive};
use crate::delay_part::DelayPart;
use crate::law::ln_poisson;
use crate::{Distribution, ModelError};
use num_complex::Complex64;
use std::sync::Arc;

/// Most places of an M/M/1/K queue.
pub const MAX_PLACES: usize = 100_000;

/// Solves M/M/1/K: Poisson arrivals at `arrival_rate` per second, exponential service of `service_rate` per second,
/// at most `places` packets including the one in service; packets that find no place are lost. Any load. Exact.
/// Source: Gross and Harris, Fundamentals of Queueing Theory (1998), 2.5.
///
/// # Errors
/// `DOMAIN` for rates that are not above 0 and places outside 1 to [`MAX_PLACES`].
pub fn mm1k(arrival_rate: f64, service_rate: f64, places: usize) -> Result<SteadyState, ModelError> {
    let arrival_rate = positive("arrival rate", arrival_rate)?;
    let service_rate = positive("service rate", service_rate)?;
    let places = self::places("K", places, MAX_PLACES)?;
    let present = number_present(arrival_rate.ln() - service_rate.ln(), places);
    let loss = present[places];
    let accepted = 1.0 - loss;
    let number: f64 = present.iter().enumerate().map(|(n, p)| n as f64 * p).sum();
    let stages = ErlangMixture::new(service_rate, &present[..places]);
    // Equals the result of Little's law, without the difference 1 - loss, which is imprecise under overload.
    let sojourn_s = stages.mean();
    Ok(SteadyState {
        sojourn_s,
        waiting_s: (sojourn_s - 1.0 / service_rate).max(0.0),
        number,
        utilisation: (1.0 - present[0]).min(accepted * arrival_rate / service_rate),
        loss,
        sojourn: Distribution::of_part(DelayPart::Stages(Arc::new(stages))),
    })
}

/// Returns the probabilities of 0 to `places` packets, from the logarithm of the load. The largest is computed as 1,
/// and all are divided by their sum, so that nothing overflows.
fn number_present(ln_load: f64, places: usize) -> Vec<f64> {
    let largest = (places as f64 * ln_load).max(0.0);
    let mut present: Vec<f64> = (0..=places).map(|n| (n as f64 * ln_load - largest).exp()).collect();
    let sum: f64 = present.iter().sum();
    present.iter_mut().for_each(|p| *p /= sum);
    present
}

/// Random number of exponential stages: the sojourn of a packet that finds n others consists of n + 1 services.
#[derive(Debug)]
pub(crate) struct ErlangMixture {
    rate: f64,
    /// Probability of n + 1 stages.
    weights: Vec<f64>,
    /// Probability of more than n stages.
    more_than: Vec<f64>,
}

impl ErlangMixture {
    /// Creates the law from values proportional to the probabilities of 1, 2, ... stages.
    fn new(rate: f64, proportions: &[f64]) -> ErlangMixture {
        let sum: f64 = proportions.iter().sum();
        let mut weights: Vec<f64> = proportions.iter().map(|p| p / sum).collect();
        let used = weights.iter().rposition(|weight| *weight > 0.0).map_or(1, |last| last + 1);
        weights.truncate(used);
        let mut more_than = weights.clone();
        for n in (1..more_than.len()).rev() {
            more_than[n - 1] += more_than[n];
        }
        ErlangMixture { rate, weights, more_than }
    }

    fn moment(&self, of: impl Fn(f64) -> f64) -> f64 {
        self.weights.iter().enumerate().map(|(n, weight)| weight * of(n as f64 + 1.0)).sum()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.moment(|stages| stages) / self.rate
    }

    /// Variance from the stages' lengths and from their number.
    pub(crate) fn variance(&self) -> f64 {
        let mean = self.moment(|stages| stages);
        (mean + self.moment(|stages| (stages - mean).powi(2))) / self.rate.powi(2)
    }

    pub(crate) fn lst(&self, s: Complex64) -> Complex64 {
        let stage = (s / self.rate + 1.0).inv();
        self.weights.iter().rev().fold(Complex64::ZERO, |sum, weight| (sum + weight) * stage)
    }

    /// Returns the probability of more than `t`: n stages take longer if fewer than n end by then, and the number
    /// that end is Poisson.
    pub(crate) fn tail(&self, t: f64) -> f64 {
        let mean = self.rate * t;
        self.more_than.iter().enumerate().map(|(n, more)| more * ln_poisson(n, mean).exp()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_of_one_and_above_are_answered() {
        let even = mm1k(100.0, 100.0, 25).unwrap();
        assert!((even.loss - 1.0 / 26.0).abs() < 1e-12 && (even.sojourn_s - 0.13).abs() < 1e-12);
        let over = mm1k(150.0, 100.0, 200).unwrap();
        assert!((over.loss - 1.0 / 3.0).abs() < 1e-9 && (over.utilisation - 1.0).abs() < 1e-9);
        let flood = mm1k(1e300, 1e-3, 100_000).unwrap();
        assert!((flood.loss - 1.0).abs() < 1e-12 && flood.sojourn_s.is_finite());
    }

    #[test]
    fn many_places_are_as_good_as_no_limit() {
        let (limited, open) = (mm1k(70.0, 100.0, 2000).unwrap(), super::super::mm1(70.0, 100.0).unwrap());
        assert!((limited.sojourn_s / open.sojourn_s - 1.0).abs() < 1e-9 && limited.loss < 1e-200);
        for p in [0.1, 0.5, 0.99, 0.99999] {
            let (a, b) = (limited.sojourn.quantile(p).unwrap(), open.sojourn.quantile(p).unwrap());
            assert!((a / b - 1.0).abs() < 1e-9, "{p}: {a} {b}");
        }
    }
}
