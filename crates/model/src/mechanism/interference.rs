//! Models table writes that seize the data path, and their effect on delays and on the measured share of packets that
//! ask the controller.
use crate::check::{domain, positive, share, stable};
use crate::delay_part::DelayPart;
use crate::{Distribution, Law, ModelError};
use num_complex::Complex64;
use std::sync::Arc;

/// Most writes that a threshold may span: the terms of the sum alternate in sign, and beyond this no digits remain.
const WRITES_MAX: f64 = 20.0;
/// Most rounds for a busy period's transform; a few suffice unless writes take all but a thousandth of the time.
const ROUNDS_MAX: u32 = 20_000;

/// Data path that table writes seize. Writes are Poisson arrivals of constant duration with priority; an interrupted
/// packet is resumed (M/G/1 with preemptive-resume priority).
///
/// The model is weir's own. Exact if writes are independent of packets. Writes behind a bottleneck are more regular,
/// and the answer is then too high (means by 1 to 11 %, those of packets that the switch forwards alone by up to 85 %
/// with writes for half of the time).
#[derive(Debug, Clone)]
pub struct WriteInterference {
    /// Rate of packets, per second.
    pub rate: f64,
    /// Service time of a packet.
    pub service: Law,
    /// Rate of writes, per second; 0 for none.
    pub write_rate: f64,
    /// Duration of a write, in seconds.
    pub write_s: f64,
}

/// Steady state of the data path.
#[derive(Debug, Clone)]
pub struct WriteInterferenceState {
    /// Mean sojourn of packets, in seconds.
    pub sojourn_s: f64,
    /// Share of the time in which writes occupy the data path.
    pub writing: f64,
    /// Share of the time in which it forwards.
    pub forwarding: f64,
    /// Distribution of the sojourn times.
    pub sojourn: Distribution,
}

impl WriteInterference {
    /// Computes the steady state.
    ///
    /// # Errors
    /// `DOMAIN` for invalid rates and times, `UNSTABLE` if writes and packets take all the time.
    pub fn solve(&self) -> Result<WriteInterferenceState, ModelError> {
        let (writing, forwarding) = self.loads()?;
        let mean = self.service.mean();
        let preempted = self.preempted(writing + forwarding);
        let sojourn_s = preempted.mean;
        // A moment of the times can lie outside the range of floating point, for example that of 1e300 s.
        if !sojourn_s.is_finite() {
            return Err(ModelError::NoConvergence { what: "mean delay behind table writes".to_owned(), rounds: 1 });
        }
        // Packets not delayed by any write have a distribution with jumps if services do. They are kept separate, so
        // that only the continuous part is inverted.
        let untouched = (1.0 - writing - forwarding) * self.service.lst(Complex64::new(self.write_rate, 0.0)).re;
        let rest = preempted.without(untouched.clamp(0.0, 1.0), &self.service);
        let sojourn = if self.write_rate == 0.0 {
            crate::station::mg1(self.rate, &self.service)?.sojourn
        } else {
            let parts = [(untouched, Distribution::law(&self.service)), (1.0 - untouched, Distribution::of_part(rest))];
            Distribution::mixture(&parts)?
        };
        debug_assert!(sojourn_s >= mean * (1.0 - f64::EPSILON));
        Ok(WriteInterferenceState { sojourn_s, writing, forwarding, sojourn })
    }

    /// Returns the utilisations by writes and by packets.
    fn loads(&self) -> Result<(f64, f64), ModelError> {
        let writing = write_load(self.write_rate, self.write_s)?;
        let forwarding = positive("rate of packets", self.rate)? * self.service.mean();
        stable("data path", writing + forwarding)?;
        Ok((writing, forwarding))
    }

    fn preempted(&self, rho: f64) -> PreemptedSojourn {
        let (b, free) = (self.write_rate * self.write_s, 1.0 - rho);
        // Powers of the duration of a write are formed from the load, which is below 1: without writes the duration may
        // be so long that its square is infinite.
        let square = b * self.write_s + self.rate * self.service.second_moment();
        let cube = b * self.write_s * self.write_s + self.rate * self.service.third_moment();
        // Work that a packet finds, and its own.
        let (wait, wait_variance) = (square / (2.0 * free), (square / (2.0 * free)).powi(2) + cube / (3.0 * free));
        let work = wait + self.service.mean();
        let during = b * self.write_s / (1.0 - b).powi(3);
        PreemptedSojourn {
            path: self.clone(),
            rho,
            untouched: 0.0,
            mean: work / (1.0 - b),
            variance: (wait_variance + self.service.variance()) / (1.0 - b).powi(2) + work * during,
        }
    }
}

/// Sojourn times with writes, by their transform: of all packets, or only of those delayed by more than their
/// service.
#[derive(Debug)]
pub(crate) struct PreemptedSojourn {
    path: WriteInterference,
    rho: f64,
    /// Share of all packets that is left out: those not delayed.
    untouched: f64,
    mean: f64,
    variance: f64,
}

