//! Solves MMPP(2)/M/1: Poisson arrivals with two alternating rates.
use super::qbd::QuasiBirthDeath;
use crate::ModelError;
use crate::check::{domain, not_negative, positive, stable};
use nalgebra::DMatrix;

/// Poisson process that alternates between two rates at random times. All values per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModulatedPoisson {
    /// Arrival rate in each state.
    pub rates: [f64; 2],
    /// Rates of changes from the first state to the second, and back.
    pub changes: [f64; 2],
}

impl ModulatedPoisson {
    /// Returns the long-term arrival rate, per second.
    pub fn mean_rate(&self) -> f64 {
        let ModulatedPoisson { rates: [first, second], changes: [away, back] } = self;
        (first * back + second * away) / (away + back)
    }
}

/// Returns mean sojourn in seconds and mean number of packets of an unlimited MMPP(2)/M/1 queue: modulated Poisson
/// arrivals, exponential service of `service_rate` per second. Exact (Neuts, Matrix-Geometric Solutions in Stochastic
/// Models, 1981, chapter 6).
///
/// # Errors
/// `DOMAIN`; `UNSTABLE`; `NO_CONVERGENCE` if it is barely stable.
pub fn mmpp2_m1(arrivals: &ModulatedPoisson, service_rate: f64) -> Result<(f64, f64), ModelError> {
    let ModulatedPoisson { rates: [first, second], changes: [away, back] } = *arrivals;
    not_negative("r0", first)?;
    not_negative("r1", second)?;
    positive("q01", away)?;
    positive("q10", back)?;
    let service_rate = positive("mu", service_rate)?;
    let rate = arrivals.mean_rate();
    if rate <= 0.0 {
        return Err(domain("r0, r1", "0, 0", "one of them above 0"));
    }
    stable("the queue", rate / service_rate)?;
    let matrix = |values: [f64; 4]| DMatrix::from_row_slice(2, 2, &values);
    let process = QuasiBirthDeath {
        up: matrix([first, 0.0, 0.0, second]),
        within: matrix([0.0, away, back, 0.0]),
        down: matrix([service_rate, 0.0, 0.0, service_rate]),
    };
    let number = process.solve()?.level;
    Ok((number / rate, number))
}
