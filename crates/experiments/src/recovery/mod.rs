//! Experiment: how soon the controller of a network knows its links, and how many packets failures and changes of ways
//! cost, in virtual time.
mod drawn;
mod trials;

use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use trials::{FailureFindings, FailureKind, MoveFindings};
use weir_emulator::CancelHandle;
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries};
use weir_sim::{ReplicationLimits, replicate};
use weir_traffic::RandomStream;

/// Switches and links of networks that are discovered.
const DISCOVERED: [usize; 2] = [100, 200];
const DISCOVERY: &str = "discovery, 100 switches and 200 links";
const PORT_DOWN: &str = "ports go down";
const SILENT: &str = "links fall silent";
const PROTECTED: &str = "ports of protected intents go down";
const MOVES: &str = "1000 flows are moved";

const KNOWN: &str = "all links known after";
const KNOWN_LONGEST: &str = "all links known after, longest";
const OUTAGE_P50: &str = "outage of a flow, p50";
const OUTAGE_P99: &str = "outage of a flow, p99";
const OUTAGE_LONGEST: &str = "outage of a flow, longest";
const CONFIRMED_P50: &str = "other ways confirmed after, p50";
const CONFIRMED_P99: &str = "other ways confirmed after, p99";
const LOST_BY_RETURN: &str = "packets lost while links return";
const MOVED: &str = "flows moved, fewest";
const LOST: &str = "packets lost";
const REPEATED: &str = "packets repeated";
const LONGEST: &str = "longest delay";

/// Limits of the claims, in ms.
const KNOWN_WITHIN: f64 = 500.0;
const REROUTED_WITHIN: f64 = 10.0;
const SILENT_WITHIN: f64 = 100.0;
const PROTECTED_WITHIN: f64 = 50.0;
/// Time in microseconds that a packet takes at most if it passes no link twice: that of the longer way, and of one more
/// link for what hosts and switches take. A packet that circles passes two links more.
const STRAIGHT_US: f64 = (drawn::LONG_WAY as f64 + 1.0) * drawn::LINK_US;

/// Measures all cases.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    run.tell(DISCOVERY);
    let found = repeat(run, 0, |random, seed, cancel| trials::discovery(random, DISCOVERED, seed, cancel))?;
    if !found.is_empty() {
        run.figure(DISCOVERY, KNOWN, "ms", SampledValue::mean_of(&found));
        let longest = found.iter().copied().fold(0.0, f64::max);
        run.figure(DISCOVERY, KNOWN_LONGEST, "ms", SampledValue::of(longest, found.len() as u64));
    }
    let time = run.sizes.time.0;
    let kinds =
        [(PORT_DOWN, FailureKind::PortDown), (SILENT, FailureKind::Silent), (PROTECTED, FailureKind::Protected)];
    let mut outages = Vec::new();
    for ((case, kind), number) in kinds.into_iter().zip(1..) {
        run.tell(case);
        let parts = repeat(run, number, |random, seed, cancel| trials::failures(random, kind, (time, seed), cancel))?;
        let mut found = FailureFindings::default();
        parts.into_iter().for_each(|part| found.add(part));
        failure_figures(run, case, &mut found);
        outages.push((case, found.outages_ms));
    }
    run.tell(MOVES);
    let found = repeat(run, 4, trials::moves)?;
    move_figures(run, &found);
    claims(run);
    run.plots.push(chart(&outages));
    Ok(())
}

/// Runs as many replications as the experiment has, each with its own random numbers and seed.
fn repeat<T: Send>(
    run: &ExperimentRun<'_>,
    case: u64,
    once: impl Fn(&mut RandomStream, u64, &CancelHandle) -> Result<Option<T>, ExperimentError> + Sync,
) -> Result<Vec<T>, ExperimentError> {
    let (seed, cancel) = (run.options.seed, run.options.cancel.clone());
    let count = u64::from(run.sizes.replications.max(1));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let one = |number| {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let own = seed.wrapping_mul(1000).wrapping_add(number);
        once(&mut RandomStream::new(seed, case, number), own, &cancel)
    };
    Ok(replicate(&ReplicationLimits { least: count, most: count, threads }, one, |_| false)?.results)
}

/// Returns the value that a share of sorted samples does not exceed; `None` without samples.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied()
}

fn failure_figures(run: &mut ExperimentRun<'_>, case: &str, found: &mut FailureFindings) {
    let FailureFindings { outages_ms, confirmed_ms, lost_by_return, failures } = found;
    if *failures == 0 {
        return;
    }
    outages_ms.sort_by(f64::total_cmp);
    confirmed_ms.sort_by(f64::total_cmp);
    for (metric, samples, share) in [
        (OUTAGE_P50, &*outages_ms, 0.5),
        (OUTAGE_P99, outages_ms, 0.99),
        (OUTAGE_LONGEST, outages_ms, 1.0),
        (CONFIRMED_P50, confirmed_ms, 0.5),
        (CONFIRMED_P99, confirmed_ms, 0.99),
    ] {
        if let Some(value) = quantile(samples, share) {
            run.figure(case, metric, "ms", SampledValue::of(value, samples.len() as u64));
        }
    }
    run.figure(case, LOST_BY_RETURN, "packets", SampledValue::of(*lost_by_return as f64, *failures));
}

