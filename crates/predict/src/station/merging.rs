//! Computes the waiting at a line whose packets come over other lines: packets of one input line arrive one after the
//! other, so they wait little for each other.
use super::direct::{QueueWait, SourceLoad, constant_share, periodic_sources};
use super::longer::{LongerWaits, behind_longer};
use super::periodic::periodic_longer;
use super::{AnalyticStation, ArrivalStream, ServiceMoments, StationSolution, mixed_service, waiting};
use std::collections::HashMap;
use std::sync::Arc;
use weir_model::{Distribution, ModelError};

/// Slowest station that packets have passed on their way to a line, the latest among equals: a line, or a device that
/// takes a constant time.
#[derive(Debug, Clone)]
pub(crate) struct InputStation {
    /// Index of the station.
    pub(crate) station: usize,
    /// Time that the flow's packets take there.
    pub(crate) service: ServiceMoments,
    /// Lines as slow as this one that the packets have passed in a row, with this one as the last; none for a device.
    pub(crate) lines: Vec<usize>,
}

/// Share by which the times of packets on two stations may differ if these count as equally fast.
pub(crate) const SAME_RATE: f64 = 1e-6;
/// Least mean waiting time, as a share of the service time, that is kept.
const LEAST_WAIT: f64 = 1e-6;
/// Share of the load from sources with constant gaps from which packets meet longer ones as these sources' do.
const MOSTLY_CONSTANT: f64 = 0.5;
/// Difference of mean numbers of lines up to which they count as equal.
const SAME_LINES: f64 = 0.05;

/// Waiting of packets at a line, by flow.
#[derive(Debug)]
pub(crate) struct LineWaits {
    /// Waiting if all sources were connected directly.
    pub(crate) direct: QueueWait,
    /// Waiting of each flow's packets, by the flow's number.
    flows: Vec<(usize, FlowWaits)>,
}

/// Waiting of a flow's packets at a line.
#[derive(Debug)]
pub(crate) struct FlowWaits {
    /// True if the packets are independent of earlier ones, because they come from their source directly.
    pub(crate) independent: bool,
    /// Mean waiting time if all sources were connected directly, in seconds.
    pub(crate) direct: f64,
    /// Mean waiting time for packets of other inputs, in seconds.
    pub(crate) mean: f64,
    /// Waiting behind longer packets of the same input, for each service time.
    pub(crate) longer: Arc<Vec<LongerWaits>>,
}

impl LineWaits {
    /// Returns the waiting of the packets of a flow.
    pub(crate) fn of(&self, flow: usize) -> Option<&FlowWaits> {
        self.flows.iter().find(|(number, _)| *number == flow).map(|(_, waits)| waits)
    }
}

