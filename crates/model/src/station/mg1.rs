//! Solves the M/G/1 queue.
use super::SteadyState;
use crate::check::{positive, stable};
use crate::delay_part::DelayPart;
use crate::law::Law;
use crate::{Distribution, ModelError};

/// Solves M/G/1: Poisson arrivals at `arrival_rate` per second, services of any law, no limit. Mean, variance and
/// distribution are exact (Pollaczek and Khinchine; Kleinrock, Queueing Systems I, 1975, 5.7).
///
/// # Errors
/// `DOMAIN` for a rate that is not above 0, `UNSTABLE` if the load is 1 or more.
pub fn mg1(arrival_rate: f64, service: &Law) -> Result<SteadyState, ModelError> {
    let arrival_rate = positive("arrival rate", arrival_rate)?;
    let rho = stable("the queue", arrival_rate * service.mean())?;
    let waiting = DelayPart::waiting(service.clone(), rho);
    let waiting_s = waiting.mean();
    let sojourn_s = waiting_s + service.mean();
    Ok(SteadyState {
        sojourn_s,
        waiting_s,
        number: arrival_rate * sojourn_s,
        utilisation: rho,
        loss: 0.0,
        sojourn: Distribution::sum([&Distribution::of_part(waiting), &Distribution::law(service)]),
    })
}

/// Returns the distribution of the waiting times alone, which holds for packets of any service time of their own.
/// Exact.
///
/// # Errors
/// See [`mg1`].
pub fn mg1_waiting(arrival_rate: f64, service: &Law) -> Result<Distribution, ModelError> {
    let arrival_rate = positive("arrival rate", arrival_rate)?;
    let rho = stable("the queue", arrival_rate * service.mean())?;
    Ok(Distribution::of_part(DelayPart::waiting(service.clone(), rho)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_service_is_mm1() {
        let (general, plain) =
            (mg1(70.0, &Law::exponential(0.01).unwrap()).unwrap(), super::super::mm1(70.0, 100.0).unwrap());
        assert!((general.sojourn_s / plain.sojourn_s - 1.0).abs() < 1e-12);
        assert!((general.sojourn.sd() / plain.sojourn.sd() - 1.0).abs() < 1e-12);
        for p in [0.01, 0.5, 0.95, 0.99, 0.9999] {
            let (a, b) = (general.sojourn.quantile(p).unwrap(), plain.sojourn.quantile(p).unwrap());
            assert!((a / b - 1.0).abs() < 1e-6, "{p}: {a} {b}");
        }
    }

    #[test]
    fn a_constant_service_is_the_least_delay_of_all() {
        // More than half of the packets find an idle server.
        let light = mg1(300.0, &Law::constant(0.001).unwrap()).unwrap();
        assert!((light.sojourn.quantile(0.5).unwrap() - 0.001).abs() < 1e-15);
        assert!((light.sojourn.cdf(0.001) - 0.7).abs() < 1e-9 && light.sojourn.cdf(0.000_999_9) == 0.0);
    }

    #[test]
    fn waiting_times_of_constant_services_are_erlangs() {
        // Erlang's formula: P(W <= t) = (1 - rho) sum_{k <= t/D} (lambda (kD - t))^k / k! exp(-lambda (kD - t)).
        let (rate, d, t) = (700.0f64, 0.001, 0.002_3);
        let mut sum = 0.0;
        for (k, factorial) in [(0, 1.0), (1, 1.0), (2, 2.0)] {
            let x = rate * (f64::from(k) * d - t);
            sum += x.powi(k) / factorial * (-x).exp();
        }
        let found = mg1(rate, &Law::constant(d).unwrap()).unwrap().sojourn.cdf(t + d);
        assert!((found - 0.3 * sum).abs() < 1e-6, "{found} {}", 0.3 * sum);
    }
}
