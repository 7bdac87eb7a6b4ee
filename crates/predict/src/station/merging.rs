//! Computes the waiting at a line whose packets come over other lines: packets of one input line arrive one after the
//! other, so they wait little for each other.
use super::{AnalyticStation, ArrivalStream, ServiceMoments, StationSolution, merged_scv, mixed_service, waiting};
use weir_model::{Distribution, Law, LawShape, ModelError, station};

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

/// Points by which a continuous law of packet lengths is represented.
const POINTS: u32 = 16;
/// Most rounds of a fixed point.
const ROUNDS: u32 = 1000;
/// Share by which the times of packets on two stations may differ if these count as equally fast.
pub(crate) const SAME_RATE: f64 = 1e-6;
/// Least mean waiting time, as a share of the service time, that is kept.
const LEAST_WAIT: f64 = 1e-6;

impl AnalyticStation {
    /// Returns the solution with the waiting behind other lines, in place of the one that takes arrivals as
    /// independent; none if no packet comes over another line, or if the formulas here do not cover the station.
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
        if !covered || self.arrivals.iter().all(|one| one.input.is_none()) {
            return Ok(None);
        }
        let all: Vec<&ArrivalStream> = self.arrivals.iter().filter(|one| one.rate > 0.0).collect();
        let service = self.service()?;
        let direct = waiting::general_mean(state.offered, &service, source_scv(&all, state.offered));
        let mut mean = direct;
        // Waiting for longer packets, as times with the share of the packets that wait so long.
        let mut longer: Vec<(f64, f64)> = Vec::new();
        for group in groups(&all) {
            let law = mixed_service(group.iter().map(|(one, _)| (one.rate, &one.service)))?;
            let taken = mixed_service(group.iter().map(|(one, input)| (one.rate, &input.service)))?;
            let rate: f64 = group.iter().map(|(one, _)| one.rate).sum();
            let slower = taken.mean() / law.mean();
            let taken = taken.scaled((1.0 / slower).min(1.0))?;
            let offered = rate * taken.mean();
            let streams: Vec<&ArrivalStream> = group.iter().map(|(one, _)| *one).collect();
            let waited = waiting::general_mean(offered, &taken, source_scv(&streams, offered));
            let share = rate / state.rate;
            mean -= share * waited;
            let lines = group.iter().map(|(_, input)| input.lines).max().unwrap_or(0);
            if lines > 0 && slower > 1.0 - SAME_RATE {
                // Arrivals more regular than Poisson have shorter busy periods: the root of the proportion of waits is
                // between no effect, which gives waits too long, and the whole proportion, which gives them too short.
                let regular = (waited / waiting::general_mean(offered, &taken, 1.0)).clamp(0.0, 1.0).sqrt();
                let waits = behind_longer(&law, slower, lines, rate)?;
                longer.extend(waits.into_iter().map(|(time, part)| (time, share * regular * part)));
            }
        }
        let merging = if mean <= LEAST_WAIT * service.mean() {
            Distribution::zero()
        } else {
            // Fewer packets wait, and those for a shorter time.
            let busy = state.offered * (mean / direct.max(mean)).sqrt();
            let factor = mean * 2.0 * (1.0 - busy) * service.mean() / (busy * service.second_moment());
            let law = service.scaled(factor)?;
            station::mg1_waiting(busy / law.mean(), &law)?
        };
        let waiting = Distribution::sum(&[merging, waits_for_longer(&longer, LEAST_WAIT * service.mean())?]);
        let waiting = [waiting.clone(), waiting];
        Ok(Some(StationSolution { waiting, formula: "queue behind other lines", ..solved.clone() }))
    }
}

/// Returns the flows by the station over which they come, each with this station.
fn groups<'a>(flows: &[&'a ArrivalStream]) -> Vec<Vec<(&'a ArrivalStream, &'a InputStation)>> {
    let mut groups: Vec<Vec<(&ArrivalStream, &InputStation)>> = Vec::new();
    for (one, input) in flows.iter().filter_map(|one| Some((*one, one.input.as_ref()?))) {
        match groups.iter_mut().find(|group| group[0].1.station == input.station) {
            Some(group) => group.push((one, input)),
            None => groups.push(vec![(one, input)]),
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

/// Returns the SCV of the times between packets of all these flows, as their sources send them.
fn source_scv(flows: &[&ArrivalStream], offered: f64) -> f64 {
    let rate: f64 = flows.iter().map(|one| one.rate).sum();
    merged_scv(flows.iter().map(|one| (one.rate, one.source_scv)), rate, offered)
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
fn behind_longer(law: &Law, slower: f64, lines: u32, rate: f64) -> Result<Vec<(f64, f64)>, ModelError> {
    let points = points(law)?;
    let rate = rate * slower;
    let offered = (rate * law.mean()).min(1.0);
    let lines = f64::from(lines);
    let ends: Vec<f64> = (1..=points.len()).map(|count| ends_without_longer(&points[..count], rate)).collect();
    let mut waits = Vec::new();
    for (at, (own, weight)) in points.iter().enumerate() {
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
            waits.push(((longest - own * slower).max(0.0), weight * (share - reached).max(0.0)));
            reached = share.max(reached);
        }
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

/// Returns a law as points with weights, in ascending order. A law that is not made of constants is represented by
/// equally probable points.
fn points(law: &Law) -> Result<Vec<(f64, f64)>, ModelError> {
    let constant = |shape: LawShape| if let LawShape::Constant(value) = shape { Some(value) } else { None };
    let constants = law.parts().iter().map(|part| Some((constant(part.shape)?, part.weight)));
    if let Some(mut points) = constants.collect::<Option<Vec<_>>>() {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        return Ok(points);
    }
    let (times, share) = (Distribution::law(law), 1.0 / f64::from(POINTS));
    (0..POINTS).map(|step| Ok((times.quantile((f64::from(step) + 0.5) * share)?, share))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_traffic::RandomStream;

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
            let found: f64 = waits.iter().map(|(time, share)| time * share).sum();
            let expected = followed(&sizes, rate, lines);
            let off = found / expected - 1.0;
            assert!(off.abs() < 0.05, "load {offered}, line {lines}: {found}, followed {expected}");
        }
    }

    #[test]
    fn packets_of_one_size_and_one_input_never_wait_again() {
        let law = Law::constant(1.0).unwrap();
        let waits = behind_longer(&law, 1.0, 1, 0.8).unwrap();
        assert!(waits.iter().all(|(time, share)| time * share == 0.0), "{waits:?}");
    }
}
