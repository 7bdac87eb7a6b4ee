//! `weir traffic`: sends traffic by rule, reports how exactly it was sent, and records what becomes of it. Exit
//! status 130 when stopped early.
mod csv_report;
mod laws;
mod offer;
mod report;

use anyhow::Context as _;
use laws::VisitReportArg;
use offer::OfferArgs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use weir_generator::{Epoch, TrafficRun, TrafficRunConfig, TrafficRunReport};
use weir_port::{Port, PortSpec};
use weir_terminal::signals::{STOPPED, StopSignalHandler};
use weir_traffic::recorder::IntervalStatistics;
use weir_units::TimeSpan;

/// Maximum size of a report file in bytes.
const MAX_REPORT_BYTES: u64 = 16 << 20;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct TrafficArgs {
    #[command(subcommand)]
    command: Option<TrafficCommand>,
    #[command(flatten)]
    send: TrafficSendArgs,
}

#[derive(clap::Subcommand)]
enum TrafficCommand {
    /// Record packets that arrive at a port, sent by another `weir traffic` process, until stopped
    Record(TrafficRecordArgs),
    /// Compute the time of one visit to a device, from runs whose packets passed it several times
    PerVisit(PerVisitArgs),
}

#[derive(clap::Args)]
struct TrafficSendArgs {
    /// Port to send by, such as af_packet:eth0, af_xdp:eth0, tap:t0, memory:a, null: or pcap:out=FILE
    #[arg(value_name = "PORT", required = true)]
    port: Option<PortSpec>,
    /// Port where packets arrive, to record them by the sender's clock
    #[arg(long, value_name = "PORT")]
    to: Option<PortSpec>,
    #[command(flatten)]
    offer: OfferArgs,
    /// Time for which packets are sent and counted, such as 10s; a list or a capture without --gaps may end before
    /// [default: 10s]
    #[arg(long, value_name = "TIME")]
    duration: Option<TimeSpan>,
    /// Time for which packets are sent before they are counted
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warm_up: TimeSpan,
    /// Time to wait for the last packets
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    drain: TimeSpan,
    #[command(flatten)]
    record: RecordingArgs,
}

#[derive(clap::Args)]
struct TrafficRecordArgs {
    /// Port where packets arrive
    #[arg(value_name = "PORT")]
    port: PortSpec,
    /// Time to record [default: until stopped]
    #[arg(long, value_name = "TIME")]
    duration: Option<TimeSpan>,
    /// Run whose packets are counted, as its sender reports it [default: that of the first packet]
    #[arg(long, value_name = "N")]
    run: Option<u16>,
    #[command(flatten)]
    record: RecordingArgs,
}

#[derive(clap::Args)]
struct PerVisitArgs {
    /// Numbers of visits, each with the report of a run, as --json wrote it: 1=one.json 2=two.json ...
    #[arg(value_name = "N=FILE", required = true)]
    runs: Vec<VisitReportArg>,
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV: a line for each run, and one for each estimate of the time of a visit
    #[arg(long)]
    csv: bool,
}

/// Options for recording and reporting.
#[derive(clap::Args)]
#[command(next_help_heading = "Recording")]
struct RecordingArgs {
    /// Port on which packets are observed on their way, and its name in the report: NAME=PORT. On the interface of a
    /// control channel packet-ins and packet-outs are observed. Repeatable
    #[arg(long = "tap", value_name = "NAME=PORT")]
    taps: Vec<laws::TapArg>,
    /// Report of a run without the device, as --json wrote it: its delay is subtracted
    #[arg(long, value_name = "FILE")]
    rig: Option<PathBuf>,
    /// Delay above which a packet counts as sent through the controller; their share is the effective probability of
    /// a new flow
    #[arg(long, value_name = "TIME")]
    threshold: Option<TimeSpan>,
    /// Write a row for each interval to this file (CSV)
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Length of these intervals
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    every: TimeSpan,
    /// Count time stamps from 1970, for machines with synchronised clocks; must be given at both ends
    #[arg(long)]
    wall_clock: bool,
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result as CSV: a line for what was sent, one for what was received, and one for each kind of delay
    #[arg(long)]
    csv: bool,
}

pub(crate) fn run(args: TrafficArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        Some(TrafficCommand::Record(args)) => record(&args),
        Some(TrafficCommand::PerVisit(args)) => per_visit(&args),
        None => send(&args.send),
    }
}

fn send(args: &TrafficSendArgs) -> anyhow::Result<ExitCode> {
    let spec = args.port.as_ref().context("no port to send by")?;
    let source = args.offer.source()?;
    let ends = source.ends();
    let default = Duration::from_secs(10);
    let config = TrafficRunConfig {
        duration: args.duration.map(|span| span.0).or((!ends).then_some(default)),
        warm_up: args.warm_up.0,
        drain: args.drain.0,
        ..args.record.config()
    };
    anyhow::ensure!(config.duration.is_none_or(|time| !time.is_zero()), "--duration: found 0s, expected more");
    let port = weir_port::open(spec)?;
    let sink = args.to.as_ref().map(weir_port::open).transpose()?;
    let rig = TrafficRun::new(config, Some((source, port)), sink, args.record.open_taps()?)?;
    measure_and_report(rig, &args.record)
}

