//! `weir profile`: measures the timing of devices, and shows profile files.
mod measure;
mod text;

use super::csv::CsvRows;
use anyhow::Context;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weir_profile::{ParameterDifference, Profile, SHIPPED, differences, figures};
use weir_terminal::output;
use weir_terminal::prose::wrapped;

/// Exit status of `diff` for profiles that differ.
const DIFFERENT: u8 = 1;

/// Measure a switch's timing (`weir profile tcp:HOST:PORT --data eth0,eth1`), and look at profiles, the files that
/// describe it. PROFILE is a file, or the name of one that comes with weir
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    command: Option<ProfileCommand>,
    #[command(flatten)]
    measure: measure::ProfileMeasureArgs,
}

#[derive(clap::Subcommand)]
enum ProfileCommand {
    /// List the profiles that come with weir
    List(ProfileListArgs),
    /// Show a profile's parameters, with the evidence for their values
    Show(ProfileShowArgs),
    /// Compare two profiles, parameter by parameter; the exit status is 1 if they differ
    Diff(ProfileDiffArgs),
    /// Check profile files
    Validate(ProfileValidateArgs),
    /// Write a page with charts of a profile's laws
    Plot(ProfilePlotArgs),
}

#[derive(clap::Args)]
struct ProfileListArgs {
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV, a line for each profile
    #[arg(long)]
    csv: bool,
}

#[derive(clap::Args)]
struct ProfileShowArgs {
    /// The profile to show
    #[arg(value_name = "PROFILE")]
    profile: String,
    /// Print the result as one JSON document, in seconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV, a line for each parameter, in seconds
    #[arg(long)]
    csv: bool,
    /// Print the file itself, for example as a start for your own
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    toml: bool,
}

#[derive(clap::Args)]
struct ProfileDiffArgs {
    /// The first profile
    #[arg(value_name = "PROFILE")]
    left: String,
    /// The second profile
    #[arg(value_name = "PROFILE")]
    right: String,
    /// Print the result as one JSON document, in seconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV, a line for each difference, in seconds
    #[arg(long)]
    csv: bool,
}

#[derive(clap::Args)]
struct ProfileValidateArgs {
    /// The profiles to check
    #[arg(value_name = "PROFILE", required = true)]
    profiles: Vec<String>,
}

#[derive(clap::Args)]
struct ProfilePlotArgs {
    /// The profile to plot
    #[arg(value_name = "PROFILE")]
    profile: String,
    /// File to which the page is written
    #[arg(short, long, alias = "output", value_name = "FILE.html", default_value = "profile.html")]
    out: PathBuf,
}

pub(crate) fn run(args: ProfileArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        None => measure::run(&args.measure),
        Some(ProfileCommand::List(list)) => self::list(&list),
        Some(ProfileCommand::Show(show)) => self::show(&show),
        Some(ProfileCommand::Diff(diff)) => self::diff(&diff),
        Some(ProfileCommand::Validate(validate)) => self::validate(&validate),
        Some(ProfileCommand::Plot(plot)) => self::plot(&plot),
    }
}

fn find(name: &str) -> anyhow::Result<Profile> {
    Ok(Profile::find(name, Path::new(""))?)
}

