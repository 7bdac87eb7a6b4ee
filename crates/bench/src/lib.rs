//! Measures on this machine what weir promises its users: the benchmarks of `weir bench`.
//!
//! [`BenchArgs`] are the command's options, and [`run`] measures, prints and returns the exit status. Experiments make
//! single measurements of controllers by [`ControllerTrial`]. The crate has no other interface. A benchmark is a module
//! with four parts: its options, the measurement, a report that is written as JSON, and the report's text for people.
//!
//! | module | `weir bench` | measures |
//! |---|---|---|
//! | `datapath` | `datapath` | the packet path alone: tables and pipeline between ports in memory, on pinned threads |
//! | `threads` | `threads` | several threads of a switch compared with one, also on cores that others use |
//! | `tenants` | `tenants` | what virtual switches get while one of them overloads the switch |
//! | `controller` | `controller` | any controller's answers to packet-ins of emulated switches |
//! | `controller::rfc8456` | `rfc8456` | the 15 tests of RFC 8456 for any controller |
//! | `flow_mods` | `flow-mods` | flow-mods over an OpenFlow channel, for any switch |
//! | `updates` | `updates` | what changes of a table cost: gaps in forwarding, time of a flow-mod, memory |
//! | `links`, `timing` | `link`, `timing` | how exactly links and switches with a profile keep their times |
//! | `labs` | `emulate` | how long labs take to start, to answer all pings, and to end |
//! | `predict`, `simulate` | `predict`, `simulate` | how fast formulas and virtual time give answers |
//!
//! Several benchmarks use `machine` (the machine, for records), `entries` (flow entries), `tree` (a network of many
//! switches) and `stalls` (times at which the machine stopped a thread).
//!
//! Other benchmarks are elsewhere: programs for single data structures in the `benches` folders of their crates, and
//! scripts that run weir beside other programs in the project's folder `bench`.
mod controller;
mod datapath;
mod entries;
mod flow_mods;
mod labs;
mod links;
mod machine;
mod predict;
mod simulate;
mod stalls;
mod tenants;
mod threads;
mod timing;
mod tree;
mod updates;

pub use controller::{ControllerTrial, PeerController, TrialFigures, TrialPace, start_on_core};

use std::process::ExitCode;
use std::time::Duration;

/// Longest time to wait for any answer of a switch before a measurement is aborted.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options of `weir bench`.
#[derive(clap::Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(clap::Subcommand)]
enum BenchCommand {
    /// Measure how fast and how fairly a controller answers packet-ins: any controller, by emulated switches
    Controller(controller::ControllerBenchArgs),
    /// Measure packets per second of the packet path alone: real tables between ports in memory, on one pinned thread
    Datapath(datapath::DatapathBenchArgs),
    /// Measure how long emulated networks of many switches and hosts take to start, to answer all pings, to end
    /// (needs root)
    Emulate(labs::EmulateBenchArgs),
    /// Measure how exactly a link keeps its rate and its delay
    Link(links::LinkBenchArgs),
    /// Measure how fast a switch processes flow-mods, over its OpenFlow channel
    FlowMods(flow_mods::FlowModBenchArgs),
    /// Test a controller by RFC 8456: performance, scale, security and reliability, by emulated networks
    Rfc8456(Box<controller::rfc8456::Rfc8456Args>),
    /// Measure what virtual switches get while one of them overloads the switch: shares, rates, delays, cost of a
    /// packet
    Tenants(tenants::TenantBenchArgs),
    /// Measure how long formulas take to answer a network of many switches
    Predict(predict::PredictBenchArgs),
    /// Measure simulated events per second, on one thread
    Simulate(simulate::SimulateBenchArgs),
    /// Measure the throughput of several threads with their own ports, compared with one, also while other programs
    /// use the cores
    Threads(threads::ThreadBenchArgs),
    /// Measure how exactly a switch with a profile keeps its times
    Timing(timing::TimingBenchArgs),
    /// Measure the cost of changing a table: the gaps in forwarding meanwhile, each flow-mod, memory
    Updates(updates::UpdateBenchArgs),
}

impl BenchCommand {
    /// Returns what is measured, in words.
    fn name(&self) -> &'static str {
        match self {
            BenchCommand::Controller(_) => "a controller",
            BenchCommand::Datapath(_) => "the packet path",
            BenchCommand::Emulate(_) => "labs",
            BenchCommand::Link(_) => "a link",
            BenchCommand::FlowMods(_) => "flow-mods",
            BenchCommand::Rfc8456(_) => "a controller by RFC 8456",
            BenchCommand::Tenants(_) => "virtual switches",
            BenchCommand::Predict(_) => "formulas",
            BenchCommand::Simulate(_) => "virtual time",
            BenchCommand::Threads(_) => "threads",
            BenchCommand::Timing(_) => "the times of a profile",
            BenchCommand::Updates(_) => "changes of a table",
        }
    }
}

/// Measures what the command asks for and prints the result. Returns the exit status.
///
/// # Errors
/// An option is not valid, the machine has no room or no permission for the measurement, what is measured fails, or the
/// result cannot be printed.
pub fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let mut shown = weir_terminal::progress::ProgressDisplay::lines();
    shown.stage(&format!("measuring {}", args.command.name()));
    match args.command {
        BenchCommand::Controller(args) => controller::run(&args),
        BenchCommand::Datapath(args) => datapath::run(args),
        BenchCommand::Emulate(args) => labs::run(&args),
        BenchCommand::Link(args) => links::run(&args),
        BenchCommand::FlowMods(args) => flow_mods::run(&args),
        BenchCommand::Rfc8456(args) => controller::rfc8456::run(&args),
        BenchCommand::Tenants(args) => tenants::run(&args),
        BenchCommand::Predict(args) => predict::run(&args),
        BenchCommand::Simulate(args) => simulate::run_bench(&args),
        BenchCommand::Threads(args) => threads::run(&args),
        BenchCommand::Timing(args) => timing::run(&args),
        BenchCommand::Updates(args) => updates::run(&args),
    }
}
