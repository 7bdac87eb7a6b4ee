//! `weir bench controller`: emulated switches ask a controller about packets, and measure its answers.
//!
//! `switch`, `fleet`, `pace`, `request` and `reply` are without sockets and clock; `engine` gives them both, on one
//! thread. `measure` is one measurement of one controller, `peers` starts controllers, `reflector` is the generator's
//! own ceiling, `report` and `page` show the results.
mod answers;
mod engine;
mod event;
mod figures;
mod fleet;
#[cfg(test)]
mod live_tests;
mod measure;
mod pace;
mod page;
mod peers;
mod process;
mod reflector;
mod reply;
mod report;
mod request;
pub(crate) mod rfc8456;
mod switch;
mod tally;
#[cfg(test)]
mod tests;
mod trial;

pub use trial::{ControllerTrial, PeerController, TrialFigures, TrialPace, start_on_core};

use crate::machine::BenchMachineInfo;
use anyhow::{Context as _, bail, ensure};
use event::HalfTimeEvent;
use measure::{MeasureSettings, MeasuredController, MeasuredPace, measure};
use pace::AskedArrivals;
use peers::ComparedController;
use report::{ControllerBenchReport, ControllerFailure};
use request::{AskedFrames, AskedSources, MAX_HOSTS};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use weir_emulator::CancelHandle;
use weir_openflow::Version;
use weir_terminal::output;
use weir_terminal::progress::ProgressDisplay;
use weir_terminal::signals::{STOPPED, StopSignalHandler};
use weir_units::TimeSpan;

