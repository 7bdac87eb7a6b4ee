//! `weir simulate`: simulates a scenario file in virtual time. The exit status is that of `weir run`.
mod page;
mod report;
mod report_stations;
mod stations;
mod streams;

use super::run::NOT_AS_EXPECTED;
use super::sweep::{self, ParameterSweep, SweptValues};
use anyhow::Context;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_network::LabResult;
use weir_scenario::{Scenario, defaults};
use weir_sim::SimulationMonitor;
use weir_sim::network::{SETTLE, VirtualTimeSettings, simulate};
use weir_sim::stations::{has_stations, has_timing};
use weir_terminal::progress::ProgressDisplay;
use weir_terminal::prose::wrapped;
use weir_terminal::signals::{STOPPED, StopSignalHandler};
use weir_units::{Bps, Clock, Instant, SystemClock, TimeSpan};

/// Interval for showing progress and checking for a signal.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Simulate a scenario in virtual time, with the code that also runs live. Packets by rule ([[stream]]) are simulated
/// by their lengths and classes, in independent replications with confidence intervals. Traffic between hosts
/// ([[traffic]]) is simulated packet by packet, once, or, if devices have service times ([switch.timing]), as a
/// network of queues, in replications. Both together are simulated packet by packet
#[derive(clap::Args)]
pub(crate) struct SimulateArgs {
    /// Scenario file (TOML; docs/scenario.md describes it)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Simulate for each of several values of a key, for all combinations if given more than once: KEY=A,B,C or
    /// KEY=FROM..TO:STEP, such as 'switch[0].virtual[1].buffer=3kB..12kB:3kB' or, for every item of a list that has
    /// the key, traffic.rate=20..200:20
    #[arg(long, value_name = "KEY=VALUES")]
    sweep: Vec<ParameterSweep>,
    /// Seed, instead of the scenario's
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Time in which packets are counted, or length of each tcp and udp item of traffic, instead of the scenario's
    #[arg(long, value_name = "TIME")]
    duration: Option<TimeSpan>,
    /// Time before packets are counted, instead of the scenario's
    #[arg(long, value_name = "TIME")]
    warm_up: Option<TimeSpan>,
    /// Independent replications, at least 1, instead of the scenario's
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    replications: Option<u32>,
    /// Add replications until every mean's 95 % interval is within this share of it on either side, such as 1%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    until: Option<f64>,
    /// Threads that simulate; all cores if not given
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// Level of the simulation: packets (every frame, through links, flow tables and control channels) or stations
    /// (devices as queues). Default: stations if the scenario has [switch.timing]
    #[arg(long, value_name = "LEVEL", value_enum)]
    level: Option<SimulationLevel>,
    /// Rate of links for which the scenario has none. Without it they have 10Gbit/s packet by packet, and take no time
    /// between stations
    #[arg(long, value_name = "RATE")]
    link_rate: Option<Bps>,
    /// Delay of control messages in each direction; without it the scenario's `delay` of its controller, or 50us if
    /// that is 0
    #[arg(long, value_name = "TIME")]
    control_delay: Option<TimeSpan>,
    /// Time that a sleeping thread of a switch or host takes to wake up, in packet-by-packet simulation; live some
    /// tens of microseconds, which weir compare measures
    #[arg(long, value_name = "TIME", default_value = "0s")]
    wake_up: TimeSpan,
    /// Real time of silence after which a controller elsewhere ([controller] connect) counts as finished; virtual time
    /// stands still until then
    #[arg(long, value_name = "TIME", default_value_t = TimeSpan(SETTLE))]
    settle: TimeSpan,
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV, a line for each group of packets and point of a sweep
    #[arg(long)]
    csv: bool,
    /// Write a page with charts, too
    #[arg(long, value_name = "FILE.html")]
    plot: Option<PathBuf>,
}

/// Level of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SimulationLevel {
    /// Every frame, through the code that runs live
    Packets,
    /// Queues and the service times of devices
    Stations,
}

fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().ok().map(|number| number / scale);
    share
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| format!("found `{text}`, expected a share between 0 and 1 such as 1% or 0.01"))
}

