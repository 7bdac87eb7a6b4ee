//! Searches the highest packet rate without loss (RFC 2544, 26.1).
//!
//! A single packet lost by the machine says nothing about a rate: a rate counts as too high only if packets are lost
//! in every try. The rate found is confirmed by repetitions without any loss, at lower and lower rates until there is
//! none.
use crate::bench::{PlannedProbe, TestBench};
use crate::data::{TESTED, rule};
use crate::rules::{SHORTEST, TestFlowEntry};
use crate::store::{RawDataRow, RawDataStore, TrialRow};
use crate::{MeasurementGrid, ProfilerError, ProgressReporter};
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum number of rates tried in a search.
const RATES: u32 = 14;
/// Tries of a rate until nothing is lost, and repetitions that confirm it.
const REPETITIONS: u32 = 3;
/// Maximum number of rates that are tried to confirm a result, each lower than the one before.
const CONFIRMATIONS: u32 = 12;
/// Relative precision of the rate.
const PRECISION: f64 = 0.02;
/// Share of a rate that must be sent in time; below it the sender is the limit.
const SENT: f64 = 0.97;
/// First rate, in packets a second.
const FIRST_PPS: f64 = 1000.0;
/// Highest rate, in packets a second.
const MOST_PPS: f64 = 10e6;
/// Maximum number of packets of a trial.
const MOST_PACKETS: f64 = 2e6;

/// Highest rate without loss for one packet length.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Throughput {
    /// Length of the packets, in bytes.
    pub bytes: u32,
    /// Rate, in packets a second.
    pub pps: f64,
    /// True if the sender was the limit: the switch may forward more.
    pub sender_bound: bool,
    /// Number of packets that came through at this rate without loss.
    pub packets: u64,
    /// Upper bound of the loss share, with 95 % confidence, from that many packets without loss; 1 if some were lost
    /// whenever the rate was repeated.
    pub loss_below: f64,
    /// Pairs of share of the rate and mean delay, in seconds.
    pub delays_s: Vec<(f64, f64)>,
}

/// Searches the highest rate without loss for the shortest and the longest packets. Trials in the store are not
/// repeated.
pub(crate) fn measure(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    store: &mut RawDataStore,
    progress: &mut ProgressReporter<'_>,
) -> Result<Vec<Throughput>, ProfilerError> {
    if grid.trial_ms == 0 {
        return Ok(Vec::new());
    }
    let mut lengths = vec![grid.bytes[0].max(SHORTEST), grid.bytes[grid.bytes.len() - 1].min(1514)];
    lengths.dedup();
    progress.expect(lengths.len() * (RATES + 2 * REPETITIONS + 2) as usize);
    bench.clear()?;
    let rules: Vec<TestFlowEntry> = (0..TESTED).map(|at| rule(bench, at)).collect();
    bench.fill(&rules)?;
    let before = store.trials()?;
    let of = |bytes: u32| {
        let mut before: VecDeque<TrialRow> = before.iter().filter(|trial| trial.bytes == bytes).cloned().collect();
        search(bytes, &mut |rate| {
            let is_next = |trial: &TrialRow| (trial.asked_pps / rate - 1.0).abs() < 1e-6;
            match before.pop_front().filter(is_next) {
                Some(trial) => Ok(trial),
                None => {
                    // The search took another course: the remaining old trials do not apply.
                    before.clear();
                    progress.step("looking for the highest rate without loss");
                    let made = trial(bench, grid, &rules, bytes, rate)?;
                    store.write(&RawDataRow::Trial(&made))?;
                    Ok(made)
                }
            }
        })
    };
    lengths.into_iter().map(of).collect()
}

/// Sends packets at a rate for the duration of a trial.
fn trial(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    rules: &[TestFlowEntry],
    bytes: u32,
    rate: f64,
) -> Result<TrialRow, ProfilerError> {
    bench.during = format!("sending {rate:.0} packets a second");
    let time = f64::from(grid.trial_ms) * 1e-3;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 2 and two million")]
    let count = (rate * time).clamp(2.0, MOST_PACKETS) as usize;
    let gap = Duration::from_secs_f64(1.0 / rate.max(1e-3));
    let planned: Vec<PlannedProbe> =
        (0..count).map(|at| PlannedProbe { rule: rules[at % rules.len()], bytes, gap }).collect();
    bench.refresh()?;
    let started = bench.device.now();
    let (delays, last) = bench.trial(&planned)?;
    let sending_s = last.since(started).as_secs_f64().max(1e-9);
    let came: Vec<f64> = delays.iter().flatten().copied().collect();
    Ok(TrialRow {
        bytes,
        asked_pps: rate,
        sent_pps: (count - 1) as f64 / sending_s,
        sent: count as u64,
        lost: (count - came.len()) as u64,
        mean_delay_s: (!came.is_empty()).then(|| came.iter().sum::<f64>() / came.len() as f64),
    })
}

/// Function that runs a trial at a rate.
type RateTrial<'s> = dyn FnMut(f64) -> Result<TrialRow, ProfilerError> + 's;

