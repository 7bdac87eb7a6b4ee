//! Formats numbers, measures and escapes text for charts and pages.

/// Upper bound of the average character width, in units of the drawing.
const CHARACTER: f64 = 7.6;
/// Maximum length of a name in characters; longer names are cut, so that a chart stays readable.
pub(crate) const LONGEST_NAME: usize = 64;
/// Size from which numbers are written with a power of ten; below [`SMALL`] they are too.
const LARGE: f64 = 1e6;
const SMALL: f64 = 1e-4;
/// Maximum number of digits of numbers on axes.
const DIGITS: i32 = 7;

/// Escapes text for markup, and removes characters that XML does not allow.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' | '\r' => safe.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            character if character.is_control() => {}
            character => safe.push(character),
        }
    }
    safe
}

/// Formats a value for axes, without insignificant digits: `0.25`, `1500`, `2.5e-7`.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "-".to_owned();
    }
    if size == 0.0 {
        return "0".to_owned();
    }
    let after = usize::try_from(DIGITS - 1).unwrap_or_default();
    let scientific = format!("{value:.after$e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    if (SMALL..LARGE).contains(&size) {
        // `size` is below LARGE, so the number of decimal places is not negative.
        let power: i32 = power.parse().unwrap_or_default();
        let places = usize::try_from(DIGITS - 1 - power).unwrap_or_default();
        let plain = format!("{value:.places$}");
        return if plain.contains('.') { trimmed(&plain).to_owned() } else { plain };
    }
    format!("{}e{power}", trimmed(digits))
}

/// Formats a value for tables with about four significant digits: `939.6`, `4468`, `0.270`, `4.0e-4`.
pub fn short(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        size if size >= 1e9 => format!("{value:.3e}"),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

/// Returns the number at the beginning of a value with a unit, if there is one.
pub fn leading_number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-'))).unwrap_or(text.len());
    text[..end].parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns the label of an axis over swept values of `key`, with their unit, and the position of each value: its
/// number, or its place in the order given if the values are no numbers of one unit. A rate without a unit is in
/// packets a second, as in scenario files.
pub fn swept_axis(key: &str, values: &[String]) -> (String, Vec<f64>) {
    let unit = |text: &String| {
        let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'));
        unit.trim().to_owned()
    };
    let numbers: Option<Vec<f64>> = values.iter().map(|value| leading_number(value)).collect();
    let first = values.first().map(unit).unwrap_or_default();
    match numbers.filter(|_| values.iter().all(|value| unit(value) == first)) {
        Some(numbers) if !first.is_empty() => (format!("{key}, {first}"), numbers),
        Some(numbers) if key.ends_with(".rate") => (format!("{key}, packets/s"), numbers),
        Some(numbers) => (key.to_owned(), numbers),
        None => (format!("{key}, in the order given"), (1..).map(f64::from).take(values.len()).collect()),
    }
}

fn trimmed(decimal: &str) -> &str {
    decimal.trim_end_matches('0').trim_end_matches('.')
}

/// Returns an upper bound of a text's width, in units of the drawing.
pub(crate) fn width(text: &str) -> f64 {
    CHARACTER * text.chars().count() as f64
}

/// Returns the largest width of some texts.
pub(crate) fn widest<'a>(texts: impl IntoIterator<Item = &'a str>) -> f64 {
    texts.into_iter().map(width).fold(0.0, f64::max)
}

/// Cuts a name to the maximum length.
pub(crate) fn cut(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    let start: String = name.chars().take(LONGEST_NAME - 1).collect();
    start + "…"
}

/// Cuts a name so that its width is at most `length`.
pub(crate) fn cut_to(name: &str, length: f64) -> String {
    if width(name) <= length {
        return name.to_owned();
    }
    let mut short = String::new();
    for letter in name.chars() {
        if width(&short) + 2.0 * CHARACTER > length {
            break;
        }
        short.push(letter);
    }
    short + "…"
}

/// Breaks a text at spaces into lines whose width is at most `length`; a longer word is cut. Returns no line for an
/// empty text.
pub(crate) fn wrapped(text: &str, length: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = cut_to(word, length);
        match lines.last_mut() {
            Some(line) if width(line) + width(&word) + CHARACTER <= length => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        let said: Vec<String> =
            [0.0, -0.0, 0.25, 1500.0, -3.0, 2.5e-7, 1e12, 0.1 + 0.2, 999_999.0, 1e-12, f64::NAN].map(number).into();
        assert_eq!(said, ["0", "0", "0.25", "1500", "-3", "2.5e-7", "1e12", "0.3", "999999", "1e-12", "-"]);
        let said: Vec<String> = [0.0, 939.64, 4468.2, 0.27, 0.0004, f64::INFINITY].map(short).into();
        assert_eq!(said, ["0", "939.6", "4468", "0.270", "4.0e-4", "-"]);
    }

    #[test]
    fn texts_are_broken_at_spaces_and_no_line_is_too_wide() {
        assert_eq!(wrapped("mean delay of all flows", 11.0 * CHARACTER), ["mean delay", "of all", "flows"]);
        assert_eq!(wrapped("incomprehensible", 6.0 * CHARACTER), ["incom…"]);
        assert!(wrapped(" ", 100.0).is_empty());
    }

    #[test]
    fn numbers_before_units() {
        let read = ["20", "1.5ms", "-3", "Gbit/s", "1.2.3", ""].map(leading_number);
        assert_eq!(read, [Some(20.0), Some(1.5), Some(-3.0), None, None, None]);
    }

    #[test]
    fn swept_values_have_a_unit_or_an_order() {
        let axis = |key: &str, values: &[&str]| {
            swept_axis(key, &values.iter().copied().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(axis("link.rate", &["1Mbit/s", "2.5Mbit/s"]), ("link.rate, Mbit/s".into(), vec![1.0, 2.5]));
        assert_eq!(axis("traffic.rate", &["20", "40"]), ("traffic.rate, packets/s".into(), vec![20.0, 40.0]));
        assert_eq!(axis("link.delay", &["500us", "1ms"]), ("link.delay, in the order given".into(), vec![1.0, 2.0]));
        assert_eq!(axis("arrival", &["poisson"]).0, "arrival, in the order given");
    }

    #[test]
    fn markup_and_controls_do_not_get_through() {
        assert_eq!(escape("a<b & \"c\"\u{0}'\n"), "a&lt;b &amp; &quot;c&quot;&#39; ");
        assert_eq!(cut(&"x".repeat(100)).chars().count(), LONGEST_NAME);
    }
}
