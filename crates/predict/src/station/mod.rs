//! Solves a station, which is a queue with one server in a network of queues: load, losses, departures and waiting
//! times. SCV: squared coefficient of variation, the variance divided by the square of the mean.
mod direct;
mod doubt;
mod fluid;
mod gate;
mod input;
mod limited;
mod longer;
mod merging;
mod periodic;
mod waiting;

use crate::arrivals::RateModulation;
pub(crate) use direct::QueueWait;
pub(crate) use doubt::WaitingDoubt;
use gate::gate_offered;
pub(crate) use input::PassedStation;
pub(crate) use longer::LongerWaits;
pub(crate) use merging::LineWaits;
use std::sync::Arc;
use weir_model::{Distribution, Law, ModelError, station};
use weir_scenario::ReleaseGate;

/// Offered load from which a queue counts as saturated. It is below 1, because a queue behind a saturated one of equal
/// speed has a load of 1 only within the precision of rates.
const SATURATED: f64 = 1.0 - 1e-6;

/// Exponent above which a finite buffer counts as unlimited: its loss is below about 1e-12.
const NEVER_FULL: f64 = 28.0;
/// Maximum number of places for which a finite queue is solved, because the cost grows with its square. With more
/// places, losses are those of the load above 1.
const MOST_PLACES: usize = 1000;
/// Minimum SCV used for arrivals and services of a finite queue.
const LEAST_SCV: f64 = 0.01;
/// Maximum deviation from 1 of the SCV of arrivals that count as a Poisson process.
const POISSON: f64 = 1e-6;
/// Offered load from which a queue that TCP fills counts as full.
const FULL: f64 = 0.9;
/// Maximum number of different service time distributions of a station that are kept apart. More are replaced by one
/// with their mean and variance.
const MOST_LAWS: usize = 16;

/// Distribution of service times, with its mean and mean square in seconds, which are used often.
#[derive(Debug, Clone)]
pub(crate) struct ServiceMoments {
    pub(crate) law: Arc<Law>,
    pub(crate) mean: f64,
    pub(crate) square: f64,
}

impl ServiceMoments {
    pub(crate) fn new(law: Law) -> ServiceMoments {
        ServiceMoments { mean: law.mean(), square: law.second_moment(), law: Arc::new(law) }
    }
}

/// Arrivals of one flow at a station.
#[derive(Debug, Clone)]
pub(crate) struct ArrivalStream {
    /// Number of the flow.
    pub(crate) flow: usize,
    /// Packets per second.
    pub(crate) rate: f64,
    /// SCV of the times between arrivals.
    pub(crate) scv: f64,
    /// SCV of the times between packets as the source sends them.
    pub(crate) source_scv: f64,
    /// Rates between which the source changes, if it sends in bursts.
    pub(crate) modulation: Option<Arc<RateModulation>>,
    /// Stations that the packets have passed on their way to a line, if they are followed; none if they come from their
    /// source.
    pub(crate) passed: Vec<PassedStation>,
    pub(crate) service: ServiceMoments,
    /// True if the flow is served with priority. At a station that handles packet-ins and packet-outs: true for packets
    /// that return from the controller.
    pub(crate) first: bool,
}

/// Queue with one server, its arrivals, and its state while the network is solved.
#[derive(Debug)]
pub(crate) struct AnalyticStation {
    /// Name shown to users.
    pub(crate) name: String,
    /// Maximum number of packets in the station, including the one in service; `None` without a limit.
    pub(crate) places: Option<usize>,
    /// Size of the buffer for waiting packets, in seconds of service. If it is set, `places` is computed from it and
    /// the mean service time.
    pub(crate) buffer_s: Option<f64>,
    /// True if arrivals and departures count as Poisson, because packets that the controller returns visit the station
    /// twice.
    pub(crate) memoryless: bool,
    /// True if some flows have priority ([`ArrivalStream::first`]).
    pub(crate) classes: bool,
    /// Interruptions of the service by writes to flow tables: length in seconds, and number per second.
    pub(crate) seized: Option<(f64, f64)>,
    /// Waiting time of every packet, if TCP connections keep the queue full.
    pub(crate) tcp_waiting: Option<Distribution>,
    /// True if the fabric in front of this station releases packets one by one, as fast as the station serves them. No
    /// packet waits here then.
    pub(crate) paced: bool,
    /// Gate that releases packets in groups, instead of a server.
    pub(crate) gate: Option<ReleaseGate>,
    /// Share of the served packets that are not lost on the link behind the station.
    pub(crate) link_delivery: f64,
    /// Arrivals, one item for each flow.
    pub(crate) arrivals: Vec<ArrivalStream>,
    pub(crate) state: StationLoad,
}

