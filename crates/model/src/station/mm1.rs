//! Solves the M/M/1 queue.
use super::SteadyState;
use crate::check::{positive, stable};
use crate::{Distribution, ModelError};

/// Solves M/M/1: Poisson arrivals at `arrival_rate` per second, exponential service of `service_rate` per second, no
/// limit. Exact. Source: Kleinrock, Queueing Systems I (1975), 3.2.
///
/// # Errors
/// `DOMAIN` for rates that are not above 0, `UNSTABLE` if the load is 1 or more.
pub fn mm1(arrival_rate: f64, service_rate: f64) -> Result<SteadyState, ModelError> {
    let arrival_rate = positive("arrival rate", arrival_rate)?;
    let service_rate = positive("service rate", service_rate)?;
    let rho = stable("the queue", arrival_rate / service_rate)?;
    let sojourn_s = 1.0 / (service_rate - arrival_rate);
    Ok(SteadyState {
        sojourn_s,
        waiting_s: rho * sojourn_s,
        number: rho / (1.0 - rho),
        utilisation: rho,
        loss: 0.0,
        sojourn: Distribution::exponential(sojourn_s)?,
    })
}
