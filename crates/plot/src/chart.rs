//! Charts of lines and dots over two axes.
use crate::drawing::{MARKER, SvgFragment};
use crate::frame::{ChartFrame, ChartFrameOptions, LegendEntry, LegendSample, PAGE_WIDTH};
use crate::pen::{Pen, PointMarker};
use crate::scale::{AxisScale, ScaledAxis};
use crate::text::number;

/// Height of the field between the axes.
const HEIGHT: f64 = 305.0;
/// Number of markers on a line without dots.
const SPARSE: usize = 4;
/// Distance up to which lines coincide, in units of the drawing: a little more than a line's width.
const COINCIDENT: f64 = 2.5;
/// Maximum number of letters of a value that is labelled itself.
const SHORT: usize = 6;

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
        self.sketch(PAGE_WIDTH).document(&self.title)
    }

    pub(crate) fn sketch(&self, width: f64) -> SvgFragment {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = self.horizontal();
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
        let turns = self.turns(&x, &y, width);
        let mut notes = self.coincidences(&turns);
        if left_out > 0 {
            notes.push(format!("{left_out} without a value here"));
        }
        let entry = |((at, series), pen): ((usize, &ChartSeries), &Pen)| {
            let marker = PointMarker::place(at);
            let sample = match series.look {
                LineStyle::Dots => LegendSample::Marker(marker),
                _ => LegendSample::Line(marker),
            };
            LegendEntry { pen: *pen, sample, name: series.name.clone() }
        };
        let mut frame = ChartFrame::new(ChartFrameOptions {
            title: &self.title,
            x: &self.x.label,
            y: &self.y.label,
            x_labels: x.labels(),
            y_labels: y.labels(),
            grid: [true, true],
            legend: self.series.iter().enumerate().zip(&pens).map(entry).collect(),
            notes,
            width,
            height: HEIGHT,
            ..ChartFrameOptions::default()
        });
        for (at, (series, pen)) in self.series.iter().zip(pens).enumerate() {
            SeriesRenderer { series, pen, at, turn: turns[at], x: &x, y: &y }.draw(&mut frame);
        }
        frame.sketch()
    }

    /// Returns the horizontal axis. It is labelled with the values themselves if they were chosen (few, and short).
    fn horizontal(&self) -> ScaledAxis {
        let points = self.series.iter().flat_map(|series| &series.points).map(|point| point.x);
        let dots = self.series.iter().any(|series| matches!(series.look, LineStyle::Line | LineStyle::Dots));
        let short = |x: f64| !self.x.scale.takes(x) || number(x).len() <= SHORT;
        if dots && points.clone().all(short) {
            ScaledAxis::of_few(self.x.scale, points)
        } else {
            ScaledAxis::over(self.x.scale, points)
        }
    }

    /// Returns, for each line, its turn among the lines that coincide with it, and their number.
    fn turns(&self, x: &ScaledAxis, y: &ScaledAxis, width: f64) -> Vec<LineTurn> {
        let place = |point: &ChartPoint| (x.place(point.x) * width, y.place(point.y) * HEIGHT);
        let drawn = |series: &ChartSeries| -> Vec<(f64, f64)> {
            series.points.iter().filter(|point| x.takes(point.x) && y.takes(point.y)).map(place).collect()
        };
        let lines: Vec<Vec<(f64, f64)>> = self.series.iter().map(drawn).collect();
        let near = |a: &(f64, f64), b: &(f64, f64)| (a.0 - b.0).abs().max((a.1 - b.1).abs()) <= COINCIDENT;
        let alike = |a: &[(f64, f64)], b: &[(f64, f64)]| {
            !a.is_empty() && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b))
        };
        let mut leaders: Vec<usize> = Vec::with_capacity(lines.len());
        for (at, line) in lines.iter().enumerate() {
            let leader = (0..at).find(|other| leaders[*other] == *other && alike(&lines[*other], line));
            leaders.push(leader.unwrap_or(at));
        }
        let turn = |(at, leader): (usize, &usize)| LineTurn {
            leader: *leader,
            turn: leaders[..at].iter().filter(|other| *other == leader).count(),
            of: leaders.iter().filter(|other| *other == leader).count(),
        };
        leaders.iter().enumerate().map(turn).collect()
    }

    /// Returns a note for each group of lines that coincide.
    fn coincidences(&self, turns: &[LineTurn]) -> Vec<String> {
        let group = |(leader, first): (usize, &LineTurn)| {
            let same = turns.iter().zip(&self.series).filter(|(turn, _)| turn.leader == leader);
            let names: Vec<&str> = same.map(|(_, series)| series.name.as_str()).collect();
            (first.leader == leader && first.of > 1).then(|| format!("Coincide, drawn in turns: {}", names.join("; ")))
        };
        turns.iter().enumerate().filter_map(group).collect()
    }
}

