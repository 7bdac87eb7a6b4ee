//! Decides about each flow of an answer, by all figures that are known well.
use crate::answer::{AnswerSubject, EvaluationMethod, PerformanceMetric, ScenarioAnswer};
use crate::difference::MetricDifference;
use crate::verdict::DifferenceVerdict;
use serde::Serialize;

/// Share of the error above which figures are wrong that half an interval may have if the figure is known well.
const KNOWN_WELL: f64 = 0.5;

/// Difference that decides on an answer's flow: the worst of the figures that are known well.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowDecision {
    /// Name of the flow.
    pub name: String,
    /// Metric of the deciding figure.
    pub metric: PerformanceMetric,
    /// Half the width of the difference's interval, relative to the reference or in points; `None` without interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_to: Option<f64>,
    /// Size of the difference, relative to the reference or in points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Metric of the figure that is known best.
    pub known_best: PerformanceMetric,
    /// Metrics of all figures that are judged: the one known best, and all that are known well.
    pub judged_by: Vec<PerformanceMetric>,
    /// True if the difference may be the machine's: a live answer that is not certified has more delay or loss than the
    /// other one, while their medians agree.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_be_machines: bool,
    /// Verdict on the difference.
    #[serde(flatten)]
    pub verdict: DifferenceVerdict,
}

impl FlowDecision {
    /// Returns true if the answer is wrong about the flow, and not perhaps the machine.
    pub fn is_wrong(&self) -> bool {
        self.verdict.is_wrong() && !self.may_be_machines
    }
}

/// Which of two answers the machine disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisturbedSide {
    /// Neither, as far as is known.
    None,
    /// The reference only.
    Reference,
    /// The other answer only.
    Answer,
    /// Both.
    Both,
}

impl DisturbedSide {
    pub(crate) fn of(reference: &ScenarioAnswer, answer: &ScenarioAnswer) -> DisturbedSide {
        let is_live = |answer: &ScenarioAnswer| {
            matches!(answer.by.verb, EvaluationMethod::Run | EvaluationMethod::Emulate) && answer.doubt().is_some()
        };
        match (is_live(reference), is_live(answer)) {
            (false, false) => DisturbedSide::None,
            (true, false) => DisturbedSide::Reference,
            (false, true) => DisturbedSide::Answer,
            (true, true) => DisturbedSide::Both,
        }
    }

    /// Returns true if the disturbed answer has the larger figure: a machine delays and loses, and never the opposite.
    fn has_more(self, difference: &MetricDifference) -> bool {
        match self {
            DisturbedSide::None => false,
            DisturbedSide::Reference => difference.reference.value > difference.found.value,
            DisturbedSide::Answer => difference.found.value > difference.reference.value,
            DisturbedSide::Both => true,
        }
    }
}

/// Decides about a flow; `None` if the answers have no figure of it in common.
///
/// The figure known best is that of the delays with the narrowest interval, because a mean that a few stops of the
/// machine dominate says less than a median that no stop touches; without delays it is the rate, else the loss. All
/// other figures that are known well are judged, too, so that none hides what another one shows: the worst decides.
pub(crate) fn decide(
    differences: &[MetricDifference],
    subject: &AnswerSubject,
    disturbed: DisturbedSide,
) -> Option<FlowDecision> {
    let own: Vec<&MetricDifference> = differences.iter().filter(|one| one.subject == *subject).collect();
    let best = known_best(&own)?;
    let has_intervals = own.iter().any(|one| one.metric.is_delay() && one.interval_half_width().is_some());
    let is_known_well = |one: &MetricDifference| match one.interval_half_width() {
        Some(half_width) => half_width <= KNOWN_WELL * one.error_limit(),
        // Beside percentiles with intervals, a mean without one is a mean of a single run.
        None => one.error().is_some() && !(has_intervals && one.metric.is_delay()),
    };
    let judged: Vec<&MetricDifference> = own
        .iter()
        .copied()
        .filter(|one| is_judged(one.metric) && (one.metric == best.metric || is_known_well(one)))
        .collect();
    let worst = judged.iter().copied().max_by(|a, b| badness(a).total_cmp(&badness(b)))?;
    // Of equally good figures, and if the best one leaves open whether the answer is right, that one decides.
    let is_open = !best.verdict.is_right() && !best.verdict.is_wrong();
    let deciding = if worst.verdict.is_wrong() || !is_open && badness(worst) > badness(best) { worst } else { best };
    let median = own.iter().find(|one| one.metric == PerformanceMetric::DelayP50);
    let medians_agree = median.is_some_and(|one| is_known_well(one) && one.verdict.is_right());
    let may_be_machines = deciding.verdict.is_wrong()
        && deciding.metric != PerformanceMetric::Rate
        && medians_agree
        && judged.iter().filter(|one| one.verdict.is_wrong()).all(|one| disturbed.has_more(one));
    Some(FlowDecision {
        name: subject.name.clone(),
        metric: deciding.metric,
        known_to: deciding.interval_half_width(),
        error: deciding.error(),
        known_best: best.metric,
        judged_by: judged.iter().map(|one| one.metric).collect(),
        may_be_machines,
        verdict: deciding.verdict.clone(),
    })
}

