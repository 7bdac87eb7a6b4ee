//! `weir bench`: measures the figures that the documentation promises.
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

/// Longest time to wait for any answer of a switch before a measurement is aborted.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Measure packets per second of the packet path alone: real tables between ports in memory, on one pinned thread
    Datapath(datapath::Args),
    /// Measure how long emulated networks of many switches and hosts take to start, to answer all pings, to end
    /// (needs root)
    Emulate(labs::Args),
    /// Measure how exactly a link keeps its rate and its delay
    Link(links::Args),
    /// Measure how fast a switch processes flow-mods, over its OpenFlow channel
    FlowMods(flow_mods::Args),
    /// Measure what virtual switches get while one of them overloads the switch: shares, rates, delays, cost of a
    /// packet
    Tenants(tenants::Args),
    /// Measure how long formulas take to answer a network of many switches
    Predict(predict::Args),
    /// Measure simulated events per second, on one thread
    Simulate(simulate::Args),
    /// Measure the throughput of several threads with their own ports, compared with one, also while other programs
    /// use the cores
    Threads(threads::Args),
    /// Measure how exactly a switch with a profile keeps its times
    Timing(timing::Args),
    /// Measure the cost of changing a table: the gaps in forwarding meanwhile, each flow-mod, memory
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
