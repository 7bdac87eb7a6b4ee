//! Surroundings of a chart's field: title, legend, axes with labels, and notes. The drawing has a fixed width, and
//! grows in height with its texts.
use crate::drawing::{SvgCanvas, SvgFragment, TextAnchor};
use crate::pen::{Pen, PointMarker};
use crate::scale::thinned;
use crate::text::{cut, cut_to, widest, width, wrapped};

/// Width of a drawing that fills a page, in units of the drawing.
pub(crate) const PAGE_WIDTH: f64 = 720.0;
/// Width of a drawing beside another one.
pub(crate) const PANEL_WIDTH: f64 = 480.0;
const LINE_HEIGHT: f64 = 18.0;
/// Height of a line of the title.
const TITLE_LINE: f64 = 21.0;
/// Ratio of the widths of letters in the title and elsewhere.
const TITLE_LETTERS: f64 = 1.2;
const LEGEND_ROW: f64 = 20.0;
/// Width of the sample before a name in the legend, with the space after it.
const SAMPLE: f64 = 36.0;
/// Space between names in the legend.
const BETWEEN: f64 = 18.0;
/// Space between the edge of the drawing and its texts.
const EDGE: f64 = 8.0;
/// Maximum share of the width that names beside the field take.
const BESIDE: f64 = 0.4;
/// Angle in degrees by which names below the field are rotated if they do not fit.
const TURN: u8 = 35;

/// An entry of a legend.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LegendEntry {
    pub(crate) pen: Pen,
    pub(crate) sample: LegendSample,
    pub(crate) name: String,
}

/// Sample before a name in a legend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LegendSample {
    /// A line with a marker.
    Line(PointMarker),
    /// A marker alone.
    Marker(PointMarker),
    /// A piece of a bar.
    Block,
}

/// Texts and options of a chart's surroundings.
#[derive(Debug, Default)]
pub(crate) struct ChartFrameOptions<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    /// Labels of the horizontal axis with their positions from 0 to 1.
    pub(crate) x_labels: Vec<(f64, String)>,
    pub(crate) y_labels: Vec<(f64, String)>,
    /// True if the labels are names, which are all written and rotated if necessary. Numbers that do not fit are
    /// omitted.
    pub(crate) x_names: bool,
    /// True if grid lines cross the field at the labels: of the horizontal axis, of the vertical axis.
    pub(crate) grid: [bool; 2],
    pub(crate) legend: Vec<LegendEntry>,
    /// Notes below the legend.
    pub(crate) notes: Vec<String>,
    /// Width of the whole drawing.
    pub(crate) width: f64,
    /// Height of the field.
    pub(crate) height: f64,
    /// Maximum width of the field; 0: no maximum.
    pub(crate) most: f64,
    /// Height of the space below the axes, for the chart's own use.
    pub(crate) below: f64,
}

/// Position of a chart's field in its drawing, with the surroundings drawn.
pub(crate) struct ChartFrame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
    /// Width and height of the whole drawing.
    pub(crate) size: (f64, f64),
    pub(crate) drawing: SvgCanvas,
}

impl ChartFrame {
    /// Draws the surroundings of a field. The field takes the width that its surroundings leave.
    pub(crate) fn new(mut around: ChartFrameOptions<'_>) -> ChartFrame {
        let beside = around.width * BESIDE;
        around.y_labels.iter_mut().for_each(|(_, text)| *text = cut_to(text, beside - 16.0));
        around.x_labels.iter_mut().for_each(|(_, text)| *text = cut(text));
        let half = |label: Option<&(f64, String)>| label.map_or(0.0, |(_, text)| width(text) / 2.0 + EDGE);
        let written = 16.0 + widest(around.y_labels.iter().map(|(_, text)| text.as_str()));
        let mut left = written.max(half(around.x_labels.first()));
        let mut right = (around.width - half(around.x_labels.last()).max(16.0)).max(left + 1.0);
        let turned = around.x_names && crowded(&around.x_labels, right - left);
        let (sine, cosine) = f64::from(TURN).to_radians().sin_cos();
        if turned {
            around.x_labels.iter_mut().for_each(|(_, text)| *text = cut_to(text, beside));
            // The first rotated name extends to the left of the field.
            left = written.max(widest(around.x_labels.iter().map(|(_, text)| text.as_str())) * cosine + EDGE);
            right = around.width - 16.0;
        }
        if around.most > 0.0 {
            right = right.min(left + around.most);
        }
        if !around.x_names {
            around.x_labels = thinned(around.x_labels, right - left);
        }
        let mut frame =
            ChartFrame { left, top: 0.0, right, bottom: 0.0, size: (around.width, 0.0), drawing: SvgCanvas::default() };
        frame.above(&around);
        frame.bottom = frame.top + around.height;
        let names = widest(around.x_labels.iter().map(|(_, text)| text.as_str()));
        frame.axes(&around, turned, if turned { names * sine + LINE_HEIGHT } else { LINE_HEIGHT });
        frame
    }

