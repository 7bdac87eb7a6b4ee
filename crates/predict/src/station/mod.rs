//! One queue with one server, as part of a network: what comes, what is lost, what goes on, and how long packets wait.
mod gate;
mod waiting;

use gate::gate_offered;
use std::sync::Arc;
use weir_model::{Distribution, Law, ModelError, station};
use weir_scenario::Gate;

/// Offered load from which a queue counts as full. One behind a full queue of the same speed is offered 1, as exactly as rates are
/// computed.
const SATURATED: f64 = 1.0 - 1e-6;

/// Below this share of a decade in 1e-12 a full buffer is no matter: the queue is taken as one without limit.
const NEVER_FULL: f64 = 28.0;
/// More places than these are not told apart: the formulas' cost grows with their square.
const MOST_PLACES: usize = 1000;
/// The least SCV that stands for regular arrivals and services in a finite queue.
const LEAST_SCV: f64 = 0.01;
/// Differences of an SCV from 1 that are none.
const POISSON: f64 = 1e-6;
/// What TCP keeps busy for this share of the time, it keeps full.
const FULL: f64 = 0.9;
/// More different laws at one station are put together by mean and variance.
const MOST_LAWS: usize = 16;

/// A law with its moments, which are asked for often.
#[derive(Debug, Clone)]
pub(crate) struct Timed {
    pub(crate) law: Arc<Law>,
    pub(crate) mean: f64,
    pub(crate) square: f64,
}

impl Timed {
    pub(crate) fn new(law: Law) -> Timed {
        Timed { mean: law.mean(), square: law.second_moment(), law: Arc::new(law) }
    }
}

/// What one flow brings to a station.
#[derive(Debug, Clone)]
pub(crate) struct Arriving {
    pub(crate) rate: f64,
    pub(crate) scv: f64,
    pub(crate) service: Timed,
    /// Whether it is served before others; at one processor for both agents, whether it is back.
    pub(crate) first: bool,
}

/// A queue and its server.
#[derive(Debug)]
pub(crate) struct Station {
    /// What users know it by.
    pub(crate) name: String,
    /// Packets that it holds, with the one in service; none: without limit.
    pub(crate) places: Option<usize>,
    /// Instead, what it holds beside the one in service, in seconds of service: as many mean packets as that.
    pub(crate) buffer_s: Option<f64>,
    /// Whether what comes is taken as without memory, because most of it comes from the station itself.
    pub(crate) memoryless: bool,
    /// Whether packets of a kind are served before others.
    pub(crate) classes: bool,
    /// Length and, per second, number of interruptions by writes to its tables.
    pub(crate) seized: Option<(f64, f64)>,
    /// What waits before any packet because TCP connections fill it.
    pub(crate) standing: Option<Distribution>,
    /// Whether what is in front of it lets packets out one by one, as fast as it takes them: nothing waits here.
    pub(crate) paced: bool,
    /// Instead of a server, something that lets packets out in groups.
    pub(crate) gate: Option<Gate>,
    /// Share of what it served that the link behind it does not lose.
    pub(crate) passes: f64,
    pub(crate) arriving: Vec<Arriving>,
    pub(crate) state: State,
}

/// What is known of a station while the network is solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct State {
    /// Packets per second that come.
    pub(crate) rate: f64,
    /// How uneven they come.
    pub(crate) arrival_scv: f64,
    /// What comes, over what can be served.
    pub(crate) offered: f64,
    /// Share that finds no place.
    pub(crate) loss: f64,
    /// How uneven they leave.
    pub(crate) departure_scv: f64,
    /// Share that goes on.
    pub(crate) keeps: f64,
}

impl State {
    /// Before anything came.
    const NEW: State = State { rate: 0.0, arrival_scv: 0.0, offered: 0.0, loss: 0.0, departure_scv: 0.0, keeps: 1.0 };
}

/// A station solved.
#[derive(Debug, Clone)]
pub(crate) struct Solved {
    pub(crate) utilisation: f64,
    /// Waiting before service, of packets of the kind that is served first and of the others.
    pub(crate) waiting: [Distribution; 2],
    /// Of packets that come twice, what both visits wait, if that is not as of independent ones.
    pub(crate) both: Option<Distribution>,
    pub(crate) service: Option<Law>,
    /// How, in a few words.
    pub(crate) how: &'static str,
}

impl Solved {
    /// What a visit adds to the waiting of a packet on its way: nothing at the first of two that are taken together.
    pub(crate) fn wait(&self, first: bool) -> Distribution {
        match &self.both {
            Some(both) if first => both.clone(),
            Some(_) => Distribution::zero(),
            None => self.waiting[usize::from(!first)].clone(),
        }
    }
}

impl Station {
    pub(crate) fn new(name: String, places: Option<usize>) -> Station {
        Station {
            name,
            places,
            buffer_s: None,
            memoryless: false,
            classes: false,
            seized: None,
            standing: None,
            paced: false,
            gate: None,
            passes: 1.0,
            arriving: Vec::new(),
            state: State::NEW,
        }
    }

    /// Whether it has no steady state.
    pub(crate) fn is_unstable(&self) -> bool {
        self.places.is_none() && self.standing.is_none() && self.state.offered >= SATURATED
    }

