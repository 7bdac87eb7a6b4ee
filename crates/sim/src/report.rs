//! Sums up replications of a [`Model`](crate::FabricNetwork) by virtual switch, port and class.
use crate::engine::FabricRunResult;
use crate::model::MeasurementGroup;
use crate::stats::{Confidence, DelaySummary, Estimate, estimate};
use crate::tally::{PacketTally, REASONS, reason_name};
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of all replications.
#[derive(Debug, Clone, Serialize)]
pub struct FabricReport {
    /// Row of all packets.
    pub total: FabricReportRow,
    /// Rows by virtual switch.
    pub switches: Vec<FabricReportRow>,
    /// Rows by port.
    pub ports: Vec<FabricReportRow>,
    /// Rows by class.
    pub classes: Vec<FabricReportRow>,
    /// Rows by virtual switch, port and class. Empty unless at least two of the three have more than one value.
    pub groups: Vec<FabricReportRow>,
}

/// Measurements of packets taken together. Estimates are over replications.
#[derive(Debug, Clone, Serialize)]
pub struct FabricReportRow {
    /// Virtual switch, if the row is for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Port that the packets leave by, if the row is for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Class, if the row is for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<u8>,
    /// Packets that arrived, summed over all replications.
    pub packets: u64,
    /// Share of packets that were not lost.
    pub throughput: Option<Estimate>,
    /// Share of bytes that were not lost.
    pub throughput_bytes: Option<Estimate>,
    /// Share of packets that were lost.
    pub loss: Option<Estimate>,
    /// Rate of the bytes that were not lost, in bit/s.
    pub rate_bps: Option<Estimate>,
    /// Share of these packets' bytes among all bytes that were not lost.
    pub share: Option<Estimate>,
    /// Mean delay in seconds, from arrival to the start of the last transmission.
    pub delay_s: Option<Estimate>,
    /// Median delay in seconds.
    pub delay_p50_s: Option<Estimate>,
    /// 99th percentile of the delay in seconds.
    pub delay_p99_s: Option<Estimate>,
    /// Summary of the delays of all replications together.
    pub delays: Option<DelaySummary>,
    /// Distribution of the delays: (upper end in seconds, packets).
    pub histogram: Vec<(f64, u64)>,
    /// Packets lost by reason, summed over all replications.
    pub lost: BTreeMap<&'static str, u64>,
}

