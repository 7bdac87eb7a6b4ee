//! `weir compare`: the answers of several verbs to one scenario side by side; exit status as `weir run`.
mod csv;
mod text;

use super::run::progress::Shown;
use super::run::{NOT_AS_EXPECTED, STOPPED, Signals};
use anyhow::{Context as _, ensure};
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use weir_compare::{Answer, Comparison, Plan, State, Told, Verb, ask};
use weir_emulator::Cancel;
use weir_scenario::Scenario;
use weir_sim::network::Settings;
use weir_units::{Bps, Span};

/// Puts what formulas, simulation and the live switch say about one scenario side by side: delays, loss and rate of each flow, how far each
/// answer is from the reference, and a verdict.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file (TOML; docs/scenario.md describes it)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Who answers: some of predict, simulate, run
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "predict,simulate,run")]
    answers: Vec<Verb>,
    /// What the others are held against: run or simulate; by default run if it answered, else simulate
    #[arg(long, value_name = "ANSWER", value_parser = reference)]
    reference: Option<Verb>,
    /// Times that the scenario is run live, which gives its figures their intervals
    #[arg(long, value_name = "NUMBER", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Replications of networks in virtual time; packets by rule have the scenario's own number
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    replications: Option<u32>,
    /// Length of each tcp and udp item of traffic, and of all streams, instead of the scenario's
    #[arg(long, value_name = "TIME")]
    duration: Option<Span>,
    /// Instead of the scenario's seed
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Threads that simulate; all cores if not given
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// Live hosts are network namespaces with real ping and iperf3 (needs root)
    #[arg(long)]
    netns: bool,
    /// Rate in virtual time of links for which the scenario has none
    #[arg(long, value_name = "RATE", default_value = "10Gbit/s")]
    link_rate: Bps,
    /// How long control messages are under way in virtual time, each way
    #[arg(long, value_name = "TIME", default_value = "50us")]
    control_delay: Span,
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV, a line for each flow or device, answer and figure
    #[arg(long)]
    csv: bool,
}

/// Replications of a network in virtual time that are enough for an interval.
const REPLICATIONS: u32 = 3;

fn reference(text: &str) -> Result<Verb, String> {
    let verb = text.parse::<Verb>().ok().filter(|verb| *verb != Verb::Predict);
    verb.ok_or_else(|| format!("found `{text}`, expected run or simulate"))
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let scenario = prepared(Scenario::read(&args.file)?, &args)?;
    let signals = Signals::watch()?;
    let comparison = compared(&scenario, &args, &signals.cancel);
    ensure!(comparison.answers.iter().any(Answer::is_there), "{}: {}", args.file.display(), nobody(&comparison));
    let text = match (args.json, args.csv) {
        (true, _) => serde_json::to_string_pretty(&comparison).context("cannot write the result as JSON")? + "\n",
        (_, true) => csv::csv(&comparison),
        _ => text::text(&comparison),
    };
    // A reader that has gone away misses the report, nothing else.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(match (comparison.partial || signals.cancel.is_cancelled(), comparison.passed) {
        (true, _) => ExitCode::from(STOPPED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(NOT_AS_EXPECTED),
    })
}

fn prepared(mut scenario: Scenario, args: &Args) -> anyhow::Result<Scenario> {
    if let Some(duration) = args.duration {
        super::run::set_duration(&mut scenario, duration)?;
    }
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    scenario.simulate.replications = args.replications.unwrap_or(scenario.simulate.replications);
    Ok(scenario)
}

fn compared(scenario: &Scenario, args: &Args, cancel: &Cancel) -> Comparison {
    let mut verbs = args.answers.clone();
    verbs.sort_unstable();
    verbs.dedup();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let plan = Plan {
        verbs,
        rounds: args.rounds,
        replications: args.replications.unwrap_or(REPLICATIONS),
        threads: args.threads.unwrap_or_else(cores).max(1),
        netns: args.netns,
        settings: Settings { link_rate: args.link_rate, control_delay: args.control_delay.0 },
    };
    let mut shown: Option<Shown> = None;
    let answers = ask(scenario, &plan, cancel, &mut |told| match told {
        Told::Begins(verb, round, rounds) => {
            shown.take().inspect(Shown::clear);
            begin(&scenario.name, verb, round, rounds);
            shown = std::io::stderr().is_terminal().then(Shown::new);
        }
        Told::Goes(progress) => {
            if let Some(shown) = &mut shown {
                shown.tell(progress);
            }
        }
    });
    shown.inspect(Shown::clear);
    Comparison::new(&scenario.name, answers, args.reference)
}

fn begin(scenario: &str, verb: Verb, round: u32, rounds: u32) {
    match verb {
        Verb::Predict => eprintln!("weir: predicting {scenario}"),
        Verb::Simulate => eprintln!("weir: simulating {scenario}, {round} of {rounds}"),
        Verb::Run => eprintln!("weir: running {scenario}, round {round} of {rounds}"),
    }
}

/// Why there is no answer at all.
fn nobody(comparison: &Comparison) -> String {
    let why = |answer: &Answer| match &answer.state {
        State::LeftOut(why) => Some(format!("{}: {why}", answer.by)),
        State::Answered | State::Partial => None,
    };
    let reasons: Vec<String> = comparison.answers.iter().filter_map(why).collect();
    if reasons.is_empty() { "--answers names nobody".to_owned() } else { reasons.join("; ") }
}
