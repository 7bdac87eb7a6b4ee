//! Fits the forwarding law of a level to measured delays: Cheng (2015), section 5.3.
use crate::ProfilerError;
use crate::rig::RigDelayTable;
use crate::store::PacketDelayRow;
use std::collections::BTreeMap;
use weir_model::fit::levels::{GapDelaySample, GapLevels};
use weir_model::fit::line::RegressionLine;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_model::switch::forward::{BASE, DelaySlopes, MeasuredRange, PacketConditions};
use weir_profile::{Evidence, LevelForwarding, MatchLayers};

/// Smallest spread of delays that counts as noise, as a share of the delay.
const NOISE: f64 = 0.01;
/// Thresholds that differ by less than this share are one: the search is not finer.
const ONE_STEP: f64 = 0.04;

/// Interquartile range of a normal distribution, in standard deviations.
const NORMAL_IQR: f64 = 1.349;

/// Forwarding law of a level, with evidence by parameter name.
pub(crate) type FittedForwarding = (LevelForwarding, BTreeMap<String, Evidence>);

/// Cell of the data plane's grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ForwardingCase {
    pub(crate) level: usize,
    pub(crate) kind: MatchLayers,
    pub(crate) entries: u64,
    pub(crate) bytes: u32,
    pub(crate) gap_us: u32,
}

impl ForwardingCase {
    pub(crate) fn of(row: &PacketDelayRow) -> Option<ForwardingCase> {
        let kind = MatchLayers::ALL.into_iter().find(|kind| kind.name() == row.kind)?;
        Some(ForwardingCase { level: row.level, kind, entries: row.entries, bytes: row.bytes, gap_us: row.gap_us })
    }

    fn gap_s(&self) -> f64 {
        f64::from(self.gap_us) * 1e-6
    }
}

/// Groups the delays of a level by case, in seconds.
pub(crate) fn cases(rows: &[PacketDelayRow], level: usize) -> BTreeMap<ForwardingCase, Vec<f64>> {
    let mut cases: BTreeMap<ForwardingCase, Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.level == level) {
        if let (Some(case), Some(delay)) = (ForwardingCase::of(row), row.delay_s) {
            cases.entry(case).or_default().push(delay);
        }
    }
    cases
}

