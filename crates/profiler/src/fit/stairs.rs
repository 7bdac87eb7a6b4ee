//! Finds steps of the delay over the time between packets: those of a device with timers (Cheng 2015, section 5.3).
use super::cases::ForwardingCase;
use crate::ProfilerError;
use crate::rig::RigDelayTable;
use std::collections::BTreeMap;
use weir_model::fit::levels::{GapDelaySample, GapLevels};
use weir_model::fit::quantiles::{MedianAndSpread, NORMAL_IQR};

/// Smallest spread of delays that counts as noise, as a share of the delay.
const NOISE: f64 = 0.01;
/// Thresholds that differ by less than this share are one: the search is not finer.
const ONE_STEP: f64 = 0.04;

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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_profile::MatchLayers;

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