/// State of a station while the network is solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StationLoad {
    /// Arrival rate, in packets a second.
    pub(crate) rate: f64,
    /// SCV of the times between arrivals.
    pub(crate) arrival_scv: f64,
    /// Offered load over capacity.
    pub(crate) offered: f64,
    /// Share of packets that are lost because no place is free.
    pub(crate) loss: f64,
    /// SCV of the times between departures.
    pub(crate) departure_scv: f64,
    /// Share of arriving packets that the station serves.
    pub(crate) served_share: f64,
}

impl StationLoad {
    /// State before any arrivals.
    const NEW: StationLoad =
        StationLoad { rate: 0.0, arrival_scv: 0.0, offered: 0.0, loss: 0.0, departure_scv: 0.0, served_share: 1.0 };
}

/// Solution of a station.
#[derive(Debug, Clone)]
pub(crate) struct StationSolution {
    /// Share of the time in which the server is busy.
    pub(crate) utilisation: f64,
    /// Waiting times before service: of packets with priority, and of packets without.
    pub(crate) waiting: [Distribution; 2],
    /// Sum of the waiting times of both visits, for packets that visit the station twice; `None` if the visits are
    /// independent.
    pub(crate) both: Option<Distribution>,
    pub(crate) service: Option<Law>,
    /// Short name of the formula that was used.
    pub(crate) formula: &'static str,
    /// Waiting at a line by flow; none if it is taken as independent of what packets have met before.
    pub(crate) line: Option<Arc<LineWaits>>,
}

impl StationSolution {
    /// Returns the waiting time of a visit of a flow; `first` is the flow's [`ArrivalStream::first`]. If the waiting
    /// times of both visits are only known together, their sum counts for the visit on return, and zero for the other.
    pub(crate) fn wait(&self, first: bool) -> Distribution {
        match &self.both {
            Some(both) if first => both.clone(),
            Some(_) => Distribution::zero(),
            None => self.waiting[usize::from(!first)].clone(),
        }
    }
}

impl AnalyticStation {
    pub(crate) fn new(name: String, places: Option<usize>) -> AnalyticStation {
        AnalyticStation {
            name,
            places,
            buffer_s: None,
            memoryless: false,
            classes: false,
            seized: None,
            tcp_waiting: None,
            paced: false,
            gate: None,
            link_delivery: 1.0,
            arrivals: Vec::new(),
            state: StationLoad::NEW,
        }
    }

    /// Returns true if the station has no steady state.
    pub(crate) fn is_unstable(&self) -> bool {
        self.places.is_none() && self.tcp_waiting.is_none() && self.state.offered >= SATURATED
    }

