//! Computes the errors of predictions by a profile against measurements on the switch.
use super::times::{SeriesTimes, TimePairs, by_group, difference, median_difference, pairs, sum};
use crate::report::Claim;
use crate::{ExperimentRun, SampledValue};
use std::collections::BTreeMap;
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries};

/// Error rate of a run: the error of the mean time of its commands or packets, in percent.
pub(super) const RATE: &str = "error rate";
/// Median error of single commands or packets, in percent.
const EACH: &str = "error of single ones, median";
/// Largest error rate of any switch, as the mean of its runs.
const LARGEST: &str = "largest error rate of a switch";
/// Error of all runs together: their chance is smaller than that of a run.
const TOGETHER: &str = "error of all runs together";
/// Half-width of the interval of a run's mean on the switch, 19 times in 20, as a share of it: how far off even a
/// profile without error would be.
const CHANCE: &str = "chance of a run";
/// Error of the median time of all runs together.
const MEDIAN: &str = "error of the median, all runs";
/// Difference between two measurements of one series on the switch, as a share of the first: what even a profile
/// without error cannot undercut by much.
const AGAIN: &str = "difference of a second measurement";
/// Difference between two measurements of all series together.
const AGAIN_TOGETHER: &str = "difference of a second measurement, all runs";
/// Difference between the medians of two measurements of all series together.
const AGAIN_MEDIAN: &str = "difference of a second measurement's median, all runs";
/// Share of a group's times in the time of all commands or packets on the switch.
const SHARE: &str = "share of the switch's time";
/// Commands or packets that only one of switch and model executed or forwarded.
const APART: &str = "only seen on one side";

/// Errors of a run: the switch's measurement against its profile's prediction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProfilePredictionErrors {
    /// Error of the mean, as a share.
    pub(super) rate: f64,
    /// Median error of single commands or packets, as a share.
    pub(super) each: f64,
    /// Sum of the times on the switch and by the profile, in seconds.
    pub(super) sums_s: [f64; 2],
    /// Half-width of the interval of the switch's mean, as a share of it.
    pub(super) chance: f64,
    /// Number that were seen on one side only.
    pub(super) apart: usize,
    /// Number of commands or packets.
    pub(super) all: usize,
    /// Number of models.
    pub(super) models: usize,
    /// Times on the switch and by each of the models.
    pub(super) pooled: TimePairs,
    /// Times on the switch and by each of the models, by group.
    pub(super) groups: BTreeMap<&'static str, TimePairs>,
    /// Times of two measurements on the switch; empty if there was one.
    pub(super) again: TimePairs,
}

impl ProfilePredictionErrors {
    /// Computes the errors of a series. Returns `None` if no two times can be compared.
    pub(super) fn of(times: &SeriesTimes) -> Option<ProfilePredictionErrors> {
        let (measured, foretold) = (&times.measured, &times.foretold());
        let both = pairs(measured, foretold);
        let (truth, model) = (sum(&both, |pair| pair.0), sum(&both, |pair| pair.1));
        if both.is_empty() || truth <= 0.0 {
            return None;
        }
        let mut each: Vec<f64> =
            both.iter().filter(|(truth, _)| *truth > 0.0).map(|(truth, model)| (model / truth - 1.0).abs()).collect();
        each.sort_by(f64::total_cmp);
        let all = measured.len().max(foretold.len());
        let seen = |of: &[Option<f64>], at: usize| of.get(at).copied().flatten().is_some();
        let apart = (0..all).filter(|at| seen(measured, *at) != seen(foretold, *at)).count();
        let each = each.get(each.len() / 2).copied().unwrap_or(0.0);
        let n = both.len() as f64;
        let variance = both.iter().map(|pair| (pair.0 - truth / n).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        let chance = 1.96 * (variance / n).sqrt() / (truth / n);
        let sums_s = [truth, model];
        let again = times.again.as_ref().map_or(Vec::new(), |again| pairs(measured, again));
        let (rate, groups) = ((model / truth - 1.0).abs(), by_group(times));
        let (models, pooled) = (times.models.len(), times.pooled());
        Some(ProfilePredictionErrors { rate, each, sums_s, chance, apart, all, models, pooled, groups, again })
    }
}

/// The runs of one switch with one number of commands or packets.
#[derive(Debug, Clone)]
pub(super) struct ValidationRuns {
    pub(super) subject: String,
    pub(super) count: u32,
    pub(super) errors: Vec<ProfilePredictionErrors>,
}

impl ValidationRuns {
    /// Returns the mean error rate, in percent.
    fn rate(&self) -> f64 {
        percent(&[self], |errors| errors.rate).value
    }
}

fn percent(cells: &[&ValidationRuns], of: fn(&ProfilePredictionErrors) -> f64) -> SampledValue {
    let all: Vec<f64> = cells.iter().flat_map(|cell| &cell.errors).map(|errors| of(errors) * 100.0).collect();
    SampledValue::mean_of(&all)
}

/// Kind of comparison: the name of its items in the plural, and the upper bound of the error rate, in percent.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValidationCriterion {
    pub(super) things: &'static str,
    pub(super) below: f64,
}

