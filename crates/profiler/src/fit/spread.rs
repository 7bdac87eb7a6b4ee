//! Estimates the spread of times by chance, and the weight of each time.
//!
//! A machine's noise is not proportional to the time: a software switch shows changes when its threads check for
//! them, some milliseconds earlier or later, whatever was changed. So the spread is estimated from repetitions of a
//! case, in addition to the resolution of clock and packets. Otherwise short times, which seem precise, would
//! outweigh all others.
use super::linear::CostObservation;
use std::collections::BTreeMap;

/// Deviation in standard deviations above which times count less (Huber 1964).
const HUBER: f64 = 2.0;
/// Factor from the median deviation to the standard deviation of a normal distribution.
const NORMAL: f64 = 1.0 / 0.6745;
/// Ratio of the variances of median and mean of a normal distribution.
const OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;
/// Runs measured less precisely than the case's median by more than this factor keep their own precision.
const WIDE: f64 = 2.0;
/// Number of runs of a case whose own spread weighs as much as the typical spread of all cases.
const OWN: f64 = 16.0;

/// Returns the median of the absolute values; leaves them absolute and sorted.
pub(super) fn median_size(values: &mut [f64]) -> f64 {
    values.iter_mut().for_each(|value| *value = value.abs());
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Runs of a case.
#[derive(Default)]
struct CaseRuns {
    /// Deviation of each run from the fit.
    off: Vec<f64>,
    /// Time of each run, in seconds.
    seconds: Vec<f64>,
    /// Standard deviation of each run, as far as known before the fit.
    known: Vec<f64>,
}

/// Typical values of a case's runs.
struct CaseRunStats {
    /// Standard deviation, estimated from the median deviation.
    sd: f64,
    /// Time by the fit, in seconds: unlike the median it is not longer where the runs spread more by chance.
    expected: f64,
    /// Median of the standard deviations known before the fit.
    known: f64,
    runs: f64,
    /// Squared deviation of the runs' median from the fit, beyond that expected by chance for this number of runs.
    beyond: f64,
}

fn cases(observations: &[CostObservation], off: &[f64]) -> BTreeMap<u32, CaseRuns> {
    let mut cases: BTreeMap<u32, CaseRuns> = BTreeMap::new();
    for (one, off) in observations.iter().zip(off) {
        let case = cases.entry(one.case).or_default();
        case.off.push(*off);
        case.seconds.push(one.seconds);
        case.known.push(one.sd);
    }
    cases
}

impl CaseRuns {
    fn usual(mut self) -> CaseRunStats {
        let mut expected: Vec<f64> = self.seconds.iter().zip(&self.off).map(|(seconds, off)| seconds - off).collect();
        let (expected, seconds) = (median(&mut expected), median(&mut self.seconds));
        let (runs, middle) = (self.off.len() as f64, median(&mut self.off));
        self.off.iter_mut().for_each(|off| *off -= middle);
        // The median run has no deviation from itself.
        let unbiased = (runs / (runs - 1.0).max(1.0)).sqrt();
        let sd = median_size(&mut self.off) * NORMAL * unbiased;
        CaseRunStats {
            sd,
            expected: if expected > 0.1 * seconds { expected } else { seconds }.max(1e-12),
            known: median(&mut self.known),
            runs,
            beyond: (middle * middle - OF_MEDIAN * sd * sd / runs).max(0.0),
        }
    }
}

/// Returns the slope of a line through points, limited to 0 to 1; 1 if all are at one place.
fn growth(points: &[(f64, f64)]) -> f64 {
    let n = (points.len() as f64).max(1.0);
    let (x, y) = (points.iter().map(|one| one.0).sum::<f64>() / n, points.iter().map(|one| one.1).sum::<f64>() / n);
    let wide: f64 = points.iter().map(|one| (one.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|one| (one.0 - x) * (one.1 - y)).sum();
    if wide > 1e-9 { (together / wide).clamp(0.0, 1.0) } else { 1.0 }
}

/// Returns the standard deviation of each time: the precision known before, combined with the spread between
/// repetitions of the case. `off` holds the deviations from the fit. All runs of a case share one value: otherwise
/// runs that were short by chance would seem more precise, and attract the fit.
pub(super) fn spreads(observations: &[CostObservation], off: &[f64]) -> Vec<f64> {
    let cases: BTreeMap<u32, CaseRunStats> =
        cases(observations, off).into_iter().map(|(number, case)| (number, case.usual())).collect();
    // A few runs give little information about a case's spread: the spread of other cases is added.
    let several = || cases.values().filter(|case| case.runs > 2.0);
    // Between noise that is the same for all times (0) and noise that grows with them (1). If the wrong one were
    // assumed, the tail of a skewed law would count less for short times than for long ones, and costs be biased.
    let noisy: Vec<(f64, f64)> =
        several().filter(|case| case.sd > 0.0).map(|case| (case.expected.ln(), case.sd.ln())).collect();
    let grows = growth(&noisy);
    let mut usual: Vec<f64> =
        several().map(|case| if case.sd > 0.0 { case.sd / case.expected.powf(grows) } else { 0.0 }).collect();
    let usual = median(&mut usual);
    // If cases mostly deviate by more than chance explains, their apparent precision should count less. (This is 0 if
    // the fit is right.)
    let between = median(&mut several().map(|case| case.beyond).collect::<Vec<_>>());
    let sd = |one: &CostObservation| {
        let CaseRunStats { sd, expected, known, runs, .. } = &cases[&one.case];
        // A process that was suspended between two packets knows the time less precisely.
        let known = if one.sd > WIDE * known { &one.sd } else { known };
        let others = usual * expected.powf(grows);
        let by_chance = (runs * sd * sd + OWN * others * others) / (runs + OWN);
        (known * known + by_chance + between).sqrt().max(1e-12)
    };
    observations.iter().map(sd).collect()
}

/// Returns the median relative deviation of the cases' medians from the fit: the error of the law, without chance of
/// single runs.
pub(super) fn by_case(observations: &[CostObservation], off: &[f64]) -> f64 {
    let share = |mut case: CaseRuns| median(&mut case.off) / median(&mut case.seconds).max(1e-12);
    let mut shares: Vec<f64> = cases(observations, off).into_values().map(share).collect();
    median_size(&mut shares)
}

/// Share of the variance due to chance, with weighted times.
pub(super) struct ChanceVariance {
    /// Variance between repetitions of a case, as a share of the variance of all times.
    pub(super) share: f64,
    pub(super) cases: usize,
}

pub(super) fn chance(observations: &[CostObservation], trust: &[f64]) -> ChanceVariance {
    let mut cases: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    for (one, trust) in observations.iter().zip(trust) {
        cases.entry(one.case).or_default().push((one.seconds, *trust));
    }
    let squares = |runs: &[(f64, f64)]| {
        let mean = runs.iter().map(|run| run.0 * run.1).sum::<f64>() / runs.iter().map(|run| run.1).sum::<f64>();
        runs.iter().map(|run| run.1 * (run.0 - mean).powi(2)).sum::<f64>()
    };
    let within: f64 = cases.values().map(|runs| squares(runs)).sum();
    let all = squares(&cases.values().flatten().copied().collect::<Vec<_>>());
    let freedom = (observations.len() - cases.len()) as f64;
    let is_known = all > 0.0 && freedom > 0.0;
    let share = if is_known { (within / freedom) / (all / observations.len() as f64) } else { 0.0 };
    ChanceVariance { share, cases: cases.len() }
}

/// Returns the weight of each time: 1, or less the more it deviates.
pub(super) fn trust(off: &[f64], sds: &[f64]) -> Vec<f64> {
    let far: Vec<f64> = off.iter().zip(sds).map(|(off, sd)| off.abs() / sd).collect();
    let scale = (median_size(&mut far.clone()) * NORMAL).max(1e-6);
    far.into_iter().map(|far| if far > HUBER * scale { HUBER * scale / far } else { 1.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::CostTermCounts;

    fn observations(cases: u32, runs: u32) -> Vec<CostObservation> {
        let one = |case| CostObservation { terms: CostTermCounts::default(), seconds: 1.0, sd: 1e-3, case };
        (0..cases).flat_map(|case| (0..runs).map(move |_| one(case))).collect()
    }

    #[test]
    fn what_runs_of_a_case_are_apart_is_chance() {
        let all = observations(20, 10);
        let mut random = fastrand::Rng::with_seed(3);
        let mut wide = |one: &CostObservation| (random.f64() - 0.5) * if one.case < 14 { 0.1 } else { 1.0 };
        let off: Vec<f64> = all.iter().map(&mut wide).collect();
        let sds = spreads(&all, &off);
        let mean = |sds: &[f64]| sds.iter().sum::<f64>() / sds.len() as f64;
        assert!((0.02..0.08).contains(&mean(&sds[..140])), "{sds:?}");
        assert!((0.15..0.5).contains(&mean(&sds[140..])), "{sds:?}");
        assert!(spreads(&all, &vec![0.0; 200]).iter().all(|sd| (sd - 1e-3).abs() < 1e-9), "the clock is left");
        // If the law does not hold, no case outweighs the others because its runs agree.
        let off: Vec<f64> = off.iter().zip(&all).map(|(off, one)| off + f64::from(one.case % 7) - 3.0).collect();
        let sds = spreads(&all, &off);
        assert!(sds.iter().all(|sd| (1.0..4.0).contains(sd) && (sd / sds[0] - 1.0).abs() < 0.1), "{sds:?}");
    }

    #[test]
    fn who_was_away_knows_less() {
        let mut all = observations(1, 10);
        (all[3].sd, all[4].sd, all[5].sd) = (0.2, 1.5e-3, 1e-5);
        let sds = spreads(&all, &[0.0; 10]);
        assert!((sds[3] - 0.2).abs() < 1e-6, "{sds:?}");
        assert!(sds.iter().enumerate().all(|(at, sd)| at == 3 || (sd - 1e-3).abs() < 1e-6), "{sds:?}");
    }

    #[test]
    fn chance_is_not_the_laws_fault() {
        let all = observations(20, 11);
        let off: Vec<f64> = (0..220).map(|at| f64::from(at % 11) * 0.1 - 0.5).collect();
        assert!(by_case(&all, &off) < 1e-9);
        let off: Vec<f64> = off.into_iter().map(|off| off + 0.3).collect();
        assert!((by_case(&all, &off) - 0.3).abs() < 1e-9);
    }

    #[test]
    fn single_runs_and_none_are_no_case() {
        assert!(spreads(&observations(3, 1), &[5.0, -2.0, 0.0]).iter().all(|sd| (sd - 1e-3).abs() < 1e-9));
        assert!(spreads(&[], &[]).is_empty() && trust(&[], &[]).is_empty());
    }

    #[test]
    fn what_is_far_off_counts_less() {
        let found = trust(&[1.0, -1.0, 1.0, -1.0, 1.0, 40.0], &[1.0; 6]);
        assert!(found[..5].iter().all(|trust| *trust == 1.0) && found[5] < 0.1, "{found:?}");
    }
}
