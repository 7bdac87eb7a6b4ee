//! `weir run`: runs a scenario file live. Exit status 0 if all traffic did what the scenario expects, 1 if not, 3 if
//! times cannot be trusted and `--strict` is given, 130 when stopped.
pub(crate) mod progress;
pub(crate) mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use weir_emulator::LabOptions;
use weir_network::LabResult;
use weir_network::certificate::FidelityVerdict;
use weir_scenario::Scenario;
use weir_terminal::prose::wrapped;
use weir_terminal::signals::{STOPPED, StopSignalHandler};
use weir_units::TimeSpan;

/// Exit status of a run whose traffic did not do what the scenario expects.
pub(crate) const NOT_AS_EXPECTED: u8 = 1;
/// Exit status of a run whose times cannot be trusted, with `--strict`.
pub(crate) const NOT_FAITHFUL: u8 = 3;

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML; docs/scenario.md describes it)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    lab: LabArgs,
}

/// Options for all commands that run a scenario.
#[derive(clap::Args)]
pub(crate) struct LabArgs {
    /// Run hosts as network namespaces with real ping and iperf3 (needs root) instead of network stacks in this
    /// process
    #[arg(long)]
    netns: bool,
    /// End with status 3 unless the certificate says that times are faithful
    #[arg(long)]
    strict: bool,
    /// Length of each tcp and udp item of traffic, and of all streams, such as 10s, instead of the scenario's
    #[arg(long, value_name = "TIME")]
    duration: Option<TimeSpan>,
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV, a line for each item of traffic, or for each stream if there is no traffic
    #[arg(long)]
    csv: bool,
}

pub(crate) fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    run_scenario(Scenario::read(&args.file)?, &args.lab)
}

/// Runs a scenario and prints its result.
pub(crate) fn run_scenario(mut scenario: Scenario, args: &LabArgs) -> anyhow::Result<ExitCode> {
    if let Some(duration) = args.duration {
        set_duration(&mut scenario, duration)?;
    }
    let signals = StopSignalHandler::watch()?;
    let options =
        LabOptions { netns: args.netns, certify: true, cancel: signals.cancel.clone(), ..LabOptions::default() };
    let mut shown = progress::LabProgressDisplay::new();
    let result = weir_emulator::run(&scenario, &options, &mut |progress| shown.update(&progress));
    drop(shown);
    let result = result?;
    let text = match (args.json, args.csv) {
        (true, _) => json(&result)?,
        (_, true) => report::csv(&result),
        _ => wrapped(&report::text(&result)),
    };
    weir_terminal::output::print(&text)?;
    Ok(match () {
        () if result.partial => ExitCode::from(STOPPED),
        () if !result.passed => ExitCode::from(NOT_AS_EXPECTED),
        () if args.strict && !is_faithful(&result) => ExitCode::from(NOT_FAITHFUL),
        () => ExitCode::SUCCESS,
    })
}

/// Returns true if nothing says that times cannot be trusted.
pub(crate) fn is_faithful(result: &LabResult) -> bool {
    result.certificate.as_ref().is_none_or(|certificate| certificate.verdict == FidelityVerdict::Faithful)
}

fn json(result: &LabResult) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(result)? + "\n")
}

/// Replaces the duration of all streams and of all tcp and udp items of traffic.
pub(crate) fn set_duration(scenario: &mut Scenario, wanted: TimeSpan) -> anyhow::Result<()> {
    anyhow::ensure!(!wanted.0.is_zero(), "--duration: found {wanted}, expected a time above zero such as 10s");
    scenario.simulate.duration = wanted.0;
    for item in &mut scenario.traffic {
        item.kind.set_duration(wanted.0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::TrafficKind;

    #[test]
    fn the_duration_is_that_of_streams() {
        let text = include_str!("../../../../../examples/quickstart.toml");
        let mut scenario = Scenario::parse(text, "quickstart").unwrap();
        let pings = |scenario: &Scenario| {
            let is_ping = |item: &&weir_scenario::TrafficItem| matches!(item.kind, TrafficKind::Ping { .. });
            scenario.traffic.iter().filter(is_ping).cloned().collect::<Vec<_>>()
        };
        let before = pings(&scenario);
        set_duration(&mut scenario, "250ms".parse().unwrap()).unwrap();
        let lengths: Vec<_> = scenario
            .traffic
            .iter()
            .filter_map(|item| match item.kind {
                TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } => Some(duration.as_millis()),
                TrafficKind::Ping { .. } => None,
            })
            .collect();
        assert_eq!((lengths, pings(&scenario)), (vec![250, 250], before));
        assert!(set_duration(&mut scenario, "0s".parse().unwrap()).is_err());
    }
}
