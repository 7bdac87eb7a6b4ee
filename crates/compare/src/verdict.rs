//! Differences in words.
use crate::difference::Difference;
use serde::Serialize;
use std::fmt;

/// What a difference comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", content = "detail", rename_all = "snake_case")]
pub enum Verdict {
    /// No difference.
    Equal,
    /// Not farther than the 95 % intervals allow.
    Inside,
    /// The same, but that says little: half the width of the intervals is this share of the reference, or so many points.
    Unsure(f64),
    /// Within this share of the reference, one of [`STEPS`].
    Within(f64),
    /// Farther off than the last of them: by this share of the reference.
    Wrong(f64),
    /// Farther off than that, too: by this factor, too large or too small.
    Factor(f64),
    /// A share within so many points (1.0 is all), one of [`POINTS`].
    WithinPoints(f64),
    /// A share farther off than the last of them.
    WrongPoints(f64),
    /// There is nothing to compare with: why.
    NotComparable(String),
}

/// Limits of relative differences. The last is how far models of queues are usually asked to be right.
pub const STEPS: [f64; 5] = [0.01, 0.02, 0.05, 0.1, 0.2];
/// Limits of differences of shares.
pub const POINTS: [f64; 4] = [0.001, 0.005, 0.01, 0.02];
/// What is farther beyond a limit than this share of it is beyond it: what is less is rounding.
const EQUAL: f64 = 1e-9;
/// From this ratio on, factors are easier read than shares.
const FACTOR: f64 = 3.0;

impl Verdict {
    /// What a difference comes to.
    pub fn of(difference: &Difference) -> Verdict {
        #[expect(clippy::float_cmp, reason = "equal is equal")]
        if difference.reference.value == difference.found.value {
            return Verdict::Equal;
        }
        if difference.is_inside == Some(true) {
            let width = difference.allowed().unwrap_or(0.0);
            return if width > difference.last_step() { Verdict::Unsure(width) } else { Verdict::Inside };
        }
        match difference.error() {
            Some(error) => Verdict::of_error(error, difference.log_ratio, difference.metric.is_share()),
            None => Verdict::NotComparable("the reference is 0".to_owned()),
        }
    }

    /// What an error, as [`Difference::error`] has it, comes to; `log_ratio` as [`Difference::log_ratio`].
    pub fn of_error(error: f64, log_ratio: Option<f64>, is_share: bool) -> Verdict {
        let factor = log_ratio.map(f64::exp).filter(|factor| *factor >= FACTOR && factor.is_finite());
        let first = |steps: &[f64]| steps.iter().copied().find(|step| error <= step * (1.0 + EQUAL));
        match (is_share, if is_share { first(&POINTS) } else { first(&STEPS) }) {
            (true, Some(step)) => Verdict::WithinPoints(step),
            (true, None) => Verdict::WrongPoints(error),
            (false, Some(step)) => Verdict::Within(step),
            (false, None) => factor.map_or(Verdict::Wrong(error), Verdict::Factor),
        }
    }

    /// Whether it is as right as can be asked for; what is unsure is not.
    pub fn is_right(&self) -> bool {
        matches!(self, Verdict::Equal | Verdict::Inside | Verdict::Within(_) | Verdict::WithinPoints(_))
    }

    /// Whether it is wrong; what cannot be compared is neither.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Verdict::Wrong(_) | Verdict::Factor(_) | Verdict::WrongPoints(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Equal => f.write_str("equal"),
            Verdict::Inside => f.write_str("inside the interval"),
            Verdict::Unsure(width) => {
                write!(f, "inside an interval of ±{:.0}%: more rounds would say more", width * 100.0)
            }
            Verdict::Within(share) => write!(f, "within {:.0}%", share * 100.0),
            Verdict::Wrong(share) => write!(f, "wrong by {:.0}%", share * 100.0),
            Verdict::Factor(factor) => write!(f, "wrong by a factor of {factor:.1}"),
            Verdict::WithinPoints(points) => write!(f, "within {} percentage points", points * 100.0),
            Verdict::WrongPoints(points) => write!(f, "wrong by {:.1} percentage points", points * 100.0),
            Verdict::NotComparable(why) => write!(f, "not comparable: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Figure, Metric, Part, Subject};

    fn says(metric: Metric, reference: Figure, found: f64) -> String {
        let subject = Subject { part: Part::Flow, name: "f".into() };
        Difference::new(subject, metric, reference, Figure::exact(found)).verdict.to_string()
    }

    #[test]
    fn differences_are_told_in_words() {
        let ten = Figure { value: 10.0, half_width: Some(0.5) };
        for (reference, found, expected) in [
            (ten, 10.0, "equal"),
            (ten, 10.4, "inside the interval"),
            (ten, 10.6, "within 10%"),
            (
                Figure { value: 10.0, half_width: Some(5.0) },
                7.0,
                "inside an interval of ±50%: more rounds would say more",
            ),
            (Figure::exact(10.0), 10.1, "within 1%"),
            (Figure::exact(10.0), 8.1, "within 20%"),
            (Figure::exact(10.0), 5.0, "wrong by 50%"),
            (Figure::exact(10.0), 65.0, "wrong by a factor of 6.5"),
            (Figure::exact(10.0), 2.0, "wrong by a factor of 5.0"),
            (Figure::exact(0.0), 1.0, "not comparable: the reference is 0"),
        ] {
            assert_eq!(says(Metric::DelayMean, reference, found), expected, "{reference:?} {found}");
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
            assert_eq!(says(Metric::Loss, Figure::exact(reference), found), expected);
        }
    }
}
