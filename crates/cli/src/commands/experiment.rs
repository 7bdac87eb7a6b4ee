//! `weir experiment`: repeats measurements from the literature. Exit status 0 if the figures show what they are
//! expected to show, 1 if not, 130 if stopped.
use super::csv;
use super::run::NOT_AS_EXPECTED;
use anyhow::Context;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weir_experiments::{EXPERIMENTS, ExperimentOptions, ExperimentReport, ExternalSwitch, find};
use weir_profiler::SwitchAddress;
use weir_terminal::output;
use weir_terminal::progress::ProgressDisplay;
use weir_terminal::prose::wrapped;
use weir_terminal::signals::{STOPPED, StopSignalHandler};

#[derive(clap::Args)]
pub(crate) struct ExperimentArgs {
    /// Name of the experiment; `list`, or no name, prints the list
    #[arg(value_name = "ID", default_value = "list", hide_default_value = true)]
    id: String,
    /// Name of the experiment behind `run`, which other commands have before a name
    #[arg(hide = true)]
    behind_run: Option<String>,
    /// Run at the published size instead of a size that takes seconds
    #[arg(long)]
    full: bool,
    /// Measure live switches, too, in experiments that can (as root for those that use network interfaces)
    #[arg(long)]
    live: bool,
    /// Seed of the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Measure this switch instead of simulated ones; its flow entries are deleted: tcp:HOST:PORT, unix:PATH or
    /// ptcp:PORT. For model-validation-control and model-validation-data; needs root for its interfaces. Without it,
    /// and with --data, the device is one without OpenFlow (model-validation-data)
    #[arg(long, value_name = "SWITCH", requires = "data")]
    switch: Option<SwitchAddress>,
    /// Network interfaces connected to the switch's ports, as for `weir profile`
    #[arg(long, value_name = "INTERFACE", value_delimiter = ',')]
    data: Vec<String>,
    /// The switch's profile [default: measured first, as by `weir profile --quick`]
    #[arg(long, value_name = "FILE", requires = "data")]
    profile: Option<PathBuf>,
    /// Send the packets of this capture, with complete frames, instead of the built-in one. For model-validation-data
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the report as JSON to this file, too
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write the report as a page with charts, report.html, and each chart as SVG, to this directory, too
    #[arg(long, alias = "plots", value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the figures as CSV, a line for each case and quantity
    #[arg(long)]
    csv: bool,
}

pub(crate) fn run(mut args: ExperimentArgs) -> anyhow::Result<ExitCode> {
    args.id = asked(args.id, args.behind_run.take())?;
    if args.id == "list" {
        output::print(&list(args.json)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let experiment = find(&args.id)?;
    let signals = StopSignalHandler::watch()?;
    // Checked before minutes of measuring, so that no result is lost.
    if let Some(path) = &args.record {
        output::check_file(path).with_context(|| format!("--record: create {}", path.display()))?;
    }
    if let Some(folder) = &args.plot {
        std::fs::create_dir_all(folder).with_context(|| format!("--plot: create {}", folder.display()))?;
    }
    let options = options(&args, &signals);
    let mut shown = ProgressDisplay::lines();
    shown.stage(&format!("experiment {}", args.id));
    let report = experiment.run(&options, &mut |doing| shown.stage(doing))?;
    drop(shown);
    let json = serde_json::to_string_pretty(&report)? + "\n";
    if let Some(path) = &args.record {
        output::write_file(path, &json).with_context(|| format!("--record: write {}", path.display()))?;
    }
    if let Some(folder) = &args.plot {
        write_plots(&report, folder)?;
    }
    output::print(&match (args.json, args.csv) {
        (true, _) => json,
        (_, true) => csv(&report),
        _ => wrapped(&report.to_string()),
    })?;
    Ok(status(&report))
}

/// Returns the name of the experiment that is asked for: `weir experiment run NAME` is `weir experiment NAME`.
fn asked(id: String, next: Option<String>) -> anyhow::Result<String> {
    match next {
        None => Ok(id),
        Some(name) if id == "run" => Ok(name),
        Some(more) => anyhow::bail!("found two names, `{id}` and `{more}`, expected one"),
    }
}

fn options(args: &ExperimentArgs, signals: &StopSignalHandler) -> ExperimentOptions {
    let switch = (!args.data.is_empty()).then(|| {
        let (target, data, profile) = (args.switch.clone(), args.data.clone(), args.profile.clone());
        ExternalSwitch { target, data, profile }
    });
    ExperimentOptions {
        full: args.full,
        live: args.live,
        seed: args.seed,
        cancel: signals.cancel.clone(),
        switch,
        trace: args.trace.clone(),
    }
}

/// Formats one CSV line for each figure.
fn csv(report: &ExperimentReport) -> String {
    let rows = report.figures.iter().map(|figure| {
        let published = figure.published.as_ref().map(|published| published.value);
        let numbers = [published, Some(figure.ours), figure.sd].map(csv::figure);
        let words = [figure.case.as_str(), figure.metric, figure.unit].map(csv::quoted);
        words.into_iter().chain(numbers).chain([figure.samples.to_string()]).collect()
    });
    csv::lines("case,metric,unit,published,ours,sd,samples", rows)
}

/// Writes the report as an HTML page, and each of its charts as an SVG file.
fn write_plots(report: &ExperimentReport, folder: &Path) -> anyhow::Result<()> {
    let write = |name: String, text: String| {
        let path = folder.join(name);
        output::write_file(&path, &text).with_context(|| format!("--plot: write {}", path.display()))
    };
    report.plots.iter().try_for_each(|plot| write(format!("{}.svg", plot.name()), plot.svg()))?;
    write("report.html".into(), report.html())
}

fn status(report: &ExperimentReport) -> ExitCode {
    match (report.partial, report.holds()) {
        (true, _) => ExitCode::from(STOPPED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(NOT_AS_EXPECTED),
    }
}

fn list(json: bool) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut all = Vec::new();
    for experiment in EXPERIMENTS {
        let about = experiment.definition()?;
        let _ = writeln!(text, "{}\n    {}\n    {}\n", experiment.id, about.question, about.source);
        all.push(serde_json::json!({
            "id": experiment.id,
            "title": about.title,
            "question": about.question,
            "source": about.source,
            "published_setup": about.setup,
        }));
    }
    Ok(if json { serde_json::to_string_pretty(&all)? + "\n" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_experiment_with_its_question() {
        let (text, json) = (list(false).unwrap(), list(true).unwrap());
        for experiment in EXPERIMENTS {
            let question = experiment.definition().unwrap().question;
            assert!(text.contains(&question) && json.contains(&question), "{}", experiment.id);
        }
    }
}
