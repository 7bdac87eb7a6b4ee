//! Computes the waiting at a line whose packets come over other lines: packets of one input line arrive one after the
//! other, so they wait little for each other.
use super::{AnalyticStation, ArrivalStream, StationSolution, merged_scv, waiting};
use weir_model::{Distribution, Law, LawShape, ModelError, station};

/// Line over which packets come to a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InputLine {
    /// Its station.
    pub(crate) station: usize,
    /// Time that a byte takes on the input line over the time that it takes on the line.
    pub(crate) slower: f64,
}

/// Points by which a continuous law of packet lengths is represented.
const POINTS: u32 = 16;
/// Most rounds of a fixed point.
const ROUNDS: u32 = 1000;
/// Input lines whose rate differs by less than this share from the line's count as equally fast.
const SAME_RATE: f64 = 1e-6;
/// Least mean waiting time, as a share of the service time, that is kept.
const LEAST_WAIT: f64 = 1e-6;

impl AnalyticStation {
    /// Returns the solution with the waiting behind other lines, in place of the one that takes arrivals as independent;
    /// none if no packet comes over another line, or if the formulas here do not cover the station.
    ///
    /// With packets of one size and lines of one rate, packets leave a tree of lines at the times at which one queue
    /// fed by all sources lets them go (Neely, Rohrs and Modiano, Equivalent models for queueing analysis of
    /// deterministic service time tree networks, 2005). So packets wait as long as if the sources were connected
    /// directly, less what they have waited for each other on their input line. Behind a slower input line, this is what
    /// they would wait for each other here.
    pub(crate) fn behind_lines(&self, solved: &StationSolution) -> Result<Option<StationSolution>, ModelError> {
        let state = &self.state;
        let covered = self.tcp_waiting.is_none()
            && self.gate.is_none()
            && self.seized.is_none()
            && !(self.paced || self.classes || self.memoryless)
            && state.loss <= 0.0
            && state.rate > 0.0;
        if !covered || self.arrivals.iter().all(|one| one.input.is_none()) {
            return Ok(None);
        }
        let all: Vec<&ArrivalStream> = self.arrivals.iter().filter(|one| one.rate > 0.0).collect();
        let service = self.service()?;
        let direct = waiting::general_mean(state.offered, &service, source_scv(&all, state.offered));
        let mut mean = direct;
        let mut inputs: Vec<InputLine> = Vec::new();
        for input in all.iter().filter_map(|one| one.input) {
            if inputs.iter().all(|known| known.station != input.station) {
                inputs.push(input);
            }
        }
        for input in inputs {
            let comes = |one: &ArrivalStream| one.input.is_some_and(|other| other.station == input.station);
            let group: Vec<&ArrivalStream> = all.iter().copied().filter(|one| comes(one)).collect();
            let law = self.service_of(|one| comes(one))?;
            let rate: f64 = group.iter().map(|one| one.rate).sum();
            let before = law.scaled(input.slower.min(1.0))?;
            let offered = rate * before.mean();
            let waited = waiting::general_mean(offered, &before, source_scv(&group, offered));
            let behind_longer =
                if input.slower > 1.0 - SAME_RATE { behind_longer(&law, input.slower, rate) } else { 0.0 };
            mean += rate / state.rate * (behind_longer - waited);
        }
        let waiting = if mean <= LEAST_WAIT * service.mean() {
            Distribution::zero()
        } else {
            // Fewer packets wait, and those for a shorter time.
            let busy = state.offered * (mean / direct.max(mean)).sqrt();
            let factor = mean * 2.0 * (1.0 - busy) * service.mean() / (busy * service.second_moment());
            let law = service.scaled(factor)?;
            station::mg1_waiting(busy / law.mean(), &law)?
        };
        let waiting = [waiting.clone(), waiting];
        Ok(Some(StationSolution { waiting, formula: "queue behind other lines", ..solved.clone() }))
    }
}

/// Returns the SCV of the times between packets of all these flows, as their sources send them.
fn source_scv(flows: &[&ArrivalStream], offered: f64) -> f64 {
    let rate: f64 = flows.iter().map(|one| one.rate).sum();
    merged_scv(flows.iter().map(|one| (one.rate, one.source_scv)), rate, offered)
}

/// Returns the mean time that packets of one input line, `rate` a second, wait because a longer packet went before them.
/// A packet stays at the second of two equal lines as long as the longest packet of its busy period so far is sent
/// (Boxma, On a tandem queueing model with identical service times at both counters, 1979).
fn behind_longer(law: &Law, slower: f64, rate: f64) -> f64 {
    let points = points(law);
    let offered = rate * slower * law.mean();
    let (mut reached, mut below) = ((1.0 - offered).max(0.0), 0.0);
    let mut longest = Vec::with_capacity(points.len());
    for (at, (time, weight)) in points.iter().enumerate() {
        below += weight;
        let share =
            if at + 1 == points.len() { 1.0 } else { none_longer(&points[..=at], rate * slower, offered, below) };
        longest.push((*time, (share - reached).max(0.0)));
        reached = share;
    }
    let wait = |own: f64| -> f64 { longest.iter().map(|(most, share)| share * (most - own * slower).max(0.0)).sum() };
    points.iter().map(|(own, weight)| weight * wait(*own)).sum()
}

/// Returns the share of packets before which no packet longer than the last of `short` went in their busy period.
/// `below` is the share of packets that are not longer.
///
/// A busy period ends without a longer packet with probability g = E[e^(-λ (1-g) S); S not longer], as if longer
/// packets ended it. Each packet up to the first longer one is that one with probability `1 - below`, so there are
/// (1 - g) / (1 - below) of them, of 1 / (1 - ρ) in a busy period.
fn none_longer(short: &[(f64, f64)], rate: f64, offered: f64, below: f64) -> f64 {
    let mut ends = 0.0;
    for _ in 0..ROUNDS {
        let next: f64 = short.iter().map(|(time, weight)| weight * (-rate * (1.0 - ends) * time).exp()).sum();
        if next - ends < 1e-9 {
            break;
        }
        ends = next;
    }
    ((1.0 - offered) * (1.0 - ends) / (1.0 - below).max(f64::EPSILON)).clamp(0.0, 1.0)
}

/// Returns a law as points with weights, in ascending order.
fn points(law: &Law) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for part in law.parts() {
        match part.shape {
            LawShape::Constant(value) => points.push((value, part.weight)),
            _ => {
                let own = Law::mixture([(1.0, law.clone())]).map(|law| Distribution::law(&law));
                let quantile = |step: u32| {
                    let share = (f64::from(step) + 0.5) / f64::from(POINTS);
                    own.as_ref().ok().and_then(|own| own.quantile(share).ok()).unwrap_or(law.mean())
                };
                // A law that is partly continuous is represented as a whole.
                return (0..POINTS).map(|step| (quantile(step), 1.0 / f64::from(POINTS))).collect();
            }
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}
