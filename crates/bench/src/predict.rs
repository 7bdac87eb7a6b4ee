//! `weir bench predict`: measures how long formulas take to answer a network, on one thread.
use super::{machine::BenchMachineInfo, tree::tree};
use serde::Serialize;
use std::process::ExitCode;
use weir_predict::{PredictSettings, PredictionStatus, predict};
use weir_units::{Clock as _, SystemClock};

#[derive(clap::Args)]
pub(crate) struct PredictBenchArgs {
    /// Number of switches of the network, a tree with a host and a flow at each switch
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(2..=200))]
    switches: u16,
    /// Number of times that it is answered
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeats: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct PredictBenchReport {
    machine: BenchMachineInfo,
    release_build: bool,
    switches: u16,
    flows: usize,
    devices: usize,
    repeats: u32,
    /// Fastest of all repeats, in seconds. It counts, because other work of the machine can only slow a repeat down.
    fastest_s: f64,
    median_s: f64,
    slowest_s: f64,
}

pub(crate) fn run(args: &PredictBenchArgs) -> anyhow::Result<ExitCode> {
    let machine = BenchMachineInfo::detect();
    let scenario = tree(usize::from(args.switches))?;
    let (clock, settings) = (SystemClock::start(), PredictSettings::default());
    let mut seconds = Vec::new();
    let mut sizes = (0, 0);
    for _ in 0..args.repeats {
        let begin = clock.now();
        let answer = predict(&scenario, &settings)?;
        seconds.push(clock.now().since(begin).as_secs_f64());
        anyhow::ensure!(
            answer.flows.iter().all(|flow| flow.status == PredictionStatus::Ok),
            "found a flow without an answer"
        );
        sizes = (answer.flows.len(), answer.devices.len());
    }
    seconds.sort_by(f64::total_cmp);
    let result = PredictBenchReport {
        machine,
        release_build: weir_units::IS_RELEASE_BUILD,
        switches: args.switches,
        flows: sizes.0,
        devices: sizes.1,
        repeats: args.repeats,
        fastest_s: seconds[0],
        median_s: seconds[seconds.len() / 2],
        slowest_s: seconds[seconds.len() - 1],
    };
    let text = if args.json { serde_json::to_string_pretty(&result)? + "\n" } else { line(&result) };
    weir_terminal::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn line(result: &PredictBenchReport) -> String {
    format!(
        "{} switches, {} flows, {} devices: {:.1} ms (fastest), {:.1} ms (median), {:.1} ms (slowest of {})\n",
        result.switches,
        result.flows,
        result.devices,
        result.fastest_s * 1e3,
        result.median_s * 1e3,
        result.slowest_s * 1e3,
        result.repeats
    )
}
