//! Derives short unique names for nodes from labels in files.
use std::collections::HashSet;

/// Set of names in use; assigns unique names of `a-z`, `0-9` and `-`.
#[derive(Debug, Default)]
pub struct UniqueNames(HashSet<String>);

impl UniqueNames {
    /// Returns a unique name of at most `max` characters (at least 3) derived from `label`, for example `new-york`
    /// for `New York`. If the name is taken, appends a number. A number at the end of the label is kept whole if it
    /// has at most half of the characters, because it usually distinguishes nodes.
    pub fn take(&mut self, label: &str, max: usize) -> String {
        let plain = plain(label);
        let (front, number) = plain.split_at(plain.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        let number = if number.len() <= max / 2 { number } else { "" };
        let front = if number.is_empty() { plain.as_str() } else { front };
        let first = joined(front, number, max);
        let further = (2..).map(|count: usize| joined(front, &format!("{number}-{count}"), max));
        let found = std::iter::once(first).chain(further).find(|name| !name.is_empty() && !self.0.contains(name));
        let found = found.unwrap_or_default();
        self.0.insert(found.clone());
        found
    }
}

/// Returns as much of `front` as fits into `max` characters with `back`, followed by `back`.
fn joined(front: &str, back: &str, max: usize) -> String {
    let room = max.saturating_sub(back.len()).min(front.len());
    let cut = &front[..room];
    let whole = room == front.len() && !back.starts_with('-');
    let name = format!("{}{back}", if whole { cut } else { cut.trim_end_matches('-') });
    name.trim_start_matches('-').to_owned()
}

/// Returns a label in lower-case letters, digits and single hyphens; `n` if nothing remains.
fn plain(label: &str) -> String {
    let mut plain = String::new();
    for letter in label.chars().flat_map(char::to_lowercase) {
        match letter {
            'a'..='z' | '0'..='9' => plain.push(letter),
            _ => match latin(letter) {
                Some(letters) => plain.push_str(letters),
                None if plain.is_empty() || plain.ends_with('-') => {}
                None => plain.push('-'),
            },
        }
    }
    let plain = plain.trim_end_matches('-');
    if plain.is_empty() { "n".to_owned() } else { plain.to_owned() }
}

/// Returns the letters without diacritics for a letter of European languages.
fn latin(letter: char) -> Option<&'static str> {
    Some(match letter {
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ę' | 'ě' => "e",
        'ğ' | 'ģ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'ı' => "i",
        'ķ' => "k",
        'ļ' | 'ľ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'ő' => "o",
        'ö' | 'œ' => "oe",
        'ř' => "r",
        'ś' | 'š' | 'ş' | 'ș' => "s",
        'ß' => "ss",
        'ť' | 'ţ' | 'ț' => "t",
        'ù' | 'ú' | 'û' | 'ū' | 'ů' | 'ű' => "u",
        'ü' => "ue",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_short_and_unlike_each_other() {
        let mut names = UniqueNames::default();
        for (label, name) in [
            ("New York", "new-york"),
            ("Washington DC", "washingt"),
            ("Washington State", "washin-2"),
            ("Los Angeles", "los-ange"),
            ("Kansas City", "kansas-c"),
            ("Zürich", "zuerich"),
            ("Zuerich", "zueric-2"),
            ("Łódź", "lodz"),
            ("Townsville,+Australia4282", "town4282"),
            ("東京", "n"),
            ("", "n-2"),
            ("?", "n-3"),
            ("--", "n-4"),
            ("123456789", "12345678"),
            ("a--b", "a-b"),
            ("e1-2", "e1-2"),
        ] {
            assert_eq!(names.take(label, 8), name, "{label}");
        }
    }

    proptest! {
        #[test]
        fn any_labels_get_names(labels in prop::collection::vec(".{0,12}", 0..60), max in 3usize..12) {
            let mut names = UniqueNames::default();
            let mut seen = HashSet::new();
            for label in labels {
                let name = names.take(&label, max);
                let fits = !name.is_empty() && name.len() <= max && !name.starts_with('-');
                prop_assert!(fits && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
                prop_assert!(seen.insert(name));
            }
        }
    }
}
