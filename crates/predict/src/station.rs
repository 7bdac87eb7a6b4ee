//! One queue with one server, as part of a network: what comes, what is lost, what goes on, and how long packets wait.
use std::sync::Arc;
use weir_model::mechanism::{BATCH_MAX, BatchStage, tick_s};
use weir_model::{Distribution, Law, ModelError, station};
use weir_scenario::Gate;

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

/// Parts that the waiting for a batch is cut into.
const BATCH_PARTS: u32 = 64;

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
        self.places.is_none() && self.standing.is_none() && self.state.offered >= 1.0
    }

    /// Whether it gets as much as it can serve, or more.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.standing.is_none() && self.state.offered >= 1.0
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
            let taken = self.seized.map_or(0.0, |(length, per_second)| length * per_second).min(1.0 - 1e-9);
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
            1.0 / next.offered
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

    /// Solves it for good; none if it has no steady state.
    pub(crate) fn solve(&self) -> Result<Option<Solved>, ModelError> {
        let state = &self.state;
        if self.is_unstable() {
            return Ok(None);
        }
        if state.rate <= 0.0 {
            let none = [Distribution::zero(), Distribution::zero()];
            return Ok(Some(Solved { utilisation: 0.0, waiting: none, both: None, service: None, how: "idle" }));
        }
        if let Some(gate) = &self.gate {
            let waiting = gate_waiting(gate, state.rate)?;
            return Ok(Some(Solved {
                utilisation: state.offered,
                waiting: [waiting.clone(), waiting],
                both: None,
                service: None,
                how: if matches!(gate, Gate::Tick { .. }) { "ticks" } else { "batches" },
            }));
        }
        let service = self.service()?;
        let utilisation = (state.offered * (1.0 - state.loss)).min(1.0);
        let (waiting, how) = self.waiting(&service, utilisation)?;
        Ok(Some(Solved { utilisation, waiting, both: None, service: Some(service), how }))
    }

    fn waiting(&self, service: &Law, utilisation: f64) -> Result<([Distribution; 2], &'static str), ModelError> {
        let state = &self.state;
        let both = |waiting: Distribution| [waiting.clone(), waiting];
        if let Some(standing) = &self.standing {
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

    /// Non-preemptive priority (Cobham, 1954), with waiting times that are exponential for those who wait.
    fn by_class(&self, service: &Law) -> Result<[Distribution; 2], ModelError> {
        let state = &self.state;
        let first: f64 = self.arriving.iter().filter(|one| one.first).map(|one| one.rate * one.service.mean).sum();
        let rest = state.rate * service.second_moment() / 2.0;
        let offered = state.offered.min(1.0 - 1e-9);
        let waits = [rest / (1.0 - first.min(offered)), rest / ((1.0 - first.min(offered)) * (1.0 - offered))];
        let exponential = |mean: f64| spread(offered, mean, 2.0 * mean * mean / offered.max(1e-12));
        Ok([exponential(waits[0])?, exponential(waits[1])?])
    }
}

/// What comes between two ticks, over what may leave at one; batches are never too small.
fn gate_offered(gate: &Gate, rate: f64) -> f64 {
    match gate {
        Gate::Tick { every, most: Some(most) } => rate * every.as_secs_f64() / f64::from(*most),
        Gate::Tick { most: None, .. } | Gate::Batch { .. } => 0.0,
    }
}

/// Waiting until a gate lets a packet out, of packets that come without memory.
fn gate_waiting(gate: &Gate, rate: f64) -> Result<Distribution, ModelError> {
    match gate {
        Gate::Tick { every, most } => {
            let every = every.as_secs_f64();
            let next = Distribution::law(&Law::uniform(0.0, every)?);
            let Some(most) = most else { return Ok(next) };
            let beyond = (tick_s(rate, every, *most)? - every / 2.0).max(0.0);
            let queue =
                spread(gate_offered(gate, rate), beyond, 2.0 * beyond * beyond / gate_offered(gate, rate).max(1e-12))?;
            Ok(Distribution::sum([&next, &queue]))
        }
        Gate::Batch { packets, timeout, .. } => {
            let stage = BatchStage { rate, packets: (*packets).min(BATCH_MAX), timeout_s: timeout.as_secs_f64() };
            let state = stage.solve()?;
            if state.delay_s <= 0.0 {
                return Ok(Distribution::zero());
            }
            let share = 1.0 / f64::from(BATCH_PARTS);
            let part = |number: u32| Ok(state.quantile((f64::from(number) + 0.5) * share)?.max(f64::MIN_POSITIVE));
            let values = (0..BATCH_PARTS).map(part).collect::<Result<Vec<f64>, ModelError>>()?;
            // Parts in their middle have nearly the mean; that it be exact costs nothing.
            let factor = state.delay_s / (values.iter().sum::<f64>() * share);
            Ok(Distribution::law(&Law::lattice(&values, &vec![share; values.len()])?.scaled(factor)?))
        }
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

/// Waiting in a queue whose arrivals are known by rate and SCV: the mean of Krämer and Langenbach-Belz (1976), distributed as the waits of Poisson
/// arrivals with that mean.
fn general_waiting(utilisation: f64, service: &Law, arrival_scv: f64) -> Result<Distribution, ModelError> {
    let both = arrival_scv + service.scv();
    if both <= 0.0 || utilisation <= 0.0 {
        return Ok(Distribution::zero());
    }
    let less = if arrival_scv < 1.0 {
        (-2.0 * (1.0 - utilisation) * (1.0 - arrival_scv).powi(2) / (3.0 * utilisation * both)).exp()
    } else {
        1.0
    };
    let mean = utilisation * service.mean() / (1.0 - utilisation) * both / 2.0 * less;
    let longer = mean * 2.0 * (1.0 - utilisation) * service.mean() / (utilisation * service.second_moment());
    if longer < f64::EPSILON {
        return Ok(Distribution::zero());
    }
    let law = service.scaled(longer)?;
    station::mg1_waiting(utilisation / law.mean(), &law)
}

/// Waiting that writes lengthen: they take the server whenever they come, and packets go on afterwards (preemptive-resume; the class of writes as
/// a higher one, Kleinrock, Queueing Systems II, 1976, 3.4).
fn interrupted(state: &State, service: &Law, length: f64, per_second: f64) -> Result<Distribution, ModelError> {
    let taken = length * per_second;
    let data = state.rate * service.mean();
    let left = 1.0 - taken;
    // A finite buffer loses what makes this too much.
    let room = (left - data * (1.0 - state.loss)).max(1e-9);
    let rest = (per_second * length * length + state.rate * service.second_moment()) / 2.0;
    let mean = rest / (left * room) + service.mean() * taken / left;
    let busy = (taken + data).min(1.0);
    spread(busy, mean, 2.0 * mean * mean / busy.max(1e-12))
}

/// A waiting time that is nothing but for a share of the packets, with this mean and mean square: gamma for those who wait.
fn spread(share: f64, mean: f64, square: f64) -> Result<Distribution, ModelError> {
    if mean <= 0.0 || share <= 0.0 {
        return Ok(Distribution::zero());
    }
    // Whoever waits does so long enough for the mean square.
    let share = share.min(1.0).max((mean * mean / square.max(mean * mean)).min(1.0));
    let scv = (square * share / (mean * mean) - 1.0).max(0.0);
    let waits = Distribution::law(&Law::gamma(mean / share, scv)?);
    Distribution::mixture(&[(1.0 - share, Distribution::zero()), (share, waits)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(places: Option<usize>, arriving: &[(f64, f64, Law)]) -> Station {
        let mut station = Station::new("s".into(), places);
        let one = |(rate, scv, law): &(f64, f64, Law)| Arriving {
            rate: *rate,
            scv: *scv,
            service: Timed::new(law.clone()),
            first: false,
        };
        station.arriving = arriving.iter().map(one).collect();
        for _ in 0..100 {
            station.settle(1.0).unwrap();
        }
        station
    }

    #[test]
    fn several_poisson_flows_are_one() {
        let law = |mean| Law::exponential(mean).unwrap();
        let station = station(None, &[(30.0, 1.0, law(0.01)), (40.0, 1.0, law(0.01))]);
        let solved = station.solve().unwrap().unwrap();
        assert_eq!(solved.how, "M/G/1");
        assert!(
            (solved.waiting[0].mean() + 0.01 - 1.0 / 30.0).abs() < 1e-9 && (solved.utilisation - 0.7).abs() < 1e-12
        );
        assert!((station.state.departure_scv - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_regular_flow_does_not_wait() {
        let station = station(None, &[(90.0, 0.0, Law::constant(0.01).unwrap())]);
        assert_eq!(station.solve().unwrap().unwrap().waiting[0].mean(), 0.0);
    }

    #[test]
    fn a_full_buffer_loses_as_the_formula_says() {
        let law = Law::exponential(0.01).unwrap();
        let station = station(Some(10), &[(120.0, 1.0, law.clone())]);
        let exact = weir_model::station::mm1k(120.0, 100.0, 10).unwrap();
        let solved = station.solve().unwrap().unwrap();
        assert!((station.state.loss - exact.loss).abs() < 1e-9, "{} {}", station.state.loss, exact.loss);
        assert!((solved.waiting[1].mean() - exact.waiting_s).abs() < 1e-9);
    }

    #[test]
    fn without_limit_too_much_has_no_answer_and_what_can_goes_on() {
        let station = station(None, &[(150.0, 1.0, Law::exponential(0.01).unwrap())]);
        assert!(station.is_unstable() && station.solve().unwrap().is_none());
        assert!((station.keeps() - 1.0 / 1.5).abs() < 1e-12);
    }

    #[test]
    fn writes_lengthen_the_delay_as_the_reference_has_it() {
        // 30 writes of 8 ms beside 5000 packets of 10 us a second: T_data of the reference vectors.
        let mut station = station(None, &[(5000.0, 1.0, Law::constant(1e-5).unwrap())]);
        station.seized = Some((0.008, 30.0));
        station.settle(1.0).unwrap();
        let solved = station.solve().unwrap().unwrap();
        let s = 1e-5;
        let (taken, data) = (0.24, 0.05);
        let expected =
            s / (1.0 - taken) + (30.0 * 0.008 * 0.008 + 5000.0 * s * s) / (2.0 * (1.0 - taken) * (1.0 - taken - data));
        assert!((solved.waiting[0].mean() + s - expected).abs() < 1e-9);
    }

    #[test]
    fn gates_hold_packets_as_long_as_the_reference_has_it() {
        let tick = |most| Gate::Tick { every: std::time::Duration::from_millis(4), most };
        for (gate, rate, mean) in [
            (tick(Some(1)), 150.0, 0.005),
            (tick(Some(3)), 600.0, 0.004_215_600_9),
            (tick(None), 600.0, 0.002),
            (
                Gate::Batch { packets: 144, timeout: std::time::Duration::from_millis(2), stages: 1 },
                80_000.0,
                0.000_890_358_5,
            ),
        ] {
            let waiting = gate_waiting(&gate, rate).unwrap();
            assert!((waiting.mean() / mean - 1.0).abs() < 1e-6, "{gate:?}: {}", waiting.mean());
        }
        let waiting =
            gate_waiting(&Gate::Batch { packets: 32, timeout: std::time::Duration::from_millis(2), stages: 1 }, 500.0)
                .unwrap();
        assert!((waiting.quantile(0.95).unwrap() - 0.0019).abs() < 3e-5);
        let mut station = Station::new("s".into(), None);
        station.gate = Some(tick(Some(1)));
        station.arriving =
            vec![Arriving { rate: 300.0, scv: 1.0, service: Timed::new(Law::constant(1e-12).unwrap()), first: false }];
        station.settle(1.0).unwrap();
        assert!(station.is_unstable() && (station.state.offered - 1.2).abs() < 1e-12);
    }

    #[test]
    fn waiting_has_the_moments_it_is_given() {
        for (share, mean, square) in [(0.5, 1.0, 6.0), (0.9, 2.0, 4.0), (1.0, 1e-6, 3e-12)] {
            let waiting = spread(share, mean, square).unwrap();
            assert!((waiting.mean() - mean).abs() < 1e-9 * mean);
            assert!((waiting.variance() + mean * mean - square).abs() < 1e-9 * square, "{share}");
        }
    }
}
