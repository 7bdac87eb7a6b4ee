//! `weir bench emulate`: measures how long labs of many switches and hosts take to start, to answer all pings, and to
//! end.
use super::machine::BenchMachineInfo;
use anyhow::{Context as _, ensure};
use serde::Serialize;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use weir_emulator::prompt::{LabConsole, PromptCommand, PromptOutcome};
use weir_emulator::{Lab, LabOptions, NeighbourResolution};
use weir_scenario::Scenario;
use weir_terminal::signals::StopSignalHandler;
use weir_units::{Clock as _, SystemClock};

/// Number of child switches of each switch in the tree.
const BRANCHES: usize = 3;
/// Hosts per switch.
const HOSTS: usize = 2;
/// Time to wait for an answer to a ping.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub(crate) struct EmulateBenchArgs {
    /// Numbers of switches of the networks, which are trees with two hosts at each switch
    #[arg(long, value_delimiter = ',', default_value = "1,10,30,100", value_parser = clap::value_parser!(u16).range(1..=200))]
    switches: Vec<u16>,
    /// Profile of all switches, by its name
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Number of times that each network is started
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Send a ping from every host to every other, too
    #[arg(long)]
    pingall: bool,
    /// How hosts find each other's Ethernet addresses, as in `weir emulate`
    #[arg(long, value_name = "HOW", default_value = "auto")]
    neighbours: NeighbourResolution,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct EmulateBenchReport {
    machine: BenchMachineInfo,
    release_build: bool,
    profile: Option<String>,
    rows: Vec<EmulateBenchRow>,
}

/// Results of a network that was started several times.
#[derive(Serialize)]
struct EmulateBenchRow {
    switches: usize,
    hosts: usize,
    links: usize,
    /// True if hosts knew each other's Ethernet addresses from the start.
    neighbours_known: bool,
    /// Time to start a switch or a host in milliseconds, the median of all runs.
    node_ms: f64,
    runs: Vec<LabRunTimes>,
}

/// Durations of the parts of one run, in seconds.
#[derive(Serialize)]
struct LabRunTimes {
    hosts_s: f64,
    switches_s: f64,
    control_s: f64,
    sum_s: f64,
    pings: Option<PingAllResult>,
    end_s: f64,
}

#[derive(Serialize)]
struct PingAllResult {
    took_s: f64,
    all_reached: bool,
    /// Last line of the output of `pingall`.
    said: String,
}

