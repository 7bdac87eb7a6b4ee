//! What a figure is to be read with: the machine, how busy it was, memory.
use serde::Serialize;
use std::fs::read_to_string;

/// The machine, in records.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
    /// Frequency of the time stamp counter, as Linux measured it; absent where Linux does not say.
    pub(super) tsc_mhz: Option<f64>,
    /// Processes that ran or wanted to, on average over the last minute, when the command began.
    load: Option<f64>,
    /// Whether the kernel gives huge pages to who asks.
    transparent_huge_pages: Option<String>,
}

impl Machine {
    pub(super) fn look() -> Machine {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        Machine {
            cpu: value(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            tsc_mhz: value(&cpuinfo, "cpu MHz").and_then(|mhz| mhz.parse().ok()),
            load: first_word("/proc/loadavg").and_then(|load| load.parse().ok()),
            transparent_huge_pages: chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        }
    }
}

/// Bytes of this process that lie in memory; none where Linux does not say.
pub(super) fn resident_bytes() -> Option<u64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let kib: u64 = value(&status, "VmRSS")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// What stands behind a name and a colon, in the first line that has it.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

fn first_word(file: &str) -> Option<String> {
    Some(read_to_string(file).ok()?.split_whitespace().next()?.to_owned())
}

/// The word in brackets.
fn chosen(file: &str) -> Option<String> {
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
        assert!(Machine::look().cores >= 1);
    }
}
