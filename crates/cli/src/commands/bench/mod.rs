//! `weir bench`: measuring what users are promised.
mod flow_mods;

use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// How fast a switch takes flow-mods, over its OpenFlow channel
    FlowMods(flow_mods::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::FlowMods(args) => flow_mods::run(&args),
    }
}