impl ValidationCriterion {
    /// Adds figures by number of commands or packets and by switch, the claim, and a chart.
    pub(super) fn report(self, run: &mut ExperimentRun<'_>, cells: &[ValidationRuns]) {
        let cells: Vec<&ValidationRuns> = cells.iter().filter(|cell| !cell.errors.is_empty()).collect();
        let claim = format!(
            "the error rate of random {} is below {} % on every switch, for every number of them",
            self.things, self.below
        );
        let Some(worst) = cells.iter().max_by(|left, right| left.rate().total_cmp(&right.rate())) else {
            run.claims.push(Claim::untested(claim, "no run was measured to its end"));
            return;
        };
        let mut counts: Vec<u32> = cells.iter().map(|cell| cell.count).collect();
        counts.sort_unstable();
        counts.dedup();
        for count in &counts {
            let those: Vec<&ValidationRuns> = cells.iter().copied().filter(|cell| cell.count == *count).collect();
            self.figures(run, &format!("{count} {}", self.things), &those);
            let largest = those.iter().map(|cell| cell.rate()).fold(0.0, f64::max);
            run.figure(
                &format!("{count} {}", self.things),
                LARGEST,
                "%",
                SampledValue::of(largest, those.len() as u64),
            );
        }
        let mut subjects: Vec<&str> = cells.iter().map(|cell| cell.subject.as_str()).collect();
        subjects.dedup();
        for subject in &subjects {
            let those: Vec<&ValidationRuns> = cells.iter().copied().filter(|cell| cell.subject == **subject).collect();
            self.figures(run, subject, &those);
        }
        group_figures(run, &cells);
        let within = cells.iter().filter(|cell| cell.rate() < self.below).count();
        let because = format!(
            "{within} of {} are; the largest is {:.1} % ({}, {} {})",
            cells.len(),
            worst.rate(),
            worst.subject,
            worst.count,
            self.things
        );
        run.claims.push(Claim::tested(claim, within == cells.len(), because));
        self.plot(run, &counts, &cells);
    }

    fn figures(self, run: &mut ExperimentRun<'_>, case: &str, cells: &[&ValidationRuns]) {
        run.figure(case, RATE, "%", percent(cells, |errors| errors.rate));
        run.figure(case, EACH, "%", percent(cells, |errors| errors.each));
        let sum_s = |at: usize| cells.iter().flat_map(|cell| &cell.errors).map(|errors| errors.sums_s[at]).sum::<f64>();
        let runs = cells.iter().map(|cell| cell.errors.len() as u64).sum();
        run.figure(case, TOGETHER, "%", SampledValue::of(100.0 * (sum_s(1) / sum_s(0) - 1.0), runs));
        run.figure(case, CHANCE, "%", percent(cells, |errors| errors.chance));
        let errors = || cells.iter().flat_map(|cell| &cell.errors);
        let all: TimePairs = errors().flat_map(|errors| &errors.pooled).copied().collect();
        if let Some(models) = errors().map(|errors| errors.models.max(1)).next() {
            let samples = (all.len() / models) as u64;
            run.figure(case, MEDIAN, "%", SampledValue::of(100.0 * median_difference(&all), samples));
        }
        let twice: Vec<&TimePairs> = errors().map(|errors| &errors.again).filter(|again| !again.is_empty()).collect();
        if !twice.is_empty() {
            let each: Vec<f64> = twice.iter().map(|again| 100.0 * difference(again).abs()).collect();
            run.figure(case, AGAIN, "%", SampledValue::mean_of(&each));
            let all: TimePairs = twice.into_iter().flatten().copied().collect();
            run.figure(case, AGAIN_TOGETHER, "%", SampledValue::of(100.0 * difference(&all), all.len() as u64));
            run.figure(case, AGAIN_MEDIAN, "%", SampledValue::of(100.0 * median_difference(&all), all.len() as u64));
        }
        let sum = |of: fn(&ProfilePredictionErrors) -> usize| {
            cells.iter().flat_map(|cell| &cell.errors).map(of).sum::<usize>()
        };
        let (apart, all) = (sum(|errors| errors.apart), sum(|errors| errors.all));
        if apart > 0 {
            run.figure(case, APART, "%", SampledValue::of(100.0 * apart as f64 / all.max(1) as f64, all as u64));
        }
    }

