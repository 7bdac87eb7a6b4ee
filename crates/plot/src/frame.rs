//! Surroundings of a chart's field: title, axes with labels, and legend.
use crate::drawing::{SvgCanvas, SvgFragment, TextAnchor};
use crate::pen::Pen;
use crate::scale::thinned;
use crate::text::{cut, widest, width};

const TOP: f64 = 42.0;
const LEGEND_ROW: f64 = 20.0;
/// Distance between the field and the legend's names, including the line sample before each name.
const LEGEND: f64 = 46.0;
const LINE_HEIGHT: f64 = 18.0;
/// Angle in degrees by which names below the field are rotated if they do not fit.
const TURN: u8 = 35;

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
    pub(crate) legend: Vec<(Pen, String)>,
    /// Note in the legend.
    pub(crate) note: Option<String>,
    /// Width and height of the field.
    pub(crate) field: (f64, f64),
}

/// Position of a chart's field in its drawing, with the surroundings drawn.
pub(crate) struct ChartFrame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
    /// Width and height of the whole drawing.
    size: (f64, f64),
    pub(crate) drawing: SvgCanvas,
}

impl ChartFrame {
    /// Draws the surroundings of a field. The field has the requested size; the rest is as large as its texts need.
    pub(crate) fn new(mut around: ChartFrameOptions<'_>) -> ChartFrame {
        let turned = around.x_names && crowded(&around.x_labels, around.field.0);
        let names = |labels: &mut Vec<(f64, String)>| labels.iter_mut().for_each(|(_, text)| *text = cut(text));
        names(&mut around.x_labels);
        names(&mut around.y_labels);
        around.legend.iter_mut().for_each(|(_, name)| *name = cut(name));
        if !around.x_names {
            around.x_labels = thinned(around.x_labels, around.field.0);
        }
        let below = widest(around.x_labels.iter().map(|(_, text)| text.as_str()));
        let (sine, cosine) = f64::from(TURN).to_radians().sin_cos();
        // Texts below the field extend to its left too: a rotated name with its whole length, another one with half
        // of it.
        let reach = below * if turned { cosine } else { 0.5 } - around.field.0 * first(&around.x_labels) + 8.0;
        let left = reach.max(32.0 + widest(around.y_labels.iter().map(|(_, text)| text.as_str())));
        let (right, bottom) = (left + around.field.0, TOP + around.field.1);
        let mut frame = ChartFrame { left, top: TOP, right, bottom, size: (0.0, 0.0), drawing: SvgCanvas::default() };
        let names_height = if turned { below * sine + LINE_HEIGHT } else { LINE_HEIGHT };
        frame.size = frame.whole(&around, below, names_height);
        frame.draw(&around, turned, names_height);
        frame
    }

    fn whole(&self, around: &ChartFrameOptions<'_>, below: f64, names_height: f64) -> (f64, f64) {
        let legend = widest(around.legend.iter().map(|(_, name)| name.as_str())).max(widest(around.note.as_deref()));
        let beside = if legend > 0.0 { LEGEND + legend } else { below / 2.0 + 8.0 };
        let title = self.left + width(around.title) * 1.15 + 8.0;
        let rows = around.legend.len() + usize::from(around.note.is_some());
        let height = (self.bottom + names_height + 24.0 + 12.0).max(self.top + 20.0 + LEGEND_ROW * rows as f64);
        let around_x = (self.left + self.right) / 2.0 + width(around.x) / 2.0;
        ((self.right + beside).max(title).max(around_x), height.max(self.top + width(around.y)))
    }

    fn draw(&mut self, around: &ChartFrameOptions<'_>, turned: bool, names_height: f64) {
        let (left, top, right, bottom) = (self.left, self.top, self.right, self.bottom);
        let drawing = &mut self.drawing;
        drawing.field((left, top), around.field);
        drawing.text((left, top - 18.0), "t", TextAnchor::Start, around.title);
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
        drawing.text(((left + right) / 2.0, bottom + names_height + 24.0), "", TextAnchor::Middle, around.x);
        drawing.turned((14.0, (top + bottom) / 2.0), 90, TextAnchor::Middle, around.y);
        self.legend(around);
    }

    fn legend(&mut self, around: &ChartFrameOptions<'_>) {
        let left = self.right + 18.0;
        let row = |place: usize| self.top + 10.0 + LEGEND_ROW * place as f64;
        for (place, (pen, name)) in around.legend.iter().enumerate() {
            self.drawing.stroke(*pen, &[(left, row(place)), (left + 22.0, row(place))]);
            self.drawing.text((left + 28.0, row(place) + 4.0), "", TextAnchor::Start, name);
        }
        if let Some(note) = &around.note {
            self.drawing.text((left, row(around.legend.len()) + 4.0), "n", TextAnchor::Start, note);
        }
    }

    /// Returns the position of a point in the field, given by coordinates from 0 to 1.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + x * (self.right - self.left), self.bottom - y * (self.bottom - self.top))
    }

    pub(crate) fn sketch(self) -> SvgFragment {
        SvgFragment { width: self.size.0, height: self.size.1, body: self.drawing.body }
    }
}

fn first(labels: &[(f64, String)]) -> f64 {
    labels.first().map_or(0.0, |(place, _)| *place)
}

/// Returns true if texts side by side would overlap.
fn crowded(labels: &[(f64, String)], length: f64) -> bool {
    let widths = labels
        .windows(2)
        .any(|pair| (width(&pair[0].1) + width(&pair[1].1)) / 2.0 + 6.0 > (pair[1].0 - pair[0].0) * length);
    widths || labels.iter().any(|(_, text)| width(text) > length)
}
