//! Computes the waiting at a line whose packets come over other lines: packets of one input line arrive one after the
//! other, so they wait little for each other.
use super::direct::{QueueWait, SourceLoad, points};
use super::{AnalyticStation, ArrivalStream, ServiceMoments, StationSolution, mixed_service, waiting};
use std::sync::Arc;
use weir_model::{Distribution, Law, ModelError};

/// Slowest station that packets have passed on their way to a line, the latest among equals: a line, or a device that
/// takes a constant time.
#[derive(Debug, Clone)]
pub(crate) struct InputStation {
    /// Index of the station.
    pub(crate) station: usize,
    /// Time that the flow's packets take there.
    pub(crate) service: ServiceMoments,
    /// Lines as slow as this one that the packets have passed, with this one; 0 for a device.
    pub(crate) lines: u32,
}

/// Most rounds of a fixed point.
const ROUNDS: u32 = 1000;
/// Share by which the times of packets on two stations may differ if these count as equally fast.
pub(crate) const SAME_RATE: f64 = 1e-6;
/// Least mean waiting time, as a share of the service time, that is kept.
const LEAST_WAIT: f64 = 1e-6;

/// Waiting of packets at a line, by the station over which they come.
#[derive(Debug)]
pub(crate) struct LineWaits {
    /// Waiting if all sources were connected directly.
    pub(crate) direct: QueueWait,
    /// Packets of each input, and those that come from sources directly.
    groups: Vec<InputWaits>,
}

/// Waiting of the packets of one input.
#[derive(Debug)]
pub(crate) struct InputWaits {
    /// Station over which the packets come; none if they come from sources directly.
    input: Option<usize>,
    /// Mean waiting time for packets of other inputs, in seconds.
    pub(crate) mean: f64,
    /// Waiting behind longer packets of the same input, for each service time, in ascending order.
    pub(crate) longer: Vec<LongerWaits>,
}

/// Waiting of packets of one service time behind longer ones.
#[derive(Debug)]
pub(crate) struct LongerWaits {
    /// Service time in seconds.
    own: f64,
    /// Share of the input's packets that have this service time.
    weight: f64,
    /// Waiting times in seconds, with the share of these packets that wait so long, in ascending order.
    pub(crate) times: Vec<(f64, f64)>,
}

impl LineWaits {
    /// Returns the waiting of packets that come over this station.
    pub(crate) fn of(&self, input: Option<usize>) -> Option<&InputWaits> {
        self.groups.iter().find(|group| group.input == input)
    }
}

impl InputWaits {
    /// Returns the waiting behind longer packets, for the packets whose service time is nearest to `own`.
    pub(crate) fn longer(&self, own: f64) -> &[(f64, f64)] {
        let nearest = self.longer.iter().min_by(|a, b| (a.own - own).abs().total_cmp(&(b.own - own).abs()));
        nearest.map_or(&[], |nearest| &nearest.times)
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
        let direct =
            QueueWait::of(&all.iter().map(|one| source(one, &one.service)).collect::<Vec<_>>(), state.offered)?;
        let mut groups = Vec::new();
        // Mean of what all packets have waited for each other already.
        let mut before = 0.0;
        for group in by_input(&all) {
            let rate: f64 = group.iter().map(|one| one.rate).sum();
            let own = self.same_input(&group, rate)?;
            before += rate / state.rate * own.waited;
            groups.push(own);
        }
        let service = self.service()?;
        let mean = (direct.mean - before).max(0.0);
        let mut merging = Vec::new();
        let mut longer: Vec<(f64, f64)> = Vec::new();
        share_waits(&mut groups, mean, state.offered, &service);
        for group in &groups {
            let share = group.rate / state.rate;
            merging.push((share.min(1.0), direct.with_mean(group.waits.mean)?));
            for one in &group.waits.longer {
                longer.extend(one.times.iter().map(|(time, part)| (*time, share * one.weight * part)));
            }
        }
        let formula = if groups.iter().any(|group| group.waits.input.is_some()) {
            "queue behind other lines"
        } else if all.iter().any(|one| one.source_scv < 1.0) {
            "queue of constant gaps"
        } else {
            solved.formula
        };
        let merging = Distribution::mixture(&merging)?;
        let waiting = Distribution::sum(&[merging, waits_for_longer(&longer, LEAST_WAIT * service.mean())?]);
        let groups = groups.into_iter().map(|group| group.waits).collect();
        let line = Some(Arc::new(LineWaits { direct, groups }));
        Ok(Some(StationSolution { waiting: [waiting.clone(), waiting], formula, line, ..solved.clone() }))
    }

