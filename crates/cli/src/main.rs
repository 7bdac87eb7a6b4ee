//! The `weir` command. Each subcommand is a module of [`commands`]; a flag is defined once, in its `Args`.
#![allow(rustdoc::broken_intra_doc_links, reason = "flags say `[:PORT]` in their help, which clap prints as it stands")]
mod commands;
mod output;
mod threads;
mod tls;

use clap::Parser;
use mimalloc::MiMalloc;
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Giving back what another thread asked for takes no lock here. With the C library a switch's engine, which drops messages that the control
/// thread made, had to sleep now and then until that thread had left its part of the heap: 1 to 19 times a second under flow-mods.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Exit status for bad input: arguments, files, messages.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let cli = commands::Cli::parse();
    init_log(cli.verbose);
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("weir: {error:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Log lines go to standard error; `RUST_LOG` overrides `-v`.
fn init_log(verbose: u8) {
    let default = ["warn", "info", "debug", "trace"][usize::from(verbose.min(3))];
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| default.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}
