//! Runs many seeds of `weir_switch::schedules` on several threads, and writes a record.
//!
//! `cargo run --release -p weir-switch --features schedules --example schedules -- --seeds 0..1000 [--jobs 2] [--for
//! SECONDS] [--record FILE]`
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weir_switch::schedules::{ScheduleReport, run};
use weir_units::{Clock, Instant, SystemClock};

/// Maximum number of printed failures; more of them give no new information.
const SHOWN: usize = 10;

/// Arguments of the command line.
struct Arguments {
    first: u64,
    end: u64,
    jobs: usize,
    /// Time after which no further seed is started.
    limit: Duration,
    record: Option<String>,
}

/// Sums over all seeds.
#[derive(Default, serde::Serialize)]
struct Sums {
    seeds: u64,
    steps: u64,
    frames: u64,
    messages: u64,
    faults: BTreeMap<&'static str, u64>,
    failed: Vec<(u64, String)>,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("{problem}\nusage: --seeds FROM..END [--jobs N] [--for SECONDS] [--record FILE]");
            return ExitCode::from(2);
        }
    };
    let clock = SystemClock::start();
    let (next, sums) = (AtomicU64::new(arguments.first), Mutex::new(Sums::default()));
    // A panic of the switch is reported with its seed instead.
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| work(&arguments, &clock, &next, &sums));
        }
    });
    let sums = sums.into_inner().expect("no job panicked");
    let seconds = clock.now().as_secs_f64();
    println!(
        "{} seeds in {seconds:.0} s: {} steps, {} frames, {} messages, {} failed",
        sums.seeds,
        sums.steps,
        sums.frames,
        sums.messages,
        sums.failed.len()
    );
    if let Some(file) = &arguments.record {
        let record = serde_json::json!({ "seeds_from": arguments.first, "seconds": seconds, "sums": &sums });
        if let Err(error) = std::fs::write(file, format!("{record:#}\n")) {
            eprintln!("writing {file}: {error}");
            return ExitCode::FAILURE;
        }
    }
    if sums.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments() -> Result<Arguments, String> {
    let mut arguments = Arguments { first: 0, end: 1000, jobs: 1, limit: Duration::MAX, record: None };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().ok_or_else(|| format!("{name}: a value is missing"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("{name}: found `{value}` ({error})"));
        match name.as_str() {
            "--seeds" => {
                let (first, end) =
                    value.split_once("..").ok_or_else(|| format!("found `{value}`, expected FROM..END"))?;
                let seed = |text: &str| text.parse().map_err(|error| format!("--seeds: found `{text}` ({error})"));
                (arguments.first, arguments.end) = (seed(first)?, seed(end)?);
            }
            "--jobs" => arguments.jobs = usize::try_from(number()?.max(1)).unwrap_or(1),
            "--for" => arguments.limit = Duration::from_secs(number()?),
            "--record" => arguments.record = Some(value),
            _ => return Err(format!("found {name}")),
        }
    }
    Ok(arguments)
}

fn work(arguments: &Arguments, clock: &SystemClock, next: &AtomicU64, sums: &Mutex<Sums>) {
    while clock.now().since(Instant::ZERO) < arguments.limit {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= arguments.end {
            return;
        }
        let result = run(seed);
        let mut sums = sums.lock().expect("no job panicked");
        sums.seeds += 1;
        match result {
            Ok(report) => sums.add(report),
            Err(failure) => {
                if sums.failed.len() < SHOWN {
                    println!("{failure}");
                }
                sums.failed.push((seed, failure.problem));
            }
        }
    }
}

impl Sums {
    fn add(&mut self, report: ScheduleReport) {
        self.steps += report.steps;
        self.frames += report.frames;
        self.messages += report.messages;
        for (kind, count) in report.faults {
            *self.faults.entry(kind).or_default() += count;
        }
    }
}
