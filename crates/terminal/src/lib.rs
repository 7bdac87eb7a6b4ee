//! Output and signals of the commands of `weir`, for `cli` and for crates that have a command of their own, such as
//! `bench`.
//!
//! [`output`] prints a result or writes it to a file, and reports every result that cannot be written. [`signals`] ends
//! a run at Ctrl-C, so that the command can print what it has. Texts, tables and options belong to each command.
pub mod output;
pub mod signals;
