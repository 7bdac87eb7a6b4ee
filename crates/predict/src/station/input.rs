//! Computes what packets that come to a line over one input have waited for each other, and how they follow each other.
use super::direct::{QueueWait, SourceLoad, constant_share, periodic_sources};
use super::longer::{LongerWaits, SharedLines, behind_longer};
use super::periodic::periodic_longer;
use super::{ArrivalStream, ServiceMoments, mixed_service, waiting};
use std::sync::Arc;
use weir_model::{Law, ModelError};

/// Share by which the times of packets on two stations may differ if these count as equally fast.
const SAME_RATE: f64 = 1e-6;
/// Share of the load from sources with constant gaps from which packets meet longer ones as these sources' do.
const MOSTLY_CONSTANT: f64 = 0.5;
/// Difference of shares of packets up to which they count as equal.
const SAME_SHARE: f64 = 0.02;

/// Station that packets have passed: a line, or a device that takes a constant time.
#[derive(Debug, Clone)]
pub(crate) struct PassedStation {
    /// Index of the station.
    pub(crate) station: usize,
    /// Time that the flow's packets take there.
    pub(crate) service: ServiceMoments,
    pub(crate) is_line: bool,
}

/// Packets that come to a line over one input.
pub(super) struct InputGroup {
    /// Indices of the flows among all of the line.
    pub(super) flows: Vec<usize>,
    /// Load on the line.
    pub(super) load: f64,
    /// How far they no longer wait for each other: 0 not at all, 1 completely.
    pub(super) spaced: f64,
    /// Mean time in seconds that they have waited for each other before the line, as far as they would wait here.
    pub(super) waited: WaitedBefore,
    /// Waiting behind longer ones at the line, for each flow.
    pub(super) longer: Vec<Arc<Vec<LongerWaits>>>,
}

/// Mean times in seconds that packets have waited for each other.
pub(super) struct WaitedBefore {
    /// Mean of each flow.
    pub(super) each: Vec<f64>,
    /// Mean of all, weighted by their load.
    pub(super) by_load: f64,
}

impl InputGroup {
    /// Computes what the packets of these flows of a line wait for each other. They have passed the same station
    /// last, if they have passed any.
    pub(super) fn new(all: &[&ArrivalStream], flows: Vec<usize>) -> Result<InputGroup, ModelError> {
        let group: Vec<&ArrivalStream> = flows.iter().map(|number| all[*number]).collect();
        let load: f64 = group.iter().map(|one| one.rate * one.service.mean).sum();
        if group[0].passed.is_empty() {
            let waited = WaitedBefore { each: vec![0.0; flows.len()], by_load: 0.0 };
            let longer = vec![Arc::default(); flows.len()];
            return Ok(InputGroup { flows, load, spaced: 0.0, waited, longer });
        }
        let mut each = vec![0.0; flows.len()];
        waited_before(&group, &(0..flows.len()).collect::<Vec<_>>(), 1, 0.0, &mut each)?;
        let times: f64 = group.iter().zip(&each).map(|(one, time)| one.rate * one.service.mean * time).sum();
        let waited = WaitedBefore { each, by_load: times / load };
        let own: Vec<SourceLoad> = group.iter().map(|one| SourceLoad::of(one, one.service.clone())).collect();
        let alone = QueueWait::of(&own, load)?;
        let spaced = if alone.by_load > 0.0 { (waited.by_load / alone.by_load).min(1.0) } else { 1.0 };
        let longer = if constant_share(&own) > MOSTLY_CONSTANT {
            periodic_groups(&group, &own)?
        } else {
            poisson_groups(&group, &alone, load)?
        };
        Ok(InputGroup { flows, load, spaced, waited, longer })
    }
}

/// Adds what packets of these flows, given by their indices in `group`, have waited for each other before the line, as
/// far as they would wait on it. They have the last `depth` stations in common. It is the waiting at the slowest of
/// these: `known` has the time of their packets on the slowest of the last `depth - 1`, relative to that on the line,
/// for which the waiting has been added. At most the time on the line counts.
fn waited_before(
    group: &[&ArrivalStream],
    flows: &[usize],
    depth: usize,
    known: f64,
    each: &mut [f64],
) -> Result<(), ModelError> {
    let Some(passed) = at_depth(group[flows[0]], depth) else { return Ok(()) };
    let slower = slower(group, flows, depth).min(1.0);
    let mut known = known;
    if slower > known * (1.0 + SAME_RATE) {
        let sources = |relative: f64| {
            let source = |number: &usize| {
                let one = group[*number];
                let law = if passed.is_line { &one.service } else { &at_depth(one, depth)?.service };
                let factor = if passed.is_line { relative } else { relative * one.service.mean / law.mean };
                Some((one, law.law.scaled(factor)))
            };
            let sources = flows.iter().filter_map(source);
            sources.map(|(one, law)| Ok(SourceLoad::of(one, ServiceMoments::new(law?)))).collect::<Result<Vec<_>, _>>()
        };
        let load: f64 = flows.iter().map(|number| group[*number].rate * group[*number].service.mean).sum();
        let waits = QueueWait::of(&sources(slower)?, load * slower)?.each;
        let less =
            if known > 0.0 { QueueWait::of(&sources(known)?, load * known)?.each } else { vec![0.0; flows.len()] };
        for ((number, wait), less) in flows.iter().zip(waits).zip(less) {
            each[*number] += (wait - less).max(0.0);
        }
        known = slower;
    }
    if known > 1.0 - SAME_RATE {
        return Ok(());
    }
    let members: Vec<&ArrivalStream> = flows.iter().map(|number| group[*number]).collect();
    for further in by_input(&members, depth + 1) {
        let flows: Vec<usize> = further.into_iter().map(|at| flows[at]).collect();
        waited_before(group, &flows, depth + 1, known, each)?;
    }
    Ok(())
}