    fn plot(self, run: &mut ExperimentRun<'_>, counts: &[u32], cells: &[&ValidationRuns]) {
        let mut series: Vec<ChartSeries> = Vec::new();
        for cell in cells {
            let value = percent(&[cell], |errors| errors.rate);
            let half = value.sd.map(|sd| 1.96 * sd / (value.samples.max(1) as f64).sqrt());
            let point = ChartPoint::within(cell.count.into(), value.value, half);
            match series.iter_mut().find(|series| series.name == cell.subject) {
                Some(series) => series.points.push(point),
                None => series.push(ChartSeries::line(&cell.subject, vec![point])),
            }
        }
        let bound = counts.iter().map(|count| ChartPoint::new((*count).into(), self.below)).collect();
        series.push(ChartSeries::line("ours must be below", bound));
        let chart = Chart {
            name: format!("error-rate-{}", self.things),
            title: format!("Error rate of random {}", self.things),
            x: Axis::linear(format!("number of {}", self.things)),
            y: Axis::linear("error rate, %"),
            series,
        };
        run.plots.push(chart.into());
    }
}

/// Adds figures by group of commands or packets, over all runs of all switches.
fn group_figures(run: &mut ExperimentRun<'_>, cells: &[&ValidationRuns]) {
    let mut groups: BTreeMap<&str, TimePairs> = BTreeMap::new();
    for (name, pairs) in cells.iter().flat_map(|cell| &cell.errors).flat_map(|errors| &errors.groups) {
        groups.entry(name).or_default().extend(pairs);
    }
    let errors = || cells.iter().flat_map(|cell| &cell.errors);
    let models = errors().map(|errors| errors.models.max(1)).next().unwrap_or(1);
    let all_s: f64 = errors().map(|errors| sum(&errors.pooled, |pair| pair.0)).sum();
    for (name, pairs) in groups.iter().filter(|(_, pairs)| sum(pairs, |pair| pair.0) > 0.0) {
        let of = |value: f64| SampledValue::of(100.0 * value, (pairs.len() / models) as u64);
        run.figure(name, SHARE, "%", of(sum(pairs, |pair| pair.0) / all_s));
        run.figure(name, TOGETHER, "%", of(difference(pairs)));
        run.figure(name, MEDIAN, "%", of(median_difference(pairs)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_what_both_saw() {
        let measured = vec![Some(1.0), Some(2.0), None, Some(5.0), None];
        let foretold = vec![Some(1.5), Some(2.0), Some(9.0), None, None];
        let again = Some(vec![Some(1.25), None, None, Some(5.0), Some(1.0)]);
        let groups = vec![vec!["a", "b", "a", "b", "a"], vec!["c"; 5]];
        let models = vec![foretold];
        let errors = ProfilePredictionErrors::of(&SeriesTimes { measured, again, models, groups }).unwrap();
        assert!((errors.rate - 0.5 / 3.0).abs() < 1e-12, "{errors:?}");
        assert!((errors.each - 0.5).abs() < 1e-12);
        assert_eq!((errors.apart, errors.all), (2, 5));
        assert_eq!(
            errors.groups,
            BTreeMap::from([("a", vec![(1.0, 1.5)]), ("b", vec![(2.0, 2.0)]), ("c", vec![(1.0, 1.5), (2.0, 2.0)])])
        );
        assert_eq!(errors.again, [(1.0, 1.25), (5.0, 5.0)]);
        assert!((difference(&errors.again) - 0.25 / 6.0).abs() < 1e-12);
        let one = |measured, foretold| {
            let (measured, models) = (vec![measured], vec![vec![foretold]]);
            ProfilePredictionErrors::of(&SeriesTimes { measured, models, ..SeriesTimes::default() })
        };
        assert_eq!(one(None, Some(1.0)), None);
        assert_eq!(one(Some(0.0), Some(1.0)), None, "nothing to be a share of");
    }
}