impl PreemptedSojourn {
    /// Returns the distribution without a share of packets that have no delay besides their service.
    fn without(&self, untouched: f64, service: &Law) -> DelayPart {
        let left = (1.0 - untouched).max(f64::MIN_POSITIVE);
        let mean = (self.mean - untouched * service.mean()) / left;
        let second = (self.variance + self.mean.powi(2) - untouched * service.second_moment()) / left;
        DelayPart::Preempted(Arc::new(PreemptedSojourn {
            path: self.path.clone(),
            rho: self.rho,
            untouched,
            mean,
            variance: (second - mean * mean).max(0.0),
        }))
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn variance(&self) -> f64 {
        self.variance
    }

    /// Returns the transform of the time for the work that a packet finds and its own, with all writes that arrive
    /// meanwhile (Kella and Yechiali 1988): a work of u seconds has the transform of u at eta = s + write rate (1 -
    /// transform of a busy period of writes).
    pub(crate) fn lst(&self, s: Complex64) -> Complex64 {
        let WriteInterference { rate, service, write_rate, write_s } = &self.path;
        let eta = s + (Complex64::ONE - busy_period(*write_rate, *write_s, s)) * write_rate;
        let write = (-eta * write_s).exp();
        let served = service.lst(eta);
        let found =
            eta * (1.0 - self.rho) / (eta - (Complex64::ONE - write) * write_rate - (Complex64::ONE - served) * rate);
        (found * served - service.lst(s) * self.untouched) / (1.0 - self.untouched)
    }
}

/// Returns the transform of a busy period of writes: the smallest solution of x = exp(-B (s + rate (1 - x))), the
/// only one in the unit disc (Takács). Newton's method finds it in a few rounds. If a step leaves the unit disc, a
/// step of plain iteration is taken instead, which never does.
fn busy_period(rate: f64, write_s: f64, s: Complex64) -> Complex64 {
    let load = rate * write_s;
    let mut x = Complex64::ZERO;
    for _ in 0..ROUNDS_MAX {
        let plain = (-(s + (Complex64::ONE - x) * rate) * write_s).exp();
        let newton = x - (x - plain) / (Complex64::ONE - plain * load);
        let next = if newton.norm_sqr() <= 1.0 { newton } else { plain };
        let step = (next - x).norm();
        x = next;
        if step < 1e-15 {
            break;
        }
    }
    x
}

fn write_load(write_rate: f64, write_s: f64) -> Result<f64, ModelError> {
    let load = crate::check::not_negative("rate of writes", write_rate)? * positive("B", write_s)?;
    stable("table writes", load)
}

/// Returns the share of packets that seem to ask the controller in a measurement by delay: packets delayed by more
/// than a threshold are those that ask and those that waited for writes. Returns also the share delayed by writes
/// alone.
///
/// The model is weir's own: the writes that a packet finds are M/D/1 work (Erlang's formula), exact if writes are
/// independent of packets.
///
/// # Errors
/// `DOMAIN` for invalid numbers, and for thresholds of more than 20 writes; `UNSTABLE` if writes take all the time.
pub fn effective_share(p: f64, threshold_s: f64, write_rate: f64, write_s: f64) -> Result<(f64, f64), ModelError> {
    let p = share("p", p)?;
    let load = write_load(write_rate, write_s)?;
    let x = crate::check::not_negative("x", threshold_s)?;
    if x / write_s > WRITES_MAX {
        return Err(domain("x", x, format!("{WRITES_MAX} writes of {write_s} s at most")));
    }
    let (mut within, mut factorial, mut k) = (0.0, 1.0, 0.0);
    while k * write_s <= x {
        let left = write_rate * (k * write_s - x);
        within += left.powi(if k == 0.0 { 0 } else { whole(k) }) / factorial * (-left).exp();
        k += 1.0;
        factorial *= k;
    }
    let delayed = (1.0 - (1.0 - load) * within).clamp(0.0, 1.0);
    Ok((p + (1.0 - p) * delayed, delayed))
}

#[allow(clippy::cast_possible_truncation, reason = "20 at most")]
fn whole(k: f64) -> i32 {
    k as i32
}

/// Returns the duration of a write in seconds, from the share of packets that seem to ask the controller. At small
/// loads these include packets that arrive in the part of a write that is longer than the threshold.
///
/// # Errors
/// `DOMAIN` for invalid numbers, a share of 0 or 1, or an effective share below the true one.
pub fn write_length_s(p: f64, p_effective: f64, rate: f64, threshold_s: f64) -> Result<f64, ModelError> {
    let (p, effective) = (share("p", p)?, share("P_eff", p_effective)?);
    let x = crate::check::not_negative("x", threshold_s)?;
    if p <= 0.0 || p >= 1.0 {
        return Err(domain("p", p, "a share above 0 and below 1: some packets ask, some do not"));
    }
    if effective < p {
        return Err(domain("P_eff", effective, format!("p, which is {p}, or more")));
    }
    Ok(x + (effective / p - 1.0) / ((1.0 - p) * positive("rate of packets", rate)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::station::mg1;

    fn path(rate: f64, write_rate: f64) -> WriteInterference {
        WriteInterference { rate, service: Law::constant(1e-5).unwrap(), write_rate, write_s: 0.008 }
    }

    #[test]
    fn without_writes_it_is_mg1() {
        let (none, plain) = (path(5e4, 0.0).solve().unwrap(), mg1(5e4, &Law::constant(1e-5).unwrap()).unwrap());
        assert!((none.sojourn_s / plain.sojourn_s - 1.0).abs() < 1e-12);
        let (a, b) = (none.sojourn.quantile(0.9).unwrap(), plain.sojourn.quantile(0.9).unwrap());
        assert!((a / b - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_distribution_has_the_mean_and_starts_with_untouched_packets() {
        for (rate, write_rate) in [(5000.0, 30.0), (200.0, 50.0), (60_000.0, 20.0), (10.0, 1.0)] {
            let state = path(rate, write_rate).solve().unwrap();
            assert!((state.sojourn.mean() / state.sojourn_s - 1.0).abs() < 1e-9);
            let untouched = (1.0 - state.writing - state.forwarding) * (-write_rate * 1e-5).exp();
            assert!(
                (state.sojourn.cdf(1.0001e-5) - untouched).abs() < 1e-3,
                "{} {untouched}",
                state.sojourn.cdf(1.0001e-5)
            );
            // Area under the tail, which is 1 up to the service time, in growing steps.
            let growth = (20.0 * state.sojourn.sd() / 1e-5).powf(1.0 / 1500.0);
            let times: Vec<f64> = (0..=1500).map(|k| 1e-5 * growth.powi(k)).collect();
            let area = |t: &[f64]| (t[1] - t[0]) * state.sojourn.tail((t[0] + t[1]) / 2.0);
            let sum: f64 = 1e-5 + times.windows(2).map(area).sum::<f64>();
            assert!((sum / state.sojourn_s - 1.0).abs() < 1e-2, "{sum} {}", state.sojourn_s);
        }
    }

    #[test]
    fn busy_periods_are_the_solution_within_the_unit_disc() {
        for load in [0.001, 0.1, 0.5, 0.9, 0.99, 0.9999] {
            for (re, im) in [(0.0, 1e-9), (1e-3, 0.0), (1.0, 5.0), (40.0, 3000.0), (1e4, 1e6), (0.0, 700.0)] {
                let (write_s, s) = (0.008, Complex64::new(re, im));
                let rate = load / write_s;
                let found = busy_period(rate, write_s, s);
                let again = (-(s + (Complex64::ONE - found) * rate) * write_s).exp();
                assert!((found - again).norm() < 1e-13 && found.norm() <= 1.0 + 1e-12, "{load} {s}: {found}");
            }
        }
    }

    #[test]
    fn light_packets_see_the_work_of_writes() {
        let state = path(1.0, 50.0).solve().unwrap();
        let (_, delayed) = effective_share(0.0, 0.004, 50.0, 0.008).unwrap();
        // Includes the writes that arrive while packets wait.
        let tail = state.sojourn.tail(0.004);
        assert!(tail > delayed && tail < 1.1 * delayed, "{tail} {delayed}");
    }

    #[test]
    fn a_write_is_found_again_at_small_loads() {
        let (effective, _) = effective_share(0.01, 0.0005, 0.01 * 50.0, 0.0093).unwrap();
        let found = write_length_s(0.01, effective, 50.0, 0.0005).unwrap();
        assert!((found / 0.0093 - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn times_whose_squares_are_infinite_get_an_answer_or_a_reason() {
        let service = Law::constant(1e-5).unwrap();
        let none = WriteInterference { write_s: 1e300, ..path(5e4, 0.0) }.solve().unwrap();
        assert!((none.sojourn_s / mg1(5e4, &service).unwrap().sojourn_s - 1.0).abs() < 1e-12);
        let long = Law::exponential(1e290).unwrap();
        let reason = WriteInterference { service: long, ..path(1e-300, 0.0) }.solve().unwrap_err();
        assert_eq!(reason.kind(), "NO_CONVERGENCE");
    }

    #[test]
    fn what_has_no_answer_is_refused() {
        assert_eq!(path(1e5, 30.0).solve().unwrap_err().kind(), "UNSTABLE");
        assert_eq!(path(1.0, 125.0).solve().unwrap_err().kind(), "UNSTABLE");
        assert_eq!(effective_share(0.1, 0.2, 1.0, 0.008).unwrap_err().kind(), "DOMAIN");
        assert_eq!(write_length_s(0.0, 0.1, 1.0, 0.0).unwrap_err().kind(), "DOMAIN");
        assert_eq!(write_length_s(0.5, 0.1, 1.0, 0.0).unwrap_err().kind(), "DOMAIN");
    }
}
