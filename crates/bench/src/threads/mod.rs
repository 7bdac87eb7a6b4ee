//! `weir bench threads`: measures the throughput of several run-to-completion threads, compared with one, also while
//! other programs use the cores.
mod competing_threads;
mod testbed;

use super::machine::BenchMachineInfo;
use anyhow::ensure;
use competing_threads::CompetingThreads;
use serde::Serialize;
use std::process::ExitCode;
use testbed::ThreadTestbed;
use weir_switch::threads::MachineResources as Cores;
use weir_terminal::signals::{STOPPED, StopSignalHandler};
use weir_units::TimeSpan;

/// Maximum number of threads, as in a switch.
const MAX_THREADS: usize = 64;

#[derive(clap::Args)]
pub(crate) struct ThreadBenchArgs {
    /// Numbers of threads of the switch, measured in turn; ratios refer to the first
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Ports by which frames leave, measured in turn [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    ways: Vec<EgressPattern>,
    /// Numbers of other threads that keep processors busy, measured in turn
    #[arg(long, value_delimiter = ',', default_value = "0", value_parser = clap::value_parser!(u16).range(0..=256))]
    others: Vec<u16>,
    /// Number of measurements of each case
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Duration of each measurement
    #[arg(long, default_value = "1s")]
    time: TimeSpan,
    /// Print JSON: a record of all that was measured
    #[arg(long)]
    json: bool,
}

/// Port by which frames leave, relative to the thread that received them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum EgressPattern {
    /// Another port of the thread that received them
    Own,
    /// A port of another thread, so that threads compete for ports
    Crossed,
    /// A single port for all threads
    OnePort,
}

/// A single measurement.
#[derive(Debug, Serialize)]
struct ThreadBenchSample {
    round: u32,
    way: EgressPattern,
    others: u16,
    threads: usize,
    /// Millions of packets sent per second of elapsed time.
    mpps: f64,
    /// Packets sent by all threads during the measurement.
    packets: u64,
}

/// Figures of one case with one number of threads.
#[derive(Debug, Serialize)]
struct ThreadBenchRow {
    way: EgressPattern,
    others: u16,
    threads: usize,
    /// Millions of packets per second: median of the rounds, least and most.
    mpps: f64,
    mpps_least: f64,
    mpps_most: f64,
    /// Ratio to the first number of threads in the same round: median, least and most.
    ratio: f64,
    ratio_least: f64,
    ratio_most: f64,
}

#[derive(Serialize)]
struct ThreadBenchReport {
    command: String,
    version: &'static str,
    /// Commit that the program was built from, if the build recorded it.
    commit: Option<&'static str>,
    machine: BenchMachineInfo,
    rows: Vec<ThreadBenchRow>,
    samples: Vec<ThreadBenchSample>,
}

/// Runs the benchmark.
///
/// # Errors
/// There are fewer cores than threads; the switch does not start.
pub(crate) fn run(args: &ThreadBenchArgs) -> anyhow::Result<ExitCode> {
    args.check()?;
    let signals = StopSignalHandler::watch()?;
    let machine = BenchMachineInfo::detect();
    let samples = measure(args, &signals)?;
    let rows = rows(args, &samples);
    let text = if args.json {
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let (version, commit) = (env!("CARGO_PKG_VERSION"), option_env!("WEIR_COMMIT"));
        serde_json::to_string_pretty(&ThreadBenchReport { command, version, commit, machine, rows, samples })? + "\n"
    } else {
        HEAD.to_owned() + &rows.iter().map(ThreadBenchRow::line).collect::<String>()
    };
    weir_terminal::output::print(&text)?;
    Ok(if signals.cancel.is_cancelled() { ExitCode::from(STOPPED) } else { ExitCode::SUCCESS })
}

const HEAD: &str = "frames leave  others  threads     Mpps  (least, most)        ratio  (least, most)\n";

impl ThreadBenchArgs {
    fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.time.0.is_zero(), "--time: found {}, expected a time above zero such as 1s", self.time);
        let cores = Cores::here().cpus.len();
        for threads in &self.threads {
            ensure!(
                (1..=MAX_THREADS.min(cores)).contains(threads),
                "--threads: found {threads}, expected 1 to {}, the cores that this process may use; choose fewer",
                MAX_THREADS.min(cores)
            );
        }
        Ok(())
    }

    fn ways(&self) -> &[EgressPattern] {
        if self.ways.is_empty() {
            &[EgressPattern::Own, EgressPattern::Crossed, EgressPattern::OnePort]
        } else {
            &self.ways
        }
    }

    /// Returns all cases of a round.
    fn cases(&self) -> impl Iterator<Item = (EgressPattern, u16, usize)> {
        let ways = self.ways().iter().flat_map(|way| self.others.iter().map(|others| (*way, *others)));
        ways.flat_map(|(way, others)| self.threads.iter().map(move |threads| (way, others, *threads)))
    }
}