    /// Draws title, legend, notes and the label of the vertical axis; the field begins below them.
    fn above(&mut self, around: &ChartFrameOptions<'_>) {
        let room = around.width - 2.0 * EDGE;
        let mut y = 4.0;
        for line in wrapped(around.title, room / TITLE_LETTERS) {
            y += TITLE_LINE;
            self.drawing.text((EDGE, y - 4.0), "t", TextAnchor::Start, &line);
        }
        y = self.legend(around, y, room);
        for line in around.notes.iter().flat_map(|note| wrapped(note, room)) {
            y += LINE_HEIGHT;
            self.drawing.text((EDGE, y - 3.0), "n", TextAnchor::Start, &line);
        }
        y += 4.0;
        for line in wrapped(around.y, room) {
            y += LINE_HEIGHT;
            self.drawing.text((EDGE, y - 4.0), "y", TextAnchor::Start, &line);
        }
        self.top = y + 10.0;
    }

    /// Draws the legend in rows below `y`. Returns where it ends.
    fn legend(&mut self, around: &ChartFrameOptions<'_>, y: f64, room: f64) -> f64 {
        let (mut x, mut y) = (f64::INFINITY, y);
        for entry in &around.legend {
            let name = cut_to(&entry.name, room - SAMPLE);
            if x + SAMPLE + width(&name) > EDGE + room {
                (x, y) = (EDGE, y + LEGEND_ROW);
            }
            let (at, middle) = (y - 5.0, x + 14.0);
            match entry.sample {
                LegendSample::Line(marker) => {
                    self.drawing.stroke(entry.pen, &[(x, at - 3.0), (x + 28.0, at - 3.0)]);
                    self.drawing.sample(entry.pen, marker, (middle, at - 3.0));
                }
                LegendSample::Marker(marker) => self.drawing.sample(entry.pen, marker, (middle, at - 3.0)),
                LegendSample::Block => self.drawing.swatch(entry.pen, (x + 8.0, at - 9.0), (14.0, 12.0)),
            }
            self.drawing.text((x + SAMPLE, at + 1.0), "l", TextAnchor::Start, &name);
            x += SAMPLE + width(&name) + BETWEEN;
        }
        y
    }

    /// Draws the field, its axes and the labels below; the drawing ends below them.
    fn axes(&mut self, around: &ChartFrameOptions<'_>, turned: bool, names_height: f64) {
        let (left, top, right, bottom) = (self.left, self.top, self.right, self.bottom);
        let drawing = &mut self.drawing;
        drawing.field((left, top), (right - left, bottom - top));
        for (place, label) in &around.x_labels {
            let at = left + place * (right - left);
            if around.grid[0] {
                drawing.line("g", (at, top), (at, bottom));
            }
            if turned {
                drawing.turned((at + 4.0, bottom + 16.0), TURN, TextAnchor::End, label);
            } else if !label.is_empty() {
                drawing.text((at, bottom + LINE_HEIGHT), "", TextAnchor::Middle, label);
            }
        }
        for (place, label) in &around.y_labels {
            let at = bottom - place * (bottom - top);
            if around.grid[1] {
                drawing.line("g", (left, at), (right, at));
            }
            drawing.text((left - 8.0, at + 4.0), "", TextAnchor::End, label);
        }
        drawing.line("a", (left, bottom), (right, bottom));
        drawing.line("a", (left, top), (left, bottom));
        let mut y = bottom + names_height + 4.0;
        for line in wrapped(around.x, around.width - 2.0 * EDGE) {
            y += LINE_HEIGHT;
            // A label that is wider than the field is moved until it is inside the drawing.
            let half = width(&line) / 2.0 + EDGE;
            let middle = f64::midpoint(left, right).min(around.width - half).max(half);
            drawing.text((middle, y), "x", TextAnchor::Middle, &line);
        }
        self.size.1 = y + 12.0 + around.below;
    }

    /// Returns the position of a point in the field, given by coordinates from 0 to 1.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + x * (self.right - self.left), self.bottom - y * (self.bottom - self.top))
    }

    pub(crate) fn sketch(self) -> SvgFragment {
        SvgFragment { width: self.size.0, height: self.size.1, body: self.drawing.body }
    }
}

/// Returns true if texts side by side would overlap.
fn crowded(labels: &[(f64, String)], length: f64) -> bool {
    let widths = labels
        .windows(2)
        .any(|pair| (width(&pair[0].1) + width(&pair[1].1)) / 2.0 + 6.0 > (pair[1].0 - pair[0].0) * length);
    widths || labels.iter().any(|(_, text)| width(text) > length)
}
