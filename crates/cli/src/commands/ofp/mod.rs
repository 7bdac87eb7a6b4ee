//! `weir ofp`: decodes and encodes OpenFlow messages and flow entries, without a switch.
mod capture;
mod connections;
mod framing;
mod hex;
mod parse_flow;
mod print;
mod printer;
mod segment;
mod tcp;
pub(crate) mod time;

use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print messages, from hexadecimal text, raw files and captures
    Print(print::Args),
    /// Check flow entries; print them in canonical form, as JSON or as the message that carries them
    ParseFlow(parse_flow::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Print(args) => print::run(&args),
        Command::ParseFlow(args) => parse_flow::run(&args),
    }
}