pub(crate) fn run(args: &EmulateBenchArgs) -> anyhow::Result<ExitCode> {
    let machine = BenchMachineInfo::detect();
    let signals = StopSignalHandler::watch()?;
    let mut rows = Vec::new();
    for switches in &args.switches {
        rows.push(row(args, usize::from(*switches), &signals)?);
    }
    let result = EmulateBenchReport {
        machine,
        release_build: weir_units::IS_RELEASE_BUILD,
        profile: args.profile.clone(),
        rows,
    };
    let text = if args.json { serde_json::to_string_pretty(&result)? + "\n" } else { lines(&result) };
    weir_terminal::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn row(args: &EmulateBenchArgs, switches: usize, signals: &StopSignalHandler) -> anyhow::Result<EmulateBenchRow> {
    let scenario = network(switches, args.profile.as_deref())?;
    let nodes = scenario.switches.len() + scenario.hosts.len();
    let (mut runs, mut neighbours_known) = (Vec::new(), false);
    for _ in 0..args.runs {
        let (run, known) = once(args, &scenario, signals)?;
        runs.push(run);
        neighbours_known = known;
    }
    let mut sums: Vec<f64> = runs.iter().map(|run| run.sum_s).collect();
    sums.sort_by(f64::total_cmp);
    Ok(EmulateBenchRow {
        switches,
        hosts: scenario.hosts.len(),
        links: scenario.links.len(),
        neighbours_known,
        node_ms: sums[sums.len() / 2] * 1e3 / nodes as f64,
        runs,
    })
}

fn once(
    args: &EmulateBenchArgs,
    scenario: &Scenario,
    signals: &StopSignalHandler,
) -> anyhow::Result<(LabRunTimes, bool)> {
    let cancel = &signals.cancel;
    let options =
        LabOptions { emulate: true, neighbours: args.neighbours, cancel: cancel.clone(), ..LabOptions::default() };
    let lab = Lab::start(scenario, &options, &mut |_| {})?;
    let (clock, started) = (SystemClock::start(), lab.started());
    let mut console = LabConsole::new(lab);
    let mut pings = None;
    if args.pingall && !cancel.is_cancelled() {
        let (begin, mut said) = (clock.now(), Vec::new());
        let outcome =
            console.carry_out(&PromptCommand::PingAll { timeout: PATIENCE }, cancel, &mut said, &mut |_| {})?;
        let said = String::from_utf8_lossy(&said).lines().last().unwrap_or_default().to_owned();
        let took_s = clock.now().since(begin).as_secs_f64();
        pings = Some(PingAllResult { took_s, all_reached: matches!(outcome, PromptOutcome::Done), said });
    }
    let begin = clock.now();
    console.finish()?;
    let end_s = clock.now().since(begin).as_secs_f64();
    ensure!(!cancel.is_cancelled(), "stopped by a signal; nothing is left behind");
    let s = |time: Duration| time.as_secs_f64();
    let [hosts_s, switches_s, control_s] = [started.hosts, started.switches, started.control].map(s);
    Ok((
        LabRunTimes { hosts_s, switches_s, control_s, sum_s: s(started.sum()), pings, end_s },
        started.neighbours_known,
    ))
}

/// Returns a tree of switches with two hosts each, under the controller in this process.
fn network(switches: usize, profile: Option<&str>) -> anyhow::Result<Scenario> {
    let mut text = String::new();
    for number in 0..switches {
        let _ = write!(text, "[[switch]]\nname = \"s{number}\"\n");
        if let Some(profile) = profile {
            let _ = writeln!(text, "profile = {profile:?}");
        }
        for host in (0..HOSTS).map(|host| number * HOSTS + host) {
            let (high, low) = (host / 250, host % 250 + 1);
            let _ =
                write!(text, "[[host]]\nname = \"h{host}\"\nswitch = \"s{number}\"\nip = \"10.0.{high}.{low}/16\"\n");
        }
        if number > 0 {
            let above = (number - 1) / BRANCHES;
            let _ = write!(text, "[[link]]\nends = [\"s{above}\", \"s{number}\"]\ndelay = \"100us\"\n");
        }
    }
    Scenario::parse(&text, "labs.toml").context("the tree of switches and hosts")
}

fn lines(result: &EmulateBenchReport) -> String {
    let mut text = String::new();
    for row in &result.rows {
        let _ = writeln!(
            text,
            "{} switches, {} hosts, {} links: {:.1} ms a node to start (median of {})",
            row.switches,
            row.hosts,
            row.links,
            row.node_ms,
            row.runs.len()
        );
        for run in &row.runs {
            let LabRunTimes { hosts_s, switches_s, control_s, sum_s, pings, end_s } = run;
            let _ = write!(
                text,
                "  {sum_s:.2} s (hosts {hosts_s:.2} s, switches {switches_s:.2} s, control and links up {control_s:.2} s), to end {end_s:.2} s"
            );
            let _ = match pings {
                Some(pings) => writeln!(text, "; all pings {:.2} s: {}", pings.took_s, pings.said),
                None => writeln!(text),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_all_sizes_can_be_made() {
        for switches in [1, 2, 100, 200] {
            let scenario = network(switches, None).unwrap();
            let found = (scenario.switches.len(), scenario.hosts.len(), scenario.links.len());
            assert_eq!(found, (switches, 2 * switches, switches - 1));
        }
        let profiled = network(2, Some("two-level-tcam")).unwrap();
        assert!(profiled.switches.iter().all(|switch| switch.profile.is_some()));
        assert!(network(2, Some("no such profile")).is_err());
    }
}
