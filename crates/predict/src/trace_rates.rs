//! Represents the bursts of a trace by two rates with the same dispersion of counts.
use crate::arrivals::RateModulation;
use std::borrow::Cow;
use weir_scenario::{Scenario, TrafficKind};
use weir_traffic::{OfferedPackets, TracePacket, TrafficTrace};

/// Packets of a trace that are looked at, from its start.
const MOST_PACKETS: usize = 500_000;
/// Least number of packets of which bursts are told from chance.
const LEAST_PACKETS: usize = 50;
/// Shortest window in mean gaps whose counts tell how variable gaps are.
const REGULAR_WINDOW: f64 = 4.0;
/// Index of dispersion in such a window from which there are bursts that shorter windows tell more about.
const SHORT_BURSTS: f64 = 1.5;
/// Shortest window, as a part of a mean gap.
const MOST_SHORT: f64 = 256.0;
/// Least number of windows of which a variance is known roughly.
const LEAST_WINDOWS: f64 = 8.0;
/// Relative deviation of an index of dispersion that is not by chance: real traces are no change between two rates.
const MISFIT: f64 = 0.05;
/// Number of windows below which counting them takes little time and memory.
const MOST_WINDOWS: f64 = 4e6;
/// Least part of the dispersion, as a share of that of the gaps, that counts as bursts and not as chance.
const LEAST_BURSTS: f64 = 0.1;
/// Least index of dispersion; smaller ones count as this, so that relative errors are numbers.
const LEAST_INDEX: f64 = 1e-6;
/// Least share of time at the high rate.
const LEAST_SHARE: f64 = 1e-3;
/// Time constants that are tried for each doubling of the window.
const STEPS: u32 = 4;

/// Returns the scenario as far as it plays its traces: without packets that come after the end of their item.
pub(crate) fn as_played(scenario: &Scenario) -> Cow<'_, Scenario> {
    let is_trace = |kind: &TrafficKind| matches!(kind, TrafficKind::Udp { offered: OfferedPackets::Trace(_), .. });
    if !scenario.traffic.iter().any(|item| is_trace(&item.kind)) {
        return Cow::Borrowed(scenario);
    }
    let mut played = scenario.clone();
    for item in &mut played.traffic {
        if let TrafficKind::Udp { duration, offered: OfferedPackets::Trace(trace), .. } = &mut item.kind {
            *trace = trace.until(*duration);
        }
    }
    Cow::Owned(played)
}

/// Returns two rates between which a source changes so that its counts have the index of dispersion of the trace's;
/// `None` if the trace has too few packets, or no more bursts than its gaps tell.
///
/// The index of dispersion of a source that changes between two rates is I(t) = c + A (1 - (1 - exp(-rt)) / (rt)),
/// with c of the gaps at either rate, and r the sum of the rates of change (Heffes and Lucantoni, 1986). c and A are
/// fitted by least squares of relative errors, r by trial.
pub(crate) fn trace_rates(trace: &TrafficTrace) -> Option<RateModulation> {
    let packets = &trace.packets()[..trace.packets().len().min(MOST_PACKETS)];
    if packets.len() < LEAST_PACKETS {
        return None;
    }
    let points = dispersion(packets);
    let shortest = points.first()?.window_s;
    let tries = 0..STEPS * u32::try_from(points.len()).unwrap_or(1);
    let fits = tries.map(|step| {
        let change = 1.0 / (shortest * 2f64.powf(f64::from(step) / f64::from(STEPS)));
        (change, fit(&points, change))
    });
    let (change, DispersionFit { within, bursts, .. }) = fits.min_by(|a, b| a.1.error.total_cmp(&b.1.error))?;
    let span_s = seconds(packets.last()?.at_ns - packets[0].at_ns);
    let per_second = packets.len() as f64 / span_s;
    // Variance of the rate over its squared mean.
    let variance = bursts * change / (2.0 * per_second);
    if bursts <= LEAST_BURSTS * within || !variance.is_finite() {
        return None;
    }
    let skew = rate_skew(packets, change, within);
    // The share of time at the high rate follows from the skewness, as far as the low rate is not below zero.
    let high = (0.5 - 0.5 * skew / (4.0 + skew * skew).sqrt()).clamp(LEAST_SHARE, 1.0 / (1.0 + variance));
    let deviation = variance.sqrt();
    let relative =
        vec![1.0 + deviation * ((1.0 - high) / high).sqrt(), (1.0 - deviation * (high / (1.0 - high)).sqrt()).max(0.0)];
    let changes = vec![vec![0.0, change * (1.0 - high)], vec![change * high, 0.0]];
    Some(RateModulation { relative, changes, scv: within })
}

