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
const DASHES: [&str; 3] = ["", "6 3", "2 3"];
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

    /// Returns pens for all names of a chart: fixed pens, or the first free ones. Variants of a name share its colour
    /// and get different dashes, as far as there are any.
    pub(crate) fn all<'a>(names: impl IntoIterator<Item = (&'a str, Option<Pen>)>) -> Vec<Pen> {
        let mut wanted: Vec<Option<Pen>> = names.into_iter().map(|(name, pen)| pen.or_else(|| Pen::of(name))).collect();
        for at in 1..wanted.len() {
            let (before, rest) = wanted.split_at_mut(at);
            if let Some(pen) = rest[0].as_mut().filter(|pen| before.contains(&Some(**pen))) {
                let own = (0u8..).take(DASHES.len()).map(|dash| Pen { dash, ..*pen });
                *pen = own.into_iter().find(|own| !before.contains(&Some(*own))).unwrap_or(*pen);
            }
        }
        let mut free = (0..)
            .map(|place: usize| Pen::place(place))
            .filter(|pen| !wanted.contains(&Some(*pen)))
            .take(wanted.len())
            .collect::<Vec<_>>()
            .into_iter();
        wanted.iter().map(|pen| pen.or_else(|| free.next()).unwrap_or(Pen::INK)).collect()
    }

    /// Returns the pen with an index: colours vary first, then dashes. Beyond the last one, the pen of text is used
    /// repeatedly.
    fn place(place: usize) -> Pen {
        let pens = usize::from(PLACES) * DASHES.len();
        if place >= pens {
            return Pen::INK;
        }
        let at = u8::try_from(place).unwrap_or_default();
        Pen { colour: at % PLACES, dash: at / PLACES }
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
