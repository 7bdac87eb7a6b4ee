//! Solves the M/G/1/K queue.
use super::SteadyState;
use crate::check::{places, positive};
use crate::delay_part::DelayPart;
use crate::law::{ArrivalsPerService, Law, LawPart, LawShape, ln_poisson};
use crate::{Distribution, ModelError};
use num_complex::Complex64;
use std::sync::Arc;

/// Maximum number of places of an M/G/1/K queue, including the one in service.
pub const MAX_PLACES_GENERAL: usize = 5000;
/// Probability below which high numbers of arrivals during a service are omitted from the transform of the sojourn
/// times.
const NEGLIGIBLE: f64 = 1e-17;

/// Solves the M/G/1/K queue exactly: Poisson arrivals at `arrival_rate` per second, independent service times with any
/// distribution, and at most `places` packets including the one in service; a packet that finds no free place is lost.
/// The load may exceed 1.
///
/// The method is the Markov chain at departures (Gross and Harris, Fundamentals of Queueing Theory, 1998, 5.1.8). It is
/// solved by level crossings without subtraction, so that tiny losses keep their digits.
///
/// # Errors
/// `DOMAIN` for a rate that is not above 0, or for `places` outside 1 to [`MAX_PLACES_GENERAL`].
pub fn mg1k(arrival_rate: f64, service: &Law, places: usize) -> Result<SteadyState, ModelError> {
    let arrival_rate = positive("arrival rate", arrival_rate)?;
    let places = self::places("K", places, MAX_PLACES_GENERAL)?;
    let offered = arrival_rate * service.mean();
    let arrivals = ArrivalsPerService::new(service, arrival_rate, places);
    let left_behind = left_behind(&arrivals, places);
    // Time between two departures: one service, plus the time until the next arrival if the queue is empty.
    let per_departure = left_behind[0] + offered;
    let lost: f64 = starts(&left_behind).map(|(n, weight)| weight * arrivals.beyond[places - n]).sum();
    let loss = (lost / per_departure).min(1.0);
    let below: f64 = left_behind.iter().enumerate().map(|(n, p)| n as f64 * p).sum();
    let number = below / per_departure + places as f64 * loss;
    let sojourn_s = number * per_departure / arrival_rate;
    let sojourn = FiniteQueueSojourn::new(arrival_rate, service, places, &left_behind, arrivals);
    Ok(SteadyState {
        sojourn_s,
        waiting_s: (sojourn_s - service.mean()).max(0.0),
        number,
        utilisation: offered / per_departure,
        loss,
        sojourn: Distribution::of_part(DelayPart::Finite(Arc::new(sojourn))),
    })
}

/// Returns the probabilities that a departing packet leaves 0 to `places` - 1 others behind.
///
/// With pi_i for these probabilities and A for the number of arrivals during a service: the number left behind rises
/// from at most j to more than j as often as it falls from j + 1 to j. So pi_(j+1) P(A = 0) = pi_0 P(A > j) + sum over
/// i = 1..j of pi_i P(A > j - i + 1).
fn left_behind(arrivals: &ArrivalsPerService, places: usize) -> Vec<f64> {
    let none = arrivals.exactly[0];
    let mut pi = vec![0.0; places];
    if none < 1e-290 {
        // So many packets arrive during each service that the queue is always full at its end.
        pi[places - 1] = 1.0;
        return pi;
    }
    pi[0] = 1.0;
    for j in 0..places - 1 {
        let up = pi[0] * arrivals.more_than[j];
        let later: f64 = (1..=j).map(|i| pi[i] * arrivals.more_than[j - i + 1]).sum();
        pi[j + 1] = (up + later) / none;
        if pi[j + 1] > 1.0 {
            // All are scaled so that the largest is 1, because they grow without bound under overload.
            let largest = pi[j + 1];
            pi[..=j + 1].iter_mut().for_each(|p| *p /= largest);
        }
    }
    let sum: f64 = pi.iter().sum();
    pi.iter_mut().for_each(|p| *p /= sum);
    pi
}

