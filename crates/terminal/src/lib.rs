//! Output and signals of the commands of `weir`, for `weir-cli` and for crates that have a command of their own, such
//! as `weir-bench`.
//!
//! Start with:
//!
//! - [`output`]: prints a result or writes it to a file, and reports every result that cannot be written.
//! - [`progress`]: shows how far a long command is.
//! - [`table`]: formats a report's tables so that they fit a terminal.
//! - [`prose`]: wraps a report's sentences so that they fit a terminal.
//! - [`signals`]: ends a run at Ctrl-C, so that the command can print what it has.
//!
//! Not in this crate: texts and options, which belong to each command.
//!
//! ```
//! use weir_terminal::output;
//! # fn main() -> anyhow::Result<()> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("result.json");
//! // A long run asks first whether its result could be written.
//! output::check_file(&path)?;
//! output::write_file(&path, "{}")?;
//! assert_eq!(std::fs::read_to_string(&path)?, "{}");
//! output::print("written\n")?;
//! # Ok(())
//! # }
//! ```
pub mod output;
pub mod progress;
pub mod prose;
pub mod signals;
pub mod table;