impl AnalyticStation {
    /// Returns the solution of a line with the waiting behind other lines, in place of the one that takes arrivals as
    /// independent; none if the formulas here do not cover the line.
    ///
    /// With packets of one size and lines of one rate, packets leave a tree of lines at the times at which one queue
    /// fed by all sources lets them go (Neely, Rohrs and Modiano, Equivalent models for queueing analysis of
    /// deterministic service time tree networks, 2005). So packets wait as long as if the sources were connected
    /// directly, less what they have waited for each other at their input. Behind a slower input, this is what they
    /// would wait for each other here.
    pub(crate) fn behind_lines(&self, solved: &StationSolution) -> Result<Option<StationSolution>, ModelError> {
        let state = &self.state;
        let covered = self.tcp_waiting.is_none()
            && self.gate.is_none()
            && self.seized.is_none()
            && !(self.paced || self.classes || self.memoryless)
            && state.loss <= 0.0
            && state.rate > 0.0;
        if !covered {
            return Ok(None);
        }
        let all: Vec<&ArrivalStream> = self.arrivals.iter().filter(|one| one.rate > 0.0).collect();
        let sources: Vec<SourceLoad> = all.iter().map(|one| source(one, one.service.clone())).collect();
        let direct = QueueWait::of(&sources, state.offered)?;
        let groups = by_input(&all).into_iter().map(|flows| InputGroup::new(&all, flows));
        let groups = groups.collect::<Result<Vec<_>, ModelError>>()?;
        // Means weighted by load: what shorter packets wait less, longer ones wait more (conservation law, Kleinrock,
        // Queueing Systems II, 1976, 3.4).
        let direct_mean = by_load(&all, &direct.each);
        let before: f64 = groups.iter().map(|group| group.load / state.offered * group.waited_mean).sum();
        let mean = (direct_mean - before).max(0.0);
        // With little load, packets wait only for those of other inputs, as far as their input has spaced their own.
        let weight = |group: &InputGroup| 1.0 - group.spaced * group.load / state.offered * (1.0 - state.offered);
        let weights: f64 = groups.iter().map(|group| group.load / state.offered * weight(group)).sum();
        let (mut flows, mut merging, mut longer) = (Vec::new(), Vec::new(), Vec::new());
        for group in &groups {
            let mean = if weights > 0.0 { mean * weight(group) / weights } else { mean };
            for (at, number) in group.flows.iter().enumerate() {
                let more = direct.each[*number] - direct_mean - (group.waited.each[at] - group.waited_mean);
                let waits = FlowWaits {
                    independent: all[*number].input.is_none(),
                    direct: direct.each[*number],
                    mean: (mean + more).max(0.0),
                    longer: Arc::clone(&group.longer[at]),
                };
                let share = (all[*number].rate / state.rate).min(1.0);
                merging.push((share, direct.with_mean(waits.mean)?));
                for one in waits.longer.iter() {
                    longer.extend(one.times.iter().map(|(time, part)| (*time, share * one.weight * part)));
                }
                flows.push((all[*number].flow, waits));
            }
        }
        let formula = if all.iter().any(|one| one.input.is_some()) {
            "queue behind other lines"
        } else if sources.iter().any(|one| one.scv < 1.0) {
            "queue of constant gaps"
        } else {
            solved.formula
        };
        let least = LEAST_WAIT * state.offered / state.rate;
        let waiting = Distribution::sum(&[Distribution::mixture(&merging)?, waits_for_longer(&longer, least)?]);
        let line = Some(Arc::new(LineWaits { direct, flows }));
        Ok(Some(StationSolution { waiting: [waiting.clone(), waiting], formula, line, ..solved.clone() }))
    }
}

/// Packets of one input of a line.
struct InputGroup {
    /// Indices of the flows among all of the line.
    flows: Vec<usize>,
    /// Packets a second, and their load on the line.
    rate: f64,
    load: f64,
    /// How far they no longer wait for each other: 0 not at all, 1 completely.
    spaced: f64,
    /// Waiting for each other before the line, and its mean weighted by load.
    waited: QueueWait,
    waited_mean: f64,
    /// Waiting behind longer ones at the line, for each flow.
    longer: Vec<Arc<Vec<LongerWaits>>>,
}

impl InputGroup {
    /// Computes what the packets of these flows of a line wait for each other.
    fn new(all: &[&ArrivalStream], flows: Vec<usize>) -> Result<InputGroup, ModelError> {
        let group = || flows.iter().map(|number| all[*number]);
        let rate: f64 = group().map(|one| one.rate).sum();
        let law = mixed_service(group().map(|one| (one.rate, &one.service)))?;
        let load = rate * law.mean();
        let inputs: Vec<&InputStation> = group().filter_map(|one| one.input.as_ref()).collect();
        if inputs.is_empty() {
            let (waited, longer) = (QueueWait::none(flows.len()), vec![Arc::default(); flows.len()]);
            return Ok(InputGroup { flows, rate, load, spaced: 0.0, waited, waited_mean: 0.0, longer });
        }
        let taken = mixed_service(group().zip(&inputs).map(|(one, input)| (one.rate, &input.service)))?;
        let slower = taken.mean() / law.mean();
        let factor = (1.0 / slower).min(1.0);
        let sources = group()
            .zip(&inputs)
            .map(|(one, input)| Ok(source(one, ServiceMoments::new(input.service.law.scaled(factor)?))));
        let sources = sources.collect::<Result<Vec<SourceLoad>, ModelError>>()?;
        let offered = rate * taken.mean() * factor;
        let waited = QueueWait::of(&sources, offered)?;
        let own: Vec<SourceLoad> = group().map(|one| source(one, one.service.clone())).collect();
        let alone = QueueWait::of(&own, load)?.mean;
        let spaced = if alone > 0.0 { (waited.mean / alone).min(1.0) } else { 1.0 };
        let longer = if inputs.iter().any(|input| input.lines.is_empty()) {
            vec![Arc::default(); flows.len()]
        } else if constant_share(&sources) > MOSTLY_CONSTANT {
            let sources = periodic_sources(&own)?;
            let waits = |at: usize| {
                let lines: Vec<f64> = inputs.iter().map(|other| shared(&inputs[at].lines, &other.lines)).collect();
                let own = sources[at].points.iter().map(|(own, weight)| LongerWaits {
                    own: *own,
                    weight: *weight,
                    times: periodic_longer(&sources, at, *own, slower, &lines),
                });
                Arc::new(own.collect())
            };
            (0..sources.len()).map(waits).collect()
        } else {
            // Arrivals more regular than Poisson have shorter busy periods: the root of the proportion of waits is
            // between no effect, which gives waits too long, and the whole proportion, which gives them too short.
            let poisson = waiting::general_mean(offered, &taken.scaled(factor)?, 1.0);
            let regular = (waited.mean / poisson).clamp(0.0, 1.0).sqrt();
            let rates: Vec<f64> = group().map(|one| one.rate).collect();
            let mut known: Vec<(f64, Arc<Vec<LongerWaits>>)> = Vec::new();
            for lines in mean_shared(&inputs, &rates) {
                if !known.iter().any(|(other, _)| (other - lines).abs() < SAME_LINES) {
                    let mut waits = behind_longer(&law, slower, lines, rate)?;
                    waits.iter_mut().flat_map(|one| &mut one.times).for_each(|(_, share)| *share *= regular);
                    known.push((lines, Arc::new(waits)));
                }
            }
            let of = |lines: f64| known.iter().find(|(other, _)| (other - lines).abs() < SAME_LINES);
            mean_shared(&inputs, &rates).into_iter().filter_map(|lines| Some(Arc::clone(&of(lines)?.1))).collect()
        };
        let waited_mean = by_load(&group().collect::<Vec<_>>(), &waited.each);
        Ok(InputGroup { flows, rate, load, spaced, waited, waited_mean, longer })
    }
}