/// Returns true if flows are judged by the metric.
fn is_judged(metric: PerformanceMetric) -> bool {
    metric.is_delay() || matches!(metric, PerformanceMetric::Rate | PerformanceMetric::Loss)
}

fn known_best<'a>(own: &[&'a MetricDifference]) -> Option<&'a MetricDifference> {
    let width = |one: &&&MetricDifference| one.interval_half_width().unwrap_or(f64::INFINITY);
    // The first of equally narrow ones wins: figures are in the order of tables, the mean first.
    let delay = own.iter().filter(|one| one.metric.is_delay()).min_by(|a, b| width(a).total_cmp(&width(b)));
    let of = |metric| own.iter().find(|one| one.metric == metric);
    delay.or_else(|| of(PerformanceMetric::Rate)).or_else(|| of(PerformanceMetric::Loss)).copied()
}

/// Returns the error in units of the error above which figures are wrong; 0 within the interval.
fn badness(one: &MetricDifference) -> f64 {
    match one.verdict {
        DifferenceVerdict::Equal | DifferenceVerdict::Inside | DifferenceVerdict::Unsure(_) => 0.0,
        _ => one.error().unwrap_or(0.0) / one.error_limit(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::PerformanceMetric::{DelayMean, DelayP50, DelayP95, DelayP99, Loss, Rate};
    use crate::answer::{MetricValue, SubjectKind};

    /// Decides by figures: metric, reference with half its interval, found value.
    fn decided(disturbed: DisturbedSide, figures: &[(PerformanceMetric, f64, Option<f64>, f64)]) -> FlowDecision {
        let subject = AnswerSubject { part: SubjectKind::Flow, name: "a".into() };
        let difference = |(metric, value, half_width, found): &(PerformanceMetric, f64, Option<f64>, f64)| {
            let reference = MetricValue { value: *value, half_width: *half_width };
            MetricDifference::new(subject.clone(), *metric, reference, MetricValue::exact(*found))
        };
        let differences: Vec<MetricDifference> = figures.iter().map(difference).collect();
        decide(&differences, &subject, disturbed).unwrap()
    }

    fn decide_calm(figures: &[(PerformanceMetric, f64, Option<f64>, f64)]) -> FlowDecision {
        decided(DisturbedSide::None, figures)
    }

    #[test]
    fn a_mean_full_of_stops_decides_nothing() {
        // Stops of the machine make the mean useless: 311 % of the mean, 1 % of the median.
        let figures =
            [(DelayMean, 2e-3, Some(6.2e-3), 1e-3), (DelayP50, 1e-3, Some(1e-5), 1.3e-3), (Rate, 1e6, None, 1e6)];
        let decision = decide_calm(&figures);
        assert_eq!((decision.metric, decision.is_wrong()), (DelayP50, true), "{decision:?}");
        assert!((decision.known_to.unwrap() - 0.01).abs() < 1e-9, "{decision:?}");
        assert_eq!(decision.judged_by, [DelayP50, Rate]);
    }

    #[test]
    fn a_tail_that_agrees_hides_no_median() {
        // The formulas for datagrams behind a full link: 95th percentile 8.7 % off and known best, median 25 % off.
        let figures = [
            (DelayMean, 633e-6, Some(18e-6), 799e-6),
            (DelayP50, 638e-6, Some(18e-6), 800e-6),
            (DelayP95, 736e-6, Some(8e-6), 800e-6),
            (DelayP99, 893e-6, Some(93e-6), 800e-6),
            (Loss, 0.0, None, 0.0),
        ];
        let decision = decide_calm(&figures);
        assert_eq!((decision.known_best, decision.is_wrong()), (DelayP95, true), "{decision:?}");
        assert!(decision.metric == DelayMean && (decision.error.unwrap() - 0.262).abs() < 1e-3, "{decision:?}");
        assert_eq!(decision.judged_by, [DelayMean, DelayP50, DelayP95, Loss], "the 99th percentile is known to 10.4 %");
    }

    #[test]
    fn losses_count_where_delays_agree() {
        let figures = [(DelayP50, 1.0, Some(0.01), 1.0), (Loss, 0.06, Some(0.004), 0.0)];
        let decision = decide_calm(&figures);
        assert_eq!((decision.metric, decision.is_wrong()), (Loss, true), "{decision:?}");
        let few = decide_calm(&[(DelayP50, 1.0, Some(0.01), 1.0), (Loss, 0.06, Some(0.08), 0.0)]);
        assert!(few.verdict.is_right(), "three of fifty packets prove little: {few:?}");
    }

    #[test]
    fn what_is_open_stays_open() {
        let figures = [(DelayP50, 1.0, Some(0.5), 1.2), (Rate, 100.0, None, 99.5)];
        let decision = decide_calm(&figures);
        assert_eq!((decision.metric, &decision.verdict), (DelayP50, &DifferenceVerdict::Unsure(0.5)));
        let figures = [(DelayP50, 1.0, Some(0.5), 1.2), (Rate, 100.0, None, 50.0)];
        assert_eq!(decide_calm(&figures).metric, Rate, "but a wrong rate is wrong");
    }

    #[test]
    fn without_intervals_every_figure_counts_and_without_delays_rate_and_loss() {
        let exact = decide_calm(&[(DelayMean, 2.0, None, 1.9), (DelayP50, 1.0, None, 1.3)]);
        assert_eq!((exact.known_best, exact.metric), (DelayMean, DelayP50));
        let rate = decide_calm(&[(Loss, 0.0, None, 0.0), (Rate, 1e6, None, 1e6)]);
        assert_eq!((rate.known_best, rate.metric), (Rate, Rate));
        let zero = decide_calm(&[(DelayP50, 1.0, None, 1.0), (Rate, 0.0, None, 1.0)]);
        assert_eq!(zero.judged_by, [DelayP50], "a rate of 0 has no relative error");
    }

    #[test]
    fn outliers_of_a_disturbed_machine_are_told_from_the_networks() {
        // The machine adds a tail; medians agree.
        let slow_live =
            [(DelayP50, 1.0, Some(0.01), 1.01), (DelayP99, 9.0, Some(0.3), 2.0), (Loss, 0.05, Some(0.004), 0.0)];
        let decision = decided(DisturbedSide::Reference, &slow_live);
        assert!(decision.may_be_machines && !decision.is_wrong() && decision.verdict.is_wrong(), "{decision:?}");
        assert!(decided(DisturbedSide::None, &slow_live).is_wrong(), "a certified machine has no such tail");
        // A machine makes nothing faster, and medians that differ are no outliers.
        let fast_live = [(DelayP50, 1.0, Some(0.01), 1.01), (DelayP99, 2.0, Some(0.1), 9.0)];
        assert!(decided(DisturbedSide::Reference, &fast_live).is_wrong());
        assert!(!decided(DisturbedSide::Answer, &fast_live).is_wrong());
        let slow_all = [(DelayP50, 2.0, Some(0.01), 1.0), (DelayP99, 9.0, Some(0.3), 2.0)];
        assert!(decided(DisturbedSide::Reference, &slow_all).is_wrong());
    }
}