/// Returns the numbers of packets at the start of a service, each with its probability. After an empty queue a service
/// starts with one packet.
fn starts(left_behind: &[f64]) -> impl Iterator<Item = (usize, f64)> + '_ {
    let first = left_behind[0] + left_behind.get(1).copied().unwrap_or(0.0);
    std::iter::once((1, first)).chain(left_behind.iter().copied().enumerate().skip(2))
}

/// Distribution of the sojourn times of the packets that an M/G/1/K queue accepts.
///
/// Consider a packet that arrives during a service. Let i be the number of packets at the start of that service, and n
/// the number of packets that arrived since then. The packet stays for the rest of that service, and for i + n further
/// services, the last of which is its own. Let g_n(s) be the joint transform of n and the rest of the service, S*(s)
/// the transform of the service time, lambda the arrival rate, and a_n the probability of n arrivals during a service.
/// Partial integration of the definition of g_n gives (lambda - s) g_n = lambda g_(n-1) - a_n, with lambda g_(-1) =
/// S*(s).
#[derive(Debug)]
pub(crate) struct FiniteQueueSojourn {
    /// Arrival rate per second.
    rate: f64,
    service: Law,
    places: usize,
    /// Probability that an accepted packet finds the queue empty.
    empty: f64,
    /// Numbers of packets at the start of a service, each with its probability.
    starts: Vec<(usize, f64)>,
    /// Probabilities of n arrivals during a service, by n.
    arrivals: Vec<f64>,
    /// Probabilities that a packet arrives during a service and finds more than j packets, by j.
    found_more: Vec<f64>,
    mean: f64,
    variance: f64,
}

impl FiniteQueueSojourn {
    fn new(
        rate: f64,
        service: &Law,
        places: usize,
        left_behind: &[f64],
        arrivals: ArrivalsPerService,
    ) -> FiniteQueueSojourn {
        let mut sojourn = FiniteQueueSojourn {
            rate,
            service: service.clone(),
            places,
            empty: left_behind[0],
            starts: starts(left_behind).collect(),
            arrivals: Vec::new(),
            found_more: Vec::new(),
            mean: 0.0,
            variance: 0.0,
        };
        let (mean, second) = sojourn.moments(&arrivals);
        (sojourn.mean, sojourn.variance) = (mean, (second - mean * mean).max(0.0));
        sojourn.found_more = sojourn.found_more(&arrivals);
        let matter = arrivals.more_than.iter().skip(places).position(|more| *more < NEGLIGIBLE);
        sojourn.arrivals = arrivals.exactly;
        sojourn.arrivals.truncate(matter.map_or(usize::MAX, |beyond| places + beyond + 1));
        sojourn
    }

    fn found_more(&self, arrivals: &ArrivalsPerService) -> Vec<f64> {
        let mut found = vec![0.0; self.places + 1];
        for (i, weight) in &self.starts {
            for n in 0..self.places.saturating_sub(*i) {
                found[i + n] += weight * arrivals.more_than[n];
            }
        }
        sums_after(&mut found);
        found
    }