/// Returns a flow's packets as a source sends them, with the time that they take at a queue.
fn source(flow: &ArrivalStream, service: ServiceMoments) -> SourceLoad {
    SourceLoad { rate: flow.rate, scv: flow.source_scv, service }
}

/// Returns the mean of these times of flows, weighted by their load.
fn by_load(flows: &[&ArrivalStream], times: &[f64]) -> f64 {
    let load = |one: &ArrivalStream| one.rate * one.service.mean;
    let sum: f64 = flows.iter().zip(times).map(|(one, time)| load(one) * time).sum();
    sum / flows.iter().map(|one| load(one)).sum::<f64>()
}

/// Returns the number of lines that packets of two flows have passed in a row together, up to now.
fn shared(one: &[usize], other: &[usize]) -> f64 {
    one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count() as f64
}

/// Returns the mean number of lines that a flow's packets have passed in a row together with the packets of all these
/// flows, for each flow. `rates` are their packets per second.
fn mean_shared(inputs: &[&InputStation], rates: &[f64]) -> Vec<f64> {
    let all: f64 = rates.iter().sum();
    let most = inputs.iter().map(|input| input.lines.len()).max().unwrap_or(0);
    let mut means = vec![0.0; inputs.len()];
    for lines in 1..=most {
        let last = |input: &InputStation| input.lines.len().checked_sub(lines).map(|from| input.lines[from..].to_vec());
        let mut together: HashMap<Vec<usize>, f64> = HashMap::new();
        for (input, rate) in inputs.iter().zip(rates) {
            last(input).into_iter().for_each(|lines| *together.entry(lines).or_default() += rate / all);
        }
        for (mean, input) in means.iter_mut().zip(inputs) {
            *mean += last(input).and_then(|lines| together.get(&lines).copied()).unwrap_or(0.0);
        }
    }
    means
}

/// Returns the indices of the flows by the station over which they come.
fn by_input(flows: &[&ArrivalStream]) -> Vec<Vec<usize>> {
    let station = |one: usize| flows[one].input.as_ref().map(|input| input.station);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for number in 0..flows.len() {
        match groups.iter_mut().find(|group| station(group[0]) == station(number)) {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    groups
}

/// Returns the law of times, of which each is that of a share of the packets; all others do not wait. It is continuous,
/// with the moments of these times: the combinations of the steps of all lines of a path would be too many.
fn waits_for_longer(times: &[(f64, f64)], least: f64) -> Result<Distribution, ModelError> {
    let sum = |value: fn(f64) -> f64| times.iter().map(|(time, share)| value(*time) * share).sum::<f64>();
    let mean = sum(|time| time);
    if mean <= least {
        return Ok(Distribution::zero());
    }
    waiting::gamma(mean, sum(|time| time * time))
}
