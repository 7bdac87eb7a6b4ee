//! Simulates one queue in front of one server, for comparison with formulas and with other simulators.
use crate::agenda::Agenda;
use crate::stats::DelayTally;
use std::collections::VecDeque;
use weir_traffic::{ArrivalProcess, ArrivalSampler, RandomStream, TrafficError};
use weir_units::Instant;

/// Distribution of service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueServiceLaw {
    /// Exponentially distributed times.
    Exponential,
    /// Equal times for all customers.
    Fixed,
}

/// Queue whose customers arrive by a rule and are served one by one in order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub struct SingleServerQueue {
    /// Distribution of interarrival times.
    pub arrival: ArrivalProcess,
    /// Mean arrivals per second.
    pub per_second: f64,
    /// Distribution of service times.
    pub service: QueueServiceLaw,
    /// Mean customers per second that the server serves without pause.
    pub service_per_second: f64,
    /// Most customers in the system, including the one in service; a customer that arrives when the system is full is
    /// lost. `None`: limited only by [`MAX_WAITING`], beyond which customers are lost, too.
    pub places: Option<usize>,
}

/// Most customers in the system of a queue without limit.
pub const MAX_WAITING: usize = 1 << 24;

/// Measurements of a queue.
#[derive(Debug, Clone, Default)]
pub struct QueueResult {
    /// Customers that arrived.
    pub arrived: u64,
    /// Customers lost because the system was full.
    pub lost: u64,
    /// Times from arrival to the start of service.
    pub waits: DelayTally,
    /// Number of events simulated.
    pub events: u64,
}

const ARRIVAL_EVENT: usize = 0;
const DEPARTURE_EVENT: usize = 1;

impl SingleServerQueue {
    /// Simulates `warm_up` customers that are not counted and then `customers` that are, until all are served. `seed`
    /// and `replication` together choose the random numbers.
    ///
    /// # Errors
    /// A parameter is out of its limits.
    pub fn run(&self, seed: u64, replication: u64, warm_up: u64, customers: u64) -> Result<QueueResult, TrafficError> {
        let mut random = RandomStream::new(seed, replication, 0);
        let mut service = RandomStream::new(seed, replication, 1);
        let mut arrivals = ArrivalSampler::new(&self.arrival, self.per_second, &mut random)?;
        let mean_ns = 1e9 / self.service_per_second;
        if !(mean_ns.is_finite() && mean_ns > 0.0) {
            let (what, found) = ("customers served per second", self.service_per_second.to_string());
            return Err(TrafficError::Parameter { what, found, expected: "a number above 0".into() });
        }
        let places = self.places.unwrap_or(MAX_WAITING);
        let mut result = QueueResult::default();
        let mut agenda = Agenda::new(2);
        // Customers in the system: arrival time and whether they count. The first is in service.
        let mut here: VecDeque<(Instant, bool)> = VecDeque::new();
        let mut to_come = warm_up.saturating_add(customers);
        agenda.set(ARRIVAL_EVENT, Instant::from_nanos(arrivals.next(&mut random)));
        let mut serve = |now: Instant, (came, counts): (Instant, bool), result: &mut QueueResult| {
            if counts {
                result.waits.record(now.as_nanos() - came.as_nanos());
            }
            let ns = match self.service {
                QueueServiceLaw::Exponential => mean_ns * service.exponential(),
                QueueServiceLaw::Fixed => mean_ns,
            };
            Instant::from_nanos(now.as_nanos().saturating_add(whole(ns, &mut service)))
        };
        while let Some((part, now)) = agenda.next() {
            result.events += 1;
            if part == DEPARTURE_EVENT {
                here.pop_front();
                let next = here.front().map_or(Instant::FAR, |next| serve(now, *next, &mut result));
                agenda.set(DEPARTURE_EVENT, next);
                continue;
            }
            let counts = to_come <= customers;
            result.arrived += u64::from(counts);
            if here.len() >= places {
                result.lost += u64::from(counts);
            } else {
                here.push_back((now, counts));
                if here.len() == 1 {
                    agenda.set(DEPARTURE_EVENT, serve(now, (now, counts), &mut result));
                }
            }
            to_come -= 1;
            let next = match to_come {
                0 => Instant::FAR,
                _ => Instant::from_nanos(now.as_nanos().saturating_add(arrivals.next(&mut random))),
            };
            agenda.set(ARRIVAL_EVENT, next);
        }
        Ok(result)
    }
}

/// Rounds a time in ns up or down at random, so that the mean is exact.
fn whole(ns: f64, random: &mut RandomStream) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let floor = ns as u64;
    floor + u64::from(random.unit() < ns - floor as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Confidence, estimate};

    /// Returns mean wait in seconds and share lost, each with its interval's half width, of ten replications.
    fn measured(queue: &SingleServerQueue) -> [(f64, f64); 2] {
        let results: Vec<_> = (0..10).map(|n| queue.run(7, n, 20_000, 60_000).unwrap()).collect();
        let over = |value: &dyn Fn(&QueueResult) -> f64| {
            let found = estimate(&results.iter().map(value).collect::<Vec<_>>(), Confidence::P99).unwrap();
            (found.mean, found.half_width.unwrap())
        };
        [over(&|result| result.waits.mean_s().unwrap()), over(&|result| result.lost as f64 / result.arrived as f64)]
    }

    fn holds((found, half): (f64, f64), expected: f64, what: &str) {
        assert!((found - expected).abs() <= half, "{what}: {found} ± {half}, expected {expected}");
        assert!(half <= expected * 0.08, "{what}: ± {half} says little of {expected}");
    }

    fn queue(rho: f64, service: QueueServiceLaw, places: Option<usize>) -> SingleServerQueue {
        let service_per_second = 1e5;
        SingleServerQueue {
            arrival: ArrivalProcess::Poisson,
            per_second: rho * service_per_second,
            service,
            service_per_second,
            places,
        }
    }

    #[test]
    fn agrees_with_the_formulas_of_m_m_1() {
        for rho in [0.3, 0.7] {
            let [wait, lost] = measured(&queue(rho, QueueServiceLaw::Exponential, None));
            holds(wait, rho / (1.0 - rho) / 1e5, "M/M/1");
            assert_eq!(lost.0, 0.0);
        }
    }

    #[test]
    fn agrees_with_the_formula_of_m_d_1() {
        // Formula of Pollaczek and Khinchine.
        let [wait, _] = measured(&queue(0.7, QueueServiceLaw::Fixed, None));
        holds(wait, 0.7 / (2.0 * 0.3) / 1e5, "M/D/1");
    }

    #[test]
    fn agrees_with_the_formulas_of_m_m_1_k() {
        for (rho, places) in [(0.9_f64, 5), (1.5, 8)] {
            let share = |n: i32| (1.0 - rho) * rho.powi(n) / (1.0 - rho.powi(places + 1));
            let lost = share(places);
            // Little's law over waiting customers.
            let waiting: f64 = (1..=places).map(|n| f64::from(n - 1) * share(n)).sum();
            let wait = waiting / (rho * 1e5 * (1.0 - lost));
            let found = measured(&queue(rho, QueueServiceLaw::Exponential, Some(places.unsigned_abs() as usize)));
            holds(found[0], wait, "M/M/1/K wait");
            holds(found[1], lost, "M/M/1/K loss");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let run = |seed| queue(0.8, QueueServiceLaw::Exponential, None).run(seed, 0, 100, 1000).unwrap();
        assert_eq!(run(3).waits.summary(), run(3).waits.summary());
        assert_ne!(run(3).waits.summary(), run(4).waits.summary());
    }
}
