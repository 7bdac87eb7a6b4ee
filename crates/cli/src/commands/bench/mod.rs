//! `weir bench`: measuring what users are promised.
mod datapath;
mod entries;
mod flow_mods;
mod labs;
mod links;
mod machine;
mod predict;
mod simulate;
mod stood;
mod tenants;
mod threads;
mod timing;
mod tree;
mod updates;

use std::process::ExitCode;
use std::time::Duration;

/// How long a switch may take over anything before a measurement is given up.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Packets per second of the packet path alone: real tables between ports in memory, on one pinned thread
    Datapath(datapath::Args),
    /// How long emulated networks of many switches and hosts take to start, to answer all pings, to end (needs root)
    Emulate(labs::Args),
    /// How exactly a link keeps its rate and its delay
    Link(links::Args),
    /// How fast a switch takes flow-mods, over its OpenFlow channel
    FlowMods(flow_mods::Args),
    /// What virtual switches are promised while one does its worst: shares, rates, delays, cost of a packet
    Tenants(tenants::Args),
    /// How long formulas take to answer a network of many switches
    Predict(predict::Args),
    /// Events a second of simulations, on one thread
    Simulate(simulate::Args),
    /// What several threads do beside one, each with ports of its own, also while others want their cores
    Threads(threads::Args),
    /// How exactly a switch with a profile keeps its times
    Timing(timing::Args),
    /// What changing a table costs: the gaps in forwarding meanwhile, each flow-mod, memory
    Updates(updates::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Datapath(args) => datapath::run(args),
        Command::Emulate(args) => labs::run(&args),
        Command::Link(args) => links::run(&args),
        Command::FlowMods(args) => flow_mods::run(&args),
        Command::Tenants(args) => tenants::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Simulate(args) => simulate::run_bench(&args),
        Command::Threads(args) => threads::run(&args),
        Command::Timing(args) => timing::run(&args),
        Command::Updates(args) => updates::run(&args),
    }
}
