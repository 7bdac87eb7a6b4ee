//! Charts of distributions: distribution functions, and quantiles of one sample against those of another.
use crate::chart::{Axis, Chart, ChartPoint, ChartSeries, LineStyle};
use crate::pen::Pen;

/// Maximum number of points of a line: more are not visible.
const POINTS: usize = 200;

impl Chart {
    /// Returns a chart of the distribution functions of several samples: the share of values up to each value. NaN
    /// values are ignored.
    pub fn cdf(name: impl Into<String>, title: impl Into<String>, x: Axis, samples: Vec<(String, Vec<f64>)>) -> Chart {
        let line = |(name, mut values): (String, Vec<f64>)| {
            sort(&mut values);
            ChartSeries::looking(name, LineStyle::Steps, shares(&values))
        };
        Chart {
            name: name.into(),
            title: title.into(),
            x,
            y: Axis::linear("share up to here"),
            series: samples.into_iter().map(line).collect(),
        }
    }

    /// Returns a chart of quantiles of several samples against those of a reference, with the line of equality. Each
    /// pair has the values of reference and sample at one probability.
    pub fn quantiles(
        name: impl Into<String>,
        title: impl Into<String>,
        (reference, others): (Axis, Axis),
        pairs: Vec<(String, Vec<(f64, f64)>)>,
    ) -> Chart {
        let ends = pairs.iter().flat_map(|(_, pairs)| pairs).map(|pair| pair.0).filter(|value| value.is_finite());
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)));
        let equal = if low <= high { vec![ChartPoint::new(low, low), ChartPoint::new(high, high)] } else { Vec::new() };
        let mut series =
            vec![ChartSeries { name: "equal".into(), points: equal, look: LineStyle::Curve, pen: Some(Pen::INK) }];
        let dots = |pairs: Vec<(f64, f64)>| pairs.into_iter().map(|(x, y)| ChartPoint::new(x, y)).collect();
        series.extend(pairs.into_iter().map(|(name, pairs)| ChartSeries::looking(name, LineStyle::Dots, dots(pairs))));
        Chart { name: name.into(), title: title.into(), x: reference, y: others, series }
    }
}

fn sort(values: &mut Vec<f64>) {
    values.retain(|value| !value.is_nan());
    values.sort_by(f64::total_cmp);
}

/// Returns points of the distribution function of sorted values: a selection, with the first and the last value.
fn shares(values: &[f64]) -> Vec<ChartPoint> {
    let Some(last) = values.len().checked_sub(1) else { return Vec::new() };
    let step = values.len().div_ceil(POINTS).max(1);
    let mut places: Vec<usize> = (0..values.len()).step_by(step).collect();
    if places.last() != Some(&last) {
        places.push(last);
    }
    places.into_iter().map(|at| ChartPoint::new(values[at], (at + 1) as f64 / values.len() as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_rises_to_one() {
        let values: Vec<f64> = (0..10_000).rev().map(f64::from).chain([f64::NAN]).collect();
        let chart = Chart::cdf("d", "D", Axis::linear("ms"), vec![("a".into(), values), ("empty".into(), Vec::new())]);
        let points = &chart.series[0].points;
        assert!(points.len() <= POINTS + 1 && points.is_sorted_by(|a, b| a.x <= b.x && a.y <= b.y));
        assert_eq!(points.last(), Some(&ChartPoint::new(9999.0, 1.0)));
        assert!(chart.series[1].points.is_empty());
    }

    #[test]
    fn quantiles_have_the_line_of_equality() {
        let axes = (Axis::linear("simulated, ms"), Axis::linear("predicted, ms"));
        let chart = Chart::quantiles("q", "Q", axes, vec![("lcs".into(), vec![(1.0, 2.0), (3.0, 4.0)])]);
        assert_eq!(chart.series[0].points, [ChartPoint::new(1.0, 1.0), ChartPoint::new(3.0, 3.0)]);
        assert_eq!(chart.series[1].points.len(), 2);
    }
}
