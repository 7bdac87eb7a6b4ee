//! Computes what packets of one input line wait because longer packets went before them, on lines that they have passed
//! together.
use super::direct::points;
use weir_model::{Law, ModelError};

/// Most rounds of a fixed point.
const ROUNDS: u32 = 1000;

/// Waiting of packets of one service time behind longer ones.
#[derive(Debug)]
pub(crate) struct LongerWaits {
    /// Service time in seconds.
    pub(crate) own: f64,
    /// Share of the packets that have this service time.
    pub(super) weight: f64,
    /// Waiting times in seconds, with the share of these packets that wait so long, in ascending order.
    pub(crate) times: Vec<(f64, f64)>,
}

/// Lines that packets of two flows have passed in a row together, in their order. The time on each is relative to that
/// on the line where both are now: 2 on a line of half its rate.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SharedLines(pub(super) Vec<f64>);

/// How a packet follows a longer one. Of packets that would arrive at the same time, it waits for the longer one for
/// these times in seconds; one that arrives later waits so much less.
#[derive(Debug, Clone, Copy)]
pub(super) struct FollowingWait {
    /// On the lines up to the slowest one.
    pub(super) busy: f64,
    /// On all lines before.
    pub(super) before: f64,
    /// On all lines, with the present one.
    pub(super) after: f64,
}

impl FollowingWait {
    /// Returns the wait on the present line.
    pub(super) fn here(&self) -> f64 {
        self.after - self.before
    }
}

impl SharedLines {
    /// Returns the waits of a packet that takes `own` seconds on the present line for one that takes `long` seconds.
    ///
    /// The longer packet leaves line k after its times on k lines, the other one arrives there after its own times on
    /// k-1 lines. The line where the difference is largest decides.
    pub(super) fn following(&self, long: f64, own: f64) -> FollowingWait {
        let (mut longs, mut owns, mut slowest) = (0.0, 0.0, 0.0);
        let (mut busy, mut before) = (0.0, 0.0f64);
        for relative in &self.0 {
            longs += relative * long;
            before = before.max(longs - owns);
            owns += relative * own;
            if *relative > slowest {
                (slowest, busy) = (*relative, before);
            }
        }
        FollowingWait { busy, before, after: before.max(longs + long - owns) }
    }

    /// Returns the time on the slowest line, at most that on the present one.
    pub(super) fn slowest(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max).min(1.0)
    }
}

/// Returns how long packets of one input line, `rate` a second, wait because longer packets went before them: times,
/// and the shares of packets. `law` is their time on the line. `ways` are the lines that they have
/// passed together with other packets, with the share of these packets.
///
/// On equal lines in a row, packet n leaves line k+1 at the latest of a_j + S_j + ... + S_n + k max(S_j, ..., S_n) over
/// all j up to n, with arrivals a and times S (the second line: Boxma, On a tandem queueing model with identical
/// service times at both counters, 1979). So a packet waits for the longest one before it in its busy period on the
/// first line. It also waits for one in an earlier busy period, if the first line has since been idle for less than the
/// difference of their times on k lines. On the last line it waits for a part of the difference, if k-1 lines were not
/// enough.
pub(super) fn behind_longer(law: &Law, ways: &[(SharedLines, f64)], rate: f64) -> Result<Vec<LongerWaits>, ModelError> {
    let points = points(law)?;
    let mean =
        |value: &dyn Fn(&SharedLines) -> f64| ways.iter().map(|(lines, share)| share * value(lines)).sum::<f64>();
    let slowest = mean(&|lines| lines.0.iter().copied().fold(0.0, f64::max));
    let offered = (rate * slowest * law.mean()).min(1.0);
    let ends = (1..=points.len()).map(|count| ends_without_longer(&points[..count], rate * slowest));
    let ends: Vec<f64> = ends.collect();
    let mut waits = Vec::new();
    for (at, (own, weight)) in points.iter().enumerate() {
        let mut times = Vec::new();
        let (mut below, mut reached) = (points[..at].iter().map(|(_, weight)| weight).sum::<f64>(), 0.0);
        for (most, (longest, part)) in points.iter().enumerate().skip(at) {
            below += part;
            let share = if most + 1 == points.len() {
                1.0
            } else {
                // Share without a longer packet in an earlier busy period, given the idle time for which it matters.
                let since = |idle: fn(FollowingWait) -> f64| {
                    let longer = (most + 1..points.len()).map(|long| {
                        let idle = |lines: &SharedLines| idle(lines.following(points[long].0, *own));
                        (ends[long] - ends[long - 1]) * mean(&idle)
                    });
                    (-rate * longer.sum::<f64>()).exp()
                };
                let same = ((1.0 - offered) * (1.0 - ends[most]) / (1.0 - below)).clamp(0.0, 1.0);
                same * (since(|waits| waits.before - waits.busy) + since(|waits| waits.after - waits.busy)) / 2.0
            };
            let wait = mean(&|lines| lines.following(*longest, *own).here());
            let new = mean(&|lines| beyond_sources(lines, *longest, *own));
            if wait > 0.0 {
                times.push((wait, new / wait * (share - reached).max(0.0)));
            }
            reached = share.max(reached);
        }
        waits.push(LongerWaits { own: *own, weight: *weight, times });
    }
    Ok(waits)
}

/// Returns what packets of `own` seconds wait for one of `long` seconds that they follow closely, as far as this is not
/// known from sources connected directly: these wait for the packet on the present line, less what they have waited on
/// the slowest line before.
fn beyond_sources(lines: &SharedLines, long: f64, own: f64) -> f64 {
    let waits = lines.following(long, own);
    let all = (waits.after * waits.after - waits.before * waits.before) / 2.0;
    let known = (1.0 - lines.slowest().powi(2)) * long * long / 2.0;
    if all > 0.0 { waits.here() * (1.0 - known / all).max(0.0) } else { 0.0 }
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
            let waits = behind_longer(&law, &[(SharedLines(vec![1.0; lines as usize - 1]), 1.0)], rate).unwrap();
            let found: f64 = waits.iter().map(LongerWaits::mean).sum();
            let expected = followed(&sizes, rate, lines);
            let off = found / expected - 1.0;
            assert!(off.abs() < 0.05, "load {offered}, line {lines}: {found}, followed {expected}");
        }
    }

    #[test]
    fn packets_of_one_size_and_one_input_never_wait_again() {
        let law = Law::constant(1.0).unwrap();
        let waits = behind_longer(&law, &[(SharedLines(vec![1.0]), 1.0)], 0.8).unwrap();
        assert!(waits.iter().all(|one| one.mean() == 0.0), "{waits:?}");
    }
}