/// Measures all cases, round by round, so that other load of the machine affects all cases alike.
fn measure(args: &ThreadBenchArgs, signals: &StopSignalHandler) -> anyhow::Result<Vec<ThreadBenchSample>> {
    let most = args.threads.iter().copied().max().unwrap_or(1);
    let mut samples = Vec::new();
    for round in 0..args.rounds {
        for (way, others, threads) in args.cases() {
            let bed = ThreadTestbed::start(way, threads, most)?;
            let others_run = CompetingThreads::start(others);
            let Some((packets, seconds)) = bed.measure(args.time.0, &signals.cancel)? else { return Ok(samples) };
            drop(others_run);
            let mpps = packets as f64 / seconds / 1e6;
            samples.push(ThreadBenchSample { round, way, others, threads, mpps, packets });
        }
    }
    Ok(samples)
}

fn rows(args: &ThreadBenchArgs, samples: &[ThreadBenchSample]) -> Vec<ThreadBenchRow> {
    args.cases()
        .filter_map(|(way, others, threads)| ThreadBenchRow::new(args, samples, (way, others, threads)))
        .collect()
}

impl ThreadBenchRow {
    /// Returns `None` if nothing was measured.
    fn new(
        args: &ThreadBenchArgs,
        samples: &[ThreadBenchSample],
        (way, others, threads): (EgressPattern, u16, usize),
    ) -> Option<ThreadBenchRow> {
        let of = |threads| {
            let is = move |sample: &&ThreadBenchSample| {
                (sample.way, sample.others, sample.threads) == (way, others, threads)
            };
            samples.iter().filter(is)
        };
        let first = args.threads.first().copied().unwrap_or(1);
        let rates: Vec<f64> = of(threads).map(|sample| sample.mpps).collect();
        let to_first = |sample: &ThreadBenchSample| {
            let base = of(first).find(|base| base.round == sample.round)?;
            Some(sample.mpps / base.mpps)
        };
        let ratios: Vec<f64> = of(threads).filter_map(to_first).collect();
        let ((mpps_least, mpps, mpps_most), (ratio_least, ratio, ratio_most)) = (spread(rates)?, spread(ratios)?);
        Some(ThreadBenchRow { way, others, threads, mpps, mpps_least, mpps_most, ratio, ratio_least, ratio_most })
    }

    fn line(&self) -> String {
        let ThreadBenchRow { others, threads, mpps, mpps_least, mpps_most, ratio, ratio_least, ratio_most, .. } = self;
        let way = clap::ValueEnum::to_possible_value(&self.way).map_or(String::new(), |way| way.get_name().to_owned());
        format!(
            "{way:12}  {others:6}  {threads:7}  {mpps:7.2}  ({mpps_least:6.2}, {mpps_most:6.2})  {ratio:9.2}  ({ratio_least:.2}, {ratio_most:.2})\n"
        )
    }
}

/// Returns least, median and most, or `None` if there are no values.
fn spread(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_by(f64::total_cmp);
    Some((*values.first()?, *values.get(values.len() / 2)?, *values.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(threads: Vec<usize>) -> ThreadBenchArgs {
        ThreadBenchArgs {
            threads,
            ways: vec![EgressPattern::Own],
            others: vec![0],
            rounds: 3,
            time: "1ms".parse().unwrap(),
            json: false,
        }
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let sample = |round, threads, mpps| ThreadBenchSample {
            round,
            way: EgressPattern::Own,
            others: 0,
            threads,
            mpps,
            packets: 1,
        };
        let rates = [(0, 1, 10.0), (0, 2, 20.0), (1, 1, 4.0), (1, 2, 2.0), (2, 1, 6.0), (2, 2, 9.0)];
        let samples: Vec<ThreadBenchSample> =
            rates.into_iter().map(|(round, threads, mpps)| sample(round, threads, mpps)).collect();
        let rows = rows(&args(vec![1, 2]), &samples);
        assert_eq!((rows[0].mpps, rows[0].ratio), (6.0, 1.0));
        assert_eq!((rows[1].mpps, rows[1].mpps_least, rows[1].mpps_most), (9.0, 2.0, 20.0));
        assert_eq!((rows[1].ratio, rows[1].ratio_least, rows[1].ratio_most), (1.5, 0.5, 2.0));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for threads in [0, 1000] {
            let error = args(vec![threads]).check().unwrap_err().to_string();
            assert!(error.starts_with(&format!("--threads: found {threads}, expected 1 to ")), "{error}");
        }
        let error = ThreadBenchArgs { time: "0s".parse().unwrap(), ..args(vec![1]) }.check().unwrap_err().to_string();
        assert!(error.contains("above zero"), "{error}");
    }
}
