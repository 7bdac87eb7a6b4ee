//! A drawing under construction: SVG elements in sequence.
use crate::pen::{Pen, PointMarker, style};
use crate::text::escape;
use std::fmt::Write as _;

/// Style of a drawing. It follows the reader's choice of light or dark, alone in a file as on a page.
const STYLE: &str = ":root{color-scheme:light dark}text{font:13px system-ui,sans-serif;fill:#222}.t{font-weight:600;font-size:15px}.n{fill:#666}.y,.x{font-style:italic}.g{stroke:#ddd}\
    .a{stroke:#555}.f{fill:none}.on{fill:#111}.off{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}.n{fill:#aaa}.g{stroke:#444}\
    .a{stroke:#aaa}.on{fill:#111}.off{fill:#fff}}";

/// Radius of a marker.
pub(crate) const MARKER: f64 = 3.5;
/// Length of a piece of a line that is drawn in turn with others.
const TURN_LENGTH: usize = 9;

/// Alignment of a text relative to its position.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TextAnchor {
    Start,
    Middle,
    End,
}

impl TextAnchor {
    fn word(self) -> &'static str {
        match self {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        }
    }
}

/// A finished drawing, not yet a document.
#[derive(Debug, Clone)]
pub(crate) struct SvgFragment {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) body: String,
}

impl SvgFragment {
    /// Returns the drawing as an SVG document, which is as wide as the page around it.
    pub(crate) fn document(&self, title: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" width=\"100%\" role=\"img\">\
             <title>{}</title><style>{STYLE}{}</style>\n{}</svg>\n",
            self.width.ceil(),
            self.height.ceil(),
            escape(title),
            style(),
            self.body
        )
    }
}

/// SVG elements written so far.
#[derive(Debug, Default)]
pub(crate) struct SvgCanvas {
    pub(crate) body: String,
}

impl SvgCanvas {
    /// Draws a straight line of a CSS class.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ =
            writeln!(self.body, "<path class=\"{class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>", from.0, from.1, to.0, to.1);
    }

    /// Draws text of a CSS class; the position is that of its base line.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), class: &str, anchor: TextAnchor, text: &str) {
        let (anchor, text) = (anchor.word(), escape(text));
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = writeln!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\"{class} text-anchor=\"{anchor}\">{text}</text>");
    }

    /// Draws text rotated counterclockwise by an angle.
    pub(crate) fn turned(&mut self, (x, y): (f64, f64), degrees: u8, anchor: TextAnchor, text: &str) {
        let (anchor, text) = (anchor.word(), escape(text));
        let _ = writeln!(
            self.body,
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-{degrees})\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// Draws a line through corners with a pen; draws nothing for fewer than two corners.
    pub(crate) fn stroke(&mut self, pen: Pen, corners: &[(f64, f64)]) {
        self.dashed(pen, &pen.dashes(), corners);
    }

    /// Draws the pieces that belong to line `turn` of `of` lines that coincide, which are drawn in turns.
    pub(crate) fn stroke_in_turn(&mut self, pen: Pen, (turn, of): (usize, usize), corners: &[(f64, f64)]) {
        let (gap, start) = (TURN_LENGTH * of.saturating_sub(1), TURN_LENGTH * turn);
        let dashes = format!(" stroke-dasharray=\"{TURN_LENGTH} {gap}\" stroke-dashoffset=\"-{start}\"");
        self.dashed(pen, &dashes, corners);
    }

    fn dashed(&mut self, pen: Pen, dashes: &str, corners: &[(f64, f64)]) {
        if corners.len() < 2 {
            return;
        }
        let (class, path) = (pen.class(), path(corners));
        let _ = writeln!(
            self.body,
            "<path class=\"{class}\" d=\"{path}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"{dashes}/>"
        );
    }

    /// Fills a translucent area in a pen's colour.
    pub(crate) fn area(&mut self, pen: Pen, corners: &[(f64, f64)]) {
        let (class, path) = (pen.class(), path(corners));
        let _ =
            writeln!(self.body, "<path class=\"{class}\" d=\"{path}Z\" fill=\"currentColor\" fill-opacity=\".18\"/>");
    }

    /// Draws a marker of a given radius with a tooltip.
    pub(crate) fn dot(&mut self, pen: Pen, marker: PointMarker, (x, y): (f64, f64), radius: f64, says: &str) {
        let (class, says) = (pen.class(), escape(says));
        let shape = match marker {
            PointMarker::Circle => format!("circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\""),
            _ => format!("path class=\"{class} m\" d=\"{}\"", marker.path((x, y), radius)),
        };
        let name = shape.split(' ').next().unwrap_or_default();
        let _ = writeln!(self.body, "<{shape} fill=\"currentColor\"><title>{says}</title></{name}>");
    }

    /// Draws the marker of a legend.
    pub(crate) fn sample(&mut self, pen: Pen, marker: PointMarker, at: (f64, f64)) {
        let (class, path) = (pen.class(), marker.path(at, MARKER));
        let _ = writeln!(self.body, "<path class=\"{class} s\" d=\"{path}\" fill=\"currentColor\"/>");
    }

    /// Draws the piece of a bar of a legend.
    pub(crate) fn swatch(&mut self, pen: Pen, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let class = pen.class();
        let _ = writeln!(
            self.body,
            "<path class=\"{class} s\" d=\"M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}Z\" fill=\"currentColor\"/>"
        );
    }

    /// Draws an error bar from `low` to `high`.
    pub(crate) fn interval(&mut self, pen: Pen, x: f64, low: f64, high: f64) {
        let class = pen.class();
        let _ = writeln!(
            self.body,
            "<path class=\"{class}\" d=\"M{:.1} {low:.1}h6m-3 0V{high:.1}m-3 0h6\" fill=\"none\" stroke=\"currentColor\"/>",
            x - 3.0
        );
    }

    /// Draws a filled rectangle with a tooltip.
    pub(crate) fn block(&mut self, paint: FillColour<'_>, corner: (f64, f64), size: (f64, f64), says: &str) {
        let paint = match paint {
            FillColour::Pen(pen) => format!("class=\"{}\" fill=\"currentColor\"", pen.class()),
            FillColour::Colour(colour) => format!("fill=\"{colour}\""),
        };
        let (x, y, width, height) = (corner.0, corner.1, size.0.max(0.0), size.1.max(0.0));
        let says = escape(says);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {paint}><title>{says}</title></rect>"
        );
    }

    /// Draws the empty field of the chart, as an element that tests can find in the document.
    pub(crate) fn field(&mut self, corner: (f64, f64), size: (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<rect class=\"f\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            corner.0, corner.1, size.0, size.1
        );
    }
}

/// Fill of a rectangle: a pen's colour or any colour.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FillColour<'a> {
    Pen(Pen),
    Colour(&'a str),
}

fn path(corners: &[(f64, f64)]) -> String {
    let mut path = String::with_capacity(corners.len() * 12);
    for (at, (x, y)) in corners.iter().enumerate() {
        let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
    }
    path
}
