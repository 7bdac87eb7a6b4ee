//! Charts of lines and dots over two axes.
use crate::drawing::SvgFragment;
use crate::frame::{ChartFrame, ChartFrameOptions};
use crate::pen::Pen;
use crate::scale::{AxisScale, ScaledAxis};
use crate::text::number;

/// Size of the field between the axes.
const FIELD: (f64, f64) = (500.0, 305.0);

/// A chart of lines and dots over two axes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    /// Name of the chart's file, without extension.
    pub name: String,
    /// Title of the chart.
    pub title: String,
    /// Horizontal axis of the chart.
    pub x: Axis,
    /// Vertical axis of the chart.
    pub y: Axis,
    /// Lines of the chart.
    pub series: Vec<ChartSeries>,
}

/// An axis of a chart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// Quantity shown, with its unit.
    pub label: String,
    /// Linear or logarithmic scale.
    pub scale: AxisScale,
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChartSeries {
    /// Name of the line.
    pub name: String,
    /// Points of the line, in order.
    pub points: Vec<ChartPoint>,
    /// Style in which the points are drawn.
    pub look: LineStyle,
    /// Pen of the line; `None`: that of its name, or a free one.
    pub pen: Option<Pen>,
}

/// Style in which the points of a line are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineStyle {
    /// Dots joined by lines; intervals as bars.
    #[default]
    Line,
    /// Lines without dots; intervals as a band.
    Curve,
    /// Lines that rise in steps.
    Steps,
    /// Dots alone; intervals as bars.
    Dots,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChartPoint {
    /// Horizontal coordinate of the point.
    pub x: f64,
    /// Vertical coordinate of the point.
    pub y: f64,
    /// Confidence interval of `y`: low end, high end.
    pub interval: Option<[f64; 2]>,
}

impl ChartPoint {
    /// Returns a point without an interval.
    pub fn new(x: f64, y: f64) -> ChartPoint {
        ChartPoint { x, y, interval: None }
    }

    /// Returns the interval, if there is one and it is not empty.
    fn ends(&self) -> Option<[f64; 2]> {
        self.interval.filter(|[low, high]| low <= high)
    }

    /// Returns a point with an interval of half width `half`; `None`: no interval.
    pub fn within(x: f64, y: f64, half: Option<f64>) -> ChartPoint {
        ChartPoint { x, y, interval: half.map(|half| [y - half, y + half]) }
    }
}

impl Axis {
    /// Returns an axis with a linear scale.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: AxisScale::Linear }
    }

    /// Returns an axis with a logarithmic scale.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: AxisScale::Log }
    }
}

impl ChartSeries {
    /// Returns a line with dots.
    pub fn line(name: impl Into<String>, points: Vec<ChartPoint>) -> ChartSeries {
        ChartSeries { name: name.into(), points, ..ChartSeries::default() }
    }

    /// Returns a line with another style.
    pub fn looking(name: impl Into<String>, look: LineStyle, points: Vec<ChartPoint>) -> ChartSeries {
        ChartSeries { name: name.into(), points, look, pen: None }
    }
}

impl Chart {
    /// Returns the chart as an SVG document.
    pub fn svg(&self) -> String {
        self.sketch().document(&self.title)
    }

    pub(crate) fn sketch(&self) -> SvgFragment {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = ScaledAxis::of_few(self.x.scale, points().map(|point| point.x));
        // A point that is not shown does not extend the vertical axis.
        let shown = points().filter(|point| x.takes(point.x));
        let y = ScaledAxis::over(
            self.y.scale,
            shown
                .flat_map(|point| [Some(point.y), point.ends().map(|ends| ends[0]), point.ends().map(|ends| ends[1])])
                .flatten(),
        );
        let pens = Pen::all(self.series.iter().map(|series| (series.name.as_str(), series.pen)));
        let left_out = points().filter(|point| !(x.takes(point.x) && y.takes(point.y))).count();
        let mut frame = ChartFrame::new(ChartFrameOptions {
            title: &self.title,
            x: &self.x.label,
            y: &self.y.label,
            x_labels: x.labels(),
            y_labels: y.labels(),
            grid: [true, true],
            legend: pens.iter().zip(&self.series).map(|(pen, series)| (*pen, series.name.clone())).collect(),
            note: (left_out > 0).then(|| format!("{left_out} without a value here")),
            field: FIELD,
            ..ChartFrameOptions::default()
        });
        for (series, pen) in self.series.iter().zip(pens) {
            SeriesRenderer { series, pen, x: &x, y: &y }.draw(&mut frame);
        }
        frame.sketch()
    }
}

/// A line with the parameters to draw it.
struct SeriesRenderer<'a> {
    series: &'a ChartSeries,
    pen: Pen,
    x: &'a ScaledAxis,
    y: &'a ScaledAxis,
}

impl SeriesRenderer<'_> {
    fn takes(&self, point: &ChartPoint) -> bool {
        self.x.takes(point.x) && self.y.takes(point.y)
    }

    fn draw(&self, frame: &mut ChartFrame) {
        // A point that cannot be drawn interrupts the line.
        for run in self.series.points.split(|point| !self.takes(point)) {
            let corners: Vec<(f64, f64)> = run.iter().map(|point| self.at(frame, point.x, point.y)).collect();
            match self.series.look {
                LineStyle::Line => frame.drawing.stroke(self.pen, &corners),
                LineStyle::Curve => {
                    self.band(frame, run);
                    frame.drawing.stroke(self.pen, &corners);
                }
                LineStyle::Steps => frame.drawing.stroke(self.pen, &steps(&corners)),
                LineStyle::Dots => {}
            }
        }
        if matches!(self.series.look, LineStyle::Line | LineStyle::Dots) {
            self.series.points.iter().filter(|point| self.takes(point)).for_each(|point| self.dot(frame, point));
        }
    }

    fn at(&self, frame: &ChartFrame, x: f64, y: f64) -> (f64, f64) {
        frame.at(self.x.place(x), self.y.place(y))
    }

    fn dot(&self, frame: &mut ChartFrame, point: &ChartPoint) {
        let mut says = format!("{}: {}, {}", self.series.name, number(point.x), number(point.y));
        if let Some([low, high]) = point.ends() {
            let (x, low_y) = self.at(frame, point.x, low);
            let (_, high_y) = self.at(frame, point.x, high);
            frame.drawing.interval(self.pen, x, low_y, high_y);
            says += &format!(" ({} to {})", number(low), number(high));
        }
        let at = self.at(frame, point.x, point.y);
        frame.drawing.dot(self.pen, at, &says);
    }

    fn band(&self, frame: &mut ChartFrame, run: &[ChartPoint]) {
        let ends: Vec<(f64, [f64; 2])> = run.iter().filter_map(|point| Some((point.x, point.ends()?))).collect();
        if ends.len() < 2 {
            return;
        }
        let above = ends.iter().map(|(x, [_, high])| self.at(frame, *x, *high));
        let below = ends.iter().rev().map(|(x, [low, _])| self.at(frame, *x, *low));
        let corners: Vec<(f64, f64)> = above.chain(below).collect();
        frame.drawing.area(self.pen, &corners);
    }
}

/// Returns the corners of a line that stays level until the next point, then rises.
fn steps(corners: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut stairs: Vec<(f64, f64)> = Vec::with_capacity(2 * corners.len());
    for corner in corners {
        if let Some((_, y)) = stairs.last() {
            stairs.push((corner.0, *y));
        }
        stairs.push(*corner);
    }
    stairs
}
