//! Line charts as SVG, readable on light and dark pages, without fonts or programs that the reader may not have.
use std::fmt::Write as _;

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Name of its file, without extension.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// What is along it, with the unit.
    pub x: &'static str,
    /// What is up it, with the unit.
    pub y: &'static str,
    /// Whether equal steps along it are equal factors.
    pub log_x: bool,
    /// Its lines.
    pub series: Vec<Series>,
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Along, up, and the standard deviation of that.
    pub points: Vec<(f64, f64, Option<f64>)>,
}

/// Widest characters of the text, about.
const CHARACTER: f64 = 8.0;
/// Between the field and the names of the lines.
const LEGEND: f64 = 50.0;
const HEIGHT: f64 = 400.0;
/// The field between the axes: left, top, right, bottom.
const FIELD: [f64; 4] = [70.0, 40.0, 570.0, 345.0];
/// Colours that can be told apart on white and on black, also by most who see colours differently (after Okabe and Ito, 2008).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#8a6fdf", "#7f7f7f"];
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#222}.t{font-weight:600;font-size:15px}.g{stroke:#ddd}.a{stroke:#555}\
    @media(prefers-color-scheme:dark){text{fill:#ddd}.g{stroke:#444}.a{stroke:#aaa}}";

impl Plot {
    /// As wide as the names of the lines need.
    fn width(&self) -> f64 {
        let longest = self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or_default();
        FIELD[2] + LEGEND + CHARACTER * longest as f64
    }

    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        let axes = Axes::of(self);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {HEIGHT}\" role=\"img\"><title>{}</title><style>{STYLE}</style>\n",
            self.width(),
            escape(&self.title)
        );
        let [left, top, right, bottom] = FIELD;
        text(&mut svg, (left, top - 18.0), "t", "start", &self.title);
        for x in &axes.x_ticks {
            let at = axes.x(*x);
            line(&mut svg, "g", (at, top), (at, bottom));
            text(&mut svg, (at, bottom + 18.0), "", "middle", &number(*x));
        }
        for y in &axes.y_ticks {
            let at = axes.y(*y);
            line(&mut svg, "g", (left, at), (right, at));
            text(&mut svg, (left - 8.0, at + 4.0), "", "end", &number(*y));
        }
        line(&mut svg, "a", (left, bottom), (right, bottom));
        line(&mut svg, "a", (left, top), (left, bottom));
        text(&mut svg, ((left + right) / 2.0, bottom + 42.0), "", "middle", self.x);
        let middle = (top + bottom) / 2.0;
        let _ = writeln!(
            svg,
            "<text transform=\"translate(16 {middle:.0}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(self.y)
        );
        for (place, series) in self.series.iter().enumerate() {
            series.draw(&mut svg, &axes, place);
        }
        svg + "</svg>\n"
    }
}

impl Series {
    fn draw(&self, svg: &mut String, axes: &Axes, place: usize) {
        let colour = COLOURS[place % COLOURS.len()];
        let dash = if place < COLOURS.len() { "" } else { " stroke-dasharray=\"5 3\"" };
        let corners: Vec<String> =
            self.points.iter().map(|(x, y, _)| format!("{:.1},{:.1}", axes.x(*x), axes.y(*y))).collect();
        let corners = corners.join(" ");
        let _ = writeln!(
            svg,
            "<polyline points=\"{corners}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>"
        );
        for (x, y, sd) in &self.points {
            if let Some(sd) = sd {
                let at = axes.x(*x);
                let (low, high) = (axes.y(y - sd), axes.y(y + sd));
                let _ = writeln!(svg, "<path d=\"M{at:.1} {low:.1}V{high:.1}\" stroke=\"{colour}\"/>");
            }
            let (at_x, at_y, name) = (axes.x(*x), axes.y(*y), escape(&self.name));
            let _ = writeln!(
                svg,
                "<circle cx=\"{at_x:.1}\" cy=\"{at_y:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{name}: {}, {}</title></circle>",
                number(*x),
                number(*y)
            );
        }
        let (left, row) = (FIELD[2] + 18.0, FIELD[1] + 10.0 + 20.0 * place as f64);
        let _ = writeln!(svg, "<path d=\"M{left:.0} {row:.0}h22\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>");
        text(svg, (left + 28.0, row + 4.0), "", "start", &self.name);
    }
}

