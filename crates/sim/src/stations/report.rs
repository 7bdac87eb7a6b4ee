//! Summarises the replications of a simulation with stations (queues with a server): one row for each flow, switch and
//! station, with confidence intervals over the replications.
use super::plan::{QueueingPlan, StationQueues, StationRole};
use super::tally::{FlowTally, QueueingRunResult, StationTally, SwitchTally};
use crate::stats::{Confidence, DelayTally, Estimate, estimate};
use serde::Serialize;

/// Utilisation above which a station with an unlimited queue is reported as overloaded, because it has hardly a steady
/// state.
const OVERLOADED: f64 = 0.999;

/// Results of a simulation, summarised over all replications.
#[derive(Debug, Clone, Serialize)]
pub struct QueueingReport {
    /// Row for all packets together.
    pub total: FlowRow,
    /// Rows for the scenario's traffic items, in the order of the simulation plan.
    pub flows: Vec<FlowRow>,
    /// Rows for the switches that delay packets.
    pub switches: Vec<SwitchRow>,
    /// Rows for the stations.
    pub stations: Vec<StationRow>,
    /// Descriptions of traffic in the scenario that was not simulated.
    pub left_out: Vec<String>,
    /// Parameters of profiles that had no effect, by switch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

/// Results for the packets of one flow (a traffic item). Estimates are means over the replications.
#[derive(Debug, Clone, Serialize)]
pub struct FlowRow {
    /// Sending host; `None` in the row of all packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Receiving host; `None` in the row of all packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Packets sent, summed over all replications.
    pub packets: u64,
    /// Packets sent per second.
    pub per_second: Option<Estimate>,
    /// Share of packets that were lost.
    pub loss: Option<Estimate>,
    /// Delays from sending to receiving, of all packets.
    pub all: DelayRow,
    /// Delays of packets that no switch sent to the controller.
    pub data: DelayRow,
    /// Delays of packets that a switch sent to the controller.
    pub control: DelayRow,
}

/// Delays in seconds. Estimates are means over the replications.
#[derive(Debug, Clone, Serialize)]
pub struct DelayRow {
    /// Number of delays, summed over all replications.
    pub packets: u64,
    /// Mean of the delays.
    pub mean_s: Option<Estimate>,
    /// Median of the delays.
    pub p50_s: Option<Estimate>,
    /// 95th percentile of the delays.
    pub p95_s: Option<Estimate>,
    /// 99th percentile of the delays.
    pub p99_s: Option<Estimate>,
    /// Histogram over all replications: upper end of each bin in seconds, and number of packets in it.
    pub histogram: Vec<(f64, u64)>,
}

/// Results for the packets of one switch.
#[derive(Debug, Clone, Serialize)]
pub struct SwitchRow {
    /// Name of the switch.
    pub name: String,
    /// Packets that left the switch, summed over all replications.
    pub packets: u64,
    /// Share of packets that this switch sent to the controller.
    pub asked: Option<Estimate>,
    /// Effective share of new flows: share of packets that this switch sent to the controller, or that took longer at
    /// the switch than the scenario's `slow`.
    pub held_up: Option<Estimate>,
    /// Delays from arrival at the switch to departure.
    pub delay: DelayRow,
}

/// Results for one station: data path, agent, controller, bottleneck of the control path, or line (the sending side of
/// a link).
#[derive(Debug, Clone, Serialize)]
pub struct StationRow {
    /// Name of the station.
    pub name: String,
    /// Packets that arrived, summed over all replications.
    pub packets: u64,
    /// Packets that arrived per second.
    pub per_second: Option<Estimate>,
    /// Share of the time in which the station was busy.
    pub utilisation: Option<Estimate>,
    /// Number of packets in the station, averaged over time, including the one in service.
    pub queue: Option<Estimate>,
    /// Mean time that packets spent in the station, in seconds.
    pub stay_s: Option<Estimate>,
    /// Share of packets lost because the station had no room.
    pub loss: Option<Estimate>,
    /// True if the station has an unlimited queue and is busy practically all the time. Its values then depend on the
    /// length of the simulation.
    pub overloaded: bool,
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Summarises the replications in `runs`.
pub fn report(plan: &QueueingPlan, runs: &[QueueingRunResult], confidence: Confidence) -> QueueingReport {
    let sum = QueueingReportBuilder { runs, confidence };
    let whole: Vec<FlowTally> = runs.iter().map(total).collect();
    let own = |number: usize| runs.iter().map(|run| run.flows[number].clone()).collect::<Vec<_>>();
    let flows = plan.flows.iter().enumerate();
    QueueingReport {
        total: sum.flow(None, &whole),
        flows: flows.map(|(number, flow)| sum.flow(Some([&flow.from, &flow.to]), &own(number))).collect(),
        switches: plan.devices.iter().enumerate().map(|(number, device)| sum.switch(&device.name, number)).collect(),
        stations: (0..plan.stations.len()).map(|number| sum.station(plan, number)).collect(),
        left_out: plan.left_out.clone(),
        unused: plan.unused.clone(),
    }
}

/// Returns the results of all flows of a replication, added up.
fn total(run: &QueueingRunResult) -> FlowTally {
    let mut sum = FlowTally::default();
    for flow in &run.flows {
        sum.sent += flow.sent;
        sum.lost += flow.lost;
        sum.delays.iter_mut().zip(&flow.delays).for_each(|(own, delays)| own.merge(delays));
    }
    sum
}

struct QueueingReportBuilder<'a> {
    runs: &'a [QueueingRunResult],
    confidence: Confidence,
}

impl QueueingReportBuilder<'_> {
    fn over<T>(&self, items: &[T], value: impl Fn(&T) -> Option<f64>) -> Option<Estimate> {
        estimate(&items.iter().filter_map(value).collect::<Vec<_>>(), self.confidence)
    }

