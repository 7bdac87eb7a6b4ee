//! What replications showed, summed up: by virtual switch, port and class.
use crate::engine::RunResult;
use crate::model::Group;
use crate::stats::{Confidence, DelaySummary, Estimate, estimate};
use crate::tally::{REASONS, Tally, reason_name};
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of all replications.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// All packets together.
    pub total: Row,
    /// By virtual switch.
    pub switches: Vec<Row>,
    /// By port.
    pub ports: Vec<Row>,
    /// By class.
    pub classes: Vec<Row>,
    /// By virtual switch, port and class, if there is more than one of two of them.
    pub groups: Vec<Row>,
}

/// Packets measured together. Estimates are over replications.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Their virtual switch, if they have one in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// The port that they leave by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Their class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<u8>,
    /// Packets that arrived, of all replications.
    pub packets: u64,
    /// Share of packets that were not lost.
    pub throughput: Option<Estimate>,
    /// The same of bytes.
    pub throughput_bytes: Option<Estimate>,
    /// Share of packets that were lost.
    pub loss: Option<Estimate>,
    /// Rate of the bytes that were not lost, in bits per second.
    pub rate_bps: Option<Estimate>,
    /// Their share of all bytes that were not lost.
    pub share: Option<Estimate>,
    /// Mean delay, in seconds: from arrival to the start of transmission.
    pub delay_s: Option<Estimate>,
    /// The delay that half of the packets do not exceed.
    pub delay_p50_s: Option<Estimate>,
    /// The delay that 99 % do not exceed.
    pub delay_p99_s: Option<Estimate>,
    /// Delays of all replications together.
    pub delays: Option<DelaySummary>,
    /// Their distribution: (upper end in seconds, packets).
    pub histogram: Vec<(f64, u64)>,
    /// Packets lost by reason, of all replications.
    pub lost: BTreeMap<&'static str, u64>,
}

/// A value of one replication's tally; `accepted_bytes` are those of all packets of the replication.
type Value = fn(&Tally, window_s: f64, accepted_bytes: f64) -> Option<f64>;

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Sums replications up.
pub fn report(groups: &[Group], runs: &[RunResult], confidence: Confidence) -> Report {
    let all = rows(groups, runs, confidence, |_| Key::default());
    let by = |key: &dyn Fn(&Group) -> Key| rows(groups, runs, confidence, key);
    let switches = by(&|group| Key { switch: Some(group.switch.clone()), ..Key::default() });
    let ports = by(&|group| Key { port: Some(group.port.clone()), ..Key::default() });
    let classes = by(&|group| Key { class: Some(group.class), ..Key::default() });
    let several = [&switches, &ports, &classes].iter().filter(|rows| rows.len() > 1).count();
    let own = |group: &Group| Key {
        switch: Some(group.switch.clone()),
        port: Some(group.port.clone()),
        class: Some(group.class),
    };
    Report {
        total: all.into_iter().next().unwrap_or_else(|| row(Key::default(), &[], &[], confidence)),
        groups: if several > 1 { by(&own) } else { Vec::new() },
        switches,
        ports,
        classes,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    switch: Option<String>,
    port: Option<String>,
    class: Option<u8>,
}

/// A row for each key, in the order of the groups.
fn rows(groups: &[Group], runs: &[RunResult], confidence: Confidence, key: impl Fn(&Group) -> Key) -> Vec<Row> {
    let mut order: Vec<Key> = Vec::new();
    for group in groups {
        let key = key(group);
        if !order.contains(&key) {
            order.push(key);
        }
    }
    let context: Vec<(f64, f64)> = runs.iter().map(|run| (run.window_s, accepted_bytes(run))).collect();
    let row_of = |wanted: Key| {
        let sum = |run: &RunResult| {
            let mut sum = Tally::default();
            let own = groups.iter().zip(&run.groups).filter(|(group, _)| key(group) == wanted);
            own.for_each(|(_, tally)| sum.merge(tally));
            sum
        };
        let tallies: Vec<Tally> = runs.iter().map(sum).collect();
        row(wanted, &tallies, &context, confidence)
    };
    order.into_iter().map(row_of).collect()
}

fn accepted_bytes(run: &RunResult) -> f64 {
    run.groups.iter().map(|tally| tally.accepted().bytes).sum::<u64>() as f64
}

fn row(key: Key, tallies: &[Tally], context: &[(f64, f64)], confidence: Confidence) -> Row {
    let over = |value: Value| {
        let each = tallies.iter().zip(context).filter_map(|(tally, (window, all))| value(tally, *window, *all));
        estimate(&each.collect::<Vec<_>>(), confidence)
    };
    let mut all = Tally::default();
    tallies.iter().for_each(|tally| all.merge(tally));
    let lost = (0..REASONS).map(|reason| (reason_name(reason), all.lost_for[reason])).filter(|(_, count)| *count > 0);
    Row {
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

/// Whether the replications so far say loss and mean delay of every group to within `relative` of them; losses below `1e-4` are near
/// enough to none.
pub fn is_sure(runs: &[RunResult], confidence: Confidence, relative: f64) -> bool {
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