/// Returns the station that a flow's packets have passed `depth` stations before the line.
fn at_depth(flow: &ArrivalStream, depth: usize) -> Option<&PassedStation> {
    flow.passed.len().checked_sub(depth).map(|at| &flow.passed[at])
}

/// Returns how many times as long as on the line packets of these flows of a group took, `depth` stations before it.
fn slower(group: &[&ArrivalStream], flows: &[usize], depth: usize) -> f64 {
    let sum = |time: fn(&ArrivalStream, usize) -> f64| -> f64 {
        flows.iter().map(|number| group[*number].rate * time(group[*number], depth)).sum()
    };
    let before = sum(|one, depth| at_depth(one, depth).map_or(0.0, |passed| passed.service.mean));
    before / sum(|one, _| one.service.mean)
}

/// Returns the waiting behind longer packets of flows with constant gaps.
fn periodic_groups(group: &[&ArrivalStream], own: &[SourceLoad]) -> Result<Vec<Arc<Vec<LongerWaits>>>, ModelError> {
    let sources = periodic_sources(own)?;
    let waits = |at: usize| {
        let lines: Vec<SharedLines> = group.iter().map(|other| SharedLines::of(group[at], other)).collect();
        let own = sources[at].points.iter().map(|(own, weight)| LongerWaits {
            own: *own,
            weight: *weight,
            times: periodic_longer(&sources, at, *own, &lines),
        });
        Arc::new(own.collect())
    };
    Ok((0..sources.len()).map(waits).collect())
}

/// Returns the waiting behind longer packets of flows with random gaps. `alone` is their waiting if they were connected
/// directly, and `load` their load.
fn poisson_groups(
    group: &[&ArrivalStream],
    alone: &QueueWait,
    load: f64,
) -> Result<Vec<Arc<Vec<LongerWaits>>>, ModelError> {
    let rate: f64 = group.iter().map(|one| one.rate).sum();
    let law: Law = mixed_service(group.iter().map(|one| (one.rate, &one.service)))?;
    // Arrivals more regular than Poisson have shorter busy periods: the root of the proportion of waits is between no
    // effect, which gives waits too long, and the whole proportion, which gives them too short.
    let regular = (alone.mean / waiting::general_mean(load, &law, 1.0)).clamp(0.0, 1.0).sqrt();
    let mut known: Vec<(SharedWays, Arc<Vec<LongerWaits>>)> = Vec::new();
    let mut each = Vec::new();
    for one in group {
        let mut ways = SharedWays::new();
        for other in group {
            let lines = SharedLines::of(one, other);
            match ways.iter_mut().find(|(known, _)| known.0.len() == lines.0.len()) {
                Some((_, share)) => *share += other.rate / rate,
                None => ways.push((lines, other.rate / rate)),
            }
        }
        let same = |other: &SharedWays| {
            let same =
                |(a, b): (&(SharedLines, f64), &(SharedLines, f64))| a.0 == b.0 && (a.1 - b.1).abs() < SAME_SHARE;
            other.len() == ways.len() && other.iter().zip(&ways).all(same)
        };
        if let Some((_, waits)) = known.iter().find(|(other, _)| same(other)) {
            each.push(Arc::clone(waits));
            continue;
        }
        let mut waits = if group[0].is_behind_line() { behind_longer(&law, &ways, rate)? } else { Vec::new() };
        waits.iter_mut().flat_map(|one| &mut one.times).for_each(|(_, share)| *share *= regular);
        let waits = Arc::new(waits);
        each.push(Arc::clone(&waits));
        known.push((ways, waits));
    }
    Ok(each)
}

/// Lines that packets have passed together with others, with the share of the others.
type SharedWays = Vec<(SharedLines, f64)>;

impl ArrivalStream {
    /// Returns true if the packets come from another line.
    fn is_behind_line(&self) -> bool {
        self.passed.last().is_some_and(|passed| passed.is_line)
    }
}

impl SharedLines {
    /// Returns the lines that packets of two flows have passed in a row together up to now.
    fn of(one: &ArrivalStream, other: &ArrivalStream) -> SharedLines {
        let together = one.passed.iter().rev().zip(other.passed.iter().rev());
        let lines = together.take_while(|(a, b)| a.station == b.station && a.is_line);
        let mut shared: Vec<f64> = lines.map(|(passed, _)| passed.service.mean / one.service.mean).collect();
        shared.reverse();
        SharedLines(shared)
    }
}

/// Returns the indices of the flows by the station that they have passed `depth` stations before the line.
pub(super) fn by_input(flows: &[&ArrivalStream], depth: usize) -> Vec<Vec<usize>> {
    let station = |one: usize| at_depth(flows[one], depth).map(|passed| passed.station);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for number in 0..flows.len() {
        match groups.iter_mut().find(|group| station(group[0]) == station(number)) {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    groups
}
