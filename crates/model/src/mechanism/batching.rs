//! Models batching in software switches that poll: packets wait for a batch.
use crate::ModelError;
use crate::check::{at_least_one, domain, not_negative, positive};
use crate::root::bracketed;
use statrs::function::gamma::checked_gamma_lr;

/// Most packets of a batch.
pub const BATCH_MAX: u32 = 100_000;

/// Stage that passes packets on once there are enough of them, or some time after the last batch. Packets are Poisson
/// arrivals.
///
/// The model is weir's own (Lagopus, as described by Rahimi and others 2016, behaves like this); exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchStage {
    /// Arrival rate in packets a second.
    pub rate: f64,
    /// Packets of a full batch, B.
    pub packets: u32,
    /// Time-out, θ, in seconds.
    pub timeout_s: f64,
}

/// Steady state of a batching stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchStageState {
    stage: BatchStage,
    /// Mean time between batches, in seconds.
    cycle_s: f64,
    /// Mean delay, in seconds.
    pub delay_s: f64,
    /// Mean packets of a batch, including empty ones.
    pub packets: f64,
    /// Share of the batches that are full.
    pub full: f64,
}

impl BatchStage {
    /// Computes the steady state.
    ///
    /// # Errors
    /// `DOMAIN` for invalid numbers, or more than [`BATCH_MAX`] packets.
    pub fn solve(&self) -> Result<BatchStageState, ModelError> {
        positive("lam", self.rate)?;
        positive("theta", self.timeout_s)?;
        if at_least_one("B", self.packets)? > BATCH_MAX {
            return Err(domain("B", self.packets, format!("{BATCH_MAX} packets at most")));
        }
        let x = self.rate * self.timeout_s;
        let cycle_s = self.below(self.packets, x) / self.rate;
        // Integral of v P(N(v) <= B - 2): v (lam v)^k / k! exp(-lam v) is (k + 1) / lam² of a gamma density.
        let waits: f64 =
            (0..self.packets - 1).map(|k| f64::from(k + 1) * gamma(k + 2, x)).sum::<f64>() / self.rate.powi(2);
        Ok(BatchStageState {
            stage: *self,
            cycle_s,
            delay_s: if cycle_s > 0.0 { waits / cycle_s } else { 0.0 },
            packets: self.rate * cycle_s,
            full: gamma(self.packets, x),
        })
    }

    /// Returns the sum of P(Gamma(k + 1) <= x) for k below `packets`: lam times the integral to x / lam of P(fewer
    /// than `packets` packets).
    fn below(&self, packets: u32, x: f64) -> f64 {
        (0..packets).map(|k| gamma(k + 1, x)).sum()
    }
}

impl BatchStageState {
    /// Returns the share of packets delayed by more than `delay_s` seconds.
    pub fn tail(&self, delay_s: f64) -> f64 {
        let (stage, most) = (&self.stage, self.stage.timeout_s);
        if delay_s >= most || self.cycle_s <= 0.0 {
            return 0.0;
        }
        let to = |t: f64| stage.below(stage.packets - 1, stage.rate * t) / stage.rate;
        ((to(most) - to(delay_s.max(0.0))) / self.cycle_s).clamp(0.0, 1.0)
    }

    /// Returns the delay in seconds that a share of packets does not exceed.
    ///
    /// # Errors
    /// `DOMAIN` for invalid shares.
    pub fn quantile(&self, share: f64) -> Result<f64, ModelError> {
        let over = 1.0 - crate::check::share("quantile", share)?;
        if self.tail(0.0) <= over {
            return Ok(0.0);
        }
        Ok(bracketed(0.0, self.stage.timeout_s, |delay| self.tail(delay) - over))
    }
}

/// Returns P(Gamma(n) <= x): the probability that n arrivals come before x.
fn gamma(n: u32, x: f64) -> f64 {
    checked_gamma_lr(f64::from(n), x).unwrap_or(0.0)
}

/// Software switch that passes packets on every F rounds of its loop, at several stages, at light load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PollingSwitch {
    /// Rounds of the loop between two batches, F.
    pub rounds: f64,
    /// Time of a round, τ, in seconds.
    pub round_s: f64,
    /// Stages that a packet passes, k; in both directions for a round-trip time.
    pub stages: u32,
    /// Remaining constant delay, in seconds.
    pub base_s: f64,
}

/// Delay of a polling switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PollingDelay {
    /// Mean, in seconds.
    pub mean_s: f64,
    /// Standard deviation, in seconds.
    pub sd_s: f64,
}

impl PollingSwitch {
    /// Returns the delay at light load: each stage adds a time uniform between 0 and F τ, independent of the others.
    ///
    /// The model is weir's own. Validated with the round-trip times published for Lagopus by loop count (Rahimi and
    /// others 2016, table II): two means give τ, and the standard deviation then equals that measured for four
    /// stages.
    ///
    /// # Errors
    /// `DOMAIN` for invalid numbers.
    pub fn delay(&self) -> Result<PollingDelay, ModelError> {
        let timeout_s = not_negative("F", self.rounds)? * positive("tau", self.round_s)?;
        let stages = f64::from(at_least_one("stages", self.stages)?);
        let mean_s = not_negative("base", self.base_s)? + stages * timeout_s / 2.0;
        Ok(PollingDelay { mean_s, sd_s: timeout_s * (stages / 12.0).sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_one_wait_for_nothing() {
        let state = BatchStage { rate: 100.0, packets: 1, timeout_s: 1.0 }.solve().unwrap();
        assert_eq!((state.delay_s, state.tail(0.0), state.quantile(0.99).unwrap()), (0.0, 0.0, 0.0));
        assert!((state.full - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_tail_has_the_mean() {
        for (rate, packets, timeout_s) in
            [(30_000.0, 144, 0.002), (80_000.0, 144, 0.002), (500.0, 32, 0.002), (1e6, 10, 1.0)]
        {
            let state = BatchStage { rate, packets, timeout_s }.solve().unwrap();
            let step = state.quantile(0.999_999).unwrap() / 2000.0;
            let sum: f64 = (0..2000).map(|k| state.tail((f64::from(k) + 0.5) * step) * step).sum();
            assert!((sum / state.delay_s - 1.0).abs() < 1e-4, "{sum} {}", state.delay_s);
        }
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        let stage = BatchStage { rate: 1.0, packets: 2, timeout_s: 1.0 };
        for wrong in [
            BatchStage { rate: 0.0, ..stage },
            BatchStage { packets: 0, ..stage },
            BatchStage { packets: BATCH_MAX + 1, ..stage },
            BatchStage { timeout_s: f64::NAN, ..stage },
        ] {
            assert_eq!(wrong.solve().unwrap_err().kind(), "DOMAIN");
        }
    }
}
