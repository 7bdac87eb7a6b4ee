//! Pens: colours and dashes of lines.

/// Colours that are distinguishable on white and on black, also with most colour vision deficiencies (after Okabe and
/// Ito, 2008): for light pages, then for dark pages. The last one is the colour of text.
const COLOURS: [(&str, &str); 9] = [
    ("#0072b2", "#3d9fdc"),
    ("#d55e00", "#f0803c"),
    ("#009e73", "#20bd92"),
    ("#cc79a7", "#dd97bd"),
    ("#b8860b", "#e0ae3a"),
    ("#56b4e9", "#8ccdf2"),
    ("#8a6fdf", "#a892ee"),
    ("#a0522d", "#cf8058"),
    ("#222222", "#dddddd"),
];
const DASHES: [&str; 6] = ["", "7 3", "2 3", "10 3 2 3", "15 4", "6 2 1 2 1 2"];
/// Index of the text colour.
const INK: u8 = 8;
/// Number of colours for names without a fixed pen.
const PLACES: u8 = 8;

/// Names with a fixed pen on every chart: name, colour, dashes.
const KNOWN: [(&str, u8, u8); 19] = [
    ("simulated", INK, 0),
    ("simulation", INK, 0),
    ("live", 1, 0),
    ("measured", 1, 0),
    ("published", 1, 1),
    ("predicted", 0, 0),
    ("base", 7, 0),
    ("base-mm1", 7, 0),
    ("base-mm1k", 7, 1),
    ("jarschel", 3, 0),
    ("mahmood", 4, 0),
    ("goto", 2, 0),
    ("lcs", 0, 0),
    ("sdn4q", 6, 0),
    ("latency-capacity split", 0, 0),
    ("four stations", 6, 0),
    ("mg1", 5, 0),
    ("mm1", 5, 1),
    ("mm1k", 5, 2),
];

/// Colour and dashes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pen {
    colour: u8,
    dash: u8,
}

impl Pen {
    /// Pen in the text colour, for reference lines.
    pub const INK: Pen = Pen { colour: INK, dash: 2 };

    /// Returns the fixed pen of a name that has one on every chart: a model's, `simulated`, `live`. Ignores the part
    /// after a comma, case and punctuation.
    pub fn of(name: &str) -> Option<Pen> {
        let word = plain(name.split(',').next().unwrap_or_default());
        KNOWN
            .iter()
            .find(|(known, ..)| plain(known) == word)
            .map(|(_, colour, dash)| Pen { colour: *colour, dash: *dash })
    }

    /// Returns pens for all names of a chart: fixed pens, or the first free colours. Each pen has dashes of its own, as
    /// far as there are any: many readers cannot tell lines apart by colour alone.
    pub(crate) fn all<'a>(names: impl IntoIterator<Item = (&'a str, Option<Pen>)>) -> Vec<Pen> {
        let wanted: Vec<Option<Pen>> = names.into_iter().map(|(name, pen)| pen.or_else(|| Pen::of(name))).collect();
        let mut pens: Vec<Option<Pen>> = vec![None; wanted.len()];
        for (at, wish) in wanted.iter().enumerate() {
            pens[at] = wish.map(|wish| wish.beside(&pens));
        }
        let fixed: Vec<u8> = wanted.iter().flatten().map(|pen| pen.colour).collect();
        let mut colours: Vec<u8> = (0..PLACES).filter(|colour| !fixed.contains(colour)).collect();
        colours.extend((0..PLACES).filter(|colour| fixed.contains(colour)));
        let mut colours = colours.into_iter().cycle();
        for at in 0..pens.len() {
            if pens[at].is_none() {
                let pen = Pen { colour: colours.next().unwrap_or(INK), dash: 0 };
                pens[at] = Some(pen.beside(&pens));
            }
        }
        pens.into_iter().map(|pen| pen.unwrap_or(Pen::INK)).collect()
    }

    /// Returns the pen, with other dashes if one of `others` has the same: dashes that none of them has, or that none
    /// of the same colour has. The pen of text is used repeatedly when there are no others.
    fn beside(self, others: &[Option<Pen>]) -> Pen {
        let others = || others.iter().flatten();
        let dashes: Vec<u8> = (self.dash..u8::try_from(DASHES.len()).unwrap_or(u8::MAX)).chain(0..self.dash).collect();
        let free = dashes.iter().find(|dash| others().all(|other| other.dash != **dash));
        let free =
            free.or_else(|| dashes.iter().find(|dash| others().all(|other| *other != Pen { dash: **dash, ..self })));
        free.map_or(Pen::INK, |dash| Pen { dash: *dash, ..self })
    }

    /// Returns the CSS class for the pen's colour.
    pub(crate) fn class(self) -> String {
        format!("k{}", self.colour)
    }

    /// Returns the SVG attribute for the pen's dashes, with a leading space; empty for a solid line.
    pub(crate) fn dashes(self) -> String {
        match DASHES.get(usize::from(self.dash)) {
            Some(dash) if !dash.is_empty() => format!(" stroke-dasharray=\"{dash}\""),
            _ => String::new(),
        }
    }
}

