//! Sums up differences over all flows.
use crate::answer::{Answer, Metric, Part, Status};
use crate::difference::Difference;
use crate::verdict::Verdict;
use serde::Serialize;
use weir_model::ModelError;
use weir_model::score::{Averages, Summary};

/// Score of an answer for a metric, over flows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Metric of the score.
    pub metric: Metric,
    /// Errors of the flows that could be compared: relative (for delays the mean is the MAPE), in points for shares.
    #[serde(flatten)]
    pub errors: Errors,
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
    pub verdict: Verdict,
}

/// Summary of a list of errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
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

impl Errors {
    /// Sums up finite errors; `None` without any.
    pub fn of(errors: impl IntoIterator<Item = f64>) -> Option<Errors> {
        let known: Vec<Result<f64, ModelError>> =
            errors.into_iter().filter(|error| error.is_finite()).map(Ok).collect();
        let max = known.iter().flatten().copied().fold(0.0, f64::max);
        let Averages { mean, median, p95 } = Summary::of(&known).averages?;
        Some(Errors { valid: known.len(), mean, median, p95, max })
    }
}

/// Returns the scores of an answer by metric, in the order of tables. Metrics without a common flow are left out.
pub(crate) fn score(reference: &Answer, answer: &Answer, differences: &[Difference]) -> Vec<Score> {
    Metric::ALL.into_iter().filter_map(|metric| of_metric(metric, reference, answer, differences)).collect()
}

fn of_metric(metric: Metric, reference: &Answer, answer: &Answer, all: &[Difference]) -> Option<Score> {
    let own = || all.iter().filter(move |one| one.metric == metric && one.subject.part == Part::Flow);
    let errors = Errors::of(own().filter_map(Difference::error))?;
    let logs: Vec<f64> = own().filter_map(|one| one.log_ratio).collect();
    let flows = || {
        reference.rows.iter().filter(move |row| {
            row.subject.part == Part::Flow && row.figures.contains_key(&metric) && answer.is_asked(&row.subject)
        })
    };
    let lacking = |is: fn(&Status) -> bool| {
        flows().filter(|row| answer.row(&row.subject).is_some_and(|own| is(&own.status))).count()
    };
    let worst = own().max_by(|a, b| a.error().unwrap_or(0.0).total_cmp(&b.error().unwrap_or(0.0)));
    let unstable = lacking(|status| matches!(status, Status::Unstable(_)));
    let with_interval = own().filter(|one| one.is_inside.is_some()).count();
    let inside = own().filter(|one| one.is_inside == Some(true)).count();
    let mean_log_ratio = (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64);
    let verdict = if own().all(|one| one.verdict == Verdict::Equal) {
        Verdict::Equal
    } else if own().all(|one| matches!(one.verdict, Verdict::Equal | Verdict::Inside)) {
        Verdict::Inside
    } else if inside == errors.valid {
        Verdict::Unsure(own().filter_map(Difference::allowed).fold(0.0, f64::max))
    } else {
        Verdict::of_error(errors.mean, mean_log_ratio, metric.is_share())
    };
    Some(Score {
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
    use crate::answer::{Answerer, Figure, Row, State, Verb};
    use crate::comparison::Comparison;

    #[test]
    fn errors_are_summed_up() {
        let found = Errors::of((1..=100).rev().map(f64::from).chain([f64::NAN])).unwrap();
        assert_eq!((found.valid, found.mean, found.median, found.max), (100, 50.5, 50.5, 100.0));
        assert!((found.p95 - 95.05).abs() < 1e-9, "{found:?}");
        let one = Errors::of([0.5]).unwrap();
        assert_eq!((one.mean, one.median, one.p95, one.max), (0.5, 0.5, 0.5, 0.5));
        assert_eq!(Errors::of([]), None);
    }

    /// Returns an answer with flows of these mean delays; `None` is an unstable flow.
    fn answer(verb: Verb, means: [Option<Figure>; 4]) -> Answer {
        let row = |(place, mean): (usize, Option<Figure>)| {
            let mut row = Row::new(Part::Flow, format!("f{place}"));
            row.status = if mean.is_some() { Status::Ok } else { Status::Unstable("rho 1.2 at s1".into()) };
            row.put(Metric::DelayMean, mean);
            row
        };
        let rows = means.into_iter().enumerate().map(row).collect();
        Answer {
            by: Answerer::new(verb),
            state: State::Answered,
            runs: 3,
            passed: true,
            conditions: String::new(),
            rows,
        }
    }

    #[test]
    fn flows_count_as_valid_inside_or_unstable() {
        let reference = [2.0, 4.0, 5.0, 7.0].map(|value| Some(Figure { value, half_width: Some(0.5) }));
        let found = [Some(2.2), Some(5.0), Some(5.0), None].map(|value| value.map(Figure::exact));
        let answers = vec![answer(Verb::Predict, found), answer(Verb::Run, reference)];
        let comparison = Comparison::new("s", answers, None);
        let score = &comparison.compared[0].scores[0];
        assert_eq!(
            (score.errors.valid, score.with_interval, score.inside, score.unstable, score.not_answered),
            (3, 3, 2, 1, 0)
        );
        assert!((score.errors.mean - (0.1 + 0.25) / 3.0).abs() < 1e-12);
        assert_eq!((score.worst.as_str(), &score.verdict), ("f1", &Verdict::Within(0.2)));
    }
}
