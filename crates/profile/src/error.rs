//! Defines the errors of reading a profile.
use crate::SpannedProblem;

/// Error in a profile: file and line, what was found, what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// Neither a file nor a shipped profile of this name exists.
    #[error("found no profile `{name}` ({problem}), expected a file or one of {known}")]
    Unknown {
        /// Name that was requested.
        name: String,
        /// Names of the shipped profiles.
        known: String,
        /// Reason why it cannot be read as a file.
        problem: String,
    },
    /// The file exists but cannot be read.
    #[error("{file}: cannot read the profile: {problem}")]
    Unreadable {
        /// Path of the file.
        file: String,
        /// Reason why it cannot be read.
        problem: String,
    },
    /// The file is not a valid profile.
    #[error("{file}:{line}: {problem}")]
    Wrong {
        /// Path of the file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Description of what was found and what was expected.
        problem: String,
    },
}

impl ProfileError {
    pub(crate) fn at(file: &str, text: &str, problem: SpannedProblem) -> ProfileError {
        let start = problem.span.start.min(text.len());
        let line = 1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
        ProfileError::Wrong { file: file.to_owned(), line, problem: problem.text }
    }

    pub(crate) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> ProfileError {
        let span = error.span().unwrap_or(0..0);
        ProfileError::at(file, text, SpannedProblem { span, text: weir_units::reworded(error.message(), &[]) })
    }
}
