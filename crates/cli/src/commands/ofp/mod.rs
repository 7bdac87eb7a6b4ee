//! `weir ofp`: decodes and encodes OpenFlow messages and flow entries, without a switch.
mod capture;
mod connections;
mod framing;
mod hex;
mod parse_flow;
mod print;
pub(crate) mod printer;
mod segment;
mod tcp;
pub(crate) mod time;

use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct OfpArgs {
    #[command(subcommand)]
    command: OfpCommand,
}

#[derive(clap::Subcommand)]
enum OfpCommand {
    /// Print messages, from hexadecimal text, raw files and captures
    Print(print::OfpPrintArgs),
    /// Check flow entries; print them in canonical form, as JSON or as the message that carries them
    ParseFlow(parse_flow::OfpParseFlowArgs),
}

pub(crate) fn run(args: OfpArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        OfpCommand::Print(args) => print::run(&args),
        OfpCommand::ParseFlow(args) => parse_flow::run(&args),
    }
}
