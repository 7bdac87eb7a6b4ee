//! Sums up differences over all flows.
use crate::answer::{AnswerRowStatus, PerformanceMetric, ScenarioAnswer, SubjectKind};
use crate::difference::MetricDifference;
use crate::verdict::DifferenceVerdict;
use serde::Serialize;
use weir_model::ModelError;
use weir_model::score::{DeviationAverages, DeviationSummary};

/// Score of an answer for a metric, over flows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerScore {
    /// Metric of the score.
    pub metric: PerformanceMetric,
    /// Errors of the flows that could be compared: relative (for delays the mean is the MAPE), in points for shares.
    #[serde(flatten)]
    pub errors: ErrorStatistics,
    /// Number of flows whose difference has an interval.
    pub with_interval: usize,
    /// Number of these flows that are inside the interval.
    pub inside: usize,
    /// Mean of |ln(found / reference)|.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_log_ratio: Option<f64>,
    /// Number of the reference's flows with this metric for which the answer has no steady state.
    pub unstable: usize,
    /// Number of such flows that it does not answer for other reasons.
    pub not_answered: usize,
    /// Name of the flow with the largest error.
    pub worst: String,
    /// Verdict on the differences.
    #[serde(flatten)]
    pub verdict: DifferenceVerdict,
}

/// Summary of a list of errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ErrorStatistics {
    /// Number of errors.
    pub valid: usize,
    /// Mean of the errors.
    pub mean: f64,
    /// Median of the errors.
    pub median: f64,
    /// 95th percentile of the errors.
    pub p95: f64,
    /// Largest of the errors.
    pub max: f64,
}

impl ErrorStatistics {
    /// Sums up finite errors; `None` without any.
    pub fn of(errors: impl IntoIterator<Item = f64>) -> Option<ErrorStatistics> {
        let known: Vec<Result<f64, ModelError>> =
            errors.into_iter().filter(|error| error.is_finite()).map(Ok).collect();
        let max = known.iter().flatten().copied().fold(0.0, f64::max);
        let DeviationAverages { mean, median, p95 } = DeviationSummary::of(&known).averages?;
        Some(ErrorStatistics { valid: known.len(), mean, median, p95, max })
    }
}

/// Returns the scores of an answer by metric, in the order of tables. Metrics without a common flow are left out.
pub(crate) fn score(
    reference: &ScenarioAnswer,
    answer: &ScenarioAnswer,
    differences: &[MetricDifference],
) -> Vec<AnswerScore> {
    PerformanceMetric::ALL.into_iter().filter_map(|metric| of_metric(metric, reference, answer, differences)).collect()
}

fn of_metric(
    metric: PerformanceMetric,
    reference: &ScenarioAnswer,
    answer: &ScenarioAnswer,
    all: &[MetricDifference],
) -> Option<AnswerScore> {
    let own = || all.iter().filter(move |one| one.metric == metric && one.subject.part == SubjectKind::Flow);
    let errors = ErrorStatistics::of(own().filter_map(MetricDifference::error))?;
    let logs: Vec<f64> = own().filter_map(|one| one.log_ratio).collect();
    let flows = || {
        reference.rows.iter().filter(move |row| {
            row.subject.part == SubjectKind::Flow && row.figures.contains_key(&metric) && answer.is_asked(&row.subject)
        })
    };
    let lacking = |is: fn(&AnswerRowStatus) -> bool| {
        flows().filter(|row| answer.row(&row.subject).is_some_and(|own| is(&own.status))).count()
    };
    let worst = own().max_by(|a, b| a.error().unwrap_or(0.0).total_cmp(&b.error().unwrap_or(0.0)));
    let unstable = lacking(|status| matches!(status, AnswerRowStatus::Unstable(_)));
    let with_interval = own().filter(|one| one.is_inside.is_some()).count();
    let inside = own().filter(|one| one.is_inside == Some(true)).count();
    let mean_log_ratio = (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64);
    let verdict = if own().all(|one| one.verdict == DifferenceVerdict::Equal) {
        DifferenceVerdict::Equal
    } else if own().all(|one| matches!(one.verdict, DifferenceVerdict::Equal | DifferenceVerdict::Inside)) {
        DifferenceVerdict::Inside
    } else if inside == errors.valid {
        DifferenceVerdict::Unsure(own().filter_map(MetricDifference::interval_half_width).fold(0.0, f64::max))
    } else {
        DifferenceVerdict::of_error(errors.mean, mean_log_ratio, metric.is_share())
    };
    Some(AnswerScore {
        metric,
        errors,
        with_interval,
        inside,
        mean_log_ratio,
        unstable,
        not_answered: flows().count().saturating_sub(own().count() + unstable),
        worst: worst.map(|one| one.subject.name.clone()).unwrap_or_default(),
        verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{AnswerRow, AnswerSource, AnswerState, EvaluationMethod, MetricValue};
    use crate::comparison::Comparison;

    #[test]
    fn errors_are_summed_up() {
        let found = ErrorStatistics::of((1..=100).rev().map(f64::from).chain([f64::NAN])).unwrap();
        assert_eq!((found.valid, found.mean, found.median, found.max), (100, 50.5, 50.5, 100.0));
        assert!((found.p95 - 95.05).abs() < 1e-9, "{found:?}");
        let one = ErrorStatistics::of([0.5]).unwrap();
        assert_eq!((one.mean, one.median, one.p95, one.max), (0.5, 0.5, 0.5, 0.5));
        assert_eq!(ErrorStatistics::of([]), None);
    }

    /// Returns an answer with flows of these mean delays; `None` is an unstable flow.
    fn answer(verb: EvaluationMethod, means: [Option<MetricValue>; 4]) -> ScenarioAnswer {
        let row = |(place, mean): (usize, Option<MetricValue>)| {
            let mut row = AnswerRow::new(SubjectKind::Flow, format!("f{place}"));
            row.status =
                if mean.is_some() { AnswerRowStatus::Ok } else { AnswerRowStatus::Unstable("rho 1.2 at s1".into()) };
            row.insert_figure(PerformanceMetric::DelayMean, mean);
            row
        };
        let rows = means.into_iter().enumerate().map(row).collect();
        ScenarioAnswer {
            by: AnswerSource::new(verb),
            state: AnswerState::Answered,
            runs: 3,
            passed: true,
            fidelity: None,
            conditions: String::new(),
            rows,
        }
    }

    #[test]
    fn flows_count_as_valid_inside_or_unstable() {
        let reference = [2.0, 4.0, 5.0, 7.0].map(|value| Some(MetricValue { value, half_width: Some(0.5) }));
        let found = [Some(2.2), Some(5.0), Some(5.0), None].map(|value| value.map(MetricValue::exact));
        let answers = vec![answer(EvaluationMethod::Predict, found), answer(EvaluationMethod::Run, reference)];
        let comparison = Comparison::new("s", answers, None);
        let score = &comparison.compared[0].scores[0];
        assert_eq!(
            (score.errors.valid, score.with_interval, score.inside, score.unstable, score.not_answered),
            (3, 3, 2, 1, 0)
        );
        assert!((score.errors.mean - (0.1 + 0.25) / 3.0).abs() < 1e-12);
        assert_eq!((score.worst.as_str(), &score.verdict), ("f1", &DifferenceVerdict::Within(0.2)));
    }
}
