//! What is wrong with a profile.
use crate::Problem;

/// What is wrong with a profile: file and line, what was found, what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// There is no such file, and none of that name is shipped.
    #[error("found no profile `{name}`, expected a file or one of {known}: {problem}")]
    Unknown {
        /// What was looked for.
        name: String,
        /// Names of those that are shipped.
        known: String,
        /// Why it cannot be read as a file.
        problem: String,
    },
    /// The file is there and cannot be read.
    #[error("{file}: cannot read the profile: {problem}")]
    Unreadable {
        /// Its name.
        file: String,
        /// Why it cannot be read.
        problem: String,
    },
    /// The file is no profile.
    #[error("{file}:{line}: {problem}")]
    Wrong {
        /// Its name.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What was found and expected.
        problem: String,
    },
}

impl ProfileError {
    pub(crate) fn at(file: &str, text: &str, problem: Problem) -> ProfileError {
        let start = problem.span.start.min(text.len());
        let line = 1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
        ProfileError::Wrong { file: file.to_owned(), line, problem: problem.text }
    }

    pub(crate) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> ProfileError {
        let span = error.span().unwrap_or(0..0);
        ProfileError::at(file, text, Problem { span, text: error.message().to_owned() })
    }
}
