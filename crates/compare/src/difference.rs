//! How far a figure is from another.
use crate::answer::{Figure, Metric, Subject};
use crate::verdict::{POINTS, STEPS, Verdict};
use serde::Serialize;

/// A figure of an answer beside the reference's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// Of what.
    pub metric: Metric,
    /// The reference's figure.
    pub reference: Figure,
    /// The other's.
    pub found: Figure,
    /// (reference - found) / reference: at most 1 if it is too small, without a limit if it is too large. None where the reference is 0.
    pub scaled: Option<f64>,
    /// |ln(found / reference)|: the same for half and for double. None where either is 0.
    pub log_ratio: Option<f64>,
    /// Whether they are not farther apart than their intervals allow; none if neither has one.
    pub is_inside: Option<bool>,
    /// What that comes to.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Figures closer than this share of the reference are equal: what is left is rounding.
const EQUAL: f64 = 1e-9;

impl Difference {
    /// How far `found` is from `reference`.
    pub fn new(subject: Subject, metric: Metric, reference: Figure, found: Figure) -> Difference {
        let (true_value, value) = (reference.value, found.value);
        let gap = (true_value - value).abs();
        let known = weir_model::score::Difference::of(true_value, value).ok();
        let is_inside = half_width(reference, found).map(|half| gap <= half + EQUAL * true_value.abs());
        let mut difference = Difference {
            subject,
            metric,
            reference,
            found,
            scaled: known.map(|known| known.scaled),
            log_ratio: known.and_then(|known| known.log_ratio),
            is_inside,
            verdict: Verdict::Equal,
        };
        difference.verdict = Verdict::of(&difference);
        difference
    }

    /// The size of the error as tables and scores have it: of shares in points (1.0 is all packets), of others relative to the reference.
    pub fn error(&self) -> Option<f64> {
        if self.metric.is_share() {
            return Some((self.reference.value - self.found.value).abs());
        }
        self.scaled.map(f64::abs)
    }

    /// Half the width of the interval of the difference, as [`Difference::error`] has it.
    pub(crate) fn allowed(&self) -> Option<f64> {
        let half = half_width(self.reference, self.found)?;
        if self.metric.is_share() {
            return Some(half);
        }
        (self.reference.value > 0.0).then(|| half / self.reference.value)
    }

    /// From where on errors are wrong: intervals that are wider say little.
    pub(crate) fn last_step(&self) -> f64 {
        if self.metric.is_share() { POINTS[POINTS.len() - 1] } else { STEPS[STEPS.len() - 1] }
    }

    /// How much more (or, below zero, less) than the reference it is, as [`Difference::error`] has it.
    pub fn excess(&self) -> Option<f64> {
        if self.metric.is_share() {
            return Some(self.found.value - self.reference.value);
        }
        self.scaled.map(|scaled| -scaled)
    }
}

/// Half the width of the interval of the difference of two independent estimates.
fn half_width(one: Figure, other: Figure) -> Option<f64> {
    if one.half_width.is_none() && other.half_width.is_none() {
        return None;
    }
    Some(one.half_width.unwrap_or(0.0).hypot(other.half_width.unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Part;

    pub(crate) fn difference(metric: Metric, reference: Figure, found: Figure) -> Difference {
        Difference::new(Subject { part: Part::Flow, name: "f".into() }, metric, reference, found)
    }

    fn within(value: f64, half: f64) -> Figure {
        Figure { value, half_width: Some(half) }
    }

    #[test]
    fn too_little_and_too_much_are_told_apart() {
        let low = difference(Metric::DelayMean, Figure::exact(2.0), Figure::exact(1.0));
        let high = difference(Metric::DelayMean, Figure::exact(2.0), Figure::exact(8.0));
        assert_eq!((low.scaled, high.scaled), (Some(0.5), Some(-3.0)));
        assert_eq!((low.error(), low.excess(), high.excess()), (Some(0.5), Some(-0.5), Some(3.0)));
        assert!(
            (low.log_ratio.unwrap() - 2f64.ln()).abs() < 1e-12 && (high.log_ratio.unwrap() - 4f64.ln()).abs() < 1e-12
        );
    }

    #[test]
    fn intervals_add_as_independent_errors_do() {
        let inside = |reference, found| difference(Metric::DelayMean, reference, found).is_inside;
        assert_eq!(inside(Figure::exact(1.0), Figure::exact(1.0)), None);
        assert_eq!(inside(within(10.0, 3.0), Figure::exact(12.9)), Some(true));
        assert_eq!(inside(within(10.0, 3.0), Figure::exact(13.1)), Some(false));
        assert_eq!(inside(within(10.0, 3.0), within(14.9, 4.0)), Some(true));
        assert_eq!(inside(within(10.0, 3.0), within(15.1, 4.0)), Some(false));
    }

    #[test]
    fn shares_are_told_in_points_and_zero_has_no_relative_error() {
        let loss = difference(Metric::Loss, Figure::exact(0.0), Figure::exact(0.02));
        assert_eq!((loss.scaled, loss.log_ratio, loss.error()), (None, None, Some(0.02)));
        let delay = difference(Metric::DelayMean, Figure::exact(0.0), Figure::exact(0.02));
        assert_eq!(delay.error(), None);
    }
}