fn list(list: &ProfileListArgs) -> anyhow::Result<ExitCode> {
    let profiles = SHIPPED.iter().map(|(name, _)| find(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let of = |profile: &Profile| json!({ "name": profile.name, "device": profile.device, "origin": profile.origin });
    let rows: Vec<Value> = profiles.iter().map(of).collect();
    if list.json {
        output::print(&(serde_json::to_string_pretty(&rows)? + "\n"))?;
    } else if list.csv {
        output::print(&CsvRows { kind: "", columns: &["name", "device", "origin"], rows }.table())?;
    } else {
        output::print(&wrapped(&text::list(&profiles)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(show: &ProfileShowArgs) -> anyhow::Result<ExitCode> {
    let profile = find(&show.profile)?;
    if show.toml {
        match SHIPPED.iter().find(|(name, _)| *name == show.profile) {
            Some((_, text)) => output::print(text)?,
            None => output::print(
                &weir_units::read_text(std::path::Path::new(&show.profile))
                    .with_context(|| format!("read {}", show.profile))?,
            )?,
        }
    } else if show.json {
        let document = json!({
            "name": profile.name,
            "device": profile.device,
            "origin": profile.origin,
            "source": profile.source,
            "measured_with": profile.measured_with,
            "date": profile.date,
            "runs": profile.runs,
            "parameters": profile.parameters(),
        });
        output::print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else if show.csv {
        output::print(&csv_of_parameters(&profile))?;
    } else {
        output::print(&wrapped(&text::show(&profile)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn diff(diff: &ProfileDiffArgs) -> anyhow::Result<ExitCode> {
    let (left, right) = (find(&diff.left)?, find(&diff.right)?);
    let found = differences(&left, &right);
    if diff.json {
        let document = json!({ "left": diff.left, "right": diff.right, "differences": found });
        output::print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else if diff.csv {
        output::print(&csv_of_differences(&found))?;
    } else {
        output::print(&text::diff(&diff.left, &diff.right, &found))?;
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

/// Formats the parameters of a profile, with what they rest on. Laws are written as in JSON.
fn csv_of_parameters(profile: &Profile) -> String {
    const COLUMNS: &[&str] = &[
        "key",
        "unit",
        "value",
        "evidence.interval",
        "evidence.samples",
        "evidence.r2",
        "evidence.residual",
        "evidence.note",
    ];
    let rows = profile.parameters().iter().map(|parameter| json!(parameter)).collect();
    CsvRows { kind: "", columns: COLUMNS, rows }.table()
}

/// Formats the differences of two profiles. Laws are written as in JSON.
fn csv_of_differences(found: &[ParameterDifference]) -> String {
    const COLUMNS: &[&str] = &["key", "unit", "left=left.value", "right=right.value", "relative", "overlap"];
    let row = |difference: &ParameterDifference| {
        let mut row = json!(difference);
        let unit = ["left", "right"].into_iter().find_map(|side| row[side].get("unit").cloned());
        row["unit"] = unit.unwrap_or_default();
        row
    };
    CsvRows { kind: "", columns: COLUMNS, rows: found.iter().map(row).collect() }.table()
}

/// Checks all profiles and reports the error of each, not only the first.
fn validate(validate: &ProfileValidateArgs) -> anyhow::Result<ExitCode> {
    let mut wrong = 0;
    for name in &validate.profiles {
        match find(name) {
            Ok(profile) => output::print(&format!(
                "{name}: {} parameters, {}\n",
                profile.parameters().len(),
                profile.origin.words()
            ))?,
            Err(error) => {
                wrong += 1;
                eprintln!("{error}");
            }
        }
    }
    anyhow::ensure!(wrong == 0, "{wrong} of {} profiles are wrong", validate.profiles.len());
    Ok(ExitCode::SUCCESS)
}

fn plot(plot: &ProfilePlotArgs) -> anyhow::Result<ExitCode> {
    let profile = find(&plot.profile)?;
    let charts = figures(&profile);
    anyhow::ensure!(
        !charts.is_empty(),
        "{}: found no [[level]], expected one at least: charts show what changes of tables cost",
        plot.profile
    );
    output::write_file(&plot.out, &text::page(&profile, &charts))
        .with_context(|| format!("--out: write {}", plot.out.display()))?;
    output::print(&format!("{} charts in {}\n", charts.len(), plot.out.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_differences_are_lines() {
        let (left, right) = (find("at-x510").unwrap(), find("ovs-kernel").unwrap());
        let shown = csv_of_parameters(&left);
        assert!(shown.starts_with("key,unit,value,interval,samples,r2,residual,note\ntiming.data,s,"), "{shown}");
        assert!(shown.contains("\ntiming.packet_in,s,") && shown.contains(",0.00556 0.00572,8,"), "{shown}");
        let found = differences(&left, &right);
        let csv = csv_of_differences(&found);
        assert!(csv.starts_with("key,unit,left,right,relative,overlap\ntiming.data,s,"), "{csv}");
        assert_eq!(csv.lines().count(), 1 + found.len());
    }
}