    /// Returns the first and the second moment of the sojourn time. They are derivatives of its transform at 0; those
    /// of g_n are sums of tail probabilities of the number of arrivals.
    fn moments(&self, arrivals: &ArrivalsPerService) -> (f64, f64) {
        let (m1, m2) = (self.service.mean(), self.service.second_moment());
        let (mut first, mut second) = (self.empty * m1, self.empty * m2);
        // For each n: probability, mean and mean square of the rest of the service, times the rate.
        let mut square = self.rate * m2;
        let rests: Vec<[f64; 3]> = (0..self.places)
            .map(|n| {
                let beyond = arrivals.beyond[n + 1];
                square = (square - 2.0 * beyond / self.rate).max(0.0);
                [arrivals.more_than[n], beyond / self.rate, square / self.rate]
            })
            .collect();
        for (i, weight) in &self.starts {
            for (n, [p, rest, square]) in rests.iter().enumerate().take(self.places.saturating_sub(*i)) {
                let services = (i + n) as f64;
                first += weight * (rest + p * services * m1);
                let later = services * (m2 - m1 * m1) + (services * m1).powi(2);
                second += weight * (square + 2.0 * rest * services * m1 + p * later);
            }
        }
        (first, second)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn variance(&self) -> f64 {
        self.variance
    }

    pub(crate) fn lst(&self, s: Complex64) -> Complex64 {
        let service = self.service.lst(s);
        // sums[n] = sum over k <= n of lambda g_k S*^k.
        let (mut sums, mut power, mut sum) = (self.rests(s, service), Complex64::ONE, Complex64::ZERO);
        for term in &mut sums {
            sum += *term * power;
            power *= service;
            *term = sum;
        }
        let reached = self.starts.iter().filter(|(n, _)| *n < self.places);
        let busy: Complex64 = reached
            .map(|(n, weight)| service.powu(u32::try_from(*n).unwrap_or(u32::MAX)) * sums[self.places - 1 - n] * weight)
            .sum();
        service * self.empty + busy
    }

    /// Returns the probability that a sojourn takes longer than `t` seconds if the service time is constant, otherwise
    /// `None`. A packet that finds j packets stays for the rest of the current service and j services. So the length of
    /// that rest decides for a single j only. For this j, the sojourn is longer than `t` if the packet arrives in the
    /// first (j + 1) service times - `t` of the current service: if more than n packets arrive in this time, where n is
    /// the number of packets that arrived before it since the start of the service.
    pub(crate) fn tail(&self, t: f64) -> Option<f64> {
        let [LawPart { shape: LawShape::Constant(service), .. }] = *self.service.parts() else { return None };
        let alone = if t < service { self.empty } else { 0.0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and cut at what there is"
        )]
        let divided = ((t / service) as usize).min(self.places);
        let over = (service * (divided + 1) as f64 - t).clamp(0.0, service);
        let come = more_than(self.rate * over, self.places);
        let reached = self.starts.iter().filter(|(i, _)| *i <= divided && divided < self.places);
        let partly: f64 = reached.map(|(i, weight)| weight * come[divided - i]).sum();
        Some((alone + partly + self.found_more[divided]).clamp(0.0, 1.0))
    }

    /// Returns lambda g_n(s) for n below `places`. The recursion runs in the direction in which errors shrink.
    fn rests(&self, s: Complex64, service: Complex64) -> Vec<Complex64> {
        let factor = Complex64::ONE - s / self.rate;
        let mut rests = vec![Complex64::ZERO; self.places];
        if factor.norm() >= 1.0 {
            let mut before = service;
            for (rest, exactly) in rests.iter_mut().zip(&self.arrivals) {
                before = (before - exactly) / factor;
                *rest = before;
            }
        } else {
            let mut after = Complex64::ZERO;
            for n in (1..self.arrivals.len()).rev() {
                after = factor * after + self.arrivals[n];
                if n <= self.places {
                    rests[n - 1] = after;
                }
            }
        }
        rests
    }
}

/// Returns the probabilities that a number with Poisson distribution and mean `mean` exceeds n, for n from 0 to `most`.
fn more_than(mean: f64, most: usize) -> Vec<f64> {
    let mut terms: Vec<f64> = (0..=most).map(|n| ln_poisson(n, mean).exp()).collect();
    let within: f64 = terms.iter().sum();
    sums_after(&mut terms);
    terms.iter_mut().for_each(|after| *after += (1.0 - within).max(0.0));
    terms
}