    fn delays(&self, of: &[DelayTally]) -> DelayRow {
        let mut all = DelayTally::default();
        of.iter().for_each(|delays| all.merge(delays));
        DelayRow {
            packets: all.count(),
            mean_s: self.over(of, DelayTally::mean_s),
            p50_s: self.over(of, |delays| delays.quantile_s(0.5)),
            p95_s: self.over(of, |delays| delays.quantile_s(0.95)),
            p99_s: self.over(of, |delays| delays.quantile_s(0.99)),
            histogram: all.bins(),
        }
    }

    fn flow(&self, ends: Option<[&String; 2]>, tallies: &[FlowTally]) -> FlowRow {
        let whole = |tally: &FlowTally| {
            let mut all = tally.delays[0].clone();
            all.merge(&tally.delays[1]);
            all
        };
        let class = |class: usize| tallies.iter().map(|tally| tally.delays[class].clone()).collect::<Vec<_>>();
        let window_s = self.runs.first().map_or(0.0, |run| run.window_s);
        FlowRow {
            from: ends.map(|[from, _]| from.clone()),
            to: ends.map(|[_, to]| to.clone()),
            packets: tallies.iter().map(|tally| tally.sent).sum(),
            per_second: self.over(tallies, |tally| (window_s > 0.0).then(|| tally.sent as f64 / window_s)),
            loss: self.over(tallies, |tally| ratio(tally.lost, tally.sent)),
            all: self.delays(&tallies.iter().map(whole).collect::<Vec<_>>()),
            data: self.delays(&class(0)),
            control: self.delays(&class(1)),
        }
    }

    fn switch(&self, name: &str, number: usize) -> SwitchRow {
        let tallies: Vec<&SwitchTally> = self.runs.iter().map(|run| &run.switches[number]).collect();
        SwitchRow {
            name: name.to_owned(),
            packets: tallies.iter().map(|tally| tally.passed).sum(),
            asked: self.over(&tallies, |tally| ratio(tally.asked, tally.passed)),
            held_up: self.over(&tallies, |tally| ratio(tally.held_up, tally.passed)),
            delay: self.delays(&tallies.iter().map(|tally| tally.delays.clone()).collect::<Vec<_>>()),
        }
    }

    fn station(&self, plan: &QueueingPlan, number: usize) -> StationRow {
        let station = &plan.stations[number];
        let tallies: Vec<(StationTally, f64)> =
            self.runs.iter().map(|run| (run.stations[number], run.window_s)).collect();
        let in_time = |ns: u128, window_s: f64| (window_s > 0.0).then(|| ns as f64 / 1e9 / window_s);
        let utilisation = self.over(&tallies, |(tally, window_s)| in_time(tally.busy_ns, *window_s));
        let has_limit = match station.room {
            StationQueues::Fifo(limit) => limit.is_some(),
            StationQueues::Priority(limits) => limits.iter().all(Option::is_some),
            StationQueues::Bytes(_) => station.role == StationRole::Line,
        };
        StationRow {
            name: station.name.clone(),
            packets: tallies.iter().map(|(tally, _)| tally.arrived_packets).sum(),
            per_second: self
                .over(&tallies, |(tally, window_s)| (*window_s > 0.0).then(|| tally.arrived_packets as f64 / window_s)),
            utilisation,
            queue: self.over(&tallies, |(tally, window_s)| in_time(tally.number_ns, *window_s)),
            stay_s: self.over(&tallies, |(tally, _)| {
                (tally.served > 0).then(|| tally.stay_ns as f64 / tally.served as f64 / 1e9)
            }),
            loss: self.over(&tallies, |(tally, _)| ratio(tally.lost, tally.arrived_packets)),
            overloaded: !has_limit && utilisation.is_some_and(|busy| busy.mean > OVERLOADED),
        }
    }
}

/// Returns true if loss and mean delay of every flow are known precisely enough: half the width of their confidence
/// intervals is at most `relative` times their value. For a loss, a half width of `1e-4` is enough, too. Mean delays
/// are checked separately for packets that were sent to the controller and for the others.
pub fn is_sure(runs: &[QueueingRunResult], confidence: Confidence, relative: f64) -> bool {
    const NO_LOSS: f64 = 1e-4;
    let sure = |values: Vec<f64>, floor: f64| {
        let found = estimate(&values, confidence);
        found.is_none_or(|found| found.half_width.is_some_and(|half| half <= (found.mean.abs() * relative).max(floor)))
    };
    let flows = runs.first().map_or(0, |run| run.flows.len());
    (0..flows).all(|flow| {
        let tallies = || runs.iter().map(move |run| &run.flows[flow]);
        let delay = |class: usize| tallies().filter_map(|tally| tally.delays[class].mean_s()).collect();
        sure(delay(0), 0.0)
            && sure(delay(1), 0.0)
            && sure(tallies().filter_map(|tally| ratio(tally.lost, tally.sent)).collect(), NO_LOSS)
    })
}
