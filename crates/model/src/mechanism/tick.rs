//! Models a device that releases packets only at regular times.
use crate::ModelError;
use crate::check::{at_least_one, domain, positive, stable};
use num_complex::Complex64;
use std::f64::consts::TAU;

/// Most packets of a tick.
pub const TICK_PACKETS_MAX: u32 = 10_000;
/// Most rounds for one root; each reduces the error at least by the utilisation.
const ROUNDS_MAX: u32 = 100_000;

/// Returns the mean sojourn in seconds behind a device that releases up to `packets` waiting packets every
/// `interval_s`. Packets are Poisson arrivals.
///
/// The model is weir's own; exact. The mean number waiting before a tick is that of bulk service at fixed times
/// (Bailey 1954), by the roots of z^m = exp(a (z - 1)) in the unit disc.
///
/// # Errors
/// `DOMAIN` for invalid numbers or more than [`TICK_PACKETS_MAX`] packets, `UNSTABLE` if more arrive than are
/// released, `NO_CONVERGENCE` very close to that.
pub fn tick_s(rate: f64, interval_s: f64, packets: u32) -> Result<f64, ModelError> {
    let rate = positive("lam", rate)?;
    let come = rate * positive("delta", interval_s)?;
    if at_least_one("m", packets)? > TICK_PACKETS_MAX {
        return Err(domain("m", packets, format!("{TICK_PACKETS_MAX} packets at most")));
    }
    let m = f64::from(packets);
    stable("tick", come / m)?;
    let mut left = (m - (m - come).powi(2)) / (2.0 * (m - come)) - come;
    for k in 1..packets {
        left += (Complex64::ONE - root(come, m, f64::from(k))?).inv().re;
    }
    // If a tick releases nearly all packets, nothing remains except rounding errors.
    Ok(interval_s / 2.0 + left.max(0.0) / rate)
}

/// Returns the k-th root in the unit disc of z = exp(a (z - 1) / m + 2 pi i k / m).
fn root(come: f64, m: f64, k: f64) -> Result<Complex64, ModelError> {
    let turn = Complex64::from_polar(1.0, TAU * k / m);
    let mut z = Complex64::ZERO;
    for _ in 0..ROUNDS_MAX {
        let next = ((z - 1.0) * (come / m)).exp() * turn;
        if (next - z).norm() < 1e-15 {
            return Ok(next);
        }
        z = next;
    }
    Err(ModelError::NoConvergence { what: "packets left by a tick".to_owned(), rounds: ROUNDS_MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_a_tick_is_known_in_closed_form() {
        for rate in [10.0, 150.0, 240.0] {
            let closed = 0.004 / (2.0 * (1.0 - rate * 0.004));
            assert!((tick_s(rate, 0.004, 1).unwrap() / closed - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_tick_that_releases_all_delays_by_half_an_interval() {
        assert!((tick_s(100.0, 0.004, 50).unwrap() / 0.002 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn more_packets_a_tick_delay_less() {
        let delays: Vec<f64> = [3, 4, 6, 12].map(|m| tick_s(600.0, 0.004, m).unwrap()).into();
        assert!(delays.is_sorted_by(|a, b| a > b), "{delays:?}");
        assert_eq!(tick_s(750.0, 0.004, 3).unwrap_err().kind(), "UNSTABLE");
        assert_eq!(tick_s(1.0, 0.004, 0).unwrap_err().kind(), "DOMAIN");
    }
}