/// Turn of a line among lines that coincide, which are drawn piece by piece in turns.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LineTurn {
    /// Index of the first of these lines.
    leader: usize,
    /// Index of the line among them.
    turn: usize,
    /// Number of these lines.
    of: usize,
}

/// A line with the parameters to draw it.
struct SeriesRenderer<'a> {
    series: &'a ChartSeries,
    pen: Pen,
    /// Index of the line in its chart.
    at: usize,
    turn: LineTurn,
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
            let corners: Vec<(f64, f64)> = run.iter().map(|point| self.place(frame, point.x, point.y)).collect();
            match self.series.look {
                LineStyle::Line => self.stroke(frame, &corners),
                LineStyle::Curve => {
                    self.band(frame, run);
                    self.stroke(frame, &corners);
                }
                LineStyle::Steps => self.stroke(frame, &steps(&corners)),
                LineStyle::Dots => {}
            }
        }
        let taken: Vec<&ChartPoint> = self.series.points.iter().filter(|point| self.takes(point)).collect();
        if matches!(self.series.look, LineStyle::Line | LineStyle::Dots) {
            // Markers at one place lie on each other, the largest at the bottom.
            let beneath = self.turn.of.saturating_sub(self.turn.turn + 1);
            let radius = MARKER + 1.8 * beneath as f64;
            taken.iter().for_each(|point| self.dot(frame, point, radius));
        } else {
            // Markers of other lines lie elsewhere.
            let step = (taken.len() / SPARSE).max(1);
            let start = (step / 2 + self.at * step / 7) % step;
            taken.iter().skip(start).step_by(step).for_each(|point| self.marker(frame, point, MARKER, ""));
        }
    }

    fn stroke(&self, frame: &mut ChartFrame, corners: &[(f64, f64)]) {
        if self.turn.of > 1 {
            frame.drawing.stroke_in_turn(self.pen, (self.turn.turn, self.turn.of), corners);
        } else {
            frame.drawing.stroke(self.pen, corners);
        }
    }

    fn marker(&self, frame: &mut ChartFrame, point: &ChartPoint, radius: f64, interval: &str) {
        let says = format!("{}: {}, {}{interval}", self.series.name, number(point.x), number(point.y));
        let at = self.place(frame, point.x, point.y);
        frame.drawing.dot(self.pen, PointMarker::place(self.at), at, radius, &says);
    }

    fn place(&self, frame: &ChartFrame, x: f64, y: f64) -> (f64, f64) {
        frame.at(self.x.place(x), self.y.place(y))
    }

    fn dot(&self, frame: &mut ChartFrame, point: &ChartPoint, radius: f64) {
        let mut interval = String::new();
        if let Some([low, high]) = point.ends() {
            let (x, low_y) = self.place(frame, point.x, low);
            let (_, high_y) = self.place(frame, point.x, high);
            frame.drawing.interval(self.pen, x, low_y, high_y);
            interval = format!(" ({} to {})", number(low), number(high));
        }
        self.marker(frame, point, radius, &interval);
    }

    fn band(&self, frame: &mut ChartFrame, run: &[ChartPoint]) {
        let ends: Vec<(f64, [f64; 2])> = run.iter().filter_map(|point| Some((point.x, point.ends()?))).collect();
        if ends.len() < 2 {
            return;
        }
        let above = ends.iter().map(|(x, [_, high])| self.place(frame, *x, *high));
        let below = ends.iter().rev().map(|(x, [low, _])| self.place(frame, *x, *low));
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
