//! Judges differences between results and a reference, and states the verdicts in words.
use crate::difference::MetricDifference;
use serde::Serialize;
use std::fmt;

/// Verdict on the difference of a found value from its reference. Shares, such as loss, are compared by their absolute
/// difference in points (1.0 is 100 percentage points), other values by the difference relative to the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", content = "detail", rename_all = "snake_case")]
pub enum DifferenceVerdict {
    /// The value equals the reference.
    Equal,
    /// The value lies within the reference's 95 % confidence interval.
    Inside,
    /// The value lies within the 95 % confidence interval, but the interval is too wide to be conclusive. Half its
    /// width, relative to the reference or in points.
    Unsure(f64),
    /// The relative difference is at most this limit, the smallest of [`RELATIVE_LIMITS`] that holds.
    Within(f64),
    /// The relative difference is this large, above the last of [`RELATIVE_LIMITS`].
    Wrong(f64),
    /// The value is too large or too small by this factor (at least 3), and its relative difference is above the last
    /// of [`RELATIVE_LIMITS`].
    Factor(f64),
    /// For shares: the difference in points is at most this limit, the smallest of [`POINT_LIMITS`] that holds.
    WithinPoints(f64),
    /// For shares: the difference is this many points, above the last of [`POINT_LIMITS`].
    WrongPoints(f64),
    /// The values cannot be compared, for this reason.
    NotComparable(String),
}

/// Limits of relative differences, ascending. The last is the accuracy usually required of models of queues.
pub const RELATIVE_LIMITS: [f64; 5] = [0.01, 0.02, 0.05, 0.1, 0.2];
/// Limits of differences of shares, ascending, in points (1.0 is 100 percentage points).
pub const POINT_LIMITS: [f64; 4] = [0.001, 0.005, 0.01, 0.02];
/// Relative excess over a limit that still counts as within the limit, to allow for rounding.
const EQUAL: f64 = 1e-9;
/// Smallest ratio of value to reference (or its inverse) that is stated as a factor, because it is easier to read than
/// a relative difference.
const FACTOR: f64 = 3.0;

impl DifferenceVerdict {
    /// Returns the verdict on a difference.
    pub fn of(difference: &MetricDifference) -> DifferenceVerdict {
        #[expect(clippy::float_cmp, reason = "equal is equal")]
        if difference.reference.value == difference.found.value {
            return DifferenceVerdict::Equal;
        }
        if difference.is_inside == Some(true) {
            let width = difference.interval_half_width().unwrap_or(0.0);
            return if width > difference.error_limit() {
                DifferenceVerdict::Unsure(width)
            } else {
                DifferenceVerdict::Inside
            };
        }
        match difference.error() {
            Some(error) => DifferenceVerdict::of_error(error, difference.log_ratio, difference.metric.is_share()),
            None => DifferenceVerdict::NotComparable("the reference is 0".to_owned()),
        }
    }

    /// Returns the verdict on `error`, the result of [`MetricDifference::error`]. `log_ratio` is
    /// [`MetricDifference::log_ratio`]; `is_share` is true for shares, whose error is in points.
    pub fn of_error(error: f64, log_ratio: Option<f64>, is_share: bool) -> DifferenceVerdict {
        let factor = log_ratio.map(f64::exp).filter(|factor| *factor >= FACTOR && factor.is_finite());
        let first = |steps: &[f64]| steps.iter().copied().find(|step| error <= step * (1.0 + EQUAL));
        match (is_share, if is_share { first(&POINT_LIMITS) } else { first(&RELATIVE_LIMITS) }) {
            (true, Some(step)) => DifferenceVerdict::WithinPoints(step),
            (true, None) => DifferenceVerdict::WrongPoints(error),
            (false, Some(step)) => DifferenceVerdict::Within(step),
            (false, None) => factor.map_or(DifferenceVerdict::Wrong(error), DifferenceVerdict::Factor),
        }
    }

    /// Returns true if the values agree: equal, within the confidence interval, or within a limit. False for
    /// [`DifferenceVerdict::Unsure`], which proves nothing.
    pub fn is_right(&self) -> bool {
        matches!(
            self,
            DifferenceVerdict::Equal
                | DifferenceVerdict::Inside
                | DifferenceVerdict::Within(_)
                | DifferenceVerdict::WithinPoints(_)
        )
    }

    /// Returns true if the difference exceeds all limits. [`DifferenceVerdict::NotComparable`] and
    /// [`DifferenceVerdict::Unsure`] are neither right nor wrong.
    pub fn is_wrong(&self) -> bool {
        matches!(self, DifferenceVerdict::Wrong(_) | DifferenceVerdict::Factor(_) | DifferenceVerdict::WrongPoints(_))
    }
}

impl fmt::Display for DifferenceVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DifferenceVerdict::Equal => f.write_str("equal"),
            DifferenceVerdict::Inside => f.write_str("inside the interval"),
            DifferenceVerdict::Unsure(width) => {
                write!(f, "inside an interval of ±{:.0}%: more rounds would say more", width * 100.0)
            }
            DifferenceVerdict::Within(share) => write!(f, "within {:.0}%", share * 100.0),
            DifferenceVerdict::Wrong(share) => write!(f, "wrong by {:.0}%", share * 100.0),
            DifferenceVerdict::Factor(factor) => write!(f, "wrong by a factor of {factor:.1}"),
            DifferenceVerdict::WithinPoints(points) => write!(f, "within {} percentage points", points * 100.0),
            DifferenceVerdict::WrongPoints(points) => write!(f, "wrong by {:.1} percentage points", points * 100.0),
            DifferenceVerdict::NotComparable(why) => write!(f, "not comparable: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{AnswerSubject, MetricValue, PerformanceMetric, SubjectKind};

    fn says(metric: PerformanceMetric, reference: MetricValue, found: f64) -> String {
        let subject = AnswerSubject { part: SubjectKind::Flow, name: "f".into() };
        MetricDifference::new(subject, metric, reference, MetricValue::exact(found)).verdict.to_string()
    }

    #[test]
    fn differences_are_told_in_words() {
        let ten = MetricValue { value: 10.0, half_width: Some(0.5) };
        for (reference, found, expected) in [
            (ten, 10.0, "equal"),
            (ten, 10.4, "inside the interval"),
            (ten, 10.6, "within 10%"),
            (
                MetricValue { value: 10.0, half_width: Some(5.0) },
                7.0,
                "inside an interval of ±50%: more rounds would say more",
            ),
            (MetricValue::exact(10.0), 10.1, "within 1%"),
            (MetricValue::exact(10.0), 8.1, "within 20%"),
            (MetricValue::exact(10.0), 5.0, "wrong by 50%"),
            (MetricValue::exact(10.0), 65.0, "wrong by a factor of 6.5"),
            (MetricValue::exact(10.0), 2.0, "wrong by a factor of 5.0"),
            (MetricValue::exact(0.0), 1.0, "not comparable: the reference is 0"),
        ] {
            assert_eq!(says(PerformanceMetric::DelayMean, reference, found), expected, "{reference:?} {found}");
        }
    }

    #[test]
    fn shares_are_told_in_points() {
        for (reference, found, expected) in [
            (0.0, 0.0, "equal"),
            (0.0, 0.0005, "within 0.1 percentage points"),
            (0.5, 0.49, "within 1 percentage points"),
            (0.5, 0.4, "wrong by 10.0 percentage points"),
        ] {
            assert_eq!(says(PerformanceMetric::Loss, MetricValue::exact(reference), found), expected);
        }
    }
}
