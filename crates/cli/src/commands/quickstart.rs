//! `weir quickstart`: runs the example network that is built into the command.
use super::run::{LabArgs, run_scenario};
use std::process::ExitCode;
use weir_scenario::Scenario;

/// Text of the example scenario, the file that the documentation shows.
const EXAMPLE: &str = include_str!("../../../../examples/quickstart.toml");

#[derive(clap::Args)]
pub(crate) struct QuickstartArgs {
    #[command(flatten)]
    lab: LabArgs,
}

pub(crate) fn run(args: QuickstartArgs) -> anyhow::Result<ExitCode> {
    run_scenario(Scenario::parse(EXAMPLE, "examples/quickstart.toml")?, &args.lab)
}