/// Fits the law of a level. `base` is the case from which all others differ in one factor. The rig's variation over
/// the time between packets counts as uncertainty. Returns none without delays of the base case.
pub(crate) fn fit(
    cases: &BTreeMap<ForwardingCase, Vec<f64>>,
    base: ForwardingCase,
    rig: &RigDelayTable,
) -> Result<Option<FittedForwarding>, ProfilerError> {
    if cases.get(&base).is_none_or(Vec::is_empty) {
        return Ok(None);
    }
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
    let gaps = stairs(cases, base, rig)?;
    let slopes = DelaySlopes { per_level_s: gaps.per_level, per_entry_s, per_byte_s };
    let level = |gap_s: f64| gaps.thresholds_s.iter().filter(|threshold| gap_s >= **threshold).count() as f64;
    let to_base = per_entry_s * (BASE.entries - base.entries as f64)
        + per_byte_s * (BASE.bytes - f64::from(base.bytes))
        - gaps.per_level * (level(base.gap_s()) - level(BASE.gap_s));
    let mut base_s = [None; 3];
    for (at, kind) in MatchLayers::ALL.into_iter().enumerate() {
        let Some(delays) = cases.get(&ForwardingCase { kind, ..base }) else { continue };
        let middle = MedianAndSpread::of(delays)?;
        let value = (middle.median + to_base).max(0.0);
        let half = 1.96 * 1.253 * middle.iqr / NORMAL_IQR / (delays.len() as f64).sqrt();
        let found = Evidence {
            interval: Some([(value - half).max(0.0), value + half]),
            samples: Some(delays.len() as u64),
            ..Evidence::default()
        };
        evidence.insert(format!("{key}.base_{}", kind.name()), found);
        base_s[at] = Some(value);
    }
    let measured = measured(cases, base_s);
    Ok(Some((LevelForwarding { base_s, slopes, gap_levels_s: gaps.thresholds_s, measured }, evidence)))
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

/// Finds steps of the delay over the time between packets. The rig itself takes longer where packets are rarer (cold
/// caches). The device may, too, by as much, so such an increase is no step.
pub(crate) fn stairs(
    cases: &BTreeMap<ForwardingCase, Vec<f64>>,
    base: ForwardingCase,
    rig: &RigDelayTable,
) -> Result<GapLevels, ProfilerError> {
    let series = cases.iter().filter(|(case, _)| **case == ForwardingCase { gap_us: case.gap_us, ..base });
    let sample = |(case, delays): (&ForwardingCase, &Vec<f64>)| {
        // Median and median deviation are not affected by packets that a disturbance delayed, up to a third of them.
        let median = MedianAndSpread::of(delays)?.median;
        let apart: Vec<f64> = delays.iter().map(|delay| (delay - median).abs()).collect();
        let sd = MedianAndSpread::of(&apart)?.median * 2.0 / NORMAL_IQR;
        let blur = rig.packet_s(case.bytes, case.gap_us) - rig.packet_s(case.bytes, 0);
        Ok(GapDelaySample { gap_s: case.gap_s(), mean: median, sd: sd.max(NOISE * median).hypot(blur) })
    };
    let mut samples = series.map(sample).collect::<Result<Vec<_>, ProfilerError>>()?;
    loop {
        let found = GapLevels::find(&samples)?;
        // If packets were due exactly at a threshold, some come before it and some after it. Cases between two
        // thresholds that close belong to one step.
        let between = found.thresholds_s.windows(2).find(|pair| pair[1] <= pair[0] * (1.0 + ONE_STEP));
        let Some([from, to]) = between.map(|pair| [pair[0], pair[1]]) else { return Ok(found) };
        samples.retain(|sample| sample.gap_s < from || sample.gap_s >= to);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_were_held_up_make_no_step_and_hide_none() {
        let base = ForwardingCase { level: 0, kind: MatchLayers::L2L3, entries: 60, bytes: 128, gap_us: 1500 };
        let delays = |delay_s: f64, held_up: usize| -> Vec<f64> {
            (0..30).map(|at| if at < held_up { 2e-3 } else { delay_s + 1e-6 * (at % 5) as f64 }).collect()
        };
        let cases: BTreeMap<ForwardingCase, Vec<f64>> =
            [(1500, 290e-6, 0), (3000, 290e-6, 12), (6062, 350e-6, 0), (10_000, 350e-6, 12)]
                .map(|(gap_us, delay_s, held_up)| (ForwardingCase { gap_us, ..base }, delays(delay_s, held_up)))
                .into();
        let found = stairs(&cases, base, &RigDelayTable::default()).unwrap();
        assert_eq!((found.thresholds_s.as_slice(), found.means.len()), (&[6062e-6][..], 2), "{found:?}");
        assert!((found.per_level / 60e-6 - 1.0).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn a_case_on_a_step_makes_no_two() {
        let base = ForwardingCase { level: 0, kind: MatchLayers::L2L3, entries: 60, bytes: 128, gap_us: 1500 };
        let delays = |delay_s: f64| -> Vec<f64> { (0..30).map(|at| delay_s + 1e-6 * (at % 5) as f64).collect() };
        let cases: BTreeMap<ForwardingCase, Vec<f64>> =
            [(1500, 280e-6), (5843, 281e-6), (5952, 310e-6), (6062, 340e-6), (9000, 400e-6)]
                .map(|(gap_us, delay_s)| (ForwardingCase { gap_us, ..base }, delays(delay_s)))
                .into();
        let found = stairs(&cases, base, &RigDelayTable::default()).unwrap();
        assert_eq!(found.thresholds_s, [6062e-6, 9000e-6], "{found:?}");
        assert!((found.per_level / 60e-6 - 1.0).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn what_the_machine_takes_longer_for_rare_packets_is_no_step() {
        let base = ForwardingCase { level: 0, kind: MatchLayers::L2L3, entries: 60, bytes: 128, gap_us: 1500 };
        let delays = |delay_s: f64| -> Vec<f64> { (0..30).map(|at| delay_s + 1e-7 * (at % 5) as f64).collect() };
        let cases: BTreeMap<ForwardingCase, Vec<f64>> =
            [(1500, 280e-6), (3000, 288e-6), (6062, 350e-6), (10_000, 357e-6)]
                .map(|(gap_us, delay_s)| (ForwardingCase { gap_us, ..base }, delays(delay_s)))
                .into();
        let rig = RigDelayTable {
            by_bytes: vec![(128, 1.5e-6)],
            by_gap_us: vec![(100, 1.5e-6), (1500, 3e-6), (3000, 8e-6), (10_000, 18e-6)],
            ..RigDelayTable::default()
        };
        assert_eq!(
            stairs(&cases, base, &RigDelayTable::default()).unwrap().thresholds_s.len(),
            2,
            "as if the device took it"
        );
        assert_eq!(stairs(&cases, base, &rig).unwrap().thresholds_s, [6062e-6]);
    }
}
