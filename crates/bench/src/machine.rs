//! Describes the machine for records: processor, load, memory.
use serde::Serialize;
use std::fs::read_to_string;
use std::time::Duration;
use weir_units::{Clock as _, Instant, SystemClock};

/// Time for which the time stamp counter is compared with the clock.
const COUNTED: Duration = Duration::from_millis(10);
/// Number of times that clock and counter are read for one comparison.
const TRIES: u32 = 16;

/// The machine, as written to records.
#[derive(Debug, Clone, Serialize)]
pub(super) struct BenchMachineInfo {
    cpu: String,
    cores: usize,
    kernel: String,
    /// Frequency of the time stamp counter in MHz, measured against the clock. The counter has a fixed frequency,
    /// which may differ from the processor's present one. `None` on processors without a known counter.
    pub(super) tsc_mhz: Option<f64>,
    /// Load average of the last minute when the command began: processes that ran or were ready to run.
    load: Option<f64>,
    /// The kernel's setting for transparent huge pages.
    transparent_huge_pages: Option<String>,
}

impl BenchMachineInfo {
    pub(super) fn detect() -> BenchMachineInfo {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        BenchMachineInfo {
            cpu: value(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            tsc_mhz: cfg!(target_arch = "x86_64").then(counter_mhz),
            load: first_word("/proc/loadavg").and_then(|load| load.parse().ok()),
            transparent_huge_pages: bracketed_word("/sys/kernel/mm/transparent_hugepage/enabled"),
        }
    }
}

impl BenchMachineInfo {
    /// Returns processor, cores, kernel and load in words.
    pub(super) fn summary(&self) -> String {
        let load = self.load.map_or_else(String::new, |load| format!(", load {load:.1}"));
        format!("{}, {} cores, Linux {}{load}", self.cpu, self.cores, self.kernel)
    }
}

/// Measures the frequency of the time stamp counter in MHz.
fn counter_mhz() -> f64 {
    let clock = SystemClock::start();
    let (from, counts) = read_clock_and_tsc(clock);
    while clock.now().since(from) < COUNTED {}
    let (to, counts_to) = read_clock_and_tsc(clock);
    (counts_to - counts) as f64 / to.since(from).as_secs_f64() / 1e6
}

/// Reads clock and counter at the same time. The process may be interrupted between two readings, so the closest of
/// several tries counts.
fn read_clock_and_tsc(clock: SystemClock) -> (Instant, u64) {
    let read = |_| {
        let before = weir_memory::cycles();
        let now = clock.now();
        (weir_memory::cycles() - before, now, before)
    };
    let (_, now, counts) = (0..TRIES).map(read).min_by_key(|(apart, ..)| *apart).expect("there are tries");
    (now, counts)
}

/// Returns the resident memory of this process in bytes, or `None` if Linux does not report it.
pub(super) fn resident_bytes() -> Option<u64> {
    resident_bytes_of("self")
}

/// Returns the resident memory of a process (`self`, or its number) in bytes, or `None` if Linux does not report it.
pub(super) fn resident_bytes_of(process: &str) -> Option<u64> {
    let status = read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib: u64 = value(&status, "VmRSS")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Returns the text after a name and a colon, in the first line that starts with the name.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

fn first_word(file: &str) -> Option<String> {
    Some(read_to_string(file).ok()?.split_whitespace().next()?.to_owned())
}

/// Returns the word in brackets.
fn bracketed_word(file: &str) -> Option<String> {
    let text = read_to_string(file).ok()?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_behind_the_first_name() {
        let text = "processor\t: 0\nmodel name\t: A: B\nmodel name\t: C\n";
        assert_eq!((value(text, "model name"), value(text, "cpu MHz")), (Some("A: B"), None));
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(BenchMachineInfo::detect().cores >= 1);
    }

    #[test]
    fn the_counter_has_its_frequency_each_time() {
        let [first, again] = [counter_mhz(), counter_mhz()];
        assert!(first > 1.0 && (first / again - 1.0).abs() < 0.05, "{first} {again}");
    }
}
