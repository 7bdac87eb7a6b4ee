//! Compares all scenarios of a folder and prints them as a leader board of the answers.
use super::{CompareArgs, compare_scenario, json, no_answer_reason, status, with_overrides, write_result};
use anyhow::{Context as _, ensure};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weir_compare::score::ErrorStatistics;
use weir_compare::{
    AnswerState, Comparison, Leaderboard, LeaderboardRow, LeaderboardScenario, ScenarioAnswer, ScenarioOutcome, page,
};
use weir_emulator::CancelHandle;
use weir_scenario::Scenario;
use weir_terminal::progress::tell;
use weir_terminal::prose::wrapped;
use weir_terminal::table::ReportTable;

/// Maximum number of scenarios in a folder.
const MOST_FILES: usize = 10_000;

/// Compares all scenarios of the folder `args.path` and prints the leader board.
pub(super) fn run(args: &CompareArgs, cancel: &CancelHandle) -> anyhow::Result<ExitCode> {
    let files = files(&args.path)?;
    let mut entries = Vec::new();
    for (number, file) in files.iter().enumerate() {
        if cancel.is_cancelled() {
            break;
        }
        tell(&format!("{} ({} of {})", file.display(), number + 1, files.len()));
        entries.push(LeaderboardScenario { file: file.display().to_string(), outcome: outcome(file, args, cancel) });
    }
    let all = entries.len() == files.len();
    let mut board = Leaderboard::new(entries);
    board.partial |= !all;
    let text = match (args.json, args.csv) {
        (true, _) => json(&board)?,
        (_, true) => csv(&board),
        _ => wrapped(&text(&board, files.len())),
    };
    write_result(args, &text, || page::render_leaderboard(&args.path.display().to_string(), &board))?;
    Ok(status(board.partial, comparisons(&board).all(|comparison| comparison.passed)))
}

/// Returns the scenario files (`.toml`) of a folder, sorted by name.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if path.extension().is_some_and(|ending| ending == "toml") && path.is_file() {
            files.push(path);
        }
        ensure!(files.len() <= MOST_FILES, "{}: found more than {MOST_FILES} files", folder.display());
    }
    ensure!(!files.is_empty(), "{}: found no file that ends with .toml, expected scenarios", folder.display());
    files.sort();
    Ok(files)
}

/// Compares the answers to one scenario. A scenario that cannot be read or has no answer becomes a failed row of the
/// board, so that the remaining scenarios are still compared.
fn outcome(file: &Path, args: &CompareArgs, cancel: &CancelHandle) -> ScenarioOutcome {
    let scenario =
        match Scenario::read(file).map_err(anyhow::Error::from).and_then(|scenario| with_overrides(scenario, args)) {
            Ok(scenario) => scenario,
            Err(error) => return ScenarioOutcome::Failed(format!("{error:#}")),
        };
    let comparison = compare_scenario(&scenario, args, cancel);
    if comparison.answers.iter().any(ScenarioAnswer::is_available) {
        ScenarioOutcome::Compared(Box::new(comparison))
    } else {
        ScenarioOutcome::Failed(no_answer_reason(&comparison))
    }
}

fn comparisons(board: &Leaderboard) -> impl Iterator<Item = &Comparison> {
    board.entries.iter().filter_map(|entry| match &entry.outcome {
        ScenarioOutcome::Compared(comparison) => Some(&**comparison),
        ScenarioOutcome::Failed(_) => None,
    })
}

fn text(board: &Leaderboard, asked: usize) -> String {
    let mut text = format!("Scenarios\n{}\n\n", scenarios(board));
    if board.places.is_empty() {
        text += "No figure of two answers to compare\n";
    } else {
        let _ = writeln!(
            text,
            "Leader board (errors against the reference in %, of loss in percentage points; in common: flows that all of them answer)\n{}\n",
            places(board)
        );
    }
    if board.partial {
        let _ = writeln!(
            text,
            "Stopped early, results are partial: {} of {asked} scenarios were begun",
            board.entries.len()
        );
    }
    text
}

fn scenarios(board: &Leaderboard) -> ReportTable {
    let mut table = ReportTable::new(["", "reference", "answers", ""]);
    for entry in &board.entries {
        let (reference, answers, rest) = match &entry.outcome {
            ScenarioOutcome::Failed(why) => (String::new(), String::new(), format!("FAILED: {why}")),
            ScenarioOutcome::Compared(comparison) => {
                let there = comparison
                    .answers
                    .iter()
                    .filter(|answer| answer.is_available())
                    .map(|answer| answer.by.to_string());
                let left = comparison.answers.iter().filter_map(|answer| match &answer.state {
                    AnswerState::LeftOut(why) => Some(format!("{} left out: {why}", answer.by)),
                    AnswerState::Answered | AnswerState::Partial => None,
                });
                let reference = comparison.reference.as_ref().map_or_else(String::new, ToString::to_string);
                (reference, there.collect::<Vec<_>>().join(", "), left.collect::<Vec<_>>().join("; "))
            }
        };
        table.row([entry.file.clone(), reference, answers, rest]);
    }
    table
}

const HEAD: [&str; 12] = [
    "of",
    "answer",
    "valid",
    "unstable",
    "not answered",
    "in common",
    "mean",
    "median",
    "p95",
    "own: mean",
    "median",
    "p95",
];

fn places(board: &Leaderboard) -> ReportTable {
    let mut table = ReportTable::new(HEAD).keys(2).groups([6]).numbers(2..HEAD.len());
    for place in &board.places {
        table.row(cells(place, |share| format!("{:.2}", share * 100.0)));
    }
    table
}

fn cells(place: &LeaderboardRow, number: impl Fn(f64) -> String) -> Vec<String> {
    let mut cells = vec![place.metric.name().to_owned(), place.by.to_string()];
    cells.extend([place.valid, place.unstable, place.not_answered].map(|count| count.to_string()));
    cells.push(place.common.map_or(0, |errors| errors.valid).to_string());
    for errors in [place.common, place.own] {
        let values: [fn(&ErrorStatistics) -> f64; 3] =
            [|errors| errors.mean, |errors| errors.median, |errors| errors.p95];
        cells.extend(values.map(|value| errors.map_or_else(String::new, |errors| number(value(&errors)))));
    }
    cells
}

/// Formats the board as CSV. Errors are fractions, not percent.
fn csv(board: &Leaderboard) -> String {
    let mut text =
        "metric,answer,valid,unstable,not_answered,in_common,common_mean,common_median,common_p95,mean,median,p95\n"
            .to_owned();
    for place in &board.places {
        let _ = writeln!(text, "{}", cells(place, |share| share.to_string()).join(","));
    }
    for entry in &board.entries {
        if let ScenarioOutcome::Failed(why) = &entry.outcome {
            let _ = writeln!(text, "# {}: {}", entry.file, why.replace('\n', " "));
        }
    }
    text
}
