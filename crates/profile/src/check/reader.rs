//! Reads values in their limits, and says what is wrong with others, where.
use super::law;
use crate::{ServiceTime, written};
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use weir_units::Span;

/// Most packets of a buffer with a limit.
pub(super) const MAX_BUFFER: u32 = 1 << 20;
/// Longest time of a tick, a write or a time-out.
const MAX_DURATION: Duration = Duration::from_secs(24 * 3600);

/// What is wrong in a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the text that are wrong.
    pub span: Range<usize>,
    /// What was found and expected.
    pub text: String,
}

pub(crate) type Checked<T> = Result<T, Problem>;

/// Reads parts of a file.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The device with its section, for errors.
    pub what: String,
}

impl Reader {
    /// A law, if one is written.
    ///
    /// # Errors
    /// It is none.
    pub fn law(&self, key: &str, law: Option<&Spanned<written::Law>>) -> Checked<Option<ServiceTime>> {
        law.map(|law| self.service(key, law.span(), law.as_ref())).transpose()
    }

    pub(super) fn service(&self, key: &str, span: Range<usize>, law: &written::Law) -> Checked<ServiceTime> {
        law::read(law).map_err(|problem| self.problem(span, &format!("{key}: {problem}")))
    }

    /// How many packets a buffer holds, if it says so.
    ///
    /// # Errors
    /// None, or too many.
    pub fn buffer(&self, key: &str, buffer: Option<&Spanned<u32>>) -> Checked<Option<u32>> {
        match buffer {
            Some(wrong) if !(1..=MAX_BUFFER).contains(wrong.as_ref()) => {
                Err(self.error(wrong, &buffer_problem(key, *wrong.as_ref())))
            }
            other => Ok(other.map(|buffer| *buffer.as_ref())),
        }
    }

    pub(super) fn time(&self, key: &str, time: Option<&Spanned<Span>>) -> Checked<Option<Duration>> {
        time.map(|time| self.span(key, time)).transpose()
    }

    pub(super) fn span(&self, key: &str, span: &Spanned<Span>) -> Checked<Duration> {
        let found = span.as_ref().0;
        if found.is_zero() || found > MAX_DURATION {
            let problem = format!("{key}: found {}, expected more than 0 and at most 24h", span.as_ref());
            return Err(self.error(span, &problem));
        }
        Ok(found)
    }

    /// What is wrong with a value.
    pub fn error<T>(&self, at: &Spanned<T>, problem: &str) -> Problem {
        self.problem(at.span(), problem)
    }

    pub(crate) fn problem(&self, span: Range<usize>, problem: &str) -> Problem {
        let what = &self.what;
        Problem { span, text: if what.is_empty() { problem.to_owned() } else { format!("{what}: {problem}") } }
    }
}

pub(super) fn buffer_problem(key: &str, found: u32) -> String {
    format!("{key}: found {found}, expected 1 to {MAX_BUFFER} packets: the one in service counts")
}
