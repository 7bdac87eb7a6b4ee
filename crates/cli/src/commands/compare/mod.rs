//! `weir compare`: prints the answers of several verbs to one scenario, or to all scenarios of a folder, side by
//! side. The exit status is that of `weir run`.
mod csv;
mod leaderboard;
mod text;

use super::run::NOT_AS_EXPECTED;
use super::run::progress::LabProgressDisplay;
use super::sweep::{self, ParameterSweep, plain};
use anyhow::{Context as _, ensure};
use serde::Serialize;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_compare::page::SweptComparison;
use weir_compare::{
    AnswerState, Comparison, ComparisonPlan, ComparisonProgress, EvaluationMethod, ScenarioAnswer, ask, page,
};
use weir_emulator::CancelHandle;
use weir_scenario::Scenario;
use weir_terminal::output;
use weir_terminal::progress::ProgressDisplay;
use weir_terminal::prose::wrapped;
use weir_terminal::signals::{STOPPED, StopSignalHandler};
use weir_units::{Bps, TimeSpan};

/// Put the answers of formulas, simulation and the live switch to a scenario side by side: delays, loss and rate of
/// each flow, the distance of each answer from the reference, and a verdict. For a folder, compare all its scenarios
/// and print a leader board of the answers by their distance from the reference.
#[derive(clap::Args)]
pub(crate) struct CompareArgs {
    /// Scenario file (TOML; docs/scenario.md describes it), or a folder of them
    #[arg(value_name = "FILE or DIR")]
    path: PathBuf,
    /// Verbs that answer: some of predict, simulate, emulate (needs root), run
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "predict,simulate,run")]
    answers: Vec<EvaluationMethod>,
    /// Answer that the others are compared with: run, emulate or simulate; by default the first of these that
    /// answered
    #[arg(long, value_name = "ANSWER", value_parser = reference)]
    reference: Option<EvaluationMethod>,
    /// Additional models besides the scenario's own formulas: all, or one by name; may be given several times
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Compare for each of several values of a key, for all combinations if given more than once, as in weir
    /// simulate; the charts' axis is the key with the most values
    #[arg(long, value_name = "KEY=VALUES")]
    sweep: Vec<ParameterSweep>,
    /// Number of live runs of the scenario, from which the confidence intervals are computed
    #[arg(long, value_name = "NUMBER", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Replications in virtual time, instead of the scenario's; 3 if not given, for whole networks packet by packet
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    replications: Option<u32>,
    /// Length of each tcp and udp item of traffic, and of all streams, instead of the scenario's
    #[arg(long, value_name = "TIME")]
    duration: Option<TimeSpan>,
    /// Seed, instead of the scenario's
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Threads that simulate; all cores if not given
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// Run live hosts as network namespaces with real ping and iperf3 (needs root)
    #[arg(long)]
    netns: bool,
    /// Rate of links for which the scenario has none, in virtual time and in formulas; if not given, 10Gbit/s, or no
    /// limit for devices simulated as stations
    #[arg(long, value_name = "RATE")]
    link_rate: Option<Bps>,
    /// Time that a sleeping thread takes to wake up for a packet, in formulas and in packet-by-packet simulation; if
    /// not given, it is measured before the live run with pings through a network like the scenario's
    #[arg(long, value_name = "TIME")]
    wake_up: Option<TimeSpan>,
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV, a line for each flow or device, answer and figure
    #[arg(long)]
    csv: bool,
    /// Write a page with charts, too
    #[arg(long, alias = "report", value_name = "FILE.html")]
    plot: Option<PathBuf>,
}

/// Default number of replications in packet-by-packet simulation, enough for an interval.
const REPLICATIONS: u32 = 3;

fn reference(text: &str) -> Result<EvaluationMethod, String> {
    let verb = text.parse::<EvaluationMethod>().ok().filter(|verb| *verb != EvaluationMethod::Predict);
    verb.ok_or_else(|| format!("found `{text}`, expected run, emulate or simulate"))
}

