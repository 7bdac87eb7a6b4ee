//! Computes the waiting at a line whose packets come over other lines: packets of one input line arrive one after the
//! other, so they wait little for each other.
use super::direct::{QueueWait, SourceLoad};
use super::input::{InputGroup, by_input};
use super::longer::LongerWaits;
use super::{AnalyticStation, ArrivalStream, StationSolution, waiting};
use std::sync::Arc;
use weir_model::{Distribution, ModelError};

/// Least mean waiting time, as a share of the service time, that is kept.
const LEAST_WAIT: f64 = 1e-6;
/// Share of lost packets below which losses shorten no waiting.
const LOSSLESS: f64 = 1e-3;
/// Share of lost packets for [`LOSSLESS`] if packets come in bursts: their waits are limited to what the buffer holds.
const LOSSLESS_BURSTS: f64 = 0.03;

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
        let lossless = if self.has_bursts() { LOSSLESS_BURSTS } else { LOSSLESS };
        let covered = self.tcp_waiting.is_none()
            && self.gate.is_none()
            && self.seized.is_none()
            && !(self.paced || self.classes || self.memoryless)
            && state.loss < lossless
            && state.rate > 0.0;
        if !covered {
            return Ok(None);
        }
        let all: Vec<&ArrivalStream> = self.arrivals.iter().filter(|one| one.rate > 0.0).collect();
        let sources: Vec<SourceLoad> = all.iter().map(|one| SourceLoad::of(one, one.service.clone())).collect();
        let direct = self.limited(QueueWait::of(&sources, state.offered)?)?;
        let groups = by_input(&all, 1).into_iter().map(|flows| InputGroup::new(&all, flows));
        let groups = groups.collect::<Result<Vec<_>, ModelError>>()?;
        // Means weighted by load: what shorter packets wait less, longer ones wait more (conservation law, Kleinrock,
        // Queueing Systems II, 1976, 3.4).
        let direct_mean = direct.by_load;
        let before: f64 = groups.iter().map(|group| group.load / state.offered * group.waited.by_load).sum();
        let mean = (direct_mean - before).max(0.0);
        // With little load, packets wait only for those of other inputs, as far as their input has spaced their own.
        let weight = |group: &InputGroup| 1.0 - group.spaced * group.load / state.offered * (1.0 - state.offered);
        let weights: f64 = groups.iter().map(|group| group.load / state.offered * weight(group)).sum();
        let (mut flows, mut merging, mut longer) = (Vec::new(), 0.0, Vec::new());
        for group in &groups {
            let mean = if weights > 0.0 { mean * weight(group) / weights } else { mean };
            for (at, number) in group.flows.iter().enumerate() {
                let more = direct.each[*number] - direct_mean - (group.waited.each[at] - group.waited.by_load);
                let waits = FlowWaits {
                    independent: all[*number].passed.is_empty(),
                    direct: direct.each[*number],
                    mean: (mean + more).max(0.0),
                    longer: Arc::clone(&group.longer[at]),
                };
                let share = (all[*number].rate / state.rate).min(1.0);
                merging += share * waits.mean;
                for one in waits.longer.iter() {
                    longer.extend(one.times.iter().map(|(time, part)| (*time, share * one.weight * part)));
                }
                flows.push((all[*number].flow, waits));
            }
        }
        let formula = if all.iter().any(|one| !one.passed.is_empty()) {
            "queue behind other lines"
        } else if sources.iter().any(|one| one.modulation.is_some()) {
            "queue with arrivals in bursts"
        } else if sources.iter().any(|one| one.scv < 1.0) {
            "queue of constant gaps"
        } else {
            solved.formula
        };
        let least = LEAST_WAIT * state.offered / state.rate;
        let mut waiting = QueueWait::independent(std::iter::once((&direct, merging)))?;
        waiting.push(waits_for_longer(&longer, least)?);
        let waiting = Distribution::sum(&waiting);
        let line = Some(Arc::new(LineWaits { direct, flows }));
        Ok(Some(StationSolution { waiting: [waiting.clone(), waiting], formula, line, ..solved.clone() }))
    }
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
