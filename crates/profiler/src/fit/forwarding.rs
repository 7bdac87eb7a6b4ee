//! Fits the forwarding law of a level to measured delays: Cheng (2015), section 5.3.
use super::cases::ForwardingCase;
use super::gaps::GapDelays;
use crate::ProfilerError;
use crate::rig::RigDelayTable;
use std::collections::BTreeMap;
use weir_model::fit::line::RegressionLine;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_model::switch::forward::{BASE, DelaySlopes, MeasuredRange, PacketConditions};
use weir_profile::{Evidence, LevelForwarding, MatchLayers};

/// Largest time of a packet behind another, as a share of that of packets alone, that is a time of its own.
const BUSY_MOST: f64 = 0.8;

/// Forwarding law of a level, with evidence by parameter name.
pub(crate) type FittedForwarding = (LevelForwarding, BTreeMap<String, Evidence>);

/// Fits the law of a level. `base` is the case from which all others differ in one factor. `busy_s` is the time
/// of a packet behind another, `mixed_s` the times and delays of packets at random times. The rig's variation over
/// the time between packets counts as uncertainty. Returns none without delays of the base case.
pub(crate) fn fit(
    cases: &BTreeMap<ForwardingCase, Vec<f64>>,
    base: ForwardingCase,
    busy_s: Option<f64>,
    mixed_s: &[(f64, f64)],
    rig: &RigDelayTable,
) -> Result<Option<FittedForwarding>, ProfilerError> {
    let Some(of_base) = cases.get(&base).filter(|delays| !delays.is_empty()) else { return Ok(None) };
    let key = format!("level{}.forward", base.level + 1);
    let mut evidence = BTreeMap::new();
    let mut slope = |name: &str, line: Option<RegressionLine>| -> f64 {
        let Some(line) = line else { return 0.0 };
        let value = line.slope_or_zero();
        let note = match line.points {
            _ if value < 0.0 => Some(format!("came out below 0, as {value:.3e} s: taken for 0")),
            // Any two points lie on a line.
            0..=2 => Some("through two points: how far it is off is not known".to_owned()),
            _ => line.is_flat().then(|| format!("not told from 0: {:.3e} s", line.slope)),
        };
        // Delays do not fall with more bytes or entries. A falling line is due to chance or a disturbance, and would
        // give negative delays farther on.
        let value = value.max(0.0);
        let interval = line.slope_ci95.filter(|_| value > 0.0).map(|(low, high)| [low, high]);
        let r2 = (line.points > 2).then_some(line.r2);
        let found = Evidence { interval, r2, samples: Some(line.points as u64), note, ..Evidence::default() };
        evidence.insert(format!("{key}.{name}"), found);
        value
    };
    let per_byte_s = slope(
        "per_byte",
        line(cases, |case| case == ForwardingCase { bytes: case.bytes, ..base }, |case| case.bytes.into())?,
    );
    let per_entry_s = slope(
        "per_entry",
        line(cases, |case| case == ForwardingCase { entries: case.entries, ..base }, |case| case.entries as f64)?,
    );
    let gaps = GapDelays::of(cases, base, mixed_s, rig)?;
    let slopes = DelaySlopes { per_level_s: gaps.per_level_s, per_entry_s, per_byte_s };
    let to_base =
        per_entry_s * (BASE.entries - base.entries as f64) + per_byte_s * (BASE.bytes - f64::from(base.bytes));
    let mut base_s = [None; 3];
    for (at, kind) in MatchLayers::ALL.into_iter().enumerate() {
        let Some(delays) = cases.get(&ForwardingCase { kind, ..base }) else { continue };
        let middle = MedianAndSpread::of(delays)?;
        let value = (gaps.at_base_s(delays, of_base, base.gap_s())? + to_base).max(0.0);
        let half = middle.half_interval();
        let found = Evidence {
            interval: Some([(value - half).max(0.0), value + half]),
            samples: Some(delays.len() as u64),
            ..Evidence::default()
        };
        evidence.insert(format!("{key}.base_{}", kind.name()), found);
        base_s[at] = Some(value);
    }
    let least_s = base_s.into_iter().flatten().fold(f64::INFINITY, f64::min);
    let busy_s = busy_s.filter(|busy| *busy < BUSY_MOST * least_s);
    let measured = measured(cases, base_s);
    Ok(Some((LevelForwarding { base_s, slopes, gap_levels_s: gaps.thresholds_s, busy_s, measured }, evidence)))
}

/// Fits a line through the medians of cases; none for fewer than two cases.
fn line(
    cases: &BTreeMap<ForwardingCase, Vec<f64>>,
    is_in: impl Fn(ForwardingCase) -> bool,
    x: impl Fn(&ForwardingCase) -> f64,
) -> Result<Option<RegressionLine>, ProfilerError> {
    let (mut places, mut medians) = (Vec::new(), Vec::new());
    for (case, delays) in cases.iter().filter(|(case, _)| is_in(**case)) {
        places.push(x(case));
        medians.push(MedianAndSpread::of(delays)?.median);
    }
    if places.len() < 2 { Ok(None) } else { Ok(Some(RegressionLine::fit(&places, &medians)?)) }
}

fn measured(cases: &BTreeMap<ForwardingCase, Vec<f64>>, base_s: [Option<f64>; 3]) -> MeasuredRange {
    let range = |of: &dyn Fn(&ForwardingCase) -> f64| {
        cases.keys().map(of).fold((f64::INFINITY, 0.0_f64), |(least, most), at| (least.min(at), most.max(at)))
    };
    let (gap, entries, bytes) =
        (range(&ForwardingCase::gap_s), range(&|case| case.entries as f64), range(&|case| f64::from(case.bytes)));
    let shortest = cases.values().flatten().copied().fold(f64::INFINITY, f64::min);
    // The value computed for the base case may be less than any delay measured elsewhere.
    let least_base = base_s.into_iter().flatten().fold(f64::INFINITY, f64::min);
    MeasuredRange {
        least: PacketConditions { gap_s: gap.0, entries: entries.0, bytes: bytes.0 },
        most: PacketConditions { gap_s: gap.1, entries: entries.1, bytes: bytes.1 },
        shortest_s: shortest.min(least_base),
    }
}
