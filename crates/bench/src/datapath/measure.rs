//! Measures a case in windows of packets, and computes its figures.
use super::case::{BenchCaseName, DatapathBenchCase};
use super::testbed::{BURST, DatapathTestbed};
use super::{DatapathBenchArgs, thread_cpu};
use crate::machine;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_port::PortResult;
use weir_units::{Clock, SystemClock};

/// Bursts per window: 65536 packets, a millisecond at 65 million packets per second.
pub(super) const BURSTS: usize = 2048;
/// Bursts per step of the warm-up.
pub(super) const WARM_UP_BURSTS: usize = 64;
/// Entries loaded between two updates of the progress bar.
const STEP: u64 = 4096;

/// Figures of one case.
#[derive(Debug, Serialize)]
pub(super) struct DatapathCaseFigures {
    pub(super) case: BenchCaseName,
    pub(super) entries: u64,
    pub(super) tables: u8,
    pub(super) flows: u32,
    pub(super) spread: u32,
    pub(super) size: usize,
    pub(super) load: EntryLoadCost,
    pub(super) packets: u64,
    /// Packets sent by the output port.
    pub(super) sent: u64,
    /// Share of packets that match the case's entries of its last table; `None` without tables.
    pub(super) hits: Option<f64>,
    /// Millions of packets per second of the thread's processor time, over all windows.
    pub(super) mpps: f64,
    /// Highest rate of a single window, in millions of packets per second of processor time.
    pub(super) best: f64,
    pub(super) median: f64,
    pub(super) worst: f64,
    /// Tenth and ninetieth percentile of the windows' rates.
    pub(super) p10: f64,
    pub(super) p90: f64,
    /// Millions of packets per second of elapsed time, over all windows.
    pub(super) mpps_wall: f64,
    pub(super) windows: usize,
    /// Millions of packets per second of processor time, for each second of the measurement.
    pub(super) seconds: Vec<f64>,
}

/// Cost of loading the entries.
#[derive(Debug, Serialize)]
pub(super) struct EntryLoadCost {
    pub(super) seconds: f64,
    /// Growth of resident memory in bytes per entry; `None` if unknown.
    pub(super) bytes_per_entry: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThroughputWindow {
    packets: u64,
    cpu: Duration,
    wall: Duration,
}

impl ThroughputWindow {
    pub(super) fn mpps(&self) -> f64 {
        self.packets as f64 / self.cpu.as_secs_f64().max(1e-9) / 1e6
    }

    /// Returns millions of packets per second of elapsed time.
    pub(super) fn mpps_wall(&self) -> f64 {
        self.packets as f64 / self.wall.as_secs_f64().max(1e-9) / 1e6
    }