fn record(args: &TrafficRecordArgs) -> anyhow::Result<ExitCode> {
    let config = TrafficRunConfig { duration: args.duration.map(|span| span.0), run: args.run, ..args.record.config() };
    let rig = TrafficRun::new(config, None, Some(weir_port::open(&args.port)?), args.record.open_taps()?)?;
    measure_and_report(rig, &args.record)
}

/// Runs the measurement to its end and prints the report.
fn measure_and_report(rig: TrafficRun, args: &RecordingArgs) -> anyhow::Result<ExitCode> {
    let rig_delay = args.rig.as_deref().map(read_report).transpose()?;
    let mut series = args.series.as_deref().map(SeriesFile::create).transpose()?;
    let signals = StopSignalHandler::watch()?;
    let mut row = |row: IntervalStatistics| series.iter_mut().for_each(|file| file.write(&row));
    let mut result = rig.run(&mut || signals.cancel.is_cancelled(), &mut row)?;
    let taken_off = rig_delay.map_or(Ok(()), |rig| result.take_off(&rig));
    let text = match (args.json, args.csv) {
        (true, _) => serde_json::to_string_pretty(&result)? + "\n",
        (_, true) => csv_report::csv(&result),
        _ => report::text(&result),
    };
    weir_terminal::output::print(&text)?;
    // Checked after printing, so that an unwritable time series does not suppress the result.
    series.map_or(Ok(()), SeriesFile::finish)?;
    taken_off.context("--rig")?;
    Ok(if result.partial { ExitCode::from(STOPPED) } else { ExitCode::SUCCESS })
}

fn per_visit(args: &PerVisitArgs) -> anyhow::Result<ExitCode> {
    let read = |run: &VisitReportArg| Ok((run.visits, read_report(&run.file)?));
    let runs = args.runs.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let found = weir_generator::per_visit::per_visit(&runs)?;
    let text = match (args.json, args.csv) {
        (true, _) => serde_json::to_string_pretty(&found)? + "\n",
        (_, true) => csv_report::per_visit(&found),
        _ => report::per_visit(&found),
    };
    weir_terminal::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn read_report(file: &Path) -> anyhow::Result<TrafficRunReport> {
    let shown = file.display();
    let bytes = std::fs::metadata(file).with_context(|| format!("cannot read {shown}"))?.len();
    anyhow::ensure!(
        bytes <= MAX_REPORT_BYTES,
        "{shown}: found {bytes} bytes, expected a report of `weir traffic --json`"
    );
    let text = weir_units::read_text(file).with_context(|| format!("cannot read {shown}"))?;
    serde_json::from_str(&text).with_context(|| format!("{shown}: expected a report of `weir traffic --json`"))
}

impl RecordingArgs {
    fn config(&self) -> TrafficRunConfig {
        TrafficRunConfig {
            epoch: if self.wall_clock { Epoch::Wall } else { Epoch::Boot },
            threshold: self.threshold.map(|span| span.0),
            every: self.series.is_some().then_some(self.every.0),
            ..TrafficRunConfig::default()
        }
    }

    fn open_taps(&self) -> anyhow::Result<Vec<(String, Box<dyn Port>)>> {
        self.taps.iter().map(|tap| Ok((tap.name.clone(), weir_port::open(&tap.port)?))).collect()
    }
}

/// Time series file. Each row is written when it is measured, so that an aborted run keeps its rows.
struct SeriesFile {
    writer: csv::Writer<File>,
    problem: Option<csv::Error>,
}

impl SeriesFile {
    fn create(path: &Path) -> anyhow::Result<SeriesFile> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record([
            "time_s",
            "sent",
            "received",
            "bytes",
            "duplicates",
            "min_us",
            "mean_us",
            "p50_us",
            "p95_us",
            "p99_us",
            "max_us",
        ])?;
        Ok(SeriesFile { writer, problem: None })
    }

    fn write(&mut self, row: &IntervalStatistics) {
        let counts = [row.sent, row.received, row.bytes, row.duplicates].map(|count| count.to_string());
        let delays = row.delay.map_or_else(
            || [const { String::new() }; 6],
            |d| [d.min_us, d.mean_us, d.p50_us, d.p95_us, d.p99_us, d.max_us].map(|us| format!("{us:.3}")),
        );
        let cells = [format!("{:.6}", row.time_s)].into_iter().chain(counts).chain(delays);
        let written = self.writer.write_record(cells).and_then(|()| Ok(self.writer.flush()?));
        self.problem = self.problem.take().or(written.err());
    }

    fn finish(self) -> anyhow::Result<()> {
        self.problem.map_or(Ok(()), |problem| Err(problem).context("cannot write the time series"))
    }
}
