//! Computes the waiting in a queue of several sources, each of which sends at constant gaps, in phases that are
//! independent of each other.
use super::longer::SharedLines;
use super::waiting;
use weir_model::Law;

/// Most sources of equal rate for which the waiting is computed; of more, it comes close to that of Poisson arrivals.
const MOST_EQUAL: u32 = 32;
/// Steps of the integral over waiting times, for each packet that waits.
const STEPS: u32 = 16;
/// Largest number of a source's packets that are counted behind one packet of another source.
const MOST_BEHIND: u32 = 1000;
/// Largest load of equal sources.
const MOST_LOAD: f64 = 0.98;
/// Factors, and share of packets that wait, of a source that meets no other.
const ALONE: WaitMoments = WaitMoments { mean: 1.0, square: 1.0, share: 0.0 };
/// Exponent of the norm by which two reasons for waiting are combined: phases, and the packets' sizes. Chosen among 2,
/// 2.5, 3 and 4 by comparison with packets followed through single queues.
const NORM: f64 = 2.5;

/// Packets of one source, at constant gaps.
#[derive(Debug)]
pub(super) struct PeriodicSource<'a> {
    /// Packets per second.
    pub(super) rate: f64,
    /// Service time, with its mean and variance in seconds.
    pub(super) service: &'a Law,
    /// Service times as points with weights.
    pub(super) points: Vec<(f64, f64)>,
}

/// Waiting in a queue of sources with constant gaps.
#[derive(Debug)]
pub(super) struct PeriodicWaits {
    /// Waiting of all packets.
    pub(super) all: WaitMoments,
    /// Mean waiting time of each source's packets, in seconds.
    pub(super) each: Vec<f64>,
}

/// Waiting times of all packets: mean, mean square, and the share of packets that wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WaitMoments {
    pub(super) mean: f64,
    pub(super) square: f64,
    pub(super) share: f64,
}

/// Returns the waiting times in a queue of these sources, whose load is below 1.
///
/// Packets wait because sources are in unfavourable phases. If all sources are alike, the waiting is known exactly
/// (Roberts and Virtamo, The superposition of periodic cell arrival streams in an ATM multiplexer, 1991). Otherwise,
/// what the packets of each other source make a packet wait is multiplied by the factor of as many equal sources as
/// have the same sum of squared loads. Packets also wait because the sizes of each source's packets vary: this part is
/// that of one source with constant gaps (Krämer and Langenbach-Belz, 1976).
pub(super) fn periodic_waits(sources: &[PeriodicSource<'_>]) -> PeriodicWaits {
    let rate: f64 = sources.iter().map(|one| one.rate).sum();
    let load: f64 = sources.iter().map(|one| one.rate * one.service.mean()).sum();
    let variance: f64 = sources.iter().map(|one| one.rate / rate * one.service.variance()).sum();
    let sizes = if variance > 0.0 {
        let law = Law::gamma(load / rate, variance * (rate / load).powi(2));
        law.map_or(0.0, |law| waiting::general_mean(load, &law, 0.0))
    } else {
        0.0
    };
    let mut each = Vec::new();
    let (mut mean, mut square, mut waiting) = (0.0, 0.0, 0.0);
    for (at, one) in sources.iter().enumerate() {
        let (gap, own) = (1.0 / one.rate, one.service.mean());
        let (mut meets, mut meets_square) = (0.0, 0.0);
        for (_, other) in sources.iter().enumerate().filter(|(other, _)| *other != at) {
            for (time, weight) in &other.points {
                meets += other.rate * weight * behind_one(*time, gap, own);
                meets_square += other.rate * weight * time.powi(3) / 3.0;
            }
        }
        let factors = third_sources(sources, at);
        mean += one.rate / rate * meets * factors.mean;
        square += one.rate / rate * meets_square * factors.square;
        waiting += one.rate / rate * factors.share;
        each.push(norm(meets * factors.mean, sizes));
    }
    let both = norm(mean, sizes);
    let split: f64 = sources.iter().zip(&each).map(|(one, mean)| one.rate / rate * mean).sum();
    if both <= 0.0 || split <= 0.0 {
        return PeriodicWaits { all: WaitMoments { mean: 0.0, square: 0.0, share: 0.0 }, each };
    }
    each.iter_mut().for_each(|mean| *mean *= both / split);
    let by_phases = (mean / both).powf(NORM);
    let mixed = |phases: f64, sizes: f64| by_phases * phases + (1.0 - by_phases) * sizes;
    let spread = if mean > 0.0 { square / mean.powi(2) } else { 0.0 };
    // Waiting times that sizes cause are close to exponential, for as large a share of the packets as the load.
    let square = both * both * mixed(spread, 2.0 / load);
    PeriodicWaits { all: WaitMoments { mean: both, square, share: mixed(waiting, load) }, each }
}

/// Returns the factor by which packets of source `at` wait longer because those that they meet have met others, and the
/// share of them that wait.
fn third_sources(sources: &[PeriodicSource<'_>], at: usize) -> WaitMoments {
    let others = || sources.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, one)| one);
    let load: f64 = others().map(|one| one.rate * one.service.mean()).sum();
    if load <= 0.0 {
        return ALONE;
    }
    // Time that a packet takes which another one meets.
    let work: f64 = others().map(|one| one.rate * one.service.second_moment()).sum();
    let met =
        others().map(|one| one.rate * one.service.second_moment().powi(2) / one.service.mean()).sum::<f64>() / work;
    // A source that sends several packets in this time is like several sources.
    let squares = others().map(|one| (one.rate * one.service.mean()).powi(2) * (1.0 / (one.rate * met)).min(1.0));
    let number = load * load / squares.sum::<f64>();
    equal_sources(number + 1.0, (load * (number + 1.0) / number).min(MOST_LOAD))
}

