//! Heat maps: tables of values shown as colours.
use crate::drawing::{FillColour, SvgFragment, TextAnchor};
use crate::frame::{ChartFrame, ChartFrameOptions, PAGE_WIDTH};
use crate::text::{number, short, width};

/// Height of a cell.
const CELL: f64 = 26.0;
/// Maximum width of a cell.
const MOST_CELL: f64 = 140.0;
/// Share of the range over which colours change as fast as values; beyond, they change with the logarithm, so that
/// small values differ too beside large ones.
const LINEAR: f64 = 0.02;
/// Height of the colour key below the map.
const KEY: f64 = 42.0;
/// Number of steps of the colour key.
const KEY_STEPS: u32 = 60;
/// Colour map from low to high values: readable in grey and with colour vision deficiency (after "cividis" of Nuñez,
/// Anderton and Renslow, 2018).
const COLOURS: [[f64; 3]; 5] =
    [[0.0, 34.0, 78.0], [65.0, 77.0, 107.0], [124.0, 123.0, 120.0], [188.0, 175.0, 111.0], [254.0, 232.0, 56.0]];
/// Brightness above which a colour gets dark text.
const BRIGHT: f64 = 125.0;

/// A table of values shown as colours, such as errors of models by rate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeatMap {
    /// Name of the map's file, without extension.
    pub name: String,
    /// Title of the map, with the unit of its values.
    pub title: String,
    /// Label of the columns.
    pub x: String,
    /// Label of the rows.
    pub y: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, from the top: name, and one value per column; `None` where there is no value.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// Value of the last colour, which larger values get too, if there are any; `None`: the largest value.
    pub most: Option<f64>,
}

impl HeatMap {
    /// Returns the map as an SVG document.
    pub fn svg(&self) -> String {
        self.sketch(PAGE_WIDTH).document(&self.title)
    }

    pub(crate) fn sketch(&self, width: f64) -> SvgFragment {
        let (columns, rows) = (self.columns.len().max(1) as f64, self.rows.len().max(1) as f64);
        let (x, y) = (|at: usize| (at as f64 + 0.5) / columns, |at: usize| 1.0 - (at as f64 + 0.5) / rows);
        let mut frame = ChartFrame::new(ChartFrameOptions {
            title: &self.title,
            x: &self.x,
            y: &self.y,
            x_labels: self.columns.iter().enumerate().map(|(at, name)| (x(at), name.clone())).collect(),
            y_labels: self.rows.iter().enumerate().map(|(at, (name, _))| (y(at), name.clone())).collect(),
            x_names: true,
            width,
            height: CELL * rows,
            most: MOST_CELL * columns,
            below: KEY,
            ..ChartFrameOptions::default()
        });
        let colours = self.colours();
        let wide = (frame.right - frame.left) / columns;
        for (row, (name, values)) in self.rows.iter().enumerate() {
            for (column, (head, value)) in self.columns.iter().zip(values).enumerate() {
                let corner = frame.at(column as f64 / columns, 1.0 - row as f64 / rows);
                let value = value.filter(|value| value.is_finite());
                cell(&mut frame, (corner, wide), value, colours, &format!("{name}, {head}"));
            }
        }
        colours.key(&mut frame);
        frame.sketch()
    }

    fn colours(&self) -> ColourRange {
        let values =
            || self.rows.iter().flat_map(|(_, values)| values).flatten().copied().filter(|value| value.is_finite());
        let largest = values().fold(f64::NEG_INFINITY, f64::max);
        let high = self.most.map_or(largest, |most| largest.min(most));
        let low = values().fold(f64::INFINITY, f64::min).min(high);
        ColourRange { low, high }
    }
}

/// Values of the first and the last colour.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ColourRange {
    low: f64,
    high: f64,
}

