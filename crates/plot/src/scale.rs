//! Axis scales: maps values to positions on an axis, and chooses the round values written beside it.
use crate::text::{number, width};

/// Maximum absolute value. Larger values, and on logarithmic axes those below the inverse, are left out, so that sums
/// and logarithms of the rest are finite.
const LARGEST: f64 = 1e150;
/// Up to this many distinct values are labelled themselves instead of round values.
const FEW: usize = 10;
/// Ratio of the ends below which a logarithmic axis becomes linear: it would have only two round values.
const NARROW: f64 = 8.0;
/// Maximum number of decades that are all labelled; beyond, only every n-th is.
const DECADES: i32 = 8;

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AxisScale {
    /// Linear: equal distances are equal differences.
    #[default]
    Linear,
    /// Logarithmic: equal distances are equal factors; only positive values can be shown.
    Log,
}

impl AxisScale {
    /// Returns true if a value can be shown.
    pub(crate) fn takes(self, value: f64) -> bool {
        match self {
            AxisScale::Linear => value.abs() <= LARGEST,
            AxisScale::Log => (1.0 / LARGEST..=LARGEST).contains(&value),
        }
    }

    fn along(self, value: f64) -> f64 {
        match self {
            AxisScale::Linear => value,
            AxisScale::Log => value.max(f64::MIN_POSITIVE).ln(),
        }
    }
}

/// An axis with its range and the values written beside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScaledAxis {
    scale: AxisScale,
    ends: [f64; 2],
    pub(crate) ticks: Vec<f64>,
}

impl ScaledAxis {
    /// Returns an axis that covers all values that can be shown.
    pub(crate) fn over(scale: AxisScale, values: impl IntoIterator<Item = f64>) -> ScaledAxis {
        let [low, high] = range(scale, values);
        let scale = if low > 0.0 && low < high && high / low < NARROW { AxisScale::Linear } else { scale };
        let ticks = ticks(scale, [low, high]);
        ScaledAxis { scale, ends: ends(&ticks), ticks }
    }

    /// Returns an axis that is labelled with the values themselves if they are few, else like [`ScaledAxis::over`].
    pub(crate) fn of_few(scale: AxisScale, values: impl IntoIterator<Item = f64>) -> ScaledAxis {
        let mut values: Vec<f64> = values.into_iter().filter(|value| scale.takes(*value)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        match values.len() {
            2..=FEW => ScaledAxis { scale, ends: ends(&values), ticks: values },
            _ => ScaledAxis::over(scale, values),
        }
    }

    /// Returns the position of a value, from 0 to 1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let [low, high] = self.ends.map(|end| self.scale.along(end));
        if high <= low {
            return 0.5;
        }
        ((self.scale.along(value) - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Returns positions and texts of the labels.
    pub(crate) fn labels(&self) -> Vec<(f64, String)> {
        self.ticks.iter().map(|tick| (self.place(*tick), number(*tick))).collect()
    }

    pub(crate) fn takes(&self, value: f64) -> bool {
        self.scale.takes(value)
    }
}

/// Empties labels that would overlap the previous one on an axis of the given length.
pub(crate) fn thinned(labels: Vec<(f64, String)>, length: f64) -> Vec<(f64, String)> {
    let mut taken = f64::NEG_INFINITY;
    let fits = |(place, label): (f64, String)| {
        let half = width(&label) / 2.0;
        if place * length - half < taken {
            return (place, String::new());
        }
        taken = place * length + half + 4.0;
        (place, label)
    };
    labels.into_iter().map(fits).collect()
}

fn ends(ticks: &[f64]) -> [f64; 2] {
    [ticks.first().copied().unwrap_or(0.0), ticks.last().copied().unwrap_or(1.0)]
}

fn range(scale: AxisScale, values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    let [low, high] = values
        .into_iter()
        .filter(|value| scale.takes(*value))
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(value), high.max(value)]);
    match scale {
        _ if low <= high => [low, high],
        AxisScale::Linear => [0.0, 1.0],
        AxisScale::Log => [1.0, 10.0],
    }
}

fn ticks(scale: AxisScale, range: [f64; 2]) -> Vec<f64> {
    match scale {
        AxisScale::Linear => linear(range),
        AxisScale::Log => logarithmic(range),
    }
}

/// Returns about six round values that cover a range.
fn linear([low, high]: [f64; 2]) -> Vec<f64> {
    let span = (high - low).max(high.abs().max(low.abs()) * 1e-3);
    let span = if span > 0.0 { span } else { 1.0 };
    let rough = span / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (low / step).floor();
    let steps = ((low + span).max(high) / step - 1e-9).ceil() - first;
    (0..20).map(f64::from).take_while(|number| *number <= steps).map(|number| (first + number) * step).collect()
}

/// Returns the powers of ten that cover a range, or 1, 2 and 5 times powers of ten if there are few decades.
#[expect(clippy::cast_possible_truncation, reason = "logarithms of values that have a place are small")]
fn logarithmic([low, high]: [f64; 2]) -> Vec<f64> {
    let tens = |power: i32| 10f64.powi(power);
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    if last - first > 2 {
        let every = (last - first + DECADES - 1).div_euclid(DECADES);
        let last = first + (last - first + every - 1).div_euclid(every) * every;
        return (first..=last).filter(|power| (power - first) % every == 0).map(tens).collect();
    }
    let all: Vec<f64> = (first - 1..=last.max(first + 1))
        .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * tens(power)))
        .collect();
    let from = all.iter().rposition(|tick| *tick <= low * (1.0 + 1e-12)).unwrap_or_default();
    let to = all.iter().position(|tick| *tick >= high * (1.0 - 1e-12)).unwrap_or(all.len() - 1);
    all[from..=to.max((from + 1).min(all.len() - 1))].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_and_take_everything_in() {
        assert_eq!(linear([90.3, 99.9]), [90.0, 92.0, 94.0, 96.0, 98.0, 100.0]);
        assert_eq!(logarithmic([3.0, 90.0]), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(logarithmic([1e-12, 1e12]).len(), 9);
        assert_eq!(logarithmic([1.0, 1.0]), [1.0, 2.0]);
    }

    #[test]
    fn few_values_stand_for_themselves() {
        assert_eq!(ScaledAxis::of_few(AxisScale::Log, [4.0, 1.0, 2.0, 2.0, -1.0]).ticks, [1.0, 2.0, 4.0]);
        assert!(ScaledAxis::of_few(AxisScale::Linear, [7.0]).ticks.len() > 1);
    }

    proptest! {
        #[test]
        fn every_value_has_a_place_between_two_ticks(values in prop::collection::vec(prop::num::f64::ANY, 0..20), log: bool) {
            let scale = if log { AxisScale::Log } else { AxisScale::Linear };
            let ruler = ScaledAxis::over(scale, values.iter().copied());
            prop_assert!(ruler.ticks.len() >= 2 && ruler.ticks.len() <= 21, "{:?}", ruler.ticks);
            prop_assert!(ruler.ticks.is_sorted() && ruler.ticks.iter().all(|tick| tick.is_finite()));
            for value in values.into_iter().filter(|value| scale.takes(*value)) {
                let slack = 1e-9 * (value.abs() + ruler.ends[1] - ruler.ends[0]);
                prop_assert!(ruler.ends[0] <= value + slack && value - slack <= ruler.ends[1], "{value} in {:?}", ruler.ends);
                prop_assert!((0.0..=1.0).contains(&ruler.place(value)));
            }
        }
    }
}
