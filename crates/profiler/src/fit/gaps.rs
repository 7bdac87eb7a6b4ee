//! Fits how delays depend on the time between packets: by few steps if these explain the medians, otherwise by a curve
//! that rises little by little, as many small steps.
//!
//! A device with timers has steps (Cheng 2015, section 5.3). A software switch whose threads fall asleep has a curve:
//! the longer it rests, the longer it takes to begin.
use super::cases::ForwardingCase;
use super::isotonic::rising;
use super::stairs::stairs;
use super::step_place;
use crate::ProfilerError;
use crate::rig::RigDelayTable;
use std::collections::BTreeMap;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_model::switch::forward::BASE;

/// Deviation of a case's median from its step above which the steps are no explanation: as a share of the delay, and as
/// a multiple of the half-width of the median's interval.
const OFF: f64 = 0.06;
const OFF_INTERVALS: f64 = 1.5;
/// Share of the cases that have to deviate so far.
const OFF_SHARE: f64 = 0.25;
/// Packets at random times that make a point of the curve.
const MIXED_TOGETHER: usize = 25;
/// Fewest cases that make a curve.
const CASES_LEAST: usize = 5;
/// Steps of a curve: at most, and their height as a share of the lowest delay.
const STEPS_MOST: f64 = 60.0;
const STEP_SHARE: f64 = 0.06;
/// Interquartile ranges from the median beyond which a delay is that of a machine that was busy otherwise.
const BEYOND: f64 = 4.0;

/// Packets about as long after another: that time in seconds, their delays, and the uncertainty of these in seconds.
type CaseMiddle = (f64, MedianAndSpread, f64);

/// Delays by time between packets: a step of equal height at each threshold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GapDelays {
    pub(super) thresholds_s: Vec<f64>,
    pub(super) per_level_s: f64,
    /// Delay of packets at random times that come at the base's time after another, in seconds; `None` if the law does
    /// not rest on such packets.
    mixed_base_s: Option<f64>,
    /// True if delays rise little by little.
    is_curve: bool,
}

impl GapDelays {
    /// Fits the delays of the cases that differ from `base` in the time between packets only. A curve follows the
    /// packets at random times (time after the one before, delay), if there are enough.
    pub(super) fn of(
        cases: &BTreeMap<ForwardingCase, Vec<f64>>,
        base: ForwardingCase,
        mixed_s: &[(f64, f64)],
        rig: &RigDelayTable,
    ) -> Result<GapDelays, ProfilerError> {
        let found = stairs(cases, base, rig)?;
        let steps = GapDelays {
            thresholds_s: found.thresholds_s,
            per_level_s: found.per_level,
            mixed_base_s: None,
            is_curve: false,
        };
        let blur = |gap_us: u32| rig.packet_s(base.bytes, gap_us) - rig.packet_s(base.bytes, 0);
        let (mut points, mut middles) = (Vec::new(), Vec::new());
        for (case, delays) in cases.iter().filter(|(case, _)| **case == ForwardingCase { gap_us: case.gap_us, ..base })
        {
            let (gap_s, middle) = (f64::from(case.gap_us) * 1e-6, MedianAndSpread::of(delays)?);
            points.push((gap_s, usual(delays)?, middle.samples as f64));
            middles.push((gap_s, middle, blur(case.gap_us)));
        }
        let mut mixed_s = mixed_s.to_vec();
        mixed_s.sort_by(|left, right| left.0.total_cmp(&right.0));
        let gaps: Vec<f64> = middles.iter().map(|(gap_s, ..)| *gap_s).collect();
        let placed = step_place::placed(&steps, &gaps, &mixed_s)?;
        if steps.explain(&middles) && placed.explain(&mixed_middles(&mixed_s, &blur)?) {
            return Ok(placed);
        }
        if mixed_s.len() >= CASES_LEAST * MIXED_TOGETHER {
            let point = |some: &[(f64, f64)]| {
                let (gaps, delays): (Vec<f64>, Vec<f64>) = some.iter().copied().unzip();
                Ok((MedianAndSpread::of(&gaps)?.median, usual(&delays)?, some.len() as f64))
            };
            let curve = mixed_s.chunks(MIXED_TOGETHER).map(point).collect::<Result<Vec<_>, ProfilerError>>()?;
            let points = rising(&curve);
            let mut found = GapDelays::curve(&points);
            found.mixed_base_s = points.first().map(|first| first.1 + found.per_level_s * found.level(BASE.gap_s));
            return Ok(found);
        }
        Ok(GapDelays::curve(&rising(&points)))
    }

