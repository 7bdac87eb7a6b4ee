//! Simulates a case packet by packet, and measures its flows after a warm-up.
use super::network::{FLOWS, FRAME_BYTES, FlowProtocol, IsolationCase, NETWORKS, sender_name};
use crate::ExperimentError;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::{NetworkSimulation, TrafficCount, VirtualTimeSettings};
use weir_traffic::{RandomStream, TimeHistogram};

/// Time from the start of traffic in which full buffers fill, at the published rates.
const WARM_UP: Duration = Duration::from_millis(55);
/// Time after the end of traffic in which waiting packets arrive, at the published rates.
const DRAIN: Duration = Duration::from_millis(100);
/// Number of times at which rates are measured for charts.
const BINS: u32 = 20;
/// Payload bytes of TCP in a frame of [`FRAME_BYTES`].
const TCP_PAYLOAD_BYTES: f64 = 1460.0;

/// Findings on a flow.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowFindings {
    /// Rate of the frames that arrived, in Mbit/s.
    pub(super) rate_mbps: f64,
    /// Share of packets lost, in percent (UDP).
    pub(super) loss_percent: f64,
    /// Packets lost from the start of the flow to its end (UDP).
    pub(super) lost: u64,
    /// Delay of packets in microseconds, mean and 99th percentile (UDP).
    pub(super) mean_us: f64,
    pub(super) p99_us: f64,
    /// Rate in Mbit/s in each part of the time, with the part's end in seconds.
    pub(super) rates: Vec<(f64, f64)>,
}

/// Findings on the flows of a case: those of the first virtual network, then those of the second.
pub(super) type CaseFindings = [FlowFindings; NETWORKS * FLOWS];

/// Simulates a case; flows are measured for `time`, divided by the case's speed. Returns `None` if it was stopped.
/// Replications of all cases with equal numbers have equal starts of flows.
pub(super) fn simulate(
    case: IsolationCase,
    time: Duration,
    (seed, replication): (u64, u64),
    cancel: &CancelHandle,
) -> Result<Option<CaseFindings>, ExperimentError> {
    let fraction = u32::try_from(case.speed).unwrap_or(1);
    let [warm_up, time, drain] = [WARM_UP, time, DRAIN].map(|part| part / fraction);
    let text = case.scenario(warm_up + time, &mut RandomStream::new(seed, 0, replication));
    let seed = seed.wrapping_mul(1000).wrapping_add(replication);
    let scenario = Scenario { seed, ..Scenario::parse(&text, "vlink-isolation")? };
    let items = items(&scenario);
    let watch = SimulationMonitor::default();
    cancel.set_during(&watch.cancel, || {
        let settings = VirtualTimeSettings::default();
        let mut simulation = NetworkSimulation::start(&scenario, &settings, &watch).map_err(wrong)?;
        simulation.run_for(warm_up).map_err(wrong)?;
        let before = FlowCounts::of(&simulation, &items);
        let mut rates: [Vec<(f64, f64)>; NETWORKS * FLOWS] = Default::default();
        let mut last = before.counts.clone();
        for part in 1..=BINS {
            simulation.run_for(time / BINS).map_err(wrong)?;
            let counts = in_order(&items, &simulation.counts());
            for (rates, (before, now)) in rates.iter_mut().zip(last.iter().zip(&counts)) {
                let rate = rate_mbps(case.protocol, now.received - before.received, time / BINS);
                rates.push(((time / BINS * part).as_secs_f64(), rate));
            }
            last = counts;
        }
        let after = FlowCounts::of(&simulation, &items);
        simulation.run_for(drain).map_err(wrong)?;
        let end = in_order(&items, &simulation.counts());
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let mut findings: CaseFindings = Default::default();
        for (flow, found) in findings.iter_mut().enumerate() {
            *found = before.findings(&after, flow, case.protocol, time / BINS * BINS);
            found.lost = end[flow].sent.saturating_sub(end[flow].received);
            if found.lost == 0 {
                // Packets on their way at the end of the measurement are not lost.
                found.loss_percent = 0.0;
            }
            found.rates = std::mem::take(&mut rates[flow]);
        }
        Ok(Some(findings))
    })
}

fn wrong(error: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Case(error.to_string())
}

/// Returns the items of traffic that are the flows, in the order of [`CaseFindings`]. A scenario's items are in the
/// order of their starts.
fn items(scenario: &Scenario) -> Vec<usize> {
    let sender = |(network, flow)| scenario.hosts.iter().position(|host| host.name == sender_name(network, flow));
    let senders = (0..NETWORKS).flat_map(|network| (0..FLOWS).map(move |flow| (network, flow))).map(sender);
    senders.filter_map(|host| scenario.traffic.iter().position(|item| Some(item.from) == host)).collect()
}

/// Returns what belongs to items of traffic in the order of the flows.
fn in_order<T: Clone>(items: &[usize], all: &[T]) -> Vec<T> {
    items.iter().filter_map(|item| all.get(*item).cloned()).collect()
}

/// Returns the rate of frames that carried so many datagrams, or bytes of TCP, in a time.
fn rate_mbps(protocol: FlowProtocol, received: u64, time: Duration) -> f64 {
    let frames = match protocol {
        FlowProtocol::Udp => received as f64,
        FlowProtocol::Tcp => received as f64 / TCP_PAYLOAD_BYTES,
    };
    frames * FRAME_BYTES * 8.0 / time.as_secs_f64() / 1e6
}

/// Counts and delays of all flows so far.
struct FlowCounts {
    counts: Vec<TrafficCount>,
    delays: Vec<TimeHistogram>,
}

impl FlowCounts {
    fn of(simulation: &NetworkSimulation<'_>, items: &[usize]) -> FlowCounts {
        FlowCounts { counts: in_order(items, &simulation.counts()), delays: in_order(items, &simulation.item_delays()) }
    }

    /// Returns the findings on a flow from these counts to later ones.
    fn findings(&self, after: &FlowCounts, flow: usize, protocol: FlowProtocol, time: Duration) -> FlowFindings {
        let received = after.counts[flow].received - self.counts[flow].received;
        let sent = after.counts[flow].sent - self.counts[flow].sent;
        let delays = after.delays[flow].without(&self.delays[flow]);
        FlowFindings {
            rate_mbps: rate_mbps(protocol, received, time),
            loss_percent: (100.0 * (1.0 - received as f64 / sent.max(1) as f64)).max(0.0),
            mean_us: delays.summary().map_or(0.0, |delays| delays.mean_us),
            p99_us: delays.quantile_us(0.99).unwrap_or(0.0),
            ..FlowFindings::default()
        }
    }
}
