//! `weir predict`: evaluates a scenario file by formulas.
mod page;
pub(crate) mod report;

use super::sweep::{self, ParameterSweep, SweptValues};
use anyhow::Context;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_predict::{PredictSettings, Prediction, predict};
use weir_terminal::prose::wrapped;
use weir_units::{Bps, Clock, SystemClock, TimeSpan};

/// Predict delays, losses and utilisations of a scenario by flow and by device, by formulas. Each answer names its
/// formula, the reason for choosing it, and when not to trust it. Parts without a steady state are named; the rest is
/// answered nevertheless.
#[derive(clap::Args)]
pub(crate) struct PredictArgs {
    /// Scenario file (TOML; docs/scenario.md describes it)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Predict for each of several values of a key, for all combinations if given more than once: KEY=A,B,C or
    /// KEY=FROM..TO:STEP, such as 'traffic.rate=20..200:20' or 'traffic[0].new_flows=0.1,0.2'
    #[arg(long, value_name = "KEY=VALUES")]
    sweep: Vec<ParameterSweep>,
    /// Evaluate other models of a switch and its controller, too: all, or one by name (weir model --list shows them)
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Rate of links for which the scenario has none
    #[arg(long, value_name = "RATE", default_value_t = PredictSettings::default().link_rate)]
    link_rate: Bps,
    /// Time that a sleeping thread takes to wake up for a packet, for switches without timing and for hosts; zero
    /// unless given, live some tens of microseconds: weir compare measures it
    #[arg(long, value_name = "TIME", default_value = "0us")]
    wake_up: TimeSpan,
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV, a line for each flow and point of a sweep
    #[arg(long)]
    csv: bool,
    /// Write a page with charts, too
    #[arg(long, value_name = "FILE.html")]
    plot: Option<PathBuf>,
}

/// Prediction for one point of a sweep, or for the scenario itself without a sweep.
#[derive(Debug, Serialize)]
pub(super) struct PredictedPoint {
    #[serde(skip_serializing_if = "SweptValues::is_empty")]
    point: SweptValues,
    #[serde(flatten)]
    prediction: Prediction,
}

pub(crate) fn run(args: PredictArgs) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let settings = PredictSettings { link_rate: args.link_rate, wake_up: args.wake_up.0, models: args.model.clone() };
    let points = sweep::points(&args.file, &args.sweep)?;
    let predicted = |(point, scenario)| {
        let prediction = predict(&scenario, &settings).with_context(|| args.file.display().to_string())?;
        Ok(PredictedPoint { point, prediction })
    };
    let answers = points.into_iter().map(predicted).collect::<anyhow::Result<Vec<_>>>()?;
    let footer = report::footer(&args.file.display().to_string(), clock.now().as_secs_f64());
    if let Some(path) = &args.plot {
        let page = page::page(&answers, &footer);
        weir_terminal::output::write_file(path, &page).with_context(|| format!("--plot: write {}", path.display()))?;
    }
    let text = match (args.json, args.csv) {
        (true, _) => json(&answers)?,
        (_, true) => report::csv(&answers),
        _ => wrapped(&report::text(&answers, &footer)),
    };
    weir_terminal::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn json(answers: &[PredictedPoint]) -> anyhow::Result<String> {
    let text = match answers {
        [one] if one.point.is_empty() => serde_json::to_string_pretty(one)?,
        all => serde_json::to_string_pretty(all)?,
    };
    Ok(text + "\n")
}
