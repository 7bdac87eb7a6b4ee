//! Computes the errors of predictions by a profile against measurements on the switch.
use crate::report::Claim;
use crate::{ExperimentRun, SampledValue};
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
/// Commands or packets that only one of switch and model executed or forwarded.
const APART: &str = "only seen on one side";

/// Errors of a run: the switch's measurement against its profile's prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
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
}

impl ProfilePredictionErrors {
    /// Computes the errors from seconds by command or packet. Returns `None` if no two can be compared.
    pub(super) fn of(measured: &[Option<f64>], foretold: &[Option<f64>]) -> Option<ProfilePredictionErrors> {
        let both: Vec<(f64, f64)> =
            measured.iter().zip(foretold).filter_map(|(one, other)| (*one).zip(*other)).collect();
        let sum = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>();
        let (truth, model) = (sum(|pair| pair.0), sum(|pair| pair.1));
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
        Some(ProfilePredictionErrors { rate: (model / truth - 1.0).abs(), each, sums_s, chance, apart, all })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_what_both_saw() {
        let measured = [Some(1.0), Some(2.0), None, Some(5.0), None];
        let foretold = [Some(1.5), Some(2.0), Some(9.0), None, None];
        let errors = ProfilePredictionErrors::of(&measured, &foretold).unwrap();
        assert!((errors.rate - 0.5 / 3.0).abs() < 1e-12, "{errors:?}");
        assert!((errors.each - 0.5).abs() < 1e-12);
        assert_eq!((errors.apart, errors.all), (2, 5));
        assert_eq!(ProfilePredictionErrors::of(&[None], &[Some(1.0)]), None);
        assert_eq!(ProfilePredictionErrors::of(&[Some(0.0)], &[Some(1.0)]), None, "nothing to be a share of");
    }
}
