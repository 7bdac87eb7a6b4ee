//! `weir-differential`: compares weir with Open vSwitch on drawn cases.
use anyhow::Context as _;
use clap::Parser;
use std::path::PathBuf;
use weir_differential::compare::StepAnswerPart;
use weir_differential::kinds::kinds_of;
use weir_differential::record::DifferentialRecord;
use weir_differential::run::{DifferentialReport, OvsComparison, UnexplainedDifference};
use weir_differential::{draw, print};

/// Give drawn messages and frames to weir's datapath and to Open vSwitch, and compare what they do
#[derive(Parser)]
struct DifferentialArgs {
    /// Number of cases
    #[arg(long, default_value_t = 10_000)]
    cases: u64,
    /// Seed of the first case; the following cases have the following seeds
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Stop after this many differences that no known kind explains
    #[arg(long, default_value_t = 5)]
    unknown: usize,
    /// Show only this case, and all its differences
    #[arg(long)]
    case: Option<u64>,
    /// Do not stop at differences of no known kind: count those that have the same description
    #[arg(long)]
    survey: bool,
    /// Print the table of known kinds of differences, as docs/differences.md has it
    #[arg(long)]
    kinds: bool,
    /// Add the run's results to this file
    #[arg(long)]
    record: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let options = DifferentialArgs::parse();
    if options.kinds {
        print!("{}", print::kinds());
        return Ok(());
    }
    let mut comparison = OvsComparison::start(options.unknown, options.survey)?;
    if let Some(seed) = options.case {
        return show(&mut comparison, seed);
    }
    let last = options.seed + options.cases;
    let report = comparison.run(options.seed..last)?.clone();
    tell(&report);
    if let Some(file) = options.record {
        let mut record = DifferentialRecord::read(&file)?;
        "cargo run -p weir-differential -- --seed FIRST --cases COUNT --record FILE".clone_into(&mut record.command);
        record.weir = format!("{} and the commit that this file came with", env!("CARGO_PKG_VERSION"));
        record.open_vswitch = comparison.instance().version();
        record.add(&report, (options.seed, last - 1));
        record.write(&file)?;
    }
    anyhow::ensure!(report.unknown.is_empty(), "{} differences of no known kind", report.unknown.len());
    Ok(())
}

/// Prints a case and its differences. After each explained difference, its step is removed and the case runs again.
fn show(comparison: &mut OvsComparison, seed: u64) -> anyhow::Result<()> {
    let mut case = draw::case(seed);
    println!("{}", print::case(&case));
    while let Some(difference) = comparison.difference(&case)? {
        print!("{}", print::difference(&difference));
        for kind in kinds_of(&case, &difference).context("of no known kind")? {
            println!("  {}: {} ({})\n", kind.name, kind.why, kind.clause);
        }
        if matches!(difference.part, StepAnswerPart::Told | StepAnswerPart::Ended) {
            break;
        }
        case = case.without(difference.step);
    }
    Ok(())
}

fn tell(report: &DifferentialReport) {
    println!(
        "{} cases, {} without any difference, {} runs, {} steps",
        report.cases, report.same, report.runs, report.steps
    );
    for (kind, count) in &report.kinds {
        println!("{count:8} {kind}");
    }
    for unknown in &report.unknown {
        println!("\nof no known kind, with `--case {}`:", unknown.case.seed);
        print_unknown(unknown);
    }
    for (looks, (count, first)) in &report.alike {
        println!("\n{count} times: {looks}");
        print_unknown(first);
    }
}

fn print_unknown(unknown: &UnexplainedDifference) {
    print!("{}{}", print::case(&unknown.case), print::difference(&unknown.difference));
}
