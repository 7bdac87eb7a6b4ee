//! Difference between a figure and the reference's.
use crate::answer::{AnswerSubject, MetricValue, PerformanceMetric};
use crate::verdict::{DifferenceVerdict, POINT_LIMITS, RELATIVE_LIMITS};
use serde::Serialize;

/// Figure of an answer, compared with the reference's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricDifference {
    /// Flow or device.
    #[serde(flatten)]
    pub subject: AnswerSubject,
    /// Metric of the figures.
    pub metric: PerformanceMetric,
    /// Figure of the reference.
    pub reference: MetricValue,
    /// Figure of the answer.
    pub found: MetricValue,
    /// Scaled difference (reference - found) / reference: at most 1 if the figure is too small, unlimited if too
    /// large. `None` if the reference is 0.
    pub scaled: Option<f64>,
    /// Magnitude |ln(found / reference)|, equal for half and for double. `None` if either figure is 0.
    pub log_ratio: Option<f64>,
    /// True if the figures are within the interval of their difference; `None` if neither has an interval.
    pub is_inside: Option<bool>,
    /// Verdict on the difference.
    #[serde(flatten)]
    pub verdict: DifferenceVerdict,
}

/// Share of the reference below which figures are equal, to allow for rounding.
const EQUAL: f64 = 1e-9;

impl MetricDifference {
    /// Returns the difference between `found` and `reference`.
    pub fn new(
        subject: AnswerSubject,
        metric: PerformanceMetric,
        reference: MetricValue,
        found: MetricValue,
    ) -> MetricDifference {
        let (true_value, value) = (reference.value, found.value);
        let gap = (true_value - value).abs();
        let known = weir_model::score::ModelDeviation::of(true_value, value).ok();
        let is_inside = half_width(reference, found).map(|half| gap <= half + EQUAL * true_value.abs());
        let mut difference = MetricDifference {
            subject,
            metric,
            reference,
            found,
            scaled: known.map(|known| known.scaled),
            log_ratio: known.and_then(|known| known.log_ratio),
            is_inside,
            verdict: DifferenceVerdict::Equal,
        };
        difference.verdict = DifferenceVerdict::of(&difference);
        difference
    }

    /// Returns the size of the error as used in tables and scores: in points for shares (1.0 is all packets),
    /// otherwise relative to the reference.
    pub fn error(&self) -> Option<f64> {
        if self.metric.is_share() {
            return Some((self.reference.value - self.found.value).abs());
        }
        self.scaled.map(f64::abs)
    }

    /// Returns half the width of the difference's interval, in the unit of [`MetricDifference::error`].
    pub(crate) fn interval_half_width(&self) -> Option<f64> {
        let half = half_width(self.reference, self.found)?;
        if self.metric.is_share() {
            return Some(half);
        }
        (self.reference.value > 0.0).then(|| half / self.reference.value)
    }

    /// Returns the error above which figures are wrong. An interval wider than this says little.
    pub(crate) fn error_limit(&self) -> f64 {
        if self.metric.is_share() {
            POINT_LIMITS[POINT_LIMITS.len() - 1]
        } else {
            RELATIVE_LIMITS[RELATIVE_LIMITS.len() - 1]
        }
    }

    /// Returns by how much the figure exceeds the reference (negative if it is less), in the unit of
    /// [`MetricDifference::error`].
    pub fn excess(&self) -> Option<f64> {
        if self.metric.is_share() {
            return Some(self.found.value - self.reference.value);
        }
        self.scaled.map(|scaled| -scaled)
    }
}

/// Returns half the width of the interval of the difference of two independent estimates; `None` if neither has an
/// interval.
fn half_width(one: MetricValue, other: MetricValue) -> Option<f64> {
    if one.half_width.is_none() && other.half_width.is_none() {
        return None;
    }
    Some(one.half_width.unwrap_or(0.0).hypot(other.half_width.unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::SubjectKind;

    pub(crate) fn difference(
        metric: PerformanceMetric,
        reference: MetricValue,
        found: MetricValue,
    ) -> MetricDifference {
        MetricDifference::new(AnswerSubject { part: SubjectKind::Flow, name: "f".into() }, metric, reference, found)
    }

    fn within(value: f64, half: f64) -> MetricValue {
        MetricValue { value, half_width: Some(half) }
    }

    #[test]
    fn too_little_and_too_much_are_told_apart() {
        let low = difference(PerformanceMetric::DelayMean, MetricValue::exact(2.0), MetricValue::exact(1.0));
        let high = difference(PerformanceMetric::DelayMean, MetricValue::exact(2.0), MetricValue::exact(8.0));
        assert_eq!((low.scaled, high.scaled), (Some(0.5), Some(-3.0)));
        assert_eq!((low.error(), low.excess(), high.excess()), (Some(0.5), Some(-0.5), Some(3.0)));
        assert!(
            (low.log_ratio.unwrap() - 2f64.ln()).abs() < 1e-12 && (high.log_ratio.unwrap() - 4f64.ln()).abs() < 1e-12
        );
    }

    #[test]
    fn intervals_add_as_independent_errors_do() {
        let inside = |reference, found| difference(PerformanceMetric::DelayMean, reference, found).is_inside;
        assert_eq!(inside(MetricValue::exact(1.0), MetricValue::exact(1.0)), None);
        assert_eq!(inside(within(10.0, 3.0), MetricValue::exact(12.9)), Some(true));
        assert_eq!(inside(within(10.0, 3.0), MetricValue::exact(13.1)), Some(false));
        assert_eq!(inside(within(10.0, 3.0), within(14.9, 4.0)), Some(true));
        assert_eq!(inside(within(10.0, 3.0), within(15.1, 4.0)), Some(false));
    }

    #[test]
    fn shares_are_told_in_points_and_zero_has_no_relative_error() {
        let loss = difference(PerformanceMetric::Loss, MetricValue::exact(0.0), MetricValue::exact(0.02));
        assert_eq!((loss.scaled, loss.log_ratio, loss.error()), (None, None, Some(0.02)));
        let delay = difference(PerformanceMetric::DelayMean, MetricValue::exact(0.0), MetricValue::exact(0.02));
        assert_eq!(delay.error(), None);
    }
}
