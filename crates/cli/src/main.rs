//! Entry point of the `weir` command. Each subcommand is a module of [`commands`]; each option is defined once, in
//! its `Args`.
#![allow(rustdoc::broken_intra_doc_links, reason = "flags say `[:PORT]` in their help, which clap prints as it stands")]
mod arguments;
mod commands;
mod renamed;
mod threads;
mod tls;

use clap::{CommandFactory as _, FromArgMatches as _};
use commands::LogFormat;
use mimalloc::MiMalloc;
use std::ffi::{OsStr, c_int, c_long};
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Allocator of the process. Freeing memory that another thread allocated takes no lock. With the C library's
/// allocator, the engine dropped messages allocated by the control thread and had to sleep until that thread left its
/// part of the heap: 1 to 19 times a second under flow-mods.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Milliseconds for which freed memory is kept before the system gets it back, in place of mimalloc's 10. Memory that
/// comes back from the system is cleared first: a controller that laid thousands of intents did that for a quarter of
/// its processor time.
const KEEP_FREED_MS: c_long = 1000;
/// Number of mimalloc's option `purge_delay` (`mimalloc.h` of version 2).
const PURGE_DELAY: c_int = 15;

unsafe extern "C" {
    /// Sets an option of mimalloc, unless the environment has set it.
    fn mi_option_set_default(option: c_int, value: c_long);
}

/// Exit status for bad input: arguments, files, messages.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    // SAFETY: the option exists, and any number of milliseconds is allowed. MIMALLOC_PURGE_DELAY goes first.
    unsafe { mi_option_set_default(PURGE_DELAY, KEEP_FREED_MS) };
    let matches = commands::Cli::command().try_get_matches().unwrap_or_else(|error| arguments::refuse(&error));
    let cli = commands::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    for notice in renamed::notices(std::env::args().skip(1)) {
        eprintln!("weir: {notice}");
    }
    init_log(cli.verbose, cli.log_format);
    if cli.quiet {
        weir_terminal::progress::silence();
    }
    match cli.command.run(&matches) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("weir: {error:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Returns true if output to a terminal may have colours: unless NO_COLOR has a value (no-color.org).
fn has_colour(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// Writes log messages to standard error, at the level of `-v`; `RUST_LOG` overrides it.
fn init_log(verbose: u8, format: LogFormat) {
    let default = ["warn", "info", "debug", "trace"][usize::from(verbose.min(3))];
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| default.into());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(has_colour(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref()))
        .with_target(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_is_heeded() {
        assert!(has_colour(true, None) && has_colour(true, Some(OsStr::new(""))));
        assert!(!has_colour(true, Some(OsStr::new("1"))) && !has_colour(false, None));
    }
}
