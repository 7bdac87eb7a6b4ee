//! The subcommands.
mod bench;
mod cleanup;
mod compare;
mod controller;
mod ctl;
mod emulate;
mod experiment;
mod licenses;
mod model;
mod ofp;
mod predict;
mod profile;
mod quickstart;
mod run;
mod simulate;
mod sweep;
mod switch;
mod topology;
mod traffic;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// An OpenFlow software switch that can be predicted.
#[derive(Parser)]
#[command(name = "weir", version, propagate_version = true)]
pub(crate) struct Cli {
    /// More messages: -v what happens, -vv details, -vvv everything
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the built-in example network and show what happened
    Quickstart(quickstart::Args),
    /// Run a scenario file live
    Run(run::Args),
    /// Run a scenario file on real programs, with links and switches that keep to its times, and a prompt
    Emulate(Box<emulate::Args>),
    /// Remove what killed runs left behind: network namespaces, interfaces, sockets
    Cleanup(cleanup::Args),
    /// Simulate a scenario file in virtual time
    Simulate(Box<simulate::Args>),
    /// Predict by formulas what a scenario file's packets will meet
    Predict(Box<predict::Args>),
    /// Put prediction, simulation and the live switch side by side
    Compare(Box<compare::Args>),
    /// Evaluate a formula: queues, switches, controllers
    Model(model::Args),
    /// Measure how a switch behaves in time, and look at profiles that say so
    Profile(profile::Args),
    /// Look at networks: by rule, or from files of collections
    Topology(topology::Args),
    /// Run a switch
    Switch(Box<switch::Args>),
    /// Talk to a running switch
    Ctl(ctl::Args),
    /// Send traffic by rule on a port, say how well, and record what becomes of it
    Traffic(Box<traffic::Args>),
    /// Run a controller
    Controller(controller::Args),
    /// Measure again what the literature measured on its switches
    Experiment(experiment::Args),
    /// Decode and encode OpenFlow messages
    Ofp(ofp::Args),
    /// Measure this machine or a switch: packets per second, flow-mods, what changing tables costs
    Bench(bench::Args),
    /// Print the licence of weir and those of the libraries in it
    Licenses,
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Quickstart(args) => quickstart::run(args),
            Command::Run(args) => run::run(args),
            Command::Emulate(args) => emulate::run(*args),
            Command::Cleanup(args) => cleanup::run(&args),
            Command::Simulate(args) => simulate::run(*args),
            Command::Predict(args) => predict::run(*args),
            Command::Compare(args) => compare::run(*args),
            Command::Model(args) => model::run(args),
            Command::Profile(args) => profile::run(args),
            Command::Topology(args) => topology::run(args),
            Command::Switch(args) => switch::run(*args),
            Command::Ctl(args) => ctl::run(args),
            Command::Traffic(args) => traffic::run(*args),
            Command::Controller(args) => controller::run(args),
            Command::Experiment(args) => experiment::run(args),
            Command::Ofp(args) => ofp::run(args),
            Command::Bench(args) => bench::run(args),
            Command::Licenses => licenses::run(),
        }
    }
}