/// Result for one point of a sweep, or for the scenario itself without a sweep.
#[derive(Debug, Serialize)]
struct SimulatedPoint {
    /// Swept keys with their values.
    #[serde(skip_serializing_if = "SweptValues::is_empty")]
    point: SweptValues,
    #[serde(flatten)]
    result: SimulateResult,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SimulateResult {
    Streams(Box<streams::StreamSimulation>),
    Stations(Box<stations::StationSimulation>),
    Network(Box<SimulatedLab>),
}

/// Result of a whole network in virtual time, packet by packet.
#[derive(Debug, Serialize)]
struct SimulatedLab {
    #[serde(flatten)]
    result: LabResult,
    /// Time that the simulation took.
    #[serde(skip)]
    took: Duration,
}

impl SimulateResult {
    fn is_partial(&self) -> bool {
        match self {
            SimulateResult::Streams(result) => result.partial,
            SimulateResult::Stations(result) => result.partial,
            SimulateResult::Network(network) => network.result.partial,
        }
    }

    /// Returns the parameters of profiles that had no effect, by switch.
    fn unused(&self) -> &[String] {
        match self {
            SimulateResult::Streams(_) => &[],
            SimulateResult::Stations(result) => &result.report.unused,
            SimulateResult::Network(network) => &network.result.setup.unused,
        }
    }

