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
        ParseError { nearest: weir_units::nearest_name(found, known), ..ParseError::new(position, found, expected) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pieces_are_cut() {
        let error = ParseError::new(3, &"x".repeat(1000), "less");
        assert_eq!(error.to_string(), format!("column 4: found `{}...`, expected less", "x".repeat(40)));
    }
}
