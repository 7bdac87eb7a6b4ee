//! Splits a text into items: `key`, `key=value`, `key:value` or `key(value)`, separated by commas and white space.
use super::ParseError;

/// An item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyValueItem<'a> {
    pub(super) key: &'a str,
    /// Offset of the key in the whole text, in bytes.
    pub(super) at: usize,
    /// Text after `=` or `:` or in parentheses; `None` for a key alone.
    pub(super) value: Option<&'a str>,
    /// Offset of the value in the whole text, in bytes; without a value, the offset after the key.
    pub(super) value_at: usize,
}

impl<'a> KeyValueItem<'a> {
    /// Returns the value; fails if it is missing or empty.
    pub(super) fn value(&self, expected: &str) -> Result<&'a str, ParseError> {
        self.value.filter(|value| !value.is_empty()).ok_or_else(|| ParseError::new(self.value_at, "", expected))
    }

    /// Returns the value as `parse` reads it; fails if it is missing, empty or wrong.
    pub(super) fn parsed<T>(&self, expected: &str, parse: fn(&str) -> Result<T, String>) -> Result<T, ParseError> {
        parse(self.value(expected)?).map_err(|expected| self.wrong(expected))
    }

    /// Returns the error that the value is wrong.
    pub(super) fn wrong(&self, expected: impl Into<String>) -> ParseError {
        ParseError::new(self.value_at, self.value.unwrap_or_default(), expected)
    }

    /// Fails if the item has a value.
    pub(super) fn alone(&self) -> Result<(), ParseError> {
        match self.value {
            None | Some("") => Ok(()),
            Some(_) => Err(self.wrong(format!("nothing: `{}` stands alone", self.key))),
        }
    }
}

/// Iterator over the items of a list. `base` is the offset of `text` in the whole text.
pub(super) struct KeyValueScanner<'a> {
    text: &'a str,
    at: usize,
    base: usize,
}

impl<'a> KeyValueScanner<'a> {
    pub(super) fn new(text: &'a str, base: usize) -> Self {
        KeyValueScanner { text, at: 0, base }
    }

    /// Returns the rest of the text from the value of `item` on, including all later items.
    pub(super) fn rest_behind(&self, item: &KeyValueItem<'_>) -> &'a str {
        &self.text[item.value_at - self.base..]
    }

    /// Returns the next item; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<KeyValueItem<'a>>, ParseError> {
        let rest = self.text[self.at..].trim_start_matches(is_separator);
        self.at = self.text.len() - rest.len();
        if rest.is_empty() {
            return Ok(None);
        }
        let key_len = rest.find(|c: char| is_separator(c) || matches!(c, '=' | ':' | '(')).unwrap_or(rest.len());
        let (key, tail) = rest.split_at(key_len);
        let at = self.at;
        let (value, start, end) = match tail.as_bytes().first() {
            Some(b'=' | b':') => {
                let len = value_len(&tail[1..]);
                (Some(&tail[1..1 + len]), 1, 1 + len)
            }
            Some(b'(') => {
                let close = closing(tail).ok_or_else(|| {
                    ParseError::new(self.base + at + key_len, tail, "a `)` for every `(` that is opened")
                })?;
                // In `check_pkt_larger(200)->reg0[0]`, the text after the parentheses is part of the value.
                let end = close + 1;
                if tail[end..].starts_with("->") {
                    let len = value_len(&tail[end..]);
                    (Some(&tail[1..end + len]), 1, end + len)
                } else {
                    (Some(&tail[1..close]), 1, end)
                }
            }
            _ => (None, 0, 0),
        };
        self.at = at + key_len + end;
        Ok(Some(KeyValueItem { key, at: self.base + at, value, value_at: self.base + at + key_len + start }))
    }
}

fn is_separator(c: char) -> bool {
    matches!(c, ',' | ' ' | '\t' | '\r' | '\n')
}

/// Returns the length of a value: up to the next separator outside parentheses.
fn value_len(text: &str) -> usize {
    let mut depth = 0_usize;
    let end = text.char_indices().find(|(_, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_separator(*c)
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Returns the offset of the parenthesis that closes the one at the start of `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Vec<(&str, Option<&str>, usize)> {
        let mut scanner = KeyValueScanner::new(text, 0);
        std::iter::from_fn(|| scanner.next().unwrap()).map(|item| (item.key, item.value, item.value_at)).collect()
    }

    #[test]
    fn words_values_and_lists() {
        assert_eq!(items("ip, nw_dst=10.0.0.0/8"), [("ip", None, 2), ("nw_dst", Some("10.0.0.0/8"), 11)]);
        assert_eq!(items("a:1:2,b(c(d,e),f) g"), [("a", Some("1:2"), 2), ("b", Some("c(d,e),f"), 8), ("g", None, 19)]);
        assert_eq!(items(" ,, "), []);
    }

    #[test]
    fn an_open_parenthesis_is_an_error() {
        let error = KeyValueScanner::new("b(c(d)", 10).next().unwrap_err();
        assert_eq!((error.position, error.found.as_str()), (11, "(c(d)"));
    }
}