impl ColourRange {
    /// Returns the position of a value's colour, from 0 to 1.
    fn part(self, value: f64) -> f64 {
        // Halves are finite differences of any finite values.
        let share = (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0);
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        (1.0 + share / LINEAR).ln() / (1.0 + 1.0 / LINEAR).ln()
    }

    /// Returns the value of a position from 0 to 1.
    fn value(self, part: f64) -> f64 {
        let share = LINEAR * ((part * (1.0 + 1.0 / LINEAR).ln()).exp() - 1.0);
        self.low * (1.0 - share) + self.high * share
    }

    /// Draws the colours below the map, with some of their values.
    fn key(self, frame: &mut ChartFrame) {
        if !(self.low.is_finite() && self.high.is_finite() && self.low < self.high) {
            return;
        }
        let (left, top) = (40.0, frame.size.1 - KEY + 2.0);
        let wide = (frame.size.0 - 2.0 * left).min(360.0);
        for step in 0..KEY_STEPS {
            let at = |step: u32| left + wide * f64::from(step) / f64::from(KEY_STEPS);
            let part = (f64::from(step) + 0.5) / f64::from(KEY_STEPS);
            let size = (at(step + 1) - at(step) + 0.5, 12.0);
            frame.drawing.block(FillColour::Colour(&colour(part).0), (at(step), top), size, &short(self.value(part)));
        }
        for quarter in 0..=4 {
            let part = f64::from(quarter) / 4.0;
            let at = (left + wide * part, top + 28.0);
            frame.drawing.text(at, "key", TextAnchor::Middle, &short(self.value(part)));
        }
    }
}

fn cell(
    frame: &mut ChartFrame,
    (corner, wide): ((f64, f64), f64),
    value: Option<f64>,
    colours: ColourRange,
    name: &str,
) {
    let inner = (wide - 2.0, CELL - 2.0);
    let corner = (corner.0 + 1.0, corner.1 + 1.0);
    let middle = (corner.0 + inner.0 / 2.0, corner.1 + inner.1 / 2.0 + 4.0);
    let Some(value) = value else {
        frame.drawing.text(middle, "n", TextAnchor::Middle, if width("none") < wide { "none" } else { "" });
        return;
    };
    let (colour, bright) = colour(colours.part(value));
    frame.drawing.block(FillColour::Colour(&colour), corner, inner, &format!("{name}: {}", number(value)));
    // In a narrow cell the value is in the tooltip only.
    if width(&short(value)) < wide {
        frame.drawing.text(middle, if bright { "on" } else { "off" }, TextAnchor::Middle, &short(value));
    }
}

/// Returns the colour of a position from 0 to 1, and whether it is bright.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 4, and from 0 to 255")]
fn colour(part: f64) -> (String, bool) {
    let along = part * (COLOURS.len() - 1) as f64;
    let before = (along.floor() as usize).min(COLOURS.len() - 2);
    let [r, g, b] = std::array::from_fn(|at| {
        let (from, to) = (COLOURS[before][at], COLOURS[before + 1][at]);
        from + (to - from) * (along - before as f64)
    });
    let bright = 0.299 * r + 0.587 * g + 0.114 * b > BRIGHT;
    (format!("#{:02x}{:02x}{:02x}", r as u8, g as u8, b as u8), bright)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_differ_beside_large_ones() {
        let colours = ColourRange { low: 0.0, high: 100.0 };
        let parts = [0.0, 1.0, 5.0, 20.0, 100.0].map(|value| colours.part(value));
        assert!(parts.windows(2).all(|pair| pair[1] - pair[0] > 0.1), "{parts:?}");
        assert!((colours.value(colours.part(7.0)) - 7.0).abs() < 1e-9);
        assert_eq!(ColourRange { low: 3.0, high: 3.0 }.part(3.0), 0.0);
    }

    #[test]
    fn colours_go_from_the_first_to_the_last() {
        assert_eq!(colour(0.0), ("#00224e".into(), false));
        assert_eq!(colour(1.0), ("#fee838".into(), true));
    }
}
