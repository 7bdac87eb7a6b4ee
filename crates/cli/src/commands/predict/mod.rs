//! `weir predict`: a scenario file by formulas.
mod page;
mod report;

use super::sweep::{self, Point, Sweep};
use anyhow::Context;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_predict::{Prediction, Settings, predict};
use weir_units::{Bps, Clock, Span, SystemClock};

/// Predicts what the packets of a scenario will meet: delays, losses and utilisations by flow and by device, by formulas, with the formula that
/// was used, why, and when not to trust it. What has no steady state is said by name; the rest is answered all the same.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file (TOML; docs/scenario.md describes it)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Predict for each of several values of the file, all combinations if given more than once: KEY=A,B,C or KEY=FROM..TO:STEP,
    /// such as 'traffic.rate=20..200:20' or 'traffic[0].new_flows=0.1,0.2'
    #[arg(long, value_name = "KEY=VALUES")]
    sweep: Vec<Sweep>,
    /// Ask other models of a switch and its controller, too: all, or one by name (weir model --list has them)
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Rate of links for which the scenario has none
    #[arg(long, value_name = "RATE", default_value_t = Settings::default().link_rate)]
    link_rate: Bps,
    /// How long a thread that sleeps takes to wake up for a packet, of switches without timing and of hosts; none by itself, live some tens of
    /// microseconds: weir compare measures it
    #[arg(long, value_name = "TIME", default_value = "0us")]
    wake_up: Span,
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV, a line for each flow and point of a sweep
    #[arg(long)]
    csv: bool,
    /// Also write a page with charts
    #[arg(long, value_name = "FILE.html")]
    plot: Option<PathBuf>,
}

/// One point of a sweep, or the scenario as it is.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    #[serde(skip_serializing_if = "Point::is_empty")]
    point: Point,
    #[serde(flatten)]
    prediction: Prediction,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let settings = Settings { link_rate: args.link_rate, wake_up: args.wake_up.0, models: args.model.clone() };
    let points = sweep::points(&args.file, &args.sweep)?;
    let predicted = |(point, scenario)| {
        let prediction = predict(&scenario, &settings).with_context(|| args.file.display().to_string())?;
        Ok(Answer { point, prediction })
    };
    let answers = points.into_iter().map(predicted).collect::<anyhow::Result<Vec<_>>>()?;
    let footer = report::footer(&args.file.display().to_string(), clock.now().as_secs_f64());
    if let Some(path) = &args.plot {
        let page = page::page(&answers, &footer);
        crate::output::write_file(path, &page).with_context(|| format!("--plot: write {}", path.display()))?;
    }
    let text = match (args.json, args.csv) {
        (true, _) => json(&answers)?,
        (_, true) => report::csv(&answers),
        _ => report::text(&answers, &footer),
    };
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn json(answers: &[Answer]) -> anyhow::Result<String> {
    let text = match answers {
        [one] if one.point.is_empty() => serde_json::to_string_pretty(one)?,
        all => serde_json::to_string_pretty(all)?,
    };
    Ok(text + "\n")
}