    /// Computes the waiting of packets of one input, `rate` a second, for each other.
    fn same_input(&self, group: &[&ArrivalStream], rate: f64) -> Result<InputGroup, ModelError> {
        let law = mixed_service(group.iter().map(|one| (one.rate, &one.service)))?;
        let load = rate * law.mean();
        let Some(input) = group.first().and_then(|one| one.input.as_ref()) else {
            let waits = InputWaits { input: None, mean: 0.0, longer: Vec::new() };
            return Ok(InputGroup { waits, rate, load, waited: 0.0 });
        };
        let input = input.station;
        let inputs = || group.iter().filter_map(|one| Some((*one, one.input.as_ref()?)));
        let taken = mixed_service(inputs().map(|(one, input)| (one.rate, &input.service)))?;
        let slower = taken.mean() / law.mean();
        let factor = (1.0 / slower).min(1.0);
        let scaled = |(one, input): (&ArrivalStream, &InputStation)| {
            Ok(source(one, &ServiceMoments::new(input.service.law.scaled(factor)?)))
        };
        let offered = rate * taken.mean() * factor;
        let waited = QueueWait::of(&inputs().map(scaled).collect::<Result<Vec<_>, ModelError>>()?, offered)?.mean;
        let lines = inputs().map(|(_, input)| input.lines).max().unwrap_or(0);
        let mut longer = Vec::new();
        if lines > 0 && slower > 1.0 - SAME_RATE {
            // Arrivals more regular than Poisson have shorter busy periods: the root of the proportion of waits is
            // between no effect, which gives waits too long, and the whole proportion, which gives them too short.
            let poisson = waiting::general_mean(offered, &taken.scaled(factor)?, 1.0);
            let regular = (waited / poisson).clamp(0.0, 1.0).sqrt();
            longer = behind_longer(&law, slower, lines, rate)?;
            longer.iter_mut().flat_map(|one| &mut one.times).for_each(|(_, share)| *share *= regular);
        }
        Ok(InputGroup { waits: InputWaits { input: Some(input), mean: 0.0, longer }, rate, load, waited })
    }
}

/// Packets of one input while their line is solved.
struct InputGroup {
    waits: InputWaits,
    rate: f64,
    load: f64,
    /// Mean time for which they have waited for each other before, in seconds.
    waited: f64,
}

/// Returns a flow's packets as a source sends them, with the time that they take at a queue.
fn source(flow: &ArrivalStream, service: &ServiceMoments) -> SourceLoad {
    SourceLoad { rate: flow.rate, scv: flow.source_scv, service: service.clone() }
}

/// Sets the mean waiting of each input's packets, given the mean of all packets.
fn share_waits(groups: &mut [InputGroup], mean: f64, _offered: f64, _service: &Law) {
    for group in groups {
        group.waits.mean = mean;
    }
}