fn move_figures(run: &mut ExperimentRun<'_>, found: &[MoveFindings]) {
    if found.is_empty() {
        return;
    }
    let packets: u64 = found.iter().map(|one| one.packets).sum();
    let sum = |of: fn(&MoveFindings) -> u64| found.iter().map(of).sum::<u64>() as f64;
    let fewest = found.iter().map(|one| one.flows).min().unwrap_or(0);
    run.figure(MOVES, MOVED, "flows", SampledValue::of(fewest as f64, found.len() as u64));
    run.figure(MOVES, LOST, "packets", SampledValue::of(sum(|one| one.lost), packets));
    run.figure(MOVES, REPEATED, "packets", SampledValue::of(sum(|one| one.repeated), packets));
    let longest = found.iter().map(|one| one.longest_us).fold(0.0, f64::max);
    run.figure(MOVES, LONGEST, "us", SampledValue::of(longest, packets));
}

fn claims(run: &mut ExperimentRun<'_>) {
    let claims = [
        (DISCOVERY, KNOWN_LONGEST, KNOWN_WITHIN, "all links of 100 switches are known 500 ms after the last connected"),
        (
            PORT_DOWN,
            CONFIRMED_P99,
            REROUTED_WITHIN,
            "after a port goes down, 99 of 100 times other ways are confirmed within 10 ms",
        ),
        (
            PORT_DOWN,
            OUTAGE_P99,
            REROUTED_WITHIN,
            "of the flows on a link whose port goes down, 99 of 100 lose packets for at most 10 ms",
        ),
        (
            SILENT,
            OUTAGE_LONGEST,
            SILENT_WITHIN,
            "a link that falls silent costs no flow packets for longer than 100 ms",
        ),
        (PROTECTED, OUTAGE_LONGEST, PROTECTED_WITHIN, "a protected intent loses packets for at most 50 ms"),
        (PORT_DOWN, LOST_BY_RETURN, 0.0, "links that return cost no packet"),
        (MOVES, LOST, 0.0, "1000 flows that are moved lose no packet"),
        (MOVES, REPEATED, 0.0, "no packet of them is repeated"),
        (MOVES, LONGEST, STRAIGHT_US, "none of them circles: each packet arrives in the time of the longer way"),
    ];
    for (case, metric, limit, text) in claims {
        run.claims.push(match run.value(case, metric) {
            Some(value) => Claim::tested(text, value <= limit, format!("{}, limit {limit}", weir_plot::short(value))),
            None => Claim::untested(text, "not measured"),
        });
    }
}

/// Draws for each kind of failure the share of hit flows up to each outage.
fn chart(outages: &[(&str, Vec<f64>)]) -> weir_plot::Figure {
    let series = |(case, sorted): &(&str, Vec<f64>)| {
        let count = sorted.len() as f64;
        let points = sorted.iter().enumerate().map(|(at, outage)| ChartPoint::new(*outage, (at + 1) as f64 / count));
        ChartSeries { name: (*case).to_owned(), points: points.collect(), ..ChartSeries::default() }
    };
    Chart {
        name: "outages".into(),
        title: "Flows on links that fail, by the time for which they lose packets".into(),
        x: Axis::linear("outage, ms"),
        y: Axis::linear("share of flows, from 0 to 1"),
        series: outages.iter().map(series).collect(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExperimentOptions, find};
    use std::time::Duration;

    #[test]
    fn all_claims_hold_in_a_few_networks() {
        let options = ExperimentOptions { seed: 2, ..ExperimentOptions::default() };
        let mut sizes = crate::tests::sizes(Duration::from_millis(500));
        sizes.replications = 4;
        let report = find("network-recovery").unwrap().run_sized(&options, sizes, &mut |_| ()).unwrap();
        assert!(report.claims.len() == 9 && report.claims.iter().all(|claim| claim.holds == Some(true)), "{report}");
        assert!(report.figure(SILENT, OUTAGE_P50).is_some_and(|ms| ms > 50.0), "silence lasts: {report}");
        assert_eq!(report.figure(MOVES, MOVED), Some(1000.0), "{report}");
    }

    #[test]
    fn quantiles_are_samples() {
        let sorted: Vec<f64> = (1..=200).map(f64::from).collect();
        let of = |share| quantile(&sorted, share);
        assert_eq!((of(0.5), of(0.99), of(1.0), quantile(&[], 0.5)), (Some(100.0), Some(198.0), Some(200.0), None));
    }
}
