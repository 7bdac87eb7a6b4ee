//! Bar charts: groups of bars side by side.
use crate::chart::Axis;
use crate::drawing::{FillColour, SvgFragment};
use crate::frame::{ChartFrame, ChartFrameOptions, LegendEntry, LegendSample, PAGE_WIDTH};
use crate::pen::Pen;
use crate::scale::{AxisScale, ScaledAxis};
use crate::text::number;

const HEIGHT: f64 = 305.0;
/// Maximum width of a bar.
const BAR: f64 = 44.0;
/// Share of a group's width that its bars take.
const FULL: f64 = 0.8;

/// A chart of grouped bars.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BarChart {
    /// Name of the chart's file, without extension.
    pub name: String,
    /// Title of the chart.
    pub title: String,
    /// Label of the horizontal axis: what the groups are.
    pub x: String,
    /// Vertical axis of the chart.
    pub y: Axis,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Series by name, each with one bar per group, in the order of the groups; `None` where there is no value.
    pub series: Vec<(String, Vec<Option<Bar>>)>,
}

/// A bar of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bar {
    /// Height of the bar, in units of the axis.
    pub value: f64,
    /// Confidence interval of the value: low end, high end.
    pub interval: Option<[f64; 2]>,
}

impl BarChart {
    /// Returns the chart as an SVG document.
    pub fn svg(&self) -> String {
        self.sketch(PAGE_WIDTH).document(&self.title)
    }

    pub(crate) fn sketch(&self, width: f64) -> SvgFragment {
        let bars = || self.series.iter().flat_map(|(_, bars)| bars.iter().take(self.groups.len()));
        let values = bars()
            .flatten()
            .flat_map(|bar| [Some(bar.value), bar.interval.map(|ends| ends[0]), bar.interval.map(|ends| ends[1])]);
        // Bars start at zero on a linear axis.
        let floor = (self.y.scale == AxisScale::Linear).then_some(0.0);
        let y = ScaledAxis::over(self.y.scale, values.flatten().chain(floor));
        let pens = Pen::all(self.series.iter().map(|(name, _)| (name.as_str(), None)));
        let count = self.groups.len().max(1) as f64;
        let left_out = bars().filter(|bar| bar.is_none_or(|bar| !y.takes(bar.value))).count();
        let place = |at: usize| (at as f64 + 0.5) / count;
        let entry = |(pen, (name, _)): (&Pen, &(String, Vec<Option<Bar>>))| LegendEntry {
            pen: *pen,
            sample: LegendSample::Block,
            name: name.clone(),
        };
        let mut frame = ChartFrame::new(ChartFrameOptions {
            title: &self.title,
            x: &self.x,
            y: &self.y.label,
            x_labels: self.groups.iter().enumerate().map(|(at, name)| (place(at), name.clone())).collect(),
            y_labels: y.labels(),
            x_names: true,
            grid: [false, true],
            // Bars of one kind need no legend: title and axis say what they are.
            legend: if pens.len() > 1 { pens.iter().zip(&self.series).map(entry).collect() } else { Vec::new() },
            notes: (left_out > 0).then(|| format!("{left_out} without a value")).into_iter().collect(),
            width,
            height: HEIGHT,
            ..ChartFrameOptions::default()
        });
        let kinds = self.series.len().max(1) as f64;
        let width = (FULL / count / kinds).min(BAR / (frame.right - frame.left));
        for (row, ((name, bars), pen)) in self.series.iter().zip(&pens).enumerate() {
            for (at, (group, bar)) in self.groups.iter().zip(bars).enumerate() {
                let Some(bar) = bar.filter(|bar| y.takes(bar.value)) else { continue };
                let left = place(at) - width * kinds / 2.0 + width * row as f64;
                draw(&mut frame, &y, *pen, (left, width), bar, &format!("{group}, {name}"));
            }
        }
        frame.sketch()
    }
}

fn draw(frame: &mut ChartFrame, y: &ScaledAxis, pen: Pen, (left, width): (f64, f64), bar: Bar, name: &str) {
    let floor = if y.takes(0.0) { y.place(0.0) } else { 0.0 };
    let top = y.place(bar.value);
    let (from, to) = (frame.at(left, floor.max(top)), frame.at(left + width, floor.min(top)));
    // A bar of height zero stays visible.
    let size = ((to.0 - from.0) * 0.9, (to.1 - from.1).max(1.0));
    frame.drawing.block(FillColour::Pen(pen), from, size, &format!("{name}: {}", number(bar.value)));
    if let Some([low, high]) = bar.interval.filter(|[low, high]| low <= high) {
        let x = from.0 + size.0 / 2.0;
        let (_, low) = frame.at(0.0, y.place(low));
        let (_, high) = frame.at(0.0, y.place(high));
        frame.drawing.interval(Pen::INK, x, low, high);
    }
}
