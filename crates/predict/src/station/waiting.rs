//! Computes the waiting time before service, by the formula for the arrivals, services and places.
use super::gate::gate_waiting;
use super::limited::at_most;
use super::{AnalyticStation, MOST_PLACES, POISSON, SATURATED, StationLoad, StationSolution};
use weir_model::{Distribution, Law, ModelError, station};
use weir_scenario::ReleaseGate;

/// SCV of waiting times below which they count as equal.
const LEAST_SPREAD: f64 = 1e-6;

impl AnalyticStation {
    /// Solves the station after the iteration; none if it has no steady state.
    pub(crate) fn solve(&self) -> Result<Option<StationSolution>, ModelError> {
        let state = &self.state;
        if self.is_unstable() {
            return Ok(None);
        }
        if state.rate <= 0.0 {
            let none = [Distribution::zero(), Distribution::zero()];
            return Ok(Some(StationSolution {
                utilisation: 0.0,
                waiting: none,
                both: None,
                service: None,
                formula: "idle",
                line: None,
            }));
        }
        if let Some(gate) = &self.gate {
            let waiting = gate_waiting(gate, state.rate)?;
            return Ok(Some(StationSolution {
                utilisation: state.offered,
                waiting: [waiting.clone(), waiting],
                both: None,
                service: None,
                formula: if matches!(gate, ReleaseGate::Tick { .. }) { "ticks" } else { "batches" },
                line: None,
            }));
        }
        let service = self.service()?;
        let utilisation = (state.offered * (1.0 - state.loss)).min(1.0);
        let (waiting, how) = self.waiting(&service, utilisation)?;
        let waiting = match self.longest_wait() {
            Some(longest) => {
                let [first, rest] = waiting;
                [at_most(first, longest)?, at_most(rest, longest)?]
            }
            None => waiting,
        };
        Ok(Some(StationSolution { utilisation, waiting, both: None, service: Some(service), formula: how, line: None }))
    }

    fn waiting(&self, service: &Law, utilisation: f64) -> Result<([Distribution; 2], &'static str), ModelError> {
        let state = &self.state;
        let both = |waiting: Distribution| [waiting.clone(), waiting];
        if let Some(standing) = &self.tcp_waiting {
            let how = if self.is_full() { "kept full by TCP" } else { "filled by TCP at times" };
            return Ok((both(standing.clone()), how));
        }
        if self.paced {
            return Ok((both(Distribution::zero()), "paced by the fabric"));
        }
        if let Some((length, per_second)) = self.seized.filter(|(length, per_second)| length * per_second > 0.0) {
            return Ok((both(interrupted(state, service, length, per_second)?), "M/G/1 with interruptions by writes"));
        }
        if self.classes {
            return Ok((self.by_class(service)?, "M/G/1 with a class that goes first"));
        }
        if self.has_bursts() && utilisation < SATURATED {
            return Ok((both(self.burst_waiting()?), "queue with arrivals in bursts"));
        }
        let poisson = (state.arrival_scv - 1.0).abs() < POISSON;
        if let (Some(places), true) = (self.places, state.loss > 0.0) {
            if places > MOST_PLACES {
                let waiting = Distribution::constant((places - 1) as f64 * service.mean())?;
                return Ok((both(waiting), "always full"));
            }
            let steady = station::mg1k(state.rate, &self.finite_service(state)?, places)?;
            let square = (steady.sojourn.variance() - self.finite_service(state)?.variance()).max(0.0)
                + steady.waiting_s.powi(2);
            let how = if poisson { "M/G/1/K" } else { "GI/G/1/K by variances" };
            return Ok((both(spread(steady.utilisation, steady.waiting_s, square)?), how));
        }
        if poisson {
            return Ok((both(station::mg1_waiting(state.rate, service)?), "M/G/1"));
        }
        Ok((both(general_waiting(utilisation, service, state.arrival_scv)?), "GI/G/1 by variances"))
    }

