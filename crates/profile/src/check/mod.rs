//! Converts files as written to their meaning, and checks the limits of all values.
mod cache;
mod law;
mod levels;
mod profile;
mod reader;
mod timing;

pub(crate) use profile::{at_base, profile};
pub(crate) use reader::Checked;
pub(crate) use timing::DEFAULT_SLOW;

pub use law::MAX_SERVICE_S;
pub use reader::{SectionReader, SpannedProblem};
pub use timing::timing;