/// Returns the skewness of the rate of a source that changes between two rates, from its counts in windows as long as
/// its rates last: cumulants of counts less those of the gaps, and corrected for changes within a window.
fn rate_skew(packets: &[TracePacket], change: f64, within: f64) -> f64 {
    let window_s = 1.0 / change;
    let counts = counts(packets, window_s);
    let windows = counts.len() as f64;
    let moment =
        |power: i32, around: f64| counts.iter().map(|count| (count - around).powi(power)).sum::<f64>() / windows;
    let mean = moment(1, 0.0);
    let second = moment(2, mean) - within * mean;
    let third = moment(3, mean) - 3.0 * within * second - within * within * mean;
    // Moments of the mean rate in a window of one time constant, over those of the rate.
    let (second_part, third_part) = (2.0 * (-1f64).exp(), 6.0 * (3.0 * (-1f64).exp() - 1.0));
    let skew = (third / third_part) / (second / second_part).powf(1.5);
    if windows >= LEAST_WINDOWS && skew.is_finite() { skew } else { 0.0 }
}

/// Returns the index of dispersion of counts (variance over mean) in windows of several lengths, each twice as long as
/// the one before.
fn dispersion(packets: &[TracePacket]) -> Vec<CountDispersion> {
    let (Some(first), Some(last)) = (packets.first(), packets.last()) else { return Vec::new() };
    let span_s = seconds(last.at_ns - first.at_ns);
    let gap_s = span_s / packets.len() as f64;
    let lengths =
        |from: f64, factor: f64| std::iter::successors(Some(from * gap_s), move |length| Some(length * factor));
    let is_useful = |length: &f64| *length > 0.0 && (LEAST_WINDOWS..MOST_WINDOWS).contains(&(span_s / length));
    let long = lengths(REGULAR_WINDOW, 2.0).take_while(is_useful).map(|length| CountDispersion::of(packets, length));
    let mut points: Vec<CountDispersion> = long.collect();
    // In short windows, the counts of any gaps have an index of 1, which tells only how short bursts are.
    if points.first().is_some_and(|point| point.index > SHORT_BURSTS) {
        let short =
            lengths(REGULAR_WINDOW / 2.0, 0.5).take_while(|length| is_useful(length) && *length * MOST_SHORT > gap_s);
        let short = short.map(|length| CountDispersion::of(packets, length));
        points.extend(short.take_while(|point| point.index > 1.0 + LEAST_BURSTS));
        points.sort_by(|a, b| a.window_s.total_cmp(&b.window_s));
    }
    points
}

