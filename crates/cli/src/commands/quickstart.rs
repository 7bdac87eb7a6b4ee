//! `weir quickstart`: the example network that is part of the command.
use super::run::{LabArgs, run_scenario};
use std::process::ExitCode;
use weir_scenario::Scenario;

/// The same file that the documentation shows.
const EXAMPLE: &str = include_str!("../../../../examples/quickstart.toml");

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    lab: LabArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    run_scenario(Scenario::parse(EXAMPLE, "examples/quickstart.toml")?, &args.lab)
}