/// Descriptors besides those of the switches: files, pipes, the reflector's listener.
const OTHER_DESCRIPTORS: u64 = 64;
/// Time after which a packet-in is lost, in seconds: usually, and if switches send as fast as possible.
const TIMEOUT_S: f64 = 1.0;
const FLOOD_TIMEOUT_S: f64 = 10.0;
/// Longest measurement of the generator's own ceiling, in seconds.
const CEILING_S: f64 = 1.0;

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("controller").required(true).args(["address", "compare"])))]
pub(crate) struct ControllerBenchArgs {
    /// The controller: HOST:PORT, or tcp:HOST:PORT
    address: Option<String>,
    /// Start these controllers one after the other and measure each: weir, ovs-testcontroller, os-ken (with the
    /// python3 of the PATH), or NAME=COMMAND with {port} in the command; may be repeated
    #[arg(long, value_name = "CONTROLLER")]
    compare: Vec<ComparedController>,
    /// Core on which compared controllers run [default: the first; any with one core]
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// Process id of the controller, for its processor time and memory
    #[arg(long)]
    pid: Option<u32>,
    /// Number of emulated switches
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    switches: u32,
    /// Hosts of each switch, each at a port of its own
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_HOSTS)))]
    hosts: u32,
    /// OpenFlow version: 1.0, 1.3 or 1.4
    #[arg(long, default_value = "1.3", value_parser = parse_version)]
    openflow: Version,
    /// Frames that the switches ask about
    #[arg(long, value_enum, default_value_t = AskedFrames::L2)]
    frames: AskedFrames,
    /// Hosts that send
    #[arg(long, value_enum, default_value_t = AskedSources::Known)]
    sources: AskedSources,
    /// Unanswered packet-ins of each switch; 1 is one at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    window: u32,
    /// Send as fast as the controller reads
    #[arg(long, conflicts_with_all = ["window", "rate"])]
    flood: bool,
    /// Packet-ins a second of all switches together, whatever is answered; delays count from when each was due
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate, conflicts_with = "window")]
    rate: Option<f64>,
    /// Times between the packet-ins of a rate
    #[arg(long, value_enum, default_value_t = AskedArrivals::Poisson)]
    arrivals: AskedArrivals,
    /// Packet-ins of a burst, for --arrivals bursts
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    burst: u32,
    /// Unequal offers: shares of the switches in the rate, or factors of their windows, in turn, as in 1,1,4
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000))]
    weights: Vec<u32>,
    /// At half time one more switch connects; measures how long until it is served as the others are. With
    /// --join=TIMES it leaves and comes again, so many times
    #[arg(long, value_name = "TIMES", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    join: Option<u32>,
    /// At half time one more switch connects and sends as fast as possible; measures what the others lose
    #[arg(long, conflicts_with = "join")]
    greedy: bool,
    /// At half time one more switch connects, which sends 100 packet-ins and as many echo requests a second; measures
    /// how long it waits beside the others
    #[arg(long, conflicts_with_all = ["join", "greedy"])]
    probe: bool,
    /// Let all switches connect and leave so many times before the measurement
    #[arg(long, default_value_t = 0, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(0..=1000))]
    storms: u32,
    /// Measure as cbench does: its addresses, OpenFlow 1.0, each flow-mod and each packet-out a response. One packet-in
    /// at a time; with --flood full output buffers
    #[arg(long, conflicts_with_all = ["openflow", "sources", "window", "rate", "weights", "join", "greedy", "probe"])]
    cbench: bool,
    /// Time to measure
    #[arg(long, default_value = "5s", value_parser = parse_time)]
    time: TimeSpan,
    /// Time under load before the measurement
    #[arg(long, default_value = "1s", value_parser = parse_time_or_none)]
    warm_up: TimeSpan,
    /// Time after which a packet-in without an answer is lost [default: 1s, with --flood and --greedy 10s]
    #[arg(long, value_parser = parse_time)]
    timeout: Option<TimeSpan>,
    /// Do not measure the generator's own ceiling
    #[arg(long)]
    no_ceiling: bool,
    /// Seed for everything that is drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print the result as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a page with charts to this file, too
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub(crate) fn run(args: &ControllerBenchArgs) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.plot {
        output::check_file(path).with_context(|| format!("--plot: cannot write {}", path.display()))?;
    }
    let settings = settings(args);
    // The reflector's connections are descriptors of this process, too.
    let each = if args.no_ceiling { 1 } else { 2 };
    ensure_descriptors(args.switches, each)?;
    let signals = StopSignalHandler::watch()?;
    let mut report = ControllerBenchReport {
        machine: BenchMachineInfo::detect(),
        release_build: weir_units::IS_RELEASE_BUILD,
        settings,
        controllers: Vec::new(),
        failures: Vec::new(),
    };
    let mut progress = ProgressDisplay::lines();
    if let Some(text) = &args.address {
        let address = resolve(text)?;
        report.controllers.push(measure(text, address, &report.settings, args.pid, &signals.cancel)?);
    }
    for controller in &args.compare {
        if signals.cancel.is_cancelled() {
            break;
        }
        progress.stage(&format!("measuring {}", controller.name));
        match compared(controller, args, &report.settings, &signals.cancel) {
            Ok(result) => report.controllers.push(result),
            Err(error) => {
                let failure = ControllerFailure { controller: controller.name.clone(), error: format!("{error:#}") };
                report.failures.push(failure);
            }
        }
    }
    if !args.no_ceiling && !report.controllers.is_empty() && !signals.cancel.is_cancelled() {
        progress.stage("measuring the generator itself");
        // The controllers' results are printed, whatever becomes of the ceiling.
        match ceiling(&report.settings, &signals.cancel) {
            Ok(rate) => report.controllers.iter_mut().for_each(|one| one.ceiling_per_second = Some(rate)),
            Err(_) if signals.cancel.is_cancelled() => {}
            Err(error) => {
                let controller = "the generator itself".to_owned();
                report.failures.push(ControllerFailure { controller, error: format!("{error:#}") });
            }
        }
    }
    let text = match (args.json, args.csv) {
        (true, _) => serde_json::to_string_pretty(&report)? + "\n",
        (_, true) => report.csv(),
        _ => report.text(),
    };
    output::print(&text)?;
    if let Some(path) = &args.plot {
        output::write_file(path, &page::page(&report)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let is_stopped = signals.cancel.is_cancelled();
    Ok(match (is_stopped, report.failures.is_empty()) {
        (true, _) => ExitCode::from(STOPPED),
        (_, true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Measures the reflector as the controller was measured, without events: what the generator reaches by itself.
fn ceiling(settings: &MeasureSettings, cancel: &CancelHandle) -> anyhow::Result<f64> {
    let reflector = reflector::Reflector::start(settings.version)?;
    // A rate would be answered at this rate: the ceiling is that of flooding switches.
    let pace = if matches!(settings.pace, MeasuredPace::Rate { .. }) { MeasuredPace::Flood } else { settings.pace };
    let time_s = settings.time_s.min(CEILING_S);
    let plain = MeasureSettings {
        pace,
        time_s,
        warm_up_s: time_s / 4.0,
        event: None,
        storms: 0,
        weights: Vec::new(),
        ..settings.clone()
    };
    Ok(measure("reflector", reflector.address, &plain, None, cancel)?.rate())
}

/// Starts a controller, measures it, and ends it.
fn compared(
    controller: &ComparedController,
    args: &ControllerBenchArgs,
    settings: &MeasureSettings,
    cancel: &CancelHandle,
) -> anyhow::Result<MeasuredController> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let core = args.core.or((cores > 1).then_some(0));
    let started = controller.start(settings.version, core, cancel)?;
    measure(&controller.name, started.address, settings, Some(started.pid()), cancel)
}

fn settings(args: &ControllerBenchArgs) -> MeasureSettings {
    let pace = match (args.cbench, args.flood, args.rate) {
        (true, true, _) => MeasuredPace::CbenchThroughput,
        (true, ..) => MeasuredPace::CbenchLatency,
        (_, true, _) => MeasuredPace::Flood,
        (_, _, Some(per_second)) => MeasuredPace::Rate { per_second, arrivals: args.arrivals, burst: args.burst },
        _ => MeasuredPace::Window(args.window),
    };
    let events = [
        (args.join.is_some(), HalfTimeEvent::Join),
        (args.greedy, HalfTimeEvent::Greedy),
        (args.probe, HalfTimeEvent::Probe),
    ];
    let event = events.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, event)| event);
    let timeout_s = if args.flood || args.greedy { FLOOD_TIMEOUT_S } else { TIMEOUT_S };
    MeasureSettings {
        version: if args.cbench { Version::V10 } else { args.openflow },
        switches: args.switches,
        hosts: args.hosts,
        frames: if args.cbench { AskedFrames::Ip } else { args.frames },
        sources: if args.cbench { AskedSources::Cbench } else { args.sources },
        pace,
        weights: args.weights.clone(),
        event,
        joins: args.join.unwrap_or(1),
        storms: args.storms,
        time_s: args.time.0.as_secs_f64(),
        warm_up_s: args.warm_up.0.as_secs_f64(),
        timeout_s: args.timeout.map_or(timeout_s, |timeout| timeout.0.as_secs_f64()),
        seed: args.seed,
    }
}

/// Raises the limit of file descriptors as far as the switches need.
fn ensure_descriptors(switches: u32, each: u64) -> anyhow::Result<()> {
    let needed = u64::from(switches + 1) * each + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(u64::MAX);
    let advice = if each > 1 { "; --no-ceiling needs half" } else { "" };
    ensure!(
        most >= needed,
        "--switches {switches} needs {needed} file descriptors, and this process may have {most}: raise the limit \
         (ulimit -n {needed}), or use --switches {}{advice}",
        most.saturating_sub(OTHER_DESCRIPTORS) / each - 1
    );
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .with_context(|| format!("cannot raise the limit of file descriptors to {needed}"))
}

fn resolve(text: &str) -> anyhow::Result<SocketAddr> {
    let expected = "expected a controller's HOST:PORT or tcp:HOST:PORT";
    let address = text.strip_prefix("tcp:").unwrap_or(text);
    ensure!(address.contains(':') && !text.starts_with("ptcp:"), "found `{text}`, {expected}");
    let mut found = address.to_socket_addrs().with_context(|| format!("found `{text}`, {expected}"))?;
    match found.next() {
        Some(address) => Ok(address),
        None => bail!("{text}: the name has no address"),
    }
}

fn parse_version(text: &str) -> Result<Version, String> {
    let found = text.parse().ok().filter(|version| *version != Version::V15);
    found.ok_or_else(|| format!("found `{text}`, expected 1.0, 1.3 or 1.4"))
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|rate| (0.001..=1e8).contains(rate));
    found.ok_or_else(|| format!("found `{text}`, expected packet-ins a second, from 0.001 to 100000000"))
}

fn parse_time(text: &str) -> Result<TimeSpan, String> {
    let time = parse_time_or_none(text)?;
    if time.0.is_zero() { Err(format!("found `{text}`, expected a time above zero")) } else { Ok(time) }
}

fn parse_time_or_none(text: &str) -> Result<TimeSpan, String> {
    let time: TimeSpan = text.parse().map_err(|error: weir_units::ParseQuantityError| error.to_string())?;
    let is_long = time.0.as_secs() > 600;
    if is_long { Err(format!("found `{text}`, expected at most 10min")) } else { Ok(time) }
}