/// Where values are in the field.
struct Axes {
    x_range: [f64; 2],
    y_range: [f64; 2],
    log_x: bool,
    x_ticks: Vec<f64>,
    y_ticks: Vec<f64>,
}

impl Axes {
    fn of(plot: &Plot) -> Axes {
        let points = || plot.series.iter().flat_map(|series| &series.points);
        let y_ticks = ticks(range(points().flat_map(|(_, y, spread)| [*y, y + spread.unwrap_or(0.0)])));
        let mut x_ticks: Vec<f64> = points().map(|point| point.0).collect();
        x_ticks.sort_by(f64::total_cmp);
        x_ticks.dedup();
        if !plot.log_x && x_ticks.len() > 10 {
            x_ticks = ticks(range(x_ticks.into_iter()));
        }
        let ends = |ticks: &[f64]| [ticks.first().copied().unwrap_or(0.0), ticks.last().copied().unwrap_or(1.0)];
        Axes { x_range: ends(&x_ticks), y_range: ends(&y_ticks), log_x: plot.log_x, x_ticks, y_ticks }
    }

    fn x(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.log_x { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let [low, high] = self.x_range.map(scale);
        FIELD[0] + (scale(value) - low) / (high - low).max(1e-12) * (FIELD[2] - FIELD[0])
    }

    fn y(&self, value: f64) -> f64 {
        let [low, high] = self.y_range;
        let part = ((value - low) / (high - low).max(1e-12)).clamp(0.0, 1.0);
        FIELD[3] - part * (FIELD[3] - FIELD[1])
    }
}

fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] = values
        .filter(|value| value.is_finite())
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(value), high.max(value)]);
    if low <= high { [low, high] } else { [0.0, 1.0] }
}

/// About six round values that take a range in.
fn ticks([low, high]: [f64; 2]) -> Vec<f64> {
    let span = (high - low).max(high.abs() * 1e-3).max(1e-9);
    let rough = span / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (low / step).floor();
    let steps = ((low + span).max(high) / step - 1e-9).ceil() - first;
    (0..20).map(f64::from).take_while(|number| *number <= steps).map(|number| (first + number) * step).collect()
}

/// A value as axes have it, without digits that say nothing.
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>", from.0, from.1, to.0, to.1);
}

fn text(svg: &mut String, at: (f64, f64), class: &str, anchor: &str, text: &str) {
    let (x, y) = at;
    let text = escape(text);
    let _ = writeln!(svg, "<text x=\"{x:.0}\" y=\"{y:.0}\" class=\"{class}\" text-anchor=\"{anchor}\">{text}</text>");
}

/// Text that markup leaves alone.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64, Option<f64>)>) -> Plot {
        let series = vec![Series { name: "a < b".into(), points }];
        Plot { name: "p", title: "T".into(), x: "x", y: "y", log_x: true, series }
    }

    #[test]
    fn points_are_between_the_axes() {
        let svg = plot(vec![(3.0, 90.0, Some(0.5)), (192.0, 99.5, None)]).svg();
        assert!(svg.contains("a &lt; b") && !svg.contains("a < b"), "{svg}");
        let values = |name: &str| -> Vec<f64> {
            let before = format!("{name}=\"");
            let parts = svg.split(before.as_str()).skip(1);
            parts.map(|part| part.split('"').next().unwrap().parse().unwrap()).collect()
        };
        assert_eq!(values("cx"), [FIELD[0], FIELD[2]]);
        let up = values("cy");
        assert!(up.len() == 2 && up[0] > up[1] && up.iter().all(|y| (FIELD[1]..=FIELD[3]).contains(y)), "{up:?}");
    }

    #[test]
    fn ticks_are_round_and_take_everything_in() {
        assert_eq!(ticks([90.3, 99.9]), [90.0, 92.0, 94.0, 96.0, 98.0, 100.0]);
        for range in [[0.0, 0.0], [1.0, 1.0], [-3.0, 7.0], [1e-6, 3e-6]] {
            let ticks = ticks(range);
            assert!(
                ticks[0] <= range[0] && *ticks.last().unwrap() >= range[1] && ticks.len() > 1,
                "{range:?}: {ticks:?}"
            );
        }
    }

    #[test]
    fn nothing_to_show_is_no_panic() {
        for points in [vec![], vec![(0.0, f64::NAN, None)], vec![(1.0, 1.0, None)]] {
            assert!(plot(points).svg().ends_with("</svg>\n"));
        }
    }
}
