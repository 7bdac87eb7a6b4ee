//! Errors of topology files, with file and line.
use std::fmt;

/// Error in a topology file: file, line if the format has lines, what was found, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyError {
    file: String,
    line: Option<usize>,
    problem: String,
}

impl TopologyError {
    pub(crate) fn new(file: &str, line: Option<usize>, problem: impl Into<String>) -> TopologyError {
        TopologyError { file: file.to_owned(), line, problem: problem.into() }
    }

    /// Returns the line in the file, from 1, if the problem has one.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Returns the problem's text, without file and line.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for TopologyError {}