    /// Whether it gets as much as it can serve, or more.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.standing.is_none() && self.state.offered >= SATURATED
    }

    /// Whether TCP connections keep it full.
    pub(crate) fn is_full(&self) -> bool {
        self.standing.is_some() && self.state.offered >= FULL
    }

    /// The share of packets that goes on.
    pub(crate) fn keeps(&self) -> f64 {
        self.state.keeps * self.passes
    }

    /// Takes over what arrives; the step from the last state is `damping` of the way. Returns how far the state moved.
    pub(crate) fn settle(&mut self, damping: f64) -> Result<f64, ModelError> {
        let before = self.state;
        let rate: f64 = self.arriving.iter().map(|one| one.rate).sum();
        let mut next = State { rate, ..State::NEW };
        let mut served = 1.0;
        if let Some(gate) = &self.gate {
            next.offered = gate_offered(gate, rate);
            // Groups are as uneven as can be; what comes behind a gate is told so.
            next.departure_scv = 1.0;
        } else if rate > 0.0 {
            let mean = self.arriving.iter().map(|one| one.rate * one.service.mean).sum::<f64>() / rate;
            let square = self.arriving.iter().map(|one| one.rate * one.service.square).sum::<f64>() / rate;
            if let Some(buffer) = self.buffer_s {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
                let waiting = (buffer / mean) as usize;
                self.places = Some(waiting.saturating_add(1));
            }
            let seized = self.seized.map_or(0.0, |(length, per_second)| length * per_second);
            let taken = seized.min(1.0 - 1e-9);
            // The share of its load that a full queue serves. Each packet costs its own service and its share of the time
            // that new flows seize, which grows with what is served. `taken` follows only a round later: near 1, dividing
            // by what it leaves makes the rounds swing without end.
            served = 1.0 / (rate * mean + seized / before.keeps.max(f64::MIN_POSITIVE));
            next.offered = rate * mean / (1.0 - taken);
            next.arrival_scv = if self.memoryless { 1.0 } else { together(&self.arriving, rate, next.offered) };
            let service_scv = (square / (mean * mean) - 1.0).max(0.0);
            next.loss = before.loss + damping * (self.loss(&next, service_scv)? - before.loss);
            let busy = (next.offered * (1.0 - next.loss)).min(1.0);
            // Where most of what comes was there before, what leaves is taken as without memory, too.
            let leaves = busy * busy * service_scv + (1.0 - busy * busy) * next.arrival_scv;
            next.departure_scv = if self.memoryless { 1.0 } else { leaves };
        }
        let keeps = if self.places.is_none() && self.standing.is_none() && next.offered >= 1.0 {
            served.min(1.0)
        } else {
            1.0 - next.loss
        };
        next.keeps = before.keeps + damping * (keeps - before.keeps);
        self.state = next;
        let moved = |a: f64, b: f64| (a - b).abs() / a.abs().max(b.abs()).max(1e-9);
        Ok(moved(next.rate, before.rate)
            .max((next.loss - before.loss).abs())
            .max((next.keeps - before.keeps).abs())
            .max((next.departure_scv - before.departure_scv).abs()))
    }

    fn loss(&self, state: &State, service_scv: f64) -> Result<f64, ModelError> {
        let Some(places) = self.places.filter(|_| self.standing.is_none() && !self.paced) else { return Ok(0.0) };
        let room = 2.0 * (1.0 - state.offered) * places as f64 / (state.arrival_scv + service_scv).max(LEAST_SCV);
        if room > NEVER_FULL {
            return Ok(0.0);
        }
        if places > MOST_PLACES {
            return Ok((1.0 - 1.0 / state.offered).max(0.0));
        }
        Ok(station::mg1k(state.rate, &self.finite_service(state)?, places)?.loss)
    }

    /// The service of all that comes.
    fn service(&self) -> Result<Law, ModelError> {
        self.service_of(|_| true)
    }

    /// The service of some of what comes.
    pub(crate) fn service_of(&self, which: impl Fn(&Arriving) -> bool) -> Result<Law, ModelError> {
        let total = self.state.rate.max(self.arriving.iter().map(|one| one.rate).sum());
        let mut laws: Vec<(f64, &Timed)> = Vec::new();
        for one in self.arriving.iter().filter(|one| one.rate > 0.0 && which(one)) {
            let weight = one.rate / total;
            match laws
                .iter_mut()
                .find(|(_, known)| Arc::ptr_eq(&known.law, &one.service.law) || known.law == one.service.law)
            {
                Some((sum, _)) => *sum += weight,
                None => laws.push((weight, &one.service)),
            }
        }
        let sum: f64 = laws.iter().map(|(weight, _)| weight).sum();
        if laws.len() > MOST_LAWS {
            let mean = laws.iter().map(|(weight, law)| weight / sum * law.mean).sum::<f64>();
            let square = laws.iter().map(|(weight, law)| weight / sum * law.square).sum::<f64>();
            return Law::gamma(mean, (square / (mean * mean) - 1.0).max(0.0));
        }
        Law::mixture(laws.into_iter().map(|(weight, timed)| ((weight / sum).min(1.0), Law::clone(&timed.law))))
    }

    /// The service that makes a finite queue's formula, which is for Poisson arrivals, as uneven as arrivals and services together.
    fn finite_service(&self, state: &State) -> Result<Law, ModelError> {
        let service = self.service()?;
        if (state.arrival_scv - 1.0).abs() < POISSON {
            return Ok(service);
        }
        Law::gamma(service.mean(), (service.scv() + state.arrival_scv - 1.0).max(LEAST_SCV))
    }
}

/// How uneven several flows are together (Whitt, 1983: the hybrid of the limits of few and of many flows).
fn together(arriving: &[Arriving], rate: f64, offered: f64) -> f64 {
    let shares = arriving.iter().map(|one| one.rate / rate);
    let v = 1.0 / shares.clone().map(|share| share * share).sum::<f64>();
    let w = 1.0 / (1.0 + 4.0 * (1.0 - offered.min(1.0)).powi(2) * (v - 1.0).max(0.0));
    let mean: f64 = arriving.iter().zip(shares).map(|(one, share)| share * one.scv).sum();
    w * mean + 1.0 - w
}

#[cfg(test)]
mod tests;