pub(crate) fn run(args: CompareArgs) -> anyhow::Result<ExitCode> {
    let signals = StopSignalHandler::watch()?;
    // Checked before all rounds, so that no result is lost.
    if let Some(path) = &args.plot {
        output::check_file(path).with_context(|| format!("--plot: write {}", path.display()))?;
    }
    if args.path.is_dir() {
        ensure!(args.sweep.is_empty(), "--sweep: found a folder, expected one scenario file");
        return leaderboard::run(&args, &signals.cancel);
    }
    let mut points = Vec::new();
    let scenarios = sweep::points(&args.path, &args.sweep)?;
    let asked = scenarios.len();
    for (values, scenario) in scenarios {
        let comparison = compare_scenario(&with_overrides(scenario, &args)?, &args, &signals.cancel);
        ensure!(
            comparison.answers.iter().any(ScenarioAnswer::is_available),
            "{}: {}",
            args.path.display(),
            no_answer_reason(&comparison)
        );
        let value = |sweep: &ParameterSweep| Some((sweep.key().to_owned(), plain(values.0.get(sweep.key())?)));
        points.push(SweptComparison { values: args.sweep.iter().filter_map(value).collect(), comparison });
        if signals.cancel.is_cancelled() {
            break;
        }
    }
    let is_partial = points.len() < asked || points.iter().any(|point| point.comparison.partial);
    let has_passed = points.iter().all(|point| point.comparison.passed);
    let html = || match &points[..] {
        [one] if one.values.is_empty() => page::single(&one.comparison),
        all => page::swept(all),
    };
    write_result(&args, &document(&points, &args)?, html)?;
    Ok(status(is_partial, has_passed))
}

/// Formats the result as JSON, CSV or text, as the options select.
fn document(points: &[SweptComparison], args: &CompareArgs) -> anyhow::Result<String> {
    Ok(match (args.json, args.csv, points) {
        (true, _, [one]) if one.values.is_empty() => json(&one.comparison)?,
        (true, ..) => json(points)?,
        (_, true, _) => csv::csv(points),
        _ => wrapped(&points.iter().map(text::point).collect::<String>()),
    })
}

fn json<T: Serialize + ?Sized>(what: &T) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(what).context("cannot write the result as JSON")? + "\n")
}

/// Writes the result's page if `--plot` is given, and prints the result.
fn write_result(args: &CompareArgs, text: &str, html: impl FnOnce() -> String) -> anyhow::Result<()> {
    if let Some(path) = &args.plot {
        output::write_file(path, &html()).with_context(|| format!("--plot: write {}", path.display()))?;
    }
    output::print(text)
}

fn status(is_partial: bool, has_passed: bool) -> ExitCode {
    match (is_partial, has_passed) {
        (true, _) => ExitCode::from(STOPPED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(NOT_AS_EXPECTED),
    }
}

fn with_overrides(mut scenario: Scenario, args: &CompareArgs) -> anyhow::Result<Scenario> {
    if let Some(duration) = args.duration {
        super::run::set_duration(&mut scenario, duration)?;
    }
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    scenario.simulate.replications = args.replications.unwrap_or(scenario.simulate.replications);
    Ok(scenario)
}

fn compare_scenario(scenario: &Scenario, args: &CompareArgs, cancel: &CancelHandle) -> Comparison {
    let mut verbs = args.answers.clone();
    verbs.sort_unstable();
    verbs.dedup();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let plan = ComparisonPlan {
        verbs,
        rounds: args.rounds,
        replications: args.replications.unwrap_or(REPLICATIONS),
        threads: args.threads.unwrap_or_else(cores).max(1),
        netns: args.netns,
        link_rate: args.link_rate,
        wake_up: args.wake_up.map(|time| time.0),
        models: args.model.clone(),
    };
    let mut lines = ProgressDisplay::lines();
    let mut shown: Option<LabProgressDisplay> = None;
    let answers = ask(scenario, &plan, cancel, &mut |told| match told {
        ComparisonProgress::RoundStarted(verb, round, rounds) => {
            drop(shown.take());
            lines.stage(&stage(&scenario.name, verb, round, rounds));
            shown = std::io::stderr().is_terminal().then(LabProgressDisplay::new);
        }
        ComparisonProgress::RoundRunning(progress) => {
            if let Some(shown) = &mut shown {
                shown.update(progress);
            }
        }
    });
    Comparison::new(&scenario.name, answers, args.reference)
}

/// Says what begins.
fn stage(scenario: &str, verb: EvaluationMethod, round: u32, rounds: u32) -> String {
    match verb {
        EvaluationMethod::Predict => format!("predicting {scenario}"),
        EvaluationMethod::Simulate => format!("simulating {scenario}, {round} of {rounds}"),
        EvaluationMethod::Emulate => format!("emulating {scenario}, round {round} of {rounds}"),
        EvaluationMethod::Run => format!("running {scenario}, round {round} of {rounds}"),
    }
}

/// Returns the reason why there is no answer at all.
fn no_answer_reason(comparison: &Comparison) -> String {
    let why = |answer: &ScenarioAnswer| match &answer.state {
        AnswerState::LeftOut(why) => Some(format!("{}: {why}", answer.by)),
        AnswerState::Answered | AnswerState::Partial => None,
    };
    let reasons: Vec<String> = comparison.answers.iter().filter_map(why).collect();
    if reasons.is_empty() { "--answers names nobody".to_owned() } else { reasons.join("; ") }
}
