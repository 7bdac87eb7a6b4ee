//! `weir bench updates`: measures the cost of changing a table, for forwarding and for the controller.
mod cost;
mod page_faults;
mod phases;
mod poll_gaps;

use super::machine::BenchMachineInfo;
use cost::FlowModCosts;
use phases::{UpdatePhase, UpdatePhaseFigures, UpdateTestbed};
use serde::Serialize;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use weir_units::TimeSpan;

#[derive(clap::Args)]
pub(crate) struct UpdateBenchArgs {
    /// Numbers of entries in the table, measured one after the other
    #[arg(long, value_delimiter = ',', default_value = "1000,100000,1000000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    entries: Vec<u32>,
    /// Phases: actions of the controller, measured one after the other [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    phases: Vec<UpdatePhase>,
    /// Flow-mods per second in phases with a fixed rate
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    /// Flow-mods of a bundle
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    bundle: u32,
    /// Flow-mods of an atomic bundle
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    atomic: u32,
    /// Duration of each phase that does not end by itself
    #[arg(long, default_value = "2s")]
    time: TimeSpan,
    /// Core that the switch's engine is pinned to [default: the system decides]
    #[arg(long)]
    core: Option<usize>,
    /// Skip the cost of a flow-mod for the tables alone
    #[arg(long)]
    no_costs: bool,
    /// Print JSON: a record of all that was measured
    #[arg(long)]
    json: bool,
}

/// Resident memory of the process in bytes, if Linux reports it.
#[derive(Debug, Serialize)]
pub(crate) struct ResidentMemory {
    entries: u32,
    before: Option<u64>,
    loaded: Option<u64>,
    /// Memory after all entries were deleted.
    deleted: Option<u64>,
    /// Memory after as many entries were added again and expired, if they were.
    ended: Option<u64>,
}

#[derive(Serialize)]
struct UpdateBenchReport {
    command: String,
    version: &'static str,
    /// Commit that the program was built from, if the build recorded it.
    commit: Option<&'static str>,
    machine: BenchMachineInfo,
    rate: u32,
    bundle: u32,
    atomic: u32,
    costs: Vec<FlowModCosts>,
    phases: Vec<UpdatePhaseFigures>,
    memory: Vec<ResidentMemory>,
}

/// Runs the benchmark.
///
/// # Errors
/// The machine has no room for the entries, or the switch does not start.
pub(crate) fn run(args: &UpdateBenchArgs) -> anyhow::Result<ExitCode> {
    let mut report = UpdateBenchReport {
        command: std::env::args().collect::<Vec<_>>().join(" "),
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("WEIR_COMMIT"),
        machine: BenchMachineInfo::detect(),
        rate: args.rate,
        bundle: args.bundle,
        atomic: args.atomic,
        costs: Vec::new(),
        phases: Vec::new(),
        memory: Vec::new(),
    };
    let say = |line: String| {
        if !args.json {
            // A reader that closed its end early only misses this line.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    };
    if !args.no_costs {
        say("ns per flow-mod, or entry told, tables alone".to_owned());
        say("entries        add  checked   strict:modify   delete   exact:modify   delete     told".to_owned());
        for entries in &args.entries {
            let costs = cost::measure(*entries);
            say(costs.line());
            report.costs.push(costs);
        }
    }
    say("gaps in us".to_owned());
    say([
        format!("{:>7} {:6} {:>9} {:>6}", "entries", "phase", "updates/s", "Mpps"),
        format!("{:>6} {:>6} {:>6} {:>7} {:>6}", "p50", "p99", "p99.9", "longest", "(own)"),
        format!("{:>18} {:>12}", ">100 (own, faults)", "per s - idle"),
    ]
    .join(" "));
    for entries in &args.entries {
        let mut bed = UpdateTestbed::start(args, *entries)?;
        let memory = bed.run(&mut |figures| {
            say(figures.line());
            report.phases.push(figures);
            Ok(())
        })?;
        say(memory.line());
        report.memory.push(memory);
    }
    if args.json {
        let text = serde_json::to_string_pretty(&report)? + "\n";
        weir_terminal::output::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl FlowModCosts {
    fn line(&self) -> String {
        let FlowModCosts {
            entries,
            add_ns,
            add_checked_ns,
            modify_strict_ns,
            modify_ns,
            delete_strict_ns,
            delete_ns,
            tell_ns,
        } = self;
        format!(
            "{entries:8} {add_ns:9.0} {add_checked_ns:8.0} {modify_strict_ns:15.0} {delete_strict_ns:8.0} {modify_ns:14.0} {delete_ns:8.0} {tell_ns:8.0}"
        )
    }
}

impl UpdatePhaseFigures {
    fn line(&self) -> String {
        let UpdatePhaseFigures {
            entries, phase, mpps, updates_per_second, gap_us: gap, over, own_over, control, ..
        } = self;
        let faults = self.own_over_with_faults;
        let idle = control.own_over_per_second;
        let own = self.own_over_per_second + idle;
        let name = clap::ValueEnum::to_possible_value(phase).map_or(String::new(), |name| name.get_name().to_owned());
        [
            format!("{entries:7} {name:6} {updates_per_second:9.0} {mpps:6.2}"),
            format!("{:6.2} {:6.2} {:6.2}", gap.p50, gap.p99, gap.p999),
            format!("{:7.1} {:6.1}", gap.longest, gap.own_longest),
            format!("{:>18} {:>12}", format!("{over} ({own_over}, {faults})"), format!("{own:.1} - {idle:.1}")),
        ]
        .join(" ")
    }
}

impl ResidentMemory {
    fn line(&self) -> String {
        let mib = |bytes: Option<u64>| bytes.map_or("-".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1048576.0));
        let [before, loaded, deleted, ended] = [self.before, self.loaded, self.deleted, self.ended].map(mib);
        format!(
            "{:8}  resident MiB: {before} without entries, {loaded} with them, {deleted} when deleted, {ended} at the end",
            self.entries
        )
    }
}

/// The columns are labelled 100 us, so the bound must have this value.
const _: () = assert!(poll_gaps::PROMISED.as_nanos() == Duration::from_micros(100).as_nanos());