    /// Returns true if the steps explain the median delays of enough cases, or if there are too few cases to tell.
    fn explain(&self, points: &[CaseMiddle]) -> bool {
        // Where the first step begins is free.
        let offsets: Vec<f64> =
            points.iter().map(|(gap_s, middle, _)| middle.median - self.above_first_s(*gap_s)).collect();
        let Ok(first) = MedianAndSpread::of(&offsets) else { return true };
        let is_off = |((_, middle, blur), offset): &(&CaseMiddle, &f64)| {
            let most = (OFF * middle.median).max(OFF_INTERVALS * middle.half_interval()) + blur;
            (*offset - first.median).abs() > most
        };
        let off = points.iter().zip(&offsets).filter(is_off).count() as f64;
        points.len() < CASES_LEAST || off < OFF_SHARE * points.len() as f64
    }

    /// Returns steps that follow a curve of delays at rising times between packets, which does not fall.
    fn curve(points: &[(f64, f64)]) -> GapDelays {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return GapDelays { thresholds_s: Vec::new(), per_level_s: 0.0, mixed_base_s: None, is_curve: true };
        };
        let rise = last.1 - first.1;
        let steps = (rise / (STEP_SHARE * first.1).max(f64::MIN_POSITIVE)).round().clamp(1.0, STEPS_MOST);
        let per_level_s = rise / steps;
        let mut thresholds_s: Vec<f64> = Vec::new();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a few dozen")]
        for step in 0..steps as usize {
            // A step lies where the curve has risen by half of its height.
            let at_s = first.1 + per_level_s * (step as f64 + 0.5);
            let Some([low, high]) = points.windows(2).find(|pair| pair[1].1 >= at_s).map(|pair| [pair[0], pair[1]])
            else {
                continue;
            };
            let share = ((at_s - low.1) / (high.1 - low.1).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            let gap_s = low.0 * (high.0 / low.0).powf(share);
            // Files have rising thresholds of whole nanoseconds.
            let least = thresholds_s.last().map_or(0.0, |before| before + 2e-9);
            thresholds_s.push(gap_s.max(least));
        }
        GapDelays { thresholds_s, per_level_s, mixed_base_s: None, is_curve: true }
    }

    /// Returns the delay that packets of a case have at the base's time between packets, in seconds: `delays` were
    /// measured with `gap_s` between them, and so were those of the base case, `base`.
    pub(super) fn at_base_s(&self, delays: &[f64], base: &[f64], gap_s: f64) -> Result<f64, ProfilerError> {
        let usual_s = self.usual(delays)?;
        Ok(match self.mixed_base_s {
            Some(mixed_s) => mixed_s + usual_s - self.usual(base)?,
            None => usual_s - self.more_s(gap_s),
        })
    }

    /// Returns how much longer packets take than those at the base's time between packets, in seconds.
    fn more_s(&self, gap_s: f64) -> f64 {
        self.per_level_s * (self.level(gap_s) - self.level(BASE.gap_s))
    }

    /// Returns how much longer packets take than those on the first step, in seconds.
    pub(super) fn above_first_s(&self, gap_s: f64) -> f64 {
        self.per_level_s * self.level(gap_s)
    }

    /// Returns the number of steps up to a time between packets.
    fn level(&self, gap_s: f64) -> f64 {
        self.thresholds_s.iter().filter(|threshold| gap_s >= **threshold).count() as f64
    }