/// Shape of the points of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointMarker {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Cross,
    Plus,
}

impl PointMarker {
    const ALL: [PointMarker; 7] = [
        PointMarker::Circle,
        PointMarker::Square,
        PointMarker::Diamond,
        PointMarker::Up,
        PointMarker::Down,
        PointMarker::Cross,
        PointMarker::Plus,
    ];

    /// Returns the shape of a line by its index.
    pub(crate) fn place(index: usize) -> PointMarker {
        PointMarker::ALL[index % PointMarker::ALL.len()]
    }

    /// Returns the outline of the shape as path data. All shapes look equally large.
    pub(crate) fn path(self, (x, y): (f64, f64), radius: f64) -> String {
        let corners = |corners: &[(f64, f64)]| {
            let corner = |(at, (dx, dy)): (usize, &(f64, f64))| {
                format!("{}{:.1} {:.1}", if at == 0 { 'M' } else { 'L' }, x + dx * radius, y + dy * radius)
            };
            corners.iter().enumerate().map(corner).collect::<String>() + "Z"
        };
        match self {
            PointMarker::Circle => {
                let (left, wide) = (x - radius, 2.0 * radius);
                format!(
                    "M{left:.1} {y:.1}a{radius:.1} {radius:.1} 0 1 0 {wide:.1} 0a{radius:.1} {radius:.1} 0 1 0 -{wide:.1} 0Z"
                )
            }
            PointMarker::Square => corners(&[(-0.95, -0.95), (0.95, -0.95), (0.95, 0.95), (-0.95, 0.95)]),
            PointMarker::Diamond => corners(&[(0.0, -1.4), (1.4, 0.0), (0.0, 1.4), (-1.4, 0.0)]),
            PointMarker::Up => corners(&[(0.0, -1.3), (1.3, 1.0), (-1.3, 1.0)]),
            PointMarker::Down => corners(&[(0.0, 1.3), (1.3, -1.0), (-1.3, -1.0)]),
            PointMarker::Cross => corners(&CROSS.map(|(dx, dy)| (0.7 * (dx - dy), 0.7 * (dx + dy)))),
            PointMarker::Plus => corners(&CROSS),
        }
    }
}

/// Corners of a plus sign.
const CROSS: [(f64, f64); 12] = [
    (-0.4, -1.4),
    (0.4, -1.4),
    (0.4, -0.4),
    (1.4, -0.4),
    (1.4, 0.4),
    (0.4, 0.4),
    (0.4, 1.4),
    (-0.4, 1.4),
    (-0.4, 0.4),
    (-1.4, 0.4),
    (-1.4, -0.4),
    (-0.4, -0.4),
];

fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_ascii_alphanumeric()).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Returns the CSS rules of the colour classes.
pub(crate) fn style() -> String {
    let rules = |dark: bool| -> String {
        let colour =
            |(at, pair): (usize, &(&str, &str))| format!(".k{at}{{color:{}}}", if dark { pair.1 } else { pair.0 });
        COLOURS.iter().enumerate().map(colour).collect()
    };
    format!("{}@media(prefers-color-scheme:dark){{{}}}", rules(false), rules(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_thing_has_the_same_pen_everywhere() {
        assert_eq!(Pen::of("SDN-4Q"), Pen::of("sdn4q, P_nf 0.25"));
        assert!(Pen::of("SDN-4Q").is_some() && Pen::of("SDN-4Q") != Pen::of("LCS") && Pen::of("s1").is_none());
        let [first, second, third] = Pen::all([("s1", None), ("lcs", None), ("s2", None)])[..] else { panic!() };
        assert_eq!(Some(second), Pen::of("LCS"));
        assert!(first != second && second != third && first != third);
    }

    #[test]
    fn variants_have_one_colour_and_dashes_of_their_own() {
        let [first, second] = Pen::all([("Jarschel", None), ("Jarschel, visits geometric", None)])[..] else {
            panic!()
        };
        assert!(first.colour == second.colour && first.dash != second.dash);
    }

    #[test]
    fn two_dozen_unknown_names_differ_and_any_number_has_pens() {
        let names: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
        let mut pens = Pen::all(names.iter().map(|name| (name.as_str(), None)));
        assert_eq!(pens.len(), 100);
        pens.truncate(24);
        pens.sort();
        pens.dedup();
        assert_eq!(pens.len(), 24);
    }
}
