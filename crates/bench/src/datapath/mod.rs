//! `weir bench datapath`: measures the engine's packet path, `Port::receive`, `Datapath::process`, `Port::transmit`,
//! in a loop on one pinned thread, for several cases of entries and traffic. docs/guide/bench.md describes the cases.
mod attack;
mod case;
mod count;
mod entry;
mod masks;
mod measure;
mod pipeline;
mod report;
mod routes;
mod rules;
mod split_mix;
mod testbed;
pub(super) mod thread_cpu;
mod workers;
mod write;

use super::machine::BenchMachineInfo;
use anyhow::{bail, ensure};
use case::{BenchCaseName, BenchCaseSettings, DatapathBenchCase};
use count::CountArg;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_terminal::signals::{STOPPED, StopSignalHandler};
use weir_units::TimeSpan;

/// Exit status if packets did not leave by the expected port.
const LOST: u8 = 1;

#[derive(clap::Args)]
pub(crate) struct DatapathBenchArgs {
    /// Cases to measure, one after the other [default: those that need no file]
    #[arg(value_name = "CASE", value_enum)]
    cases: Vec<BenchCaseName>,
    /// Flow entries: 1000, 100k, 1M; in `pipeline` those of each table [default: the case's own, see
    /// docs/guide/bench.md]
    #[arg(long, value_name = "N")]
    entries: Option<CountArg>,
    /// Number of flows [default: as many as entries, or the case's own]
    #[arg(long, value_name = "N")]
    flows: Option<CountArg>,
    /// Masks of the case `masks`, 1 to 32 [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    masks: Option<u32>,
    /// Tables of the case `pipeline`, 1 to 16 [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    tables: Option<u8>,
    /// Actions of the case's entries, in the syntax of ovs-ofctl; 2 is the port to output to [default: output:2]
    #[arg(long, value_name = "ACTIONS", value_parser = entry::actions)]
    actions: Option<entry::EntryActionsArg>,
    /// Prefixes or addresses of `lpm` (one in each line), rules of `classbench` and `attack` (ClassBench's format)
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Order of the flows: cycle (all in turn, repeatedly) or random (twice in turn and then drawn at random)
    #[arg(long, value_enum, default_value = "cycle")]
    order: FlowOrder,
    /// Headers of `classbench` and `attack`: calm (each drawn for one rule) or hostile (adversarial) [default: calm;
    /// for `attack` hostile]
    #[arg(long, value_enum)]
    headers: Option<HeaderPattern>,
    /// Length of the frames in bytes, 60 to 1514
    #[arg(long, value_name = "BYTES", default_value = "60")]
    size: usize,
    /// Ports at the datapath's ends: null (frames are generated as they are received), memory (frames pass through
    /// rings), pcap (frames are copied from a looping capture)
    #[arg(long, value_enum, default_value = "null")]
    ports: BenchPortKind,
    /// How flow entries are looked up: adaptive (by a method that suits each table) or linear (entry by entry, the
    /// reference)
    #[arg(long, value_enum, default_value = "adaptive")]
    lookup: BenchLookupMode,
    /// Cache results of lookups in several tables for later packets of a flow: auto (while it pays), off, on
    #[arg(long, value_enum, default_value = "auto")]
    verdict_cache: BenchCacheMode,
    /// Largest number of threads that process packets, each with its own ports and its own core; each case is
    /// measured with one thread, two, and so on
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Let workers share cores if there are fewer cores than workers
    #[arg(long)]
    oversubscribe: bool,
    /// Core to run on [default: the last]
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// Duration of a measurement
    #[arg(long, value_name = "TIME", default_value = "1s")]
    time: TimeSpan,
    /// Duration of the warm-up; 0s measures from the first packet on
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    warm_up: TimeSpan,
    /// Seed of drawn flows and headers
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Measure nothing; write the entries (as ovs-ofctl reads them) and the flows of one case to a new directory, for
    /// other switches
    #[arg(short, long, alias = "write", value_name = "DIRECTORY")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
enum FlowOrder {
    Cycle,
    Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
enum HeaderPattern {
    Calm,
    Hostile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
enum BenchLookupMode {
    Adaptive,
    Linear,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
enum BenchCacheMode {
    Auto,
    Off,
    On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
enum BenchPortKind {
    Null,
    Memory,
    Pcap,
}

pub(crate) fn run(args: DatapathBenchArgs) -> anyhow::Result<ExitCode> {
    args.check()?;
    let names = if args.cases.is_empty() { BenchCaseName::WITHOUT_FILE.to_vec() } else { args.cases.clone() };
    if let Some(folder) = &args.out {
        let [name] = names[..] else { bail!("--out: found {} cases, expected one", names.len()) };
        write::write(DatapathBenchCase::new(name, &args.wanted())?, &args, folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let machine = BenchMachineInfo::detect();
    // Created before this thread is pinned, because a new thread inherits its core.
    let signals = StopSignalHandler::watch()?;
    let cores = workers::cores(&args)?;
    let core = thread_cpu::pin(args.core)?;
    let mut report = report::DatapathBenchReport::new(&args, machine, core);
    for (place, name) in names.into_iter().enumerate() {
        let case = DatapathBenchCase::new(name, &args.wanted())?;
        // Memory freed by an earlier case would hide the growth of a later one.
        let is_first = place == 0;
        let Some(figures) = measure::measure(case, &args, is_first, &signals.cancel)? else { break };
        if !args.json {
            report.print(&figures)?;
        }
        let one_alone = figures.mpps;
        report.add(figures);
        for workers in 2..=cores.len() {
            let case = DatapathBenchCase::new(name, &args.wanted())?;
            let Some(together) = workers::measure(case, &args, &cores[..workers], &signals.cancel)? else { break };
            report.add_together(together, one_alone, args.json)?;
        }
        report.sum_up(name, one_alone, args.json)?;
        if signals.cancel.is_cancelled() {
            break;
        }
    }
    let is_partial = signals.cancel.is_cancelled();
    report.end(is_partial, args.json)?;
    if is_partial {
        return Ok(ExitCode::from(STOPPED));
    }
    Ok(if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::from(LOST) })
}

impl DatapathBenchArgs {
    fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.time.0.is_zero(), "--time: found {}, expected a time above zero such as 1s", self.time);
        let sizes = weir_port::null::SIZES;
        ensure!(
            sizes.contains(&self.size),
            "--size: found {}, expected {} to {} bytes",
            self.size,
            sizes.start(),
            sizes.end()
        );
        ensure!(self.workers == 1 || self.out.is_none(), "--out: writes what one worker is given; leave --workers out");
        Ok(())
    }

    fn wanted(&self) -> BenchCaseSettings<'_> {
        BenchCaseSettings {
            entries: self.entries.map(|count| count.0),
            flows: self.flows.map(|count| count.0),
            masks: self.masks,
            tables: self.tables,
            actions: self.actions.as_ref(),
            file: self.file.as_deref(),
            headers: self.headers,
            size: self.size,
            seed: self.seed,
        }
    }
}
