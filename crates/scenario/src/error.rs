//! What is wrong with a scenario file, where.
use std::fmt;
use std::ops::Range;

/// What is wrong with a scenario: file, line, what was found, what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    file: String,
    line: Option<usize>,
    problem: String,
}

impl ScenarioError {
    /// The file could not be read.
    pub(crate) fn unreadable(file: &str, error: &std::io::Error) -> Self {
        ScenarioError { file: file.to_owned(), line: None, problem: format!("cannot read the scenario: {error}") }
    }

    /// The text is not TOML, or a value does not have its type.
    pub(crate) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_of(text, &span));
        ScenarioError { file: file.to_owned(), line, problem: error.message().to_owned() }
    }

    /// A value that says something impossible.
    pub(crate) fn at(file: &str, text: &str, span: &Range<usize>, problem: String) -> Self {
        ScenarioError { file: file.to_owned(), line: Some(line_of(text, span)), problem }
    }

    /// What is wrong, without file and line.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// The file's line, from 1, if the problem has a place.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

/// The line, from 1, that a span starts on.
fn line_of(text: &str, span: &Range<usize>) -> usize {
    let start = span.start.min(text.len());
    1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count()
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for ScenarioError {}
