//! Heat maps: tables of values shown as colours.
use crate::drawing::{FillColour, SvgFragment, TextAnchor};
use crate::frame::{ChartFrame, ChartFrameOptions};
use crate::text::{number, short};

const CELL: (f64, f64) = (64.0, 26.0);
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
    /// Value of the last colour, which larger values get too; `None`: the largest value.
    pub most: Option<f64>,
}

impl HeatMap {
    /// Returns the map as an SVG document.
    pub fn svg(&self) -> String {
        self.sketch().document(&self.title)
    }

    pub(crate) fn sketch(&self) -> SvgFragment {
        let (columns, rows) = (self.columns.len().max(1) as f64, self.rows.len().max(1) as f64);
        let (x, y) = (|at: usize| (at as f64 + 0.5) / columns, |at: usize| 1.0 - (at as f64 + 0.5) / rows);
        let mut frame = ChartFrame::new(ChartFrameOptions {
            title: &self.title,
            x: &self.x,
            y: &self.y,
            x_labels: self.columns.iter().enumerate().map(|(at, name)| (x(at), name.clone())).collect(),
            y_labels: self.rows.iter().enumerate().map(|(at, (name, _))| (y(at), name.clone())).collect(),
            x_names: true,
            field: (CELL.0 * columns, CELL.1 * rows),
            ..ChartFrameOptions::default()
        });
        let ends = self.ends();
        for (row, (name, values)) in self.rows.iter().enumerate() {
            for (column, (head, value)) in self.columns.iter().zip(values).enumerate() {
                let corner = frame.at(column as f64 / columns, 1.0 - row as f64 / rows);
                cell(&mut frame, corner, value.filter(|value| value.is_finite()), ends, &format!("{name}, {head}"));
            }
        }
        frame.sketch()
    }

    fn ends(&self) -> [f64; 2] {
        let values =
            || self.rows.iter().flat_map(|(_, values)| values).flatten().copied().filter(|value| value.is_finite());
        let least = values().fold(f64::INFINITY, f64::min);
        let most = self.most.unwrap_or_else(|| values().fold(f64::NEG_INFINITY, f64::max));
        [least.min(most), most]
    }
}

fn cell(frame: &mut ChartFrame, corner: (f64, f64), value: Option<f64>, [low, high]: [f64; 2], name: &str) {
    let inner = (CELL.0 - 2.0, CELL.1 - 2.0);
    let corner = (corner.0 + 1.0, corner.1 + 1.0);
    let middle = (corner.0 + inner.0 / 2.0, corner.1 + inner.1 / 2.0 + 4.0);
    let Some(value) = value else {
        frame.drawing.text(middle, "n", TextAnchor::Middle, "none");
        return;
    };
    let part = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    let (colour, bright) = colour(if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 });
    frame.drawing.block(FillColour::Colour(&colour), corner, inner, &format!("{name}: {}", number(value)));
    frame.drawing.text(middle, if bright { "on" } else { "off" }, TextAnchor::Middle, &short(value));
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
    fn colours_go_from_the_first_to_the_last() {
        assert_eq!(colour(0.0), ("#00224e".into(), false));
        assert_eq!(colour(1.0), ("#fee838".into(), true));
    }
}
