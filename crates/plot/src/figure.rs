//! Figures: any kind of chart, and several of them in one drawing.
use crate::drawing::SvgFragment;
use crate::frame::{PAGE_WIDTH, PANEL_WIDTH};
use crate::{BarChart, Chart, HeatMap};
use std::fmt::Write as _;

const GAP: f64 = 24.0;

/// A drawing of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    /// Lines and dots.
    Chart(Chart),
    /// Groups of bars.
    Bars(BarChart),
    /// A table of colours.
    HeatMap(HeatMap),
    /// Several drawings in a grid.
    Panels(Panels),
}

/// Several drawings in one, row by row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Panels {
    /// Name of the figure's file, without extension.
    pub name: String,
    /// Title of the figure.
    pub title: String,
    /// Number of drawings per row; 0 counts as 1.
    pub columns: usize,
    /// Drawings, in order.
    pub figures: Vec<Figure>,
}

impl Figure {
    /// Returns the name of the figure's file, without extension.
    pub fn name(&self) -> &str {
        match self {
            Figure::Chart(chart) => &chart.name,
            Figure::Bars(bars) => &bars.name,
            Figure::HeatMap(map) => &map.name,
            Figure::Panels(panels) => &panels.name,
        }
    }

    /// Returns the figure's title.
    pub fn title(&self) -> &str {
        match self {
            Figure::Chart(chart) => &chart.title,
            Figure::Bars(bars) => &bars.title,
            Figure::HeatMap(map) => &map.title,
            Figure::Panels(panels) => &panels.title,
        }
    }

    /// Returns the figure as an SVG document.
    pub fn svg(&self) -> String {
        self.sketch(PAGE_WIDTH).document(self.title())
    }

    /// Returns the documents of which the figure consists on a page: its panels if there are several, so that they are
    /// side by side on a wide page and below each other on a narrow one.
    pub(crate) fn parts(&self) -> Vec<String> {
        match self {
            Figure::Panels(panels) => match &panels.figures[..] {
                [one] => one.parts(),
                several => several.iter().map(|figure| figure.sketch(PANEL_WIDTH).document(figure.title())).collect(),
            },
            one => vec![one.svg()],
        }
    }

    fn sketch(&self, width: f64) -> SvgFragment {
        match self {
            Figure::Chart(chart) => chart.sketch(width),
            Figure::Bars(bars) => bars.sketch(width),
            Figure::HeatMap(map) => map.sketch(width),
            Figure::Panels(panels) => panels.sketch(),
        }
    }
}

impl From<Chart> for Figure {
    fn from(chart: Chart) -> Figure {
        Figure::Chart(chart)
    }
}

impl From<BarChart> for Figure {
    fn from(bars: BarChart) -> Figure {
        Figure::Bars(bars)
    }
}

impl From<HeatMap> for Figure {
    fn from(map: HeatMap) -> Figure {
        Figure::HeatMap(map)
    }
}

impl From<Panels> for Figure {
    fn from(panels: Panels) -> Figure {
        Figure::Panels(panels)
    }
}

impl Panels {
    fn sketch(&self) -> SvgFragment {
        let sketches: Vec<SvgFragment> = self.figures.iter().map(|figure| figure.sketch(PANEL_WIDTH)).collect();
        let largest = |of: fn(&SvgFragment) -> f64| sketches.iter().map(of).fold(0.0, f64::max) + GAP;
        let (width, height) = (largest(|sketch| sketch.width), largest(|sketch| sketch.height));
        let columns = self.columns.clamp(1, sketches.len().max(1));
        let mut body = String::new();
        for (at, sketch) in sketches.iter().enumerate() {
            let (x, y) = (width * (at % columns) as f64, height * (at / columns) as f64);
            let _ = writeln!(body, "<g transform=\"translate({x:.0} {y:.0})\">\n{}</g>", sketch.body);
        }
        SvgFragment { width: width * columns as f64, height: height * sketches.len().div_ceil(columns) as f64, body }
    }
}
