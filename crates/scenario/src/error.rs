//! Errors of scenario files, with their place.
use std::fmt;
use std::ops::Range;
use weir_routing::apps::KEY_EXAMPLES;

/// Values of keys that some section of a scenario needs, as examples in errors.
const EXAMPLES: [(&str, &str); 22] = [
    ("name", "\"s1\""),
    ("vlan", "10"),
    ("switch", "\"s1\""),
    ("ends", "[\"s1\", \"s2\"]"),
    ("queue", "1"),
    ("ports", "[{ port = 1, rate = \"100Mbit/s\" }, { port = 2, rate = \"100Mbit/s\" }]"),
    ("port", "1"),
    ("buffer", "\"24kB\""),
    ("inputs", "\"1-4\""),
    ("output", "5"),
    ("high", "3.0"),
    ("low", "0.5"),
    ("time", "\"500us\""),
    ("on", "\"1ms\""),
    ("off", "\"9ms\""),
    ("shape", "1.5"),
    ("mean", "\"600B\""),
    ("file", "\"trace.csv\""),
    ("key", "\"voice\""),
    ("from", "\"h1\""),
    ("to", "\"h2\""),
    ("most", "\"5ms\""),
];

/// Returns what the TOML reader says of a value, in words of scenario files.
pub(crate) fn said(error: &toml::de::Error) -> String {
    weir_units::reworded(error.message(), &[EXAMPLES.as_slice(), &KEY_EXAMPLES].concat())
}

/// Returns what the TOML reader says of a law of this kind, whose key `file` is a capture, sizes or a trace.
pub(crate) fn said_of_law(error: &toml::de::Error, kind: Option<&str>) -> String {
    let file = match kind {
        Some("capture") => "\"capture.pcap\"",
        Some("empirical") => "\"sizes.csv\"",
        _ => return said(error),
    };
    weir_units::reworded(
        error.message(),
        &EXAMPLES.map(|(key, example)| (key, if key == "file" { file } else { example })),
    )
}

/// Error in a scenario: file, line, value found and value expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    file: String,
    line: Option<usize>,
    problem: String,
}

impl ScenarioError {
    /// Returns an error of a file that could not be read.
    pub(crate) fn unreadable(file: &str, error: &std::io::Error) -> Self {
        ScenarioError { file: file.to_owned(), line: None, problem: format!("cannot read the scenario: {error}") }
    }

    /// Returns an error without a line.
    pub(crate) fn without_line(file: &str, problem: String) -> Self {
        ScenarioError { file: file.to_owned(), line: None, problem }
    }

    /// Returns an error of text that is not TOML, or a value that does not have its type.
    pub(crate) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_of(text, &span));
        ScenarioError { file: file.to_owned(), line, problem: said(error) }
    }

    /// Returns an error of an impossible value.
    pub(crate) fn at(file: &str, text: &str, span: &Range<usize>, problem: String) -> Self {
        ScenarioError { file: file.to_owned(), line: Some(line_of(text, span)), problem }
    }

    /// Returns the problem without file and line.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// Returns the line in the file, from 1, if the problem has a place.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

/// Returns the line, from 1, on which a span starts.
pub(crate) fn line_of(text: &str, span: &Range<usize>) -> usize {
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
