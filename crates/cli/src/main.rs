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
use std::ffi::OsStr;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

/// Allocator of the process. Freeing memory that another thread allocated takes no lock. With the C library's
/// allocator, the engine dropped messages allocated by the control thread and had to sleep until that thread left its
/// part of the heap: 1 to 19 times a second under flow-mods.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Time for which freed memory is kept. With mimalloc's 10 ms, a controller that laid thousands of intents cleared
/// memory for a quarter of its processor time.
const KEEP_FREED: Duration = Duration::from_secs(1);

/// Exit status for bad input: arguments, files, messages.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    weir_memory::allocator::keep_freed(KEEP_FREED);
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