    fn add(&mut self, other: &ThroughputWindow) {
        self.packets += other.packets;
        self.cpu += other.cpu;
        self.wall += other.wall;
    }
}

/// Loads a case's entries and runs its packets. Returns `None` if cancelled before anything was measured.
///
/// # Errors
/// The datapath rejects an entry; a port fails.
pub(super) fn measure(
    case: DatapathBenchCase,
    args: &DatapathBenchArgs,
    tells_memory: bool,
    cancel: &CancelHandle,
) -> anyhow::Result<Option<DatapathCaseFigures>> {
    let mut bed = DatapathTestbed::new(&case, args, u32::MAX)?;
    let DatapathBenchCase { name, entries, flows, tables } = case;
    let Some((count, mut load)) = fill(&mut bed, entries, args, cancel)? else { return Ok(None) };
    if !tells_memory {
        load.bytes_per_entry = None;
    }
    warm_up(&mut bed, args.warm_up.0, cancel)?;
    let clock = bed.clock();
    let windows = windows(&mut |bursts| bed.run(clock.now(), bursts), args.time.0, &clock, cancel)?;
    if windows.is_empty() {
        return Ok(None);
    }
    let (packets, sent) = bed.passed();
    let counted = tables.checked_sub(1).map(|last| bed.hits(last)).transpose()?;
    let hits = counted.map(|counted| counted as f64 / packets.max(1) as f64);
    let (whole, rates) = (total(&windows), rates(&windows));
    let rate = |share| percentile(&rates, share);
    Ok(Some(DatapathCaseFigures {
        case: name,
        entries: count,
        tables,
        flows: flows.count(),
        spread: flows.spread(),
        size: flows.size(),
        load,
        packets,
        sent,
        hits,
        mpps: whole.mpps(),
        best: rate(100),
        median: rate(50),
        worst: rate(0),
        p10: rate(10),
        p90: rate(90),
        mpps_wall: whole.mpps_wall(),
        windows: windows.len(),
        seconds: seconds(&windows),
    }))
}

/// Adds entries. Returns their number and the cost of loading, or `None` if cancelled.
pub(super) fn fill(
    bed: &mut DatapathTestbed,
    entries: impl Iterator<Item = weir_openflow::model::FlowMod>,
    args: &DatapathBenchArgs,
    cancel: &CancelHandle,
) -> anyhow::Result<Option<(u64, EntryLoadCost)>> {
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("loading entries: {pos}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    let (before, start) = (machine::resident_bytes(), bed.now());
    let mut count = 0;
    for flow in entries {
        bed.add(&flow).map_err(|error| match args.actions {
            Some(_) => error.context("--actions: they do not go with the case's entries; ports are 1 and 2, and fields need a match on their kind"),
            None => error,
        })?;
        count += 1;
        if count % STEP == 0 {
            bar.set_position(count);
            if cancel.is_cancelled() {
                return Ok(None);
            }
        }
    }
    let seconds = bed.now().since(start).as_secs_f64();
    bar.finish_and_clear();
    let grown = machine::resident_bytes().zip(before).map(|(after, before)| after.saturating_sub(before) as f64);
    // Memory is counted in pages, which is too coarse for a few entries.
    let bytes_per_entry = grown.map(|bytes| bytes / count as f64).filter(|_| count >= 10_000);
    Ok(Some((count, EntryLoadCost { seconds, bytes_per_entry })))
}

fn warm_up(bed: &mut DatapathTestbed, time: Duration, cancel: &CancelHandle) -> anyhow::Result<()> {
    let start = bed.now();
    while bed.now().since(start) < time && !cancel.is_cancelled() {
        let now = bed.now();
        bed.run(now, WARM_UP_BURSTS)?;
    }
    Ok(())
}

/// Runs for `time`, and returns the windows.
pub(super) fn windows(
    run: &mut impl FnMut(usize) -> PortResult,
    time: Duration,
    clock: &SystemClock,
    cancel: &CancelHandle,
) -> anyhow::Result<Vec<ThroughputWindow>> {
    let mut windows = Vec::new();
    let start = clock.now();
    let (mut now, mut cpu) = (start, thread_cpu::thread_time());
    while now.since(start) < time && !cancel.is_cancelled() {
        run(BURSTS)?;
        let (after, cpu_after) = (clock.now(), thread_cpu::thread_time());
        windows.push(ThroughputWindow {
            packets: (BURSTS * BURST) as u64,
            cpu: cpu_after - cpu,
            wall: after.since(now),
        });
        (now, cpu) = (after, cpu_after);
    }
    Ok(windows)
}

/// Sums up all windows.
pub(super) fn total(windows: &[ThroughputWindow]) -> ThroughputWindow {
    let mut whole = ThroughputWindow::default();
    windows.iter().for_each(|window| whole.add(window));
    whole
}

/// Returns the windows' rates, in ascending order.
pub(super) fn rates(windows: &[ThroughputWindow]) -> Vec<f64> {
    let mut rates: Vec<f64> = windows.iter().map(ThroughputWindow::mpps).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// Returns the percentile `share` of ascending rates.
pub(super) fn percentile(rates: &[f64], share: usize) -> f64 {
    rates.get((rates.len() * share / 100).min(rates.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Returns the rates of whole seconds; the last one is included if it is at least half a second long.
fn seconds(windows: &[ThroughputWindow]) -> Vec<f64> {
    let (mut rates, mut second) = (Vec::new(), ThroughputWindow::default());
    for window in windows {
        second.add(window);
        if second.wall >= Duration::from_secs(1) {
            rates.push(std::mem::take(&mut second).mpps());
        }
    }
    if second.wall >= Duration::from_millis(500) {
        rates.push(second.mpps());
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_those_of_the_wall() {
        let window = |ms| ThroughputWindow {
            packets: 1_000_000,
            cpu: Duration::from_millis(500),
            wall: Duration::from_millis(ms),
        };
        assert_eq!(seconds(&[window(1000), window(600), window(400), window(100)]), [2.0, 2.0]);
        assert_eq!(seconds(&[window(600)]), [2.0]);
    }
}
