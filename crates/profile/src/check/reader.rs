//! Reads values within their limits, and reports others with their position.
use super::law;
use crate::{ServiceTime, written};
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use weir_units::TimeSpan;

/// Most packets of a limited buffer.
pub(super) const MAX_BUFFER: u32 = 1 << 20;
/// Longest tick, write or time-out.
const MAX_DURATION: Duration = Duration::from_secs(24 * 3600);

/// Problem in a text, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpannedProblem {
    /// Range of bytes in the text.
    pub span: Range<usize>,
    /// Description of what was found and what was expected.
    pub text: String,
}

pub(crate) type Checked<T> = Result<T, SpannedProblem>;

/// Reader of a section of a file.
#[derive(Debug, Clone)]
pub struct SectionReader {
    /// Name of the device and its section, for errors.
    pub what: String,
}

impl SectionReader {
    /// Reads a law, if one is written.
    ///
    /// # Errors
    /// The law is invalid.
    pub fn law(&self, key: &str, law: Option<&Spanned<written::LawToml>>) -> Checked<Option<ServiceTime>> {
        law.map(|law| self.service(key, law.span(), law.as_ref())).transpose()
    }

    pub(super) fn service(&self, key: &str, span: Range<usize>, law: &written::LawToml) -> Checked<ServiceTime> {
        law::read(law).map_err(|problem| self.problem(span, &format!("{key}: {problem}")))
    }

    /// Reads the size of a buffer in packets, if it is written.
    ///
    /// # Errors
    /// The size is 0 or too large.
    pub fn buffer(&self, key: &str, buffer: Option<&Spanned<u32>>) -> Checked<Option<u32>> {
        match buffer {
            Some(wrong) if !(1..=MAX_BUFFER).contains(wrong.as_ref()) => {
                Err(self.error(wrong, &buffer_problem(key, *wrong.as_ref())))
            }
            other => Ok(other.map(|buffer| *buffer.as_ref())),
        }
    }

    pub(super) fn time(&self, key: &str, time: Option<&Spanned<TimeSpan>>) -> Checked<Option<Duration>> {
        time.map(|time| self.span(key, time)).transpose()
    }

    pub(super) fn span(&self, key: &str, span: &Spanned<TimeSpan>) -> Checked<Duration> {
        let found = span.as_ref().0;
        if found.is_zero() || found > MAX_DURATION {
            let problem = format!("{key}: found {}, expected more than 0 and at most 24h", span.as_ref());
            return Err(self.error(span, &problem));
        }
        Ok(found)
    }

    /// Returns a problem at the position of a value.
    pub fn error<T>(&self, at: &Spanned<T>, problem: &str) -> SpannedProblem {
        self.problem(at.span(), problem)
    }

    pub(crate) fn problem(&self, span: Range<usize>, problem: &str) -> SpannedProblem {
        let what = &self.what;
        SpannedProblem { span, text: if what.is_empty() { problem.to_owned() } else { format!("{what}: {problem}") } }
    }
}

pub(super) fn buffer_problem(key: &str, found: u32) -> String {
    format!("{key}: found {found}, expected 1 to {MAX_BUFFER} packets: the one in service counts")
}