/// Replaces each term by the sum of the terms after it.
fn sums_after(terms: &mut [f64]) {
    let mut sum = 0.0;
    for term in terms.iter_mut().rev() {
        sum += std::mem::replace(term, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{mg1, mm1k};
    use super::*;

    #[test]
    fn exponential_service_is_mm1k() {
        for (rate, places) in [(80.0, 10), (150.0, 30), (100.0, 1), (1.0, 12), (100.0, 200)] {
            let general = mg1k(rate, &Law::exponential(0.01).unwrap(), places).unwrap();
            let plain = mm1k(rate, 100.0, places).unwrap();
            assert!((general.loss / plain.loss - 1.0).abs() < 1e-9, "{rate} {places} {} {}", general.loss, plain.loss);
            assert!((general.sojourn_s / plain.sojourn_s - 1.0).abs() < 1e-9);
            assert!((general.sojourn.mean() / plain.sojourn_s - 1.0).abs() < 1e-9);
            assert!((general.sojourn.sd() / plain.sojourn.sd() - 1.0).abs() < 1e-6);
            assert!((general.utilisation - plain.utilisation).abs() < 1e-9);
            for p in [0.1, 0.5, 0.95, 0.999] {
                let (a, b) = (general.sojourn.quantile(p).unwrap(), plain.sojourn.quantile(p).unwrap());
                assert!((a / b - 1.0).abs() < 1e-6, "{rate} {places} {p}: {a} {b}");
            }
        }
    }

    #[test]
    fn many_places_are_as_good_as_no_limit() {
        let law = Law::gamma(0.01, 0.4).unwrap();
        let (limited, open) = (mg1k(70.0, &law, 500).unwrap(), mg1(70.0, &law).unwrap());
        assert!((limited.sojourn_s / open.sojourn_s - 1.0).abs() < 1e-9, "{limited:?}");
        for p in [0.1, 0.5, 0.95, 0.999] {
            let (a, b) = (limited.sojourn.quantile(p).unwrap(), open.sojourn.quantile(p).unwrap());
            assert!((a / b - 1.0).abs() < 1e-6, "{p}: {a} {b}");
        }
    }

    #[test]
    fn transforms_agree_with_the_moments_of_any_law() {
        for law in [
            Law::constant(0.01).unwrap(),
            Law::gamma(0.01, 3.0).unwrap(),
            Law::uniform(0.001, 0.019).unwrap(),
            Law::hyperexponential(0.9, 0.005, 0.05).unwrap(),
        ] {
            for (rate, places) in [(50.0, 1), (50.0, 5), (95.0, 40), (200.0, 20)] {
                let state = mg1k(rate, &law, places).unwrap();
                assert!((state.sojourn.lst(Complex64::ZERO).re - 1.0).abs() < 1e-9, "{law:?} {rate} {places}");
                assert!((state.sojourn.mean() / state.sojourn_s - 1.0).abs() < 1e-9, "{law:?} {rate} {places}");
                let h = 1e-4 / state.sojourn_s;
                let slope = (1.0 - state.sojourn.lst(h.into()).re) / h;
                let second = state.sojourn.variance() + state.sojourn_s.powi(2);
                assert!((slope / (state.sojourn_s - h * second / 2.0) - 1.0).abs() < 1e-6, "{law:?} {rate} {places}");
            }
        }
    }

    #[test]
    fn constant_services_are_inverted_as_all_others() {
        for (rate, places) in [(50.0, 3), (90.0, 30), (150.0, 12)] {
            let constant = mg1k(rate, &Law::constant(0.01).unwrap(), places).unwrap();
            let nearly = mg1k(rate, &Law::uniform(0.0099, 0.0101).unwrap(), places).unwrap();
            for t in [0.004, 0.0152, 0.0237, 0.0371, 0.0895, 0.1152] {
                let (a, b) = (constant.sojourn.tail(t), nearly.sojourn.tail(t));
                assert!((a - b).abs() < 2e-3, "{rate} {places} {t}: {a} {b}");
            }
            assert_eq!(constant.sojourn.tail(0.01 * (places + 1) as f64), 0.0);
        }
    }

    #[test]
    fn floods_and_trickles_are_answered() {
        for (rate, places) in [(1e-9, 5000), (1e9, 5000), (1e9, 1), (1e5, 300)] {
            let state = mg1k(rate, &Law::constant(0.01).unwrap(), places).unwrap();
            assert!(state.sojourn_s.is_finite() && (0.0..=1.0).contains(&state.loss), "{rate} {places} {state:?}");
        }
        let full = mg1k(1e5, &Law::constant(0.01).unwrap(), 300).unwrap();
        assert!((full.loss - 0.999).abs() < 1e-6 && (full.sojourn_s / 2.99 - 1.0).abs() < 1e-2, "{full:?}");
    }
}
