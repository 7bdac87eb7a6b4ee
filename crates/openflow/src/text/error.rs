//! Defines the error of a text that cannot be parsed: its position, what was found and what was expected.
use std::fmt;

/// Maximum number of characters of the text that an error message repeats.
const MAX_FOUND: usize = 40;

/// Error of a text that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Offset of the error in the text, in bytes.
    pub position: usize,
    /// Text found at this position, shortened; empty at the end of the text.
    pub found: String,
    /// Text expected at this position, or what is wrong with the text found.
    pub expected: String,
    /// Known name most similar to an unknown name.
    pub nearest: Option<&'static str>,
}

impl ParseError {
    pub(super) fn new(position: usize, found: &str, expected: impl Into<String>) -> ParseError {
        let mut short: String = found.chars().take(MAX_FOUND).collect();
        if short.len() < found.len() {
            short.push_str("...");
        }
        ParseError { position, found: short, expected: expected.into(), nearest: None }
    }

    /// Returns the error for an unknown name, with the most similar name of `known` as a suggestion.
    pub(super) fn unknown(
        position: usize,
        found: &str,
        expected: &str,
        known: impl IntoIterator<Item = &'static str>,
    ) -> ParseError {
        ParseError { nearest: nearest(found, known), ..ParseError::new(position, found, expected) }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.position + 1;
        match self.found.as_str() {
            "" => write!(f, "column {column}: found nothing, expected {}", self.expected)?,
            found => write!(f, "column {column}: found `{found}`, expected {}", self.expected)?,
        }
        self.nearest.map_or(Ok(()), |name| write!(f, "; did you mean `{name}`?"))
    }
}

impl std::error::Error for ParseError {}

/// Returns the known name with the smallest edit distance to `found`, if the distance is at most a third of the
/// length of `found` (at least 1).
fn nearest(found: &str, known: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    let found = found.to_ascii_lowercase();
    if found.len() > MAX_FOUND {
        return None;
    }
    let limit = (found.len() / 3).max(1);
    let near = known.into_iter().filter_map(|name| Some((changes(found.as_bytes(), name.as_bytes(), limit)?, name)));
    near.min_by_key(|(changes, _)| *changes).map(|(_, name)| name)
}

/// Returns the edit distance of two names, if it is at most `limit`: the number of insertions, deletions,
/// replacements and swaps of neighbours (optimal string alignment distance).
fn changes(a: &[u8], b: &[u8], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (vec![limit + 1; b.len() + 1], (0..=b.len()).collect());
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i);
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        // Each number derives from one of the two rows above it. Once both rows exceed the limit, all later rows do.
        if row.iter().chain(&last).all(|changes| *changes > limit) {
            return None;
        }
        before = std::mem::replace(&mut last, row);
    }
    Some(last[b.len()]).filter(|changes| *changes <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["nw_src", "nw_dst", "dl_dst"];
        assert_eq!(nearest("nw_dts", known), Some("nw_dst"));
        assert_eq!(nearest("NW_SRC", known), Some("nw_src"));
        assert_eq!(nearest("nonsense", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn long_pieces_are_cut() {
        let error = ParseError::new(3, &"x".repeat(1000), "less");
        assert_eq!(error.to_string(), format!("column 4: found `{}...`, expected less", "x".repeat(40)));
    }
}
