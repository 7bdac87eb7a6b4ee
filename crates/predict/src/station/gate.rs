//! Computes the waiting time at a gate, which releases packets in groups.
use super::waiting::spread;
use weir_model::mechanism::{BATCH_MAX, BatchStage, tick_s};
use weir_model::{Distribution, Law, ModelError};
use weir_scenario::ReleaseGate;

/// Number of points that represent the waiting time for a batch.
const BATCH_PARTS: u32 = 64;

/// Returns the arrivals between two ticks over the packets that may leave at one; 0 for gates without such a limit.
pub(super) fn gate_offered(gate: &ReleaseGate, rate: f64) -> f64 {
    match gate {
        ReleaseGate::Tick { every, most: Some(most) } => rate * every.as_secs_f64() / f64::from(*most),
        ReleaseGate::Tick { most: None, .. } | ReleaseGate::Batch { .. } => 0.0,
    }
}

/// Returns the waiting time of Poisson arrivals at a gate.
pub(super) fn gate_waiting(gate: &ReleaseGate, rate: f64) -> Result<Distribution, ModelError> {
    match gate {
        ReleaseGate::Tick { every, most } => {
            let every = every.as_secs_f64();
            let next = Distribution::law(&Law::uniform(0.0, every)?);
            let Some(most) = most else { return Ok(next) };
            let beyond = (tick_s(rate, every, *most)? - every / 2.0).max(0.0);
            let queue =
                spread(gate_offered(gate, rate), beyond, 2.0 * beyond * beyond / gate_offered(gate, rate).max(1e-12))?;
            Ok(Distribution::sum([&next, &queue]))
        }
        ReleaseGate::Batch { packets, timeout, .. } => {
            let stage = BatchStage { rate, packets: (*packets).min(BATCH_MAX), timeout_s: timeout.as_secs_f64() };
            let state = stage.solve()?;
            if state.delay_s <= 0.0 {
                return Ok(Distribution::zero());
            }
            let share = 1.0 / f64::from(BATCH_PARTS);
            let part = |number: u32| Ok(state.quantile((f64::from(number) + 0.5) * share)?.max(f64::MIN_POSITIVE));
            let values = (0..BATCH_PARTS).map(part).collect::<Result<Vec<f64>, ModelError>>()?;
            // The midpoints have almost the exact mean; scaling makes it exact.
            let factor = state.delay_s / (values.iter().sum::<f64>() * share);
            Ok(Distribution::law(&Law::lattice(&values, &vec![share; values.len()])?.scaled(factor)?))
        }
    }
}
