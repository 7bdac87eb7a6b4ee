//! Reads text files written by people: reports encoding errors with their line, and rewords what parsers say of values.
use std::io::{self, ErrorKind};
use std::path::Path;

/// Reads a file of UTF-8 text.
///
/// # Errors
/// The file cannot be read. Of kind `InvalidData`: the line and the first byte that is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(std::fs::read(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        let problem = format!("line {line}: found byte 0x{:02x}, expected UTF-8 text", bytes[at]);
        io::Error::new(ErrorKind::InvalidData, problem)
    })
}

/// Returns a number with the word for what it counts: `one` or `many`.
pub fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    // Only numbers of more than 64 bits do not fit, and they are many.
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Returns known names in a row, for the error of a name that is not one of them: with the one that was probably meant.
pub fn known_names(asked: &str, names: &[&str]) -> String {
    let all = names.join(", ");
    match nearest_name(asked, names.iter().copied()) {
        Some(name) => format!("{all} (nearest: {name})"),
        None => all,
    }
}

/// Returns the known name that was probably meant by `asked`: the first with the fewest letters inserted, left out,
/// replaced or swapped with a neighbour, whatever their case. A third of the longer name's letters may differ; `None`
/// if more do.
pub fn nearest_name<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let asked_letters = asked.chars().count();
    if asked_letters == 0 {
        return None;
    }
    let changes = |name: &'a str| {
        let letters = name.chars().count();
        let most = letters.max(asked_letters) / 3;
        // Text of any length may be asked for, so far longer text is not compared.
        let is_alike = letters.abs_diff(asked_letters) <= most;
        let changes = is_alike.then(|| strsim::osa_distance(&asked.to_lowercase(), &name.to_lowercase()))?;
        (changes <= most).then_some((changes, name))
    };
    known.into_iter().filter_map(changes).min_by_key(|(changes, _)| *changes).map(|(_, name)| name)
}

/// Rewords what serde says of a value in a file, for people who do not know the program's types: what was found, what
/// is expected. `examples` has values of keys that a file may lack, for example `("buffer", "\"24kB\"")`. Other
/// messages stay as they are.
pub fn reworded(message: &str, examples: &[(&str, &str)]) -> String {
    let first = message.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    if let Some(key) = first.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return match examples.iter().find(|(known, _)| *known == key) {
            Some((_, example)) => format!("found no `{key}`, expected it, such as {key} = {example}"),
            None => format!("found no `{key}`, expected it"),
        };
    }
    if first == "wanted string or table" {
        return "found another kind of value, expected a text in quotes".to_owned();
    }
    if first.starts_with("string values must be quoted") {
        return "found a text without quotes, expected it in quotes, such as \"24kB\"".to_owned();
    }
    let wrong = ["invalid type: ", "invalid value: ", "invalid length "];
    let Some((prefix, rest)) = wrong.iter().find_map(|prefix| Some((*prefix, first.strip_prefix(prefix)?))) else {
        return first;
    };
    let Some((found, expected)) = rest.split_once(", expected ") else { return first };
    if prefix == "invalid length " {
        return format!("found a list of {found}, expected {}", expected_value(expected));
    }
    format!("found {}, expected {}", found_value(found), expected_value(expected))
}

/// Returns what was found without the name of its type: the value itself for numbers and texts, these in quotes.
fn found_value(found: &str) -> String {
    let kinds = ["integer ", "floating point ", "boolean ", "string "];
    let value = kinds.iter().find_map(|kind| found.strip_prefix(kind)).map(|value| value.trim_matches('`'));
    match (value, found) {
        (Some(value), _) => format!("`{value}`"),
        (None, "sequence") => "a list".to_owned(),
        (None, "map") => "a table".to_owned(),
        (None, other) => other.to_owned(),
    }
}

/// Returns what is expected in words for which no type of the program is needed.
fn expected_value(expected: &str) -> String {
    match expected {
        "a string" | "str" | "string" => "a text in quotes".to_owned(),
        "a boolean" | "bool" => "true or false".to_owned(),
        "a sequence" => "a list in brackets".to_owned(),
        "a map" => "a table".to_owned(),
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number of 0 or more".to_owned(),
        "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        other => match other.strip_prefix("an array of length ") {
            Some(count) => format!("a list of {count}"),
            None if other.starts_with("struct ") => "a table".to_owned(),
            None if other.starts_with("internally tagged enum ") => "a table with `kind`".to_owned(),
            None if other.starts_with("enum ") || other.starts_with("variant ") => {
                "one of its words in quotes".to_owned()
            }
            None => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let links = |count: usize| counted(count, "link", "links");
        assert_eq!([links(0), links(1), links(2)], ["0 links", "1 link", "2 links"]);
    }

    #[test]
    fn the_name_that_was_meant_is_told() {
        let names = ["native", "at-x510", "ovs-kernel"];
        assert_eq!(known_names("atx51", &names), "native, at-x510, ovs-kernel (nearest: at-x510)");
        assert_eq!(known_names("foo", &names), "native, at-x510, ovs-kernel");
        let fields = ["nw_src", "nw_dst", "dl_dst"];
        for (asked, meant) in [("nw_dts", "nw_dst"), ("NW_SRC", "nw_src"), ("dldst", "dl_dst")] {
            assert_eq!(nearest_name(asked, fields), Some(meant));
        }
        for asked in ["", "nonsense", &"nw_src".repeat(1000)] {
            assert_eq!(nearest_name(asked, fields), None);
        }
    }

    #[test]
    fn what_parsers_say_is_reworded() {
        let examples = [("buffer", "\"24kB\"")];
        for (message, expected) in [
            ("missing field `buffer`", "found no `buffer`, expected it, such as buffer = \"24kB\""),
            ("missing field `to`", "found no `to`, expected it"),
            ("invalid type: integer `100`, expected a string", "found `100`, expected a text in quotes"),
            ("invalid type: string \"ten\", expected u16", "found `\"ten\"`, expected a whole number from 0 to 65535"),
            ("invalid value: integer `-1`, expected u64", "found `-1`, expected a whole number of 0 or more"),
            ("invalid type: map, expected a sequence", "found a table, expected a list in brackets"),
            ("invalid type: integer `3`, expected struct VirtualPortToml", "found `3`, expected a table"),
            ("invalid length 1, expected an array of length 2", "found a list of 1, expected a list of 2"),
            ("unknown field `wlan`, expected `vlan`", "unknown field `wlan`, expected `vlan`"),
            ("wanted string or table", "found another kind of value, expected a text in quotes"),
            (
                "string values must be quoted, expected literal string",
                "found a text without quotes, expected it in quotes, such as \"24kB\"",
            ),
            ("invalid array\nexpected `]`", "invalid array; expected `]`"),
        ] {
            assert_eq!(reworded(message, &examples), expected);
        }
    }

    #[test]
    fn what_is_no_text_is_told_with_its_line() {
        let file = std::env::temp_dir().join(format!("weir-text-{}", std::process::id()));
        std::fs::write(&file, b"name = \"a\"\n# caf\xe9\n").unwrap();
        let error = read_text(&file).unwrap_err();
        std::fs::write(&file, "caf\u{e9}").unwrap();
        assert_eq!(read_text(&file).unwrap(), "caf\u{e9}");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "line 2: found byte 0xe9, expected UTF-8 text");
        assert_eq!(read_text(&file).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