    fn has_passed(&self) -> bool {
        match self {
            SimulateResult::Streams(_) | SimulateResult::Stations(_) => true,
            SimulateResult::Network(network) => network.result.passed,
        }
    }
}

pub(crate) fn run(args: SimulateArgs) -> anyhow::Result<ExitCode> {
    let points = sweep::points(&args.file, &args.sweep)?;
    let scenarios = points
        .into_iter()
        .map(|(point, scenario)| Ok((point, apply_overrides(scenario, &args)?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    // Checked before simulating, so that no result is lost.
    if let Some(path) = &args.plot {
        weir_terminal::output::check_file(path).with_context(|| format!("--plot: create {}", path.display()))?;
    }
    let signals = StopSignalHandler::watch()?;
    let mut answers = Vec::new();
    let count = scenarios.len();
    let name = scenarios.first().map_or_else(String::new, |(_, scenario)| scenario.name.clone());
    for (number, (point, scenario)) in scenarios.into_iter().enumerate() {
        let title = if count > 1 { format!("{} ({} of {count})", point, number + 1) } else { scenario.name.clone() };
        let result = answer(&scenario, &args, &signals.cancel, &title)?;
        let stopped = result.is_partial();
        answers.push(SimulatedPoint { point, result });
        if stopped {
            break;
        }
    }
    let all = answers.len() == count;
    if let Some(path) = &args.plot {
        let page = page::page(&answers, &name);
        weir_terminal::output::write_file(path, &page).with_context(|| format!("--plot: write {}", path.display()))?;
    }
    let text = match (args.json, args.csv) {
        (true, _) => json(&answers)?,
        (_, true) => report::csv(&answers),
        _ => wrapped(&report::text(&answers, count)),
    };
    weir_terminal::output::print(&text)?;
    Ok(
        match (
            all && !answers.iter().any(|one| one.result.is_partial()),
            answers.iter().all(|one| one.result.has_passed()),
        ) {
            (false, _) => ExitCode::from(STOPPED),
            (true, true) => ExitCode::SUCCESS,
            (true, false) => ExitCode::from(NOT_AS_EXPECTED),
        },
    )
}

/// Applies the command line's overrides to the scenario.
fn apply_overrides(mut scenario: Scenario, args: &SimulateArgs) -> anyhow::Result<Scenario> {
    if let Some(duration) = args.duration {
        super::run::set_duration(&mut scenario, duration)?;
        scenario.simulate.duration = duration.0;
    }
    if let Some(rate) = args.link_rate {
        scenario = scenario.with_link_rate(rate);
    }
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    scenario.simulate.warm_up = args.warm_up.map_or(scenario.simulate.warm_up, |time| time.0);
    scenario.simulate.replications = args.replications.unwrap_or(scenario.simulate.replications);
    scenario.simulate.until = args.until.or(scenario.simulate.until);
    Ok(scenario)
}

fn answer(
    scenario: &Scenario,
    args: &SimulateArgs,
    cancel: &CancelHandle,
    title: &str,
) -> anyhow::Result<SimulateResult> {
    let watch = SimulationMonitor::default();
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    let of_file = || args.file.display().to_string();
    if level(scenario, args)? == SimulationLevel::Stations {
        let simulated = watched(&watch, cancel, title, scenario, || stations::simulate(scenario, threads, &watch));
        return Ok(SimulateResult::Stations(Box::new(simulated.with_context(of_file)?)));
    }
    // Streams alone are simulated by their lengths; beside other traffic they share its network, packet by packet.
    if scenario.streams.is_empty() || !scenario.traffic.is_empty() {
        let delay = Some(scenario.controller.delay).filter(|delay| !delay.is_zero()).unwrap_or(defaults::CONTROL_DELAY);
        let control_delay = args.control_delay.map_or(delay, |given| given.0);
        let (wake_up, settle) = (args.wake_up.0, args.settle.0);
        let settings = VirtualTimeSettings { control_delay, wake_up, settle, ..VirtualTimeSettings::default() };
        let mut shown = super::run::progress::LabProgressDisplay::new();
        let clock = SystemClock::start();
        let result = cancel.set_during(&watch.cancel, || {
            simulate(scenario, &settings, &watch, &mut |progress| shown.update(&progress))
        });
        drop(shown);
        let result = result.with_context(of_file)?;
        let took = clock.now().since(Instant::ZERO);
        return Ok(SimulateResult::Network(Box::new(SimulatedLab { result, took })));
    }
    let model = weir_sim::scenario::model(scenario).with_context(of_file)?;
    let simulated = watched(&watch, cancel, title, scenario, || streams::simulate(scenario, &model, threads, &watch));
    Ok(SimulateResult::Streams(Box::new(simulated?)))
}

/// Selects the level at which a scenario is simulated.
///
/// # Errors
/// The level `stations` is requested for a scenario with streams or without timing.
fn level(scenario: &Scenario, args: &SimulateArgs) -> anyhow::Result<SimulationLevel> {
    let has_timing = has_timing(scenario);
    let chosen = match args.level {
        Some(level) => level,
        None if has_stations(scenario) && scenario.streams.is_empty() => SimulationLevel::Stations,
        None => SimulationLevel::Packets,
    };
    let file = args.file.display();
    anyhow::ensure!(
        chosen == SimulationLevel::Packets || scenario.streams.is_empty(),
        "{file}: found [[stream]] with --level stations, expected [[traffic]] only: streams pass fabrics, packet by packet"
    );
    anyhow::ensure!(
        chosen == SimulationLevel::Packets || has_timing,
        "{file}: found no [switch.timing] with --level stations, expected at least one: how long does a switch take?"
    );
    Ok(chosen)
}

/// Runs `work`, shows its progress meanwhile, and cancels it when a signal arrives.
fn watched<R: Send>(
    watch: &SimulationMonitor,
    cancel: &CancelHandle,
    title: &str,
    scenario: &Scenario,
    work: impl FnOnce() -> R,
) -> R {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let each = scenario.simulate.warm_up + scenario.simulate.duration;
            let all = each.saturating_mul(scenario.simulate.replications);
            let mut shown = ProgressDisplay::start();
            shown.stage(&format!("simulating {title}"));
            while !over.load(Ordering::Relaxed) {
                if cancel.wait(TELL_EVERY) {
                    watch.cancel.store(true, Ordering::Relaxed);
                    break;
                }
                show_virtual_time(
                    &mut shown,
                    title,
                    Duration::from_nanos(watch.virtual_ns.load(Ordering::Relaxed)),
                    all,
                );
            }
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        result
    })
}

/// Shows how much virtual time all replications have simulated, of how much. With `--until` it may become more.
fn show_virtual_time(shown: &mut ProgressDisplay, title: &str, done: Duration, all: Duration) {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let of = if done <= all { format!(" of {:.1}", all.as_secs_f64()) } else { String::new() };
    let text = format!("simulating {title}: {:.1}{of} s of virtual time", done.as_secs_f64());
    shown.show(&format!("simulating {title}"), &text, us(done), us(all));
}

fn json(answers: &[SimulatedPoint]) -> anyhow::Result<String> {
    let text = match answers {
        [one] if one.point.is_empty() => serde_json::to_string_pretty(one)?,
        all => serde_json::to_string_pretty(all)?,
    };
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_as_people_write_them() {
        assert_eq!((share("1%"), share("0.05"), share("2.5 %")), (Ok(0.01), Ok(0.05), Ok(0.025)));
        for wrong in ["0", "100%", "1", "-1%", "x", "%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