/// Returns the flows by the station over which they come.
fn by_input<'a>(flows: &[&'a ArrivalStream]) -> Vec<Vec<&'a ArrivalStream>> {
    let station = |one: &ArrivalStream| one.input.as_ref().map(|input| input.station);
    let mut groups: Vec<Vec<&ArrivalStream>> = Vec::new();
    for one in flows {
        match groups.iter_mut().find(|group| station(group[0]) == station(one)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
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

/// Returns how long packets of one input line, `rate` a second, wait because longer packets went before them: times,
/// and the shares of packets. `law` is their time on the line; they took `slower` times as long on each of `lines`
/// lines before it.
///
/// On equal lines in a row, packet n leaves line k+1 at the latest of a_j + S_j + ... + S_n + k max(S_j, ..., S_n) over
/// all j up to n, with arrivals a and times S (the second line: Boxma, On a tandem queueing model with identical
/// service times at both counters, 1979). So a packet waits for the longest one before it in its busy period on the
/// first line. It also waits for one in an earlier busy period, if the first line has since been idle for less than the
/// difference of their times on k lines. On the last line it waits for a part of the difference, if k-1 lines were not
/// enough.
fn behind_longer(law: &Law, slower: f64, lines: u32, rate: f64) -> Result<Vec<LongerWaits>, ModelError> {
    let points = points(law)?;
    let rate = rate * slower;
    let offered = (rate * law.mean()).min(1.0);
    let lines = f64::from(lines);
    let ends: Vec<f64> = (1..=points.len()).map(|count| ends_without_longer(&points[..count], rate)).collect();
    let mut waits = Vec::new();
    for (at, (own, weight)) in points.iter().enumerate() {
        let mut times = Vec::new();
        let (mut below, mut reached) = (points[..at].iter().map(|(_, weight)| weight).sum::<f64>(), 0.0);
        for (most, (longest, part)) in points.iter().enumerate().skip(at) {
            below += part;
            // Idle time for which longer packets matter, times the rate of busy periods that have them, for each line.
            let later: f64 =
                (most + 1..points.len()).map(|long| (ends[long] - ends[long - 1]) * (points[long].0 - own)).sum();
            let share = if most + 1 == points.len() {
                1.0
            } else {
                let same = ((1.0 - offered) * (1.0 - ends[most]) / (1.0 - below)).clamp(0.0, 1.0);
                let since = |lines: f64| (-rate * lines * later).exp();
                same * (since(lines) + since(lines - 1.0)) / 2.0
            };
            times.push(((longest - own * slower).max(0.0), (share - reached).max(0.0)));
            reached = share.max(reached);
        }
        waits.push(LongerWaits { own: *own, weight: *weight, times });
    }
    Ok(waits)
}

/// Returns the probability g that a busy period has only packets of these times, of all that arrive at `rate`: the
/// least solution of g = E[e^(-λ (1-g) S); S is one of these times]. So it has (1-g) / (1-F) packets up to the first
/// longer one, with the share F of packets that are not longer, of 1 / (1-ρ) packets.
fn ends_without_longer(short: &[(f64, f64)], rate: f64) -> f64 {
    let mut ends = 0.0;
    for _ in 0..ROUNDS {
        let next: f64 = short.iter().map(|(time, weight)| weight * (-rate * (1.0 - ends) * time).exp()).sum();
        if next - ends < 1e-9 {
            break;
        }
        ends = next;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_traffic::RandomStream;

    impl LongerWaits {
        /// Returns the share of the mean waiting of all packets that is due to these.
        fn mean(&self) -> f64 {
            self.times.iter().map(|(time, share)| self.weight * time * share).sum()
        }
    }

    /// Returns the mean waiting at the last of `lines` equal lines of one input, in units of the times that packets
    /// take, by following packets.
    fn followed(law: &[(f64, f64)], rate: f64, lines: u32) -> f64 {
        const PACKETS: u32 = 300_000;
        let mut random = RandomStream::new(7, 0, 1);
        let (mut now, mut free, mut waited) = (0.0, vec![0.0f64; lines as usize], 0.0);
        for _ in 0..PACKETS {
            now += random.exponential() / rate;
            let (mut draw, mut own) = (random.unit(), law[0].0);
            for (time, weight) in law {
                own = *time;
                draw -= weight;
                if draw < 0.0 {
                    break;
                }
            }
            let mut at = now;
            for (line, free) in free.iter_mut().enumerate() {
                if line + 1 == lines as usize {
                    waited += (*free - at).max(0.0);
                }
                *free = free.max(at) + own;
                at = *free;
            }
        }
        waited / f64::from(PACKETS)
    }

    #[test]
    fn short_packets_wait_behind_long_ones_at_each_line() {
        let sizes = [(60.0, 7.0 / 12.0), (590.0, 4.0 / 12.0), (1514.0, 1.0 / 12.0)];
        let law = Law::lattice(&sizes.map(|(time, _)| time), &sizes.map(|(_, weight)| weight)).unwrap();
        for (offered, lines) in [(0.3, 2), (0.7, 2), (0.3, 3), (0.5, 4)] {
            let rate = offered / law.mean();
            let waits = behind_longer(&law, 1.0, lines - 1, rate).unwrap();
            let found: f64 = waits.iter().map(LongerWaits::mean).sum();
            let expected = followed(&sizes, rate, lines);
            let off = found / expected - 1.0;
            assert!(off.abs() < 0.05, "load {offered}, line {lines}: {found}, followed {expected}");
        }
    }

    #[test]
    fn packets_of_one_size_and_one_input_never_wait_again() {
        let law = Law::constant(1.0).unwrap();
        let waits = behind_longer(&law, 1.0, 1, 0.8).unwrap();
        assert!(waits.iter().all(|one| one.mean() == 0.0), "{waits:?}");
    }
}