    /// Returns true if the offered load is as much as the station can serve, or more. TCP adapts to the capacity, so
    /// its queues do not count.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.tcp_waiting.is_none() && self.state.offered >= SATURATED
    }

    /// Returns true if TCP connections keep the station full.
    pub(crate) fn is_full(&self) -> bool {
        self.tcp_waiting.is_some() && self.state.offered >= FULL
    }

    /// Returns the share of arriving packets that reach the next element: served, and not lost on the link.
    pub(crate) fn delivery_share(&self) -> f64 {
        self.state.served_share * self.link_delivery
    }

    /// Computes the state anew from the arrivals. Loss and served share change by the share `damping` of the difference
    /// only, so that the iteration over the network converges. Returns the largest change of a value (relative for the
    /// rate).
    pub(crate) fn update_load(&mut self, damping: f64) -> Result<f64, ModelError> {
        let before = self.state;
        let rate: f64 = self.arrivals.iter().map(|one| one.rate).sum();
        let mut next = StationLoad { rate, ..StationLoad::NEW };
        let mut served = 1.0;
        if let Some(gate) = &self.gate {
            next.offered = gate_offered(gate, rate);
            // Departures of a gate count as Poisson (SCV 1), although packets leave in groups.
            next.departure_scv = 1.0;
        } else if rate > 0.0 {
            let mean = self.arrivals.iter().map(|one| one.rate * one.service.mean).sum::<f64>() / rate;
            let square = self.arrivals.iter().map(|one| one.rate * one.service.square).sum::<f64>() / rate;
            if let Some(buffer) = self.buffer_s {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
                let waiting = (buffer / mean) as usize;
                self.places = Some(waiting.saturating_add(1));
            }
            let seized = self.seized.map_or(0.0, |(length, per_second)| length * per_second);
            let taken = seized.min(1.0 - 1e-9);
            // Share of its load that a saturated queue serves. Each packet costs its own service, and its share of
            // the time that new flows seize, which grows with the packets served. `taken` lags by one round: near 1,
            // dividing by the rest makes the rounds oscillate without end.
            served = 1.0 / (rate * mean + seized / before.served_share.max(f64::MIN_POSITIVE));
            next.offered = rate * mean / (1.0 - taken);
            next.arrival_scv = if self.memoryless {
                1.0
            } else {
                merged_scv(self.arrivals.iter().map(|one| (one.rate, one.scv)), rate, next.offered)
            };
            let service_scv = (square / (mean * mean) - 1.0).max(0.0);
            next.loss = before.loss + damping * (self.loss(&next, service_scv)? - before.loss);
            let busy = (next.offered * (1.0 - next.loss)).min(1.0);
            // If packets visit the station twice, departures also count as Poisson.
            let leaves = busy * busy * service_scv + (1.0 - busy * busy) * next.arrival_scv;
            next.departure_scv = if self.memoryless { 1.0 } else { leaves };
        }
        let keeps = if self.places.is_none() && self.tcp_waiting.is_none() && next.offered >= 1.0 {
            served.min(1.0)
        } else {
            1.0 - next.loss
        };
        next.served_share = before.served_share + damping * (keeps - before.served_share);
        self.state = next;
        let moved = |a: f64, b: f64| (a - b).abs() / a.abs().max(b.abs()).max(1e-9);
        Ok(moved(next.rate, before.rate)
            .max((next.loss - before.loss).abs())
            .max((next.served_share - before.served_share).abs())
            .max((next.departure_scv - before.departure_scv).abs()))
    }

    fn loss(&self, state: &StationLoad, service_scv: f64) -> Result<f64, ModelError> {
        let Some(places) = self.places.filter(|_| self.tcp_waiting.is_none() && !self.paced) else { return Ok(0.0) };
        let bursts = if self.has_bursts() { self.burst_loss(self.longest(places, state.rate))? } else { 0.0 };
        let room = 2.0 * (1.0 - state.offered) * places as f64 / (state.arrival_scv + service_scv).max(LEAST_SCV);
        if room > NEVER_FULL {
            return Ok(bursts);
        }
        if places > MOST_PLACES {
            return Ok((1.0 - 1.0 / state.offered).max(bursts));
        }
        Ok(station::mg1k(state.rate, &self.finite_service(state)?, places)?.loss.max(bursts))
    }

    /// Returns the distribution of the service times of all packets.
    fn service(&self) -> Result<Law, ModelError> {
        self.service_of(|_| true)
    }

    /// Returns the distribution of the service times of the packets of those flows for which `which` is true.
    pub(crate) fn service_of(&self, which: impl Fn(&ArrivalStream) -> bool) -> Result<Law, ModelError> {
        mixed_service(self.arrivals.iter().filter(|one| which(one)).map(|one| (one.rate, &one.service)))
    }

    /// Returns the service time distribution for the formula of a finite queue, which assumes Poisson arrivals. If the
    /// arrivals are not Poisson, it has an SCV that accounts for the irregularity of both arrivals and services.
    fn finite_service(&self, state: &StationLoad) -> Result<Law, ModelError> {
        let service = self.service()?;
        if (state.arrival_scv - 1.0).abs() < POISSON {
            return Ok(service);
        }
        Law::gamma(service.mean(), (service.scv() + state.arrival_scv - 1.0).max(LEAST_SCV))
    }
}

/// Returns the distribution of the service times of several flows together, each with its rate.
fn mixed_service<'a>(flows: impl Iterator<Item = (f64, &'a ServiceMoments)>) -> Result<Law, ModelError> {
    let mut laws: Vec<(f64, &ServiceMoments)> = Vec::new();
    for (rate, service) in flows.filter(|(rate, _)| *rate > 0.0) {
        match laws.iter_mut().find(|(_, known)| Arc::ptr_eq(&known.law, &service.law) || known.law == service.law) {
            Some((sum, _)) => *sum += rate,
            None => laws.push((rate, service)),
        }
    }
    let sum: f64 = laws.iter().map(|(rate, _)| rate).sum();
    if laws.len() > MOST_LAWS {
        let mean = laws.iter().map(|(rate, law)| rate / sum * law.mean).sum::<f64>();
        let square = laws.iter().map(|(rate, law)| rate / sum * law.square).sum::<f64>();
        return Law::gamma(mean, (square / (mean * mean) - 1.0).max(0.0));
    }
    Law::mixture(laws.into_iter().map(|(rate, timed)| ((rate / sum).min(1.0), Law::clone(&timed.law))))
}

/// Returns the SCV of the times between arrivals of several flows together, by the approximation of Whitt (1983), which
/// interpolates between the limits of few and of many flows. `offered` is the load of the station.
fn merged_scv(arriving: impl Iterator<Item = (f64, f64)> + Clone, rate: f64, offered: f64) -> f64 {
    let shares = arriving.map(|(own, scv)| (own / rate, scv));
    let v = 1.0 / shares.clone().map(|(share, _)| share * share).sum::<f64>();
    let w = 1.0 / (1.0 + 4.0 * (1.0 - offered.min(1.0)).powi(2) * (v - 1.0).max(0.0));
    let mean: f64 = shares.map(|(share, scv)| share * scv).sum();
    w * mean + 1.0 - w
}

#[cfg(test)]
mod tests;