/// Returns the time for which packets wait, given the times for either reason alone.
fn norm(phases: f64, sizes: f64) -> f64 {
    (phases.powf(NORM) + sizes.powf(NORM)).powf(1.0 / NORM)
}

/// Returns what packets of source `at` with the service time `own` wait on a line because longer packets of these
/// sources went before them: times, and the shares of packets. `lines` are those that they have passed in a row with
/// packets of each source.
///
/// Packets wait for all the time that a longer one needs on all lines, less the time by which they come later.
pub(super) fn periodic_longer(
    sources: &[PeriodicSource<'_>],
    at: usize,
    own: f64,
    lines: &[SharedLines],
) -> Vec<(f64, f64)> {
    let factor = third_sources(sources, at).mean;
    let gap = 1.0 / sources[at].rate;
    let mut times = Vec::new();
    for (number, (other, lines)) in sources.iter().zip(lines).enumerate() {
        for (time, weight) in &other.points {
            let following = lines.following(*time, own);
            let wait = following.here();
            let own_source = number == at;
            let slowest = lines.slowest();
            if wait <= 0.0 || (own_source && slowest < 1.0) {
                continue;
            }
            let sum = |reach: f64| match own_source {
                true => behind_own(reach, gap, own),
                false => behind_one(reach, gap, own),
            };
            // Part that is known already from sources connected directly, if the lines before are faster.
            let known = behind_one(*time, gap, own) - behind_one(time * slowest, gap, own * slowest);
            let new = (sum(following.after) - sum(following.before) - known).max(0.0);
            times.push((wait, factor * other.rate * weight * new / wait));
        }
    }
    // Of several longer packets before it, a packet waits for the longest.
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left = 1.0;
    for (_, share) in &mut times {
        *share = left * share.min(1.0);
        left -= *share;
    }
    times.reverse();
    times
}

/// Returns how long packets of a source, sent every `gap` seconds and each taking `own` seconds, wait behind one packet
/// of another source that takes `time`: the sum over these packets, times `gap`, in seconds squared.
fn behind_one(time: f64, gap: f64, own: f64) -> f64 {
    let mut sum = 0.0;
    for packet in 0..MOST_BEHIND {
        let left = time - f64::from(packet) * (gap - own);
        if left <= 0.0 {
            break;
        }
        sum += (left * left - (left - gap).max(0.0).powi(2)) / 2.0;
    }
    sum
}

/// Returns the same for packets of the same source: the first one comes a gap later.
fn behind_own(time: f64, gap: f64, own: f64) -> f64 {
    let waits = (0..MOST_BEHIND).map(|packet| time - gap - f64::from(packet) * (gap - own));
    gap * waits.take_while(|wait| *wait > 0.0).sum::<f64>()
}

/// Returns the waiting with this number of equal sources, which need not be whole: mean and mean square relative to
/// what they are if never more than two packets meet, and the share of packets that wait.
fn equal_sources(number: f64, load: f64) -> WaitMoments {
    let most = f64::from(MOST_EQUAL);
    if number > most {
        // The difference from Poisson arrivals falls with the number of sources.
        let (known, poisson) = (whole_sources(MOST_EQUAL, load), 1.0 / (1.0 - load));
        let part = most / number;
        let mixed = |known: f64, limit: f64| limit + (known - limit) * part;
        return WaitMoments {
            mean: mixed(known.mean, poisson),
            square: mixed(known.square, poisson + 1.5 * load * poisson * poisson),
            share: mixed(known.share, load),
        };
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 32")]
    let whole = number.max(1.0) as u32;
    let part = number.max(1.0) - f64::from(whole);
    let (low, high) = (whole_sources(whole, load), whole_sources(whole + 1, load));
    let mixed = |low: f64, high: f64| low + (high - low) * part;
    WaitMoments {
        mean: mixed(low.mean, high.mean),
        square: mixed(low.square, high.square),
        share: mixed(low.share, high.share),
    }
}

/// Returns the same for a whole number of sources. A packet meets those of all other sources, each of which has sent
/// one in the time of a gap.
fn whole_sources(number: u32, load: f64) -> WaitMoments {
    if number < 2 {
        return ALONE;
    }
    let (others, gap) = (number - 1, f64::from(number) / load);
    let (mut mean, mut square) = (0.0, 0.0);
    for step in 0..others * STEPS {
        let wait = (f64::from(step) + 0.5) / f64::from(STEPS);
        let above = waits_longer(others, gap, wait);
        mean += above;
        square += 2.0 * wait * above;
        if above < 1e-9 {
            break;
        }
    }
    // Without a third packet: a share of others / gap waits, at most one service time.
    let pair = f64::from(others) / gap;
    let steps = f64::from(STEPS);
    WaitMoments {
        mean: mean / steps / (pair / 2.0),
        square: square / steps / (pair / 3.0),
        share: waits_longer(others, gap, 0.0),
    }
}

/// Returns the probability that a packet waits longer than `wait` service times for `others` packets, each of which
/// arrived at a random moment of the `gap` before (Roberts and Virtamo 1991, the distribution of the virtual wait).
fn waits_longer(others: u32, gap: f64, wait: f64) -> f64 {
    let all = f64::from(others);
    let mut sum = 0.0;
    // Binomial coefficients, from one number of packets to the next.
    let mut ways = 1.0;
    for packets in 1..=others {
        let count = f64::from(packets);
        ways *= (all - count + 1.0) / count;
        let part = (count - wait) / gap;
        if part > 0.0 && part < 1.0 {
            let within = ways * part.powf(count) * (1.0 - part).powf(all - count);
            sum += within * (gap - all + wait) / (gap - count + wait);
        }
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_traffic::RandomStream;

    /// Returns the mean and mean square of the waiting times of sources with gaps and service times, by following
    /// packets from many random phases.
    fn followed(sources: &[(f64, f64)]) -> (f64, f64) {
        const PHASES: u32 = 4000;
        let mut random = RandomStream::new(3, 0, 1);
        let (mut packets, mut mean, mut square) = (0.0, 0.0, 0.0);
        for _ in 0..PHASES {
            let mut next: Vec<f64> = sources.iter().map(|(gap, _)| random.unit() * gap).collect();
            let (mut now, mut work) = (0.0, 0.0f64);
            for packet in 0..100 {
                let first = (0..next.len()).min_by(|a, b| next[*a].total_cmp(&next[*b])).unwrap();
                work = (work - (next[first] - now)).max(0.0);
                now = next[first];
                next[first] += sources[first].0;
                if packet >= 50 {
                    (packets, mean, square) = (packets + 1.0, mean + work, square + work * work);
                }
                work += sources[first].1;
            }
        }
        (mean / packets, square / packets)
    }

    fn waits(sources: &[(f64, f64)]) -> WaitMoments {
        let laws: Vec<Law> = sources.iter().map(|(_, time)| Law::constant(*time).unwrap()).collect();
        let each = sources.iter().zip(&laws);
        let sources: Vec<_> = each
            .map(|((gap, time), service)| PeriodicSource { rate: 1.0 / gap, service, points: vec![(*time, 1.0)] })
            .collect();
        periodic_waits(&sources).all
    }

    #[test]
    fn sources_of_one_size_wait_as_long_as_followed_packets() {
        for sources in [
            vec![(3.1, 1.0), (2.3, 1.0)],
            vec![(5.0, 1.0), (7.3, 1.0), (6.1, 1.0), (5.9, 1.0)],
            (0..8).map(|n| (10.0 + 0.77 * f64::from(n), 1.0)).collect(),
        ] {
            let (mean, square) = followed(&sources);
            let found = waits(&sources);
            assert!((found.mean / mean - 1.0).abs() < 0.03, "{sources:?}: {found:?}, followed {mean}");
            assert!((found.square / square - 1.0).abs() < 0.08, "{sources:?}: {found:?}, followed {square}");
        }
    }

    #[test]
    fn several_short_packets_wait_behind_a_long_one() {
        let sources = [(3.84, 1.4), (0.49, 0.1)];
        let (mean, _) = followed(&sources);
        let found = waits(&sources).mean;
        assert!((found / mean - 1.0).abs() < 0.1, "{found}, followed {mean}");
    }

    #[test]
    fn one_source_never_waits_and_many_are_like_poisson_arrivals() {
        assert_eq!(waits(&[(2.0, 1.0)]).mean, 0.0);
        let many: Vec<(f64, f64)> = (0..400).map(|_| (800.0, 1.0)).collect();
        let found = waits(&many);
        assert!((found.mean / 0.5 - 1.0).abs() < 0.05, "{found:?}");
    }
}
