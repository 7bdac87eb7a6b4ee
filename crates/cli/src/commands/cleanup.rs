//! `weir cleanup`: removes what killed labs left behind and re-enables interface features that switches disabled.
//! Exit status 0 if everything was removed, 1 if something could not be removed, 2 if a selected lab still runs and
//! --force is missing.
use serde_json::json;
use std::process::ExitCode;
use weir_emulator::cleanup::{Leftover, leftovers};
use weir_terminal::output;

#[derive(clap::Args)]
pub(crate) struct CleanupArgs {
    /// Clean up only after these processes [default: all processes that have ended]
    #[arg(value_name = "PID")]
    pids: Vec<u32>,
    /// Include labs that still run; needs --force
    #[arg(long, conflicts_with = "pids")]
    all: bool,
    /// End labs that still run: first with a request to clean up, after ten seconds with a kill
    #[arg(long)]
    force: bool,
    /// Print what was removed as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CleanupArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(rustix::process::geteuid().is_root(), "cleaning up needs root: use sudo");
    let found = leftovers();
    let is_meant = |left: &&Leftover| match args.pids.is_empty() {
        true => args.all || !left.alive,
        false => args.pids.contains(&left.pid),
    };
    let meant: Vec<&Leftover> = found.iter().filter(is_meant).collect();
    let alive: Vec<String> = meant.iter().filter(|left| left.alive).map(|left| left.pid.to_string()).collect();
    anyhow::ensure!(
        alive.is_empty() || args.force,
        "found labs that run (process {}), expected --force to end them",
        alive.join(", ")
    );
    // Printed at the end, so that a failure to print does not prevent any removal.
    let (mut text, mut problems) = (String::new(), Vec::new());
    for left in &meant {
        problems.extend(left.remove());
        if !args.json {
            text += &removed(left);
        }
    }
    problems.iter().for_each(|problem| eprintln!("weir: left behind: {problem}"));
    if args.json {
        text = format!("{:#}\n", json!({ "removed": meant, "problems": problems }));
    } else if meant.is_empty() {
        text += "nothing was left behind\n";
    }
    output::print(&text)?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn removed(left: &Leftover) -> String {
    let folder = left.folder.as_ref().map(|folder| folder.display().to_string());
    let state = if left.alive { "ended" } else { "was gone" };
    let mut text = format!("process {} {state}; removed:\n", left.pid);
    for name in left.namespaces.iter().chain(&left.interfaces).chain(&folder) {
        text += &format!("  {name}\n");
    }
    for features in &left.features {
        text += &format!("  {features}: on again\n");
    }
    text
}