/// Function that computes one value of a row from the tally of one replication. `window_s` is the length of the
/// counting window in seconds. `accepted_bytes` is the length of all packets of the replication that were not lost, of
/// all rows.
type RowValueFn = fn(&PacketTally, window_s: f64, accepted_bytes: f64) -> Option<f64>;

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Sums up the replications in `runs`; `groups` names the tallies of each run.
pub fn report(groups: &[MeasurementGroup], runs: &[FabricRunResult], confidence: Confidence) -> FabricReport {
    let all = rows(groups, runs, confidence, |_| ReportRowKey::default());
    let by = |key: &dyn Fn(&MeasurementGroup) -> ReportRowKey| rows(groups, runs, confidence, key);
    let switches = by(&|group| ReportRowKey { switch: Some(group.switch.clone()), ..ReportRowKey::default() });
    let ports = by(&|group| ReportRowKey { port: Some(group.port.clone()), ..ReportRowKey::default() });
    let classes = by(&|group| ReportRowKey { class: Some(group.class), ..ReportRowKey::default() });
    let several = [&switches, &ports, &classes].iter().filter(|rows| rows.len() > 1).count();
    let own = |group: &MeasurementGroup| ReportRowKey {
        switch: Some(group.switch.clone()),
        port: Some(group.port.clone()),
        class: Some(group.class),
    };
    FabricReport {
        total: all.into_iter().next().unwrap_or_else(|| row(ReportRowKey::default(), &[], &[], confidence)),
        groups: if several > 1 { by(&own) } else { Vec::new() },
        switches,
        ports,
        classes,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ReportRowKey {
    switch: Option<String>,
    port: Option<String>,
    class: Option<u8>,
}

/// Returns the report's rows: one for all groups with the same key, in the order of the groups.
fn rows(
    groups: &[MeasurementGroup],
    runs: &[FabricRunResult],
    confidence: Confidence,
    key: impl Fn(&MeasurementGroup) -> ReportRowKey,
) -> Vec<FabricReportRow> {
    let mut order: Vec<ReportRowKey> = Vec::new();
    for group in groups {
        let key = key(group);
        if !order.contains(&key) {
            order.push(key);
        }
    }
    let context: Vec<(f64, f64)> = runs.iter().map(|run| (run.window_s, accepted_bytes(run))).collect();
    let row_of = |wanted: ReportRowKey| {
        let sum = |run: &FabricRunResult| {
            let mut sum = PacketTally::default();
            let own = groups.iter().zip(&run.groups).filter(|(group, _)| key(group) == wanted);
            own.for_each(|(_, tally)| sum.merge(tally));
            sum
        };
        let tallies: Vec<PacketTally> = runs.iter().map(sum).collect();
        row(wanted, &tallies, &context, confidence)
    };
    order.into_iter().map(row_of).collect()
}

fn accepted_bytes(run: &FabricRunResult) -> f64 {
    run.groups.iter().map(|tally| tally.accepted().bytes).sum::<u64>() as f64
}

fn row(key: ReportRowKey, tallies: &[PacketTally], context: &[(f64, f64)], confidence: Confidence) -> FabricReportRow {
    let over = |value: RowValueFn| {
        let each = tallies.iter().zip(context).filter_map(|(tally, (window, all))| value(tally, *window, *all));
        estimate(&each.collect::<Vec<_>>(), confidence)
    };
    let mut all = PacketTally::default();
    tallies.iter().for_each(|tally| all.merge(tally));
    let lost = (0..REASONS).map(|reason| (reason_name(reason), all.lost_for[reason])).filter(|(_, count)| *count > 0);
    FabricReportRow {
        switch: key.switch,
        port: key.port,
        class: key.class,
        packets: all.arrived.packets,
        throughput: over(|tally, _, _| ratio(tally.accepted().packets, tally.arrived.packets)),
        throughput_bytes: over(|tally, _, _| ratio(tally.accepted().bytes, tally.arrived.bytes)),
        loss: over(|tally, _, _| ratio(tally.lost().packets, tally.arrived.packets)),
        rate_bps: over(|tally, window, _| (window > 0.0).then(|| tally.accepted().bytes as f64 * 8.0 / window)),
        share: over(|tally, _, all| (all > 0.0).then(|| tally.accepted().bytes as f64 / all)),
        delay_s: over(|tally, _, _| tally.delays.mean_s()),
        delay_p50_s: over(|tally, _, _| tally.delays.quantile_s(0.5)),
        delay_p99_s: over(|tally, _, _| tally.delays.quantile_s(0.99)),
        delays: all.delays.summary(),
        histogram: all.delays.bins(),
        lost: lost.collect(),
    }
}

/// Returns true if loss and mean delay of every group are known to within `relative` of their value. For losses, an
/// interval within `1e-4` is enough.
pub fn is_sure(runs: &[FabricRunResult], confidence: Confidence, relative: f64) -> bool {
    const NO_LOSS: f64 = 1e-4;
    let sure = |values: Vec<f64>, floor: f64| {
        let found = estimate(&values, confidence);
        found.is_none_or(|found| found.half_width.is_some_and(|half| half <= (found.mean.abs() * relative).max(floor)))
    };
    let groups = runs.first().map_or(0, |run| run.groups.len());
    (0..groups).all(|group| {
        let tallies = || runs.iter().map(|run| &run.groups[group]);
        sure(tallies().filter_map(|tally| tally.delays.mean_s()).collect(), 0.0)
            && sure(tallies().filter_map(|t| ratio(t.lost().packets, t.arrived.packets)).collect(), NO_LOSS)
    })
}