    /// Returns the usual delay of packets in equal conditions, in seconds. Where delays have steps it is the median;
    /// where they depend on when threads run they are skewed, and the mean tells what many packets take.
    fn usual(&self, delays: &[f64]) -> Result<f64, ProfilerError> {
        if self.is_curve { usual(delays) } else { Ok(MedianAndSpread::of(delays)?.median) }
    }
}

/// Returns packets at random times, sorted by the time after the one before, in groups. The uncertainty is `blur` of
/// the time in microseconds. A device whose caches grow cold takes longer little by
/// little, which the few cases with steps between them may not show.
fn mixed_middles(mixed_s: &[(f64, f64)], blur: &impl Fn(u32) -> f64) -> Result<Vec<CaseMiddle>, ProfilerError> {
    let point = |some: &[(f64, f64)]| {
        let (gaps, delays): (Vec<f64>, Vec<f64>) = some.iter().copied().unzip();
        let gap_s = MedianAndSpread::of(&gaps)?.median;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a second, above 0")]
        let gap_us = (gap_s * 1e6) as u32;
        Ok((gap_s, MedianAndSpread::of(&delays)?, blur(gap_us)))
    };
    mixed_s.chunks_exact(MIXED_TOGETHER).map(point).collect()
}

/// Returns the mean of delays without those far from the others, in seconds.
fn usual(delays: &[f64]) -> Result<f64, ProfilerError> {
    let middle = MedianAndSpread::of(delays)?;
    let near = |delay: &&f64| (*delay - middle.median).abs() <= BEYOND * middle.iqr;
    let near: Vec<f64> = delays.iter().filter(near).copied().collect();
    Ok(near.iter().sum::<f64>() / (near.len() as f64).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_profile::MatchLayers;

    const CASE: ForwardingCase =
        ForwardingCase { level: 0, kind: MatchLayers::L2L3, entries: 500, bytes: 128, gap_us: 766 };

    fn cases(delay_us: impl Fn(f64) -> f64, noise: f64, seed: u64) -> BTreeMap<ForwardingCase, Vec<f64>> {
        let mut random = fastrand::Rng::with_seed(seed);
        [95, 191, 383, 766, 1000, 1500, 2000, 3000, 5500, 10_000, 20_000, 50_000]
            .map(|gap_us| {
                // Skewed, and now and then far off.
                let mut one = |_| {
                    let late = if random.u32(0..40) == 0 { 3e-3 } else { 0.0 };
                    delay_us(f64::from(gap_us)) * 1e-6 * (1.0 - noise * (1.0 - random.f64()).ln()) + late
                };
                (ForwardingCase { gap_us, ..CASE }, (0..50).map(&mut one).collect())
            })
            .into()
    }

    #[test]
    fn a_delay_that_rises_little_by_little_is_followed() {
        let truth = |gap_us: f64| 30.0 + 240.0 * (gap_us / (gap_us + 2500.0));
        for seed in 0..50 {
            let found = GapDelays::of(&cases(truth, 0.1, seed), CASE, &[], &RigDelayTable::default()).unwrap();
            assert!(found.is_curve && found.thresholds_s.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
            // The noise adds a tenth in the mean.
            let delays = &cases(truth, 0.1, seed)[&CASE];
            let base_s = found.at_base_s(delays, delays, 766e-6).unwrap();
            let gaps = [120.0, 300.0, 700.0, 1200.0, 2500.0, 4000.0, 8000.0, 30_000.0];
            let off: Vec<f64> =
                gaps.iter().map(|gap| (base_s + found.more_s(gap * 1e-6)) / (1.1e-6 * truth(*gap)) - 1.0).collect();
            assert!(off.iter().all(|off| off.abs() < 0.2), "{seed}: {off:?}");
            assert!((off.iter().sum::<f64>() / 8.0).abs() < 0.05, "{seed}: {off:?}");
        }
    }

    #[test]
    fn packets_at_random_times_have_the_last_word() {
        let truth = |gap_us: f64| 30.0 + 240.0 * (gap_us / (gap_us + 2500.0));
        let mut random = fastrand::Rng::with_seed(5);
        // In mixed traffic packets take a fifth more.
        let mut mixed = || {
            let gap_us = 50.0 * 1000_f64.powf(random.f64());
            (gap_us * 1e-6, 1.2e-6 * truth(gap_us) * (0.9 + 0.2 * random.f64()))
        };
        let mixed: Vec<(f64, f64)> = (0..800).map(|_| mixed()).collect();
        let cases = cases(truth, 0.02, 1);
        let found = GapDelays::of(&cases, CASE, &mixed, &RigDelayTable::default()).unwrap();
        let delays = &cases[&CASE];
        let base_s = found.at_base_s(delays, delays, 766e-6).unwrap();
        for gap_us in [120.0, 400.0, 1500.0, 5000.0, 20_000.0] {
            let off = (base_s + found.more_s(gap_us * 1e-6)) / (1.2e-6 * truth(gap_us)) - 1.0;
            assert!(off.abs() < 0.08, "{gap_us}: {off}");
        }
        let slower: Vec<f64> = delays.iter().map(|delay| delay + 10e-6).collect();
        assert!((found.at_base_s(&slower, delays, 766e-6).unwrap() - base_s - 10e-6).abs() < 1e-9, "another kind");
    }

    #[test]
    fn steps_stay_steps() {
        let truth = |gap_us: f64| if gap_us < 2000.0 { 100.0 } else { 160.0 };
        for seed in 0..50 {
            let found = GapDelays::of(&cases(truth, 0.03, seed), CASE, &[], &RigDelayTable::default()).unwrap();
            assert!(!found.is_curve && found.thresholds_s == [2e-3], "{seed}: {found:?}");
        }
    }

    #[test]
    fn packets_at_random_times_show_a_curve_that_looks_like_steps() {
        // Four cases lie on two steps. Between them delays rise little by little, as those of a device whose caches
        // grow cold, or in one step.
        let cold = |gap_us: f64| 1.4 + 20.0 * (gap_us / (gap_us + 4000.0));
        let step = |gap_us: f64| if gap_us < 2000.0 { 1.4 } else { 20.0 };
        let few = |truth: &dyn Fn(f64) -> f64| -> BTreeMap<ForwardingCase, Vec<f64>> {
            [766, 1000, 10_000, 50_000]
                .map(|gap_us| (ForwardingCase { gap_us, ..CASE }, vec![truth(f64::from(gap_us)) * 1e-6; 50]))
                .into()
        };
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut mixed = |truth: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
                let mut one = |_| {
                    let gap_us = 50.0 * 1000_f64.powf(random.f64());
                    (gap_us * 1e-6, 1e-6 * truth(gap_us) * (0.8 + 0.4 * random.f64()))
                };
                (0..800).map(&mut one).collect()
            };
            let found = GapDelays::of(&few(&cold), CASE, &mixed(&cold), &RigDelayTable::default()).unwrap();
            assert!(found.is_curve, "{seed}: {found:?}");
            let base_s = found.mixed_base_s.unwrap();
            for gap_us in [300.0, 1500.0, 3000.0, 8000.0] {
                let off = (base_s + found.more_s(gap_us * 1e-6)) / (1e-6 * cold(gap_us)) - 1.0;
                assert!(off.abs() < 0.2, "{seed}, {gap_us}: {off}");
            }
            let found = GapDelays::of(&few(&step), CASE, &mixed(&step), &RigDelayTable::default()).unwrap();
            assert!(!found.is_curve && found.thresholds_s.len() == 1, "{seed}: {found:?}");
            // Packets at random times say where between the cases the step lies.
            assert!((1.9e-3..2.1e-3).contains(&found.thresholds_s[0]), "{seed}: {found:?}");
        }
    }
}