/// Returns the numbers of packets in windows of this length, in seconds, without the last, incomplete one.
fn counts(packets: &[TracePacket], window_s: f64) -> Vec<f64> {
    let (Some(first), Some(last)) = (packets.first(), packets.last()) else { return Vec::new() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let window = |packet: &TracePacket| (seconds(packet.at_ns - first.at_ns) / window_s) as usize;
    let mut counts = vec![0.0; window(last)];
    for packet in packets {
        if let Some(count) = counts.get_mut(window(packet)) {
            *count += 1.0;
        }
    }
    counts
}

/// Index of dispersion of the counts in windows of one length.
struct CountDispersion {
    window_s: f64,
    index: f64,
    /// Inverse of the squared relative error that the index may have.
    weight: f64,
}

impl CountDispersion {
    fn of(packets: &[TracePacket], window_s: f64) -> CountDispersion {
        let counts = counts(packets, window_s);
        let windows = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / windows;
        let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / (windows - 1.0);
        let index = (variance / mean.max(f64::MIN_POSITIVE)).max(LEAST_INDEX);
        // The sample variance of n counts has the relative variance 2 / n, if they are about normal. Without this
        // weight the few long windows, which are off by a third, would hide what the many short ones tell exactly.
        CountDispersion { window_s, index, weight: 1.0 / (2.0 / windows + MISFIT * MISFIT) }
    }
}

/// Index of dispersion as a sum: that of the gaps, and the limit of what bursts add.
struct DispersionFit {
    within: f64,
    bursts: f64,
    /// Weighted sum of squared relative errors.
    error: f64,
}

/// Fits the index of dispersion of a source that changes between two rates, with this sum of rates of change.
fn fit(points: &[CountDispersion], change: f64) -> DispersionFit {
    let shape = |window_s: f64| 1.0 - (1.0 - (-change * window_s).exp()) / (change * window_s);
    // Normal equations of found = within + bursts * shape, with errors relative to what was found.
    let mut sums = [0.0; 5];
    for CountDispersion { window_s, index, weight } in points {
        let shape = shape(*window_s);
        for (sum, add) in sums.iter_mut().zip([1.0, shape, shape * shape, *index, index * shape]) {
            *sum += weight * add / (index * index);
        }
    }
    let [ones, shapes, squares, found, both] = sums;
    let determinant = ones * squares - shapes * shapes;
    let solved = ((found * squares - both * shapes) / determinant, (both * ones - found * shapes) / determinant);
    let (within, bursts) = match solved {
        (within, bursts) if within >= 0.0 && bursts >= 0.0 => (within, bursts),
        (within, _) if within < 0.0 => (0.0, both / squares),
        _ => (found / ones, 0.0),
    };
    let miss = |CountDispersion { window_s, index, weight }: &CountDispersion| {
        weight * ((within + bursts * shape(*window_s)) / index - 1.0).powi(2)
    };
    DispersionFit { within, bursts, error: points.iter().map(miss).sum() }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_traffic::{ArrivalProcess, ArrivalSampler, RandomStream, TwoStateMmpp};

    /// Returns a trace of packets drawn by a rule, 1000 a second.
    fn drawn(arrival: &ArrivalProcess) -> TrafficTrace {
        let mut random = RandomStream::new(5, 0, 0);
        let mut arrivals = ArrivalSampler::new(arrival, 1000.0, &mut random).unwrap();
        let mut at_ns = 0;
        let packet = |_| {
            at_ns += arrivals.next(&mut random);
            TracePacket { at_ns, bytes: 100 }
        };
        TrafficTrace::once((0..400_000).map(packet).collect())
    }

    #[test]
    fn rates_of_a_drawn_trace_are_those_of_its_rule() {
        // Half of the time at either rate, 20 ms each.
        let rule = TwoStateMmpp { high: 1.5, low: 0.5, high_s: 0.02 };
        let found = trace_rates(&drawn(&ArrivalProcess::TwoState(rule))).unwrap();
        assert!((found.relative[0] - 1.5).abs() < 0.08 && (found.relative[1] - 0.5).abs() < 0.08, "{found:?}");
        let changes = found.changes[0][1] + found.changes[1][0];
        assert!((changes / 100.0 - 1.0).abs() < 0.15 && (found.scv - 1.0).abs() < 0.15, "{found:?}");
        // Rarely high, and rarely low.
        for (high, low, high_s) in [(4.0, 0.5, 0.02), (1.2, 0.2, 0.2), (1.2, 0.2, 0.02)] {
            let found = trace_rates(&drawn(&ArrivalProcess::TwoState(TwoStateMmpp { high, low, high_s }))).unwrap();
            let is_close = |found: f64, rule: f64| (found - rule).abs() < 0.15 * high;
            assert!(is_close(found.relative[0], high) && is_close(found.relative[1], low), "{high} {low}: {found:?}");
        }
    }

    #[test]
    fn traces_without_bursts_have_small_ones_at_most() {
        for arrival in [ArrivalProcess::Poisson, ArrivalProcess::Constant] {
            let found = trace_rates(&drawn(&arrival));
            let deviation = found.as_ref().map_or(0.0, |found| found.relative[0] - 1.0);
            assert!(deviation < 0.1, "{arrival:?}: {found:?}");
        }
        assert!(trace_rates(&TrafficTrace::default()).is_none());
    }
}