fn search(bytes: u32, send: &mut RateTrial<'_>) -> Result<Throughput, ProfilerError> {
    let (mut low, mut high, mut sender_bound) = (0.0, f64::INFINITY, false);
    let mut rate = FIRST_PPS;
    for _ in 0..RATES {
        let trial = tried(rate, send)?;
        if trial.lost > 0 {
            high = rate;
        } else if trial.sent_pps < SENT * rate {
            (low, sender_bound) = (trial.sent_pps, true);
            break;
        } else {
            low = rate;
        }
        if high.is_finite() && high - low <= PRECISION * high || low >= MOST_PPS {
            break;
        }
        rate = if high.is_finite() { (low + high) / 2.0 } else { rate * 4.0 };
    }
    let mut found = Throughput { bytes, pps: low, sender_bound, packets: 0, loss_below: 1.0, delays_s: Vec::new() };
    let mut step = PRECISION;
    for _ in 0..CONFIRMATIONS {
        if found.pps <= 0.0 || confirmed(&mut found, send)? {
            break;
        }
        found.pps *= 1.0 - step;
        step = (2.0 * step).min(0.5);
    }
    for share in [0.1, 0.5, 0.9] {
        if found.pps > 0.0
            && let Some(delay) = send(found.pps * share)?.mean_delay_s
        {
            found.delays_s.push((share, delay));
        }
    }
    Ok(found)
}

/// Tries a rate until all packets are sent in time and none is lost, [`REPETITIONS`] times at most. Returns the last
/// trial.
fn tried(rate: f64, send: &mut RateTrial<'_>) -> Result<TrialRow, ProfilerError> {
    let mut trial = send(rate)?;
    for _ in 1..REPETITIONS {
        if trial.lost == 0 && trial.sent_pps >= SENT * rate {
            break;
        }
        // A process that shares the processor is suspended now and then.
        trial = send(rate)?;
    }
    Ok(trial)
}

/// Repeats the rate found, and returns true if no packet is lost. With n packets and no loss, the share of lost packets
/// is below 3/n with 95 % confidence.
fn confirmed(found: &mut Throughput, send: &mut RateTrial<'_>) -> Result<bool, ProfilerError> {
    let mut packets = 0;
    for _ in 0..REPETITIONS {
        let trial = send(found.pps)?;
        if trial.lost > 0 {
            return Ok(false);
        }
        packets += trial.sent;
    }
    found.packets = packets;
    found.loss_below = (3.0 / packets.max(3) as f64).min(1.0);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of a search, and the rates tried, on a device that forwards `most` packets a second at
    /// most; `lost` gives the loss by rate and index of the trial.
    fn found(most: f64, lost: impl Fn(f64, usize) -> u64) -> (Throughput, Vec<f64>) {
        let mut rates: Vec<f64> = Vec::new();
        let throughput = search(64, &mut |rate| {
            let lost = lost(rate, rates.len());
            rates.push(rate);
            let sent = 1000;
            Ok(TrialRow { bytes: 64, asked_pps: rate, sent_pps: rate.min(most), sent, lost, mean_delay_s: Some(1e-3) })
        });
        (throughput.unwrap(), rates)
    }

    #[test]
    fn the_highest_rate_without_loss_is_found_and_confirmed() {
        let (one, rates) = found(1e9, |rate, _| u64::from(rate > 123_456.0));
        assert!((one.pps / 123_456.0 - 1.0).abs() <= PRECISION && one.pps <= 123_456.0, "{one:?}");
        assert_eq!((one.packets, one.sender_bound, one.delays_s.len()), (3000, false, 3));
        assert!((one.loss_below - 1e-3).abs() < 1e-9 && rates.len() < 40, "{rates:?}");
    }

    #[test]
    fn a_packet_lost_by_chance_is_no_limit() {
        // One lost packet in each first trial of two rates, which are far below the limit.
        let (one, _) = found(1e9, |rate, at| u64::from(rate > 50_000.0 || at == 0 || at == 3));
        assert!((one.pps / 50_000.0 - 1.0).abs() <= PRECISION, "{one:?}");
        // A lost packet during confirmation lowers the result little.
        let last = |at: usize| (14..16).contains(&at);
        let (one, _) = found(1e9, |rate, at| u64::from(rate > 50_000.0 || last(at)));
        assert!((0.9..=1.0).contains(&(one.pps / 50_000.0)) && one.loss_below < 1.0, "{one:?}");
    }

    #[test]
    fn rates_that_cannot_be_kept_are_not_said_to_be() {
        // Loss in every second trial.
        let (one, _) = found(1e9, |_, at| u64::from(at % 2 == 0));
        assert_eq!((one.packets, one.loss_below), (0, 1.0), "{one:?}");
        // Loss in every second trial above 700 a second.
        let (one, _) = found(5000.0, |rate, at| u64::from(rate > 700.0 && at % 2 == 0));
        assert!(one.pps <= 700.0 && one.packets == 3000, "{one:?}");
        let (none, rates) = found(1e9, |_, _| 1);
        assert_eq!((none.pps, none.packets, none.loss_below, none.delays_s), (0.0, 0, 1.0, vec![]));
        assert!(rates.len() <= (RATES * REPETITIONS) as usize, "{rates:?}");
    }

    #[test]
    fn what_could_not_be_sent_is_said_so() {
        let (one, _) = found(30_000.0, |_, _| 0);
        assert!(one.sender_bound && (one.pps - 30_000.0).abs() < 1.0, "{one:?}");
    }
}