    /// Waiting with non-preemptive priority (Cobham, 1954); waiting times above 0 are taken as exponential.
    fn by_class(&self, service: &Law) -> Result<[Distribution; 2], ModelError> {
        let state = &self.state;
        let first: f64 = self.arrivals.iter().filter(|one| one.first).map(|one| one.rate * one.service.mean).sum();
        let rest = state.rate * service.second_moment() / 2.0;
        let offered = state.offered.min(1.0 - 1e-9);
        let waits = [rest / (1.0 - first.min(offered)), rest / ((1.0 - first.min(offered)) * (1.0 - offered))];
        let exponential = |mean: f64| spread(offered, mean, 2.0 * mean * mean / offered.max(1e-12));
        Ok([exponential(waits[0])?, exponential(waits[1])?])
    }
}

/// Returns the mean waiting time in a queue whose arrivals are known by rate and SCV, by Krämer and Langenbach-Belz
/// (1976); exact for Poisson arrivals.
pub(super) fn general_mean(utilisation: f64, service: &Law, arrival_scv: f64) -> f64 {
    let both = arrival_scv + service.scv();
    if both <= 0.0 || utilisation <= 0.0 {
        return 0.0;
    }
    let less = if arrival_scv < 1.0 {
        (-2.0 * (1.0 - utilisation) * (1.0 - arrival_scv).powi(2) / (3.0 * utilisation * both)).exp()
    } else {
        1.0
    };
    utilisation * service.mean() / (1.0 - utilisation) * both / 2.0 * less
}

/// Returns the waiting time in a queue whose arrivals are known by rate and SCV: the mean by Krämer and
/// Langenbach-Belz (1976), with the distribution of Poisson arrivals of that mean.
fn general_waiting(utilisation: f64, service: &Law, arrival_scv: f64) -> Result<Distribution, ModelError> {
    let mean = general_mean(utilisation, service, arrival_scv);
    if mean <= 0.0 {
        return Ok(Distribution::zero());
    }
    let longer = mean * 2.0 * (1.0 - utilisation) * service.mean() / (utilisation * service.second_moment());
    if longer < f64::EPSILON {
        return Ok(Distribution::zero());
    }
    let law = service.scaled(longer)?;
    station::mg1_waiting(utilisation / law.mean(), &law)
}

/// Returns the waiting time with interruptions by writes: they take the server at once, and packets are resumed
/// (preemptive-resume, with writes as the higher class; Kleinrock, Queueing Systems II, 1976, 3.4).
fn interrupted(state: &StationLoad, service: &Law, length: f64, per_second: f64) -> Result<Distribution, ModelError> {
    let taken = length * per_second;
    let data = state.rate * service.mean();
    let left = 1.0 - taken;
    // A finite buffer loses the excess load.
    let room = (left - data * (1.0 - state.loss)).max(1e-9);
    let rest = (per_second * length * length + state.rate * service.second_moment()) / 2.0;
    let mean = rest / (left * room) + service.mean() * taken / left;
    let busy = (taken + data).min(1.0);
    spread(busy, mean, 2.0 * mean * mean / busy.max(1e-12))
}

/// Returns a waiting time with this mean and mean square that is 0 except for a share of the packets;
/// gamma-distributed for these.
pub(super) fn spread(share: f64, mean: f64, square: f64) -> Result<Distribution, ModelError> {
    if mean <= 0.0 || share <= 0.0 {
        return Ok(Distribution::zero());
    }
    // The share is at least as large as the mean square allows.
    let share = share.min(1.0).max((mean * mean / square.max(mean * mean)).min(1.0));
    let waits = gamma(mean / share, square / share)?;
    Distribution::mixture(&[(1.0 - share, Distribution::zero()), (share, waits)])
}

/// Returns the gamma law with this mean and mean square, or the constant `mean`. Rounding must not make one value a
/// gamma law, whose tail takes very long to compute with so little variance.
pub(super) fn gamma(mean: f64, square: f64) -> Result<Distribution, ModelError> {
    let scv = square / (mean * mean) - 1.0;
    Ok(Distribution::law(&Law::gamma(mean, if scv < LEAST_SPREAD { 0.0 } else { scv })?))
}
