//! Represents a traffic item: its routes, its load, its results in each phase, and its answer.
use crate::answer::{FlowPrediction, PredictionStatus, PredictionValidity};
use crate::arrivals::{ArrivalVariability, arrival_variability};
use crate::combine::combine_phases;
use crate::graph::{RouteGraph, RouteHop};
use crate::network::{QueueingNetwork, UnidirectionalFlow};
use crate::path_delay::{PathDelay, delay_on_path};
use crate::phase::TrafficPhase;
use crate::sizes::lengths;
use crate::station::{StationSolution, WaitingDoubt};
use crate::{PredictError, tcp, virtuals};
use std::collections::BTreeMap;
use weir_model::mechanism::NewFlows;
use weir_model::{Distribution, Law, ModelError};
use weir_scenario::{Scenario, TrafficExpectation, TrafficItem, TrafficKind};

/// Frame lengths of a ping of 56 bytes over IPv4 and IPv6, in bytes.
const PING_BYTES: [f64; 2] = [98.0, 118.0];

/// Traffic item with its results by phase.
pub(crate) struct PredictedItem<'a> {
    pub(crate) traffic: &'a TrafficItem,
    /// Routes in both directions, or the reason why there are none.
    pub(crate) routes: Result<[Vec<RouteHop>; 2], (PredictionStatus, String)>,
    pub(crate) variability: ArrivalVariability,
    pub(crate) rate: f64,
    pub(crate) phase_results: Vec<PhaseResult>,
}

/// Result of an item in a phase.
pub(crate) struct PhaseResult {
    pub(crate) seconds: f64,
    pub(crate) rate: f64,
    pub(crate) data: DeliveryResult,
    pub(crate) control: Option<(f64, DeliveryResult)>,
    pub(crate) goodput_bps: Option<f64>,
    pub(crate) notes: Vec<String>,
}

/// Result of packets of one kind: share that arrives; delay, or name and load of a queue without a steady state;
/// device with the longest stay, in seconds.
pub(crate) struct DeliveryResult {
    pub(crate) arrives: f64,
    pub(crate) delay: Result<Distribution, (String, f64)>,
    pub(crate) longest: Option<(String, f64)>,
    /// Reasons for which the delay is known only roughly.
    pub(crate) doubts: Vec<String>,
}

impl<'a> PredictedItem<'a> {
    pub(crate) fn new(scenario: &Scenario, graph: &RouteGraph, traffic: &'a TrafficItem) -> PredictedItem<'a> {
        let (unevenness, rate) = match &traffic.kind {
            TrafficKind::Udp { offered, .. } => (arrival_variability(offered), offered.per_second()),
            TrafficKind::Ping { interval, .. } => {
                (ArrivalVariability { scv: 0.0, modulation: None, doubt: None }, 1.0 / interval.as_secs_f64().max(1e-9))
            }
            TrafficKind::Tcp { .. } => (ArrivalVariability { scv: 1.0, modulation: None, doubt: None }, 0.0),
        };
        PredictedItem {
            traffic,
            routes: routes(scenario, graph, traffic),
            variability: unevenness,
            rate,
            phase_results: Vec::new(),
        }
    }

    pub(crate) fn lengths(&self) -> Result<Law, ModelError> {
        match &self.traffic.kind {
            TrafficKind::Udp { offered, .. } => lengths(offered),
            TrafficKind::Ping { .. } => Law::constant(PING_BYTES[usize::from(self.traffic.address.is_ipv6())]),
            TrafficKind::Tcp { .. } => Law::constant(tcp::FRAME_BYTES),
        }
    }

    pub(crate) fn new_flows(&self) -> f64 {
        if let TrafficKind::Udp { new_flows, .. } = self.traffic.kind { new_flows } else { 0.0 }
    }

    pub(crate) fn flows(&self) -> Option<NewFlows> {
        let TrafficKind::Udp { new_flows, flows: Some(flows), .. } = self.traffic.kind else { return None };
        Some(NewFlows {
            rate: self.rate * new_flows,
            packets: 1.0 / new_flows,
            packet_rate: self.rate / f64::from(flows),
        })
    }

    pub(crate) fn answer(self, scenario: &Scenario, at: usize) -> Result<FlowPrediction, PredictError> {
        let (from, to) = (&scenario.hosts[self.traffic.from].name, &scenario.hosts[self.traffic.to].name);
        let name = format!("{} {from} -> {to}", kind(self.traffic));
        let mut answer = FlowPrediction {
            item: Some(at),
            streams: Vec::new(),
            expected: None,
            kind: kind(self.traffic),
            from: from.clone(),
            to: to.clone(),
            status: PredictionStatus::Ok,
            packets_per_s: self.rate,
            delay: None,
            data: None,
            control: None,
            asks: None,
            loss: None,
            goodput_bps: None,
            bottleneck: None,
            validity: PredictionValidity::of(self.variability.doubt.is_some()),
            notes: self.variability.doubt.map(str::to_owned).into_iter().collect(),
            distribution: None,
        };
        match &self.routes {
            Err((status, why)) => {
                answer.status = status.clone();
                answer.notes = vec![why.clone()];
                answer.loss = Some(1.0);
            }
            Ok(_) => {
                combine_phases(&mut answer, &self.phase_results).map_err(|error| PredictError::at(&name, error))?
            }
        }
        if let (Some(of), Some(share)) = (self.flows(), answer.asks) {
            let (percent, packets) = (share * 100.0, share * of.packets);
            answer.notes.push(format!(
                "{percent:.1} % of the packets ask the controller: {packets:.2} of a flow's {}",
                of.packets
            ));
        }
        Ok(answer)
    }
}

pub(crate) fn kind(traffic: &TrafficItem) -> &'static str {
    match traffic.kind {
        TrafficKind::Ping { .. } => "ping",
        TrafficKind::Tcp { .. } => "tcp",
        TrafficKind::Udp { .. } => "udp",
    }
}

pub(crate) fn routes(
    scenario: &Scenario,
    graph: &RouteGraph,
    item: &TrafficItem,
) -> Result<[Vec<RouteHop>; 2], (PredictionStatus, String)> {
    let (from, to) = (&scenario.hosts[item.from], &scenario.hosts[item.to]);
    if item.expect == TrafficExpectation::Isolated || from.tenant != to.tenant {
        return Err((PredictionStatus::Isolated, "the hosts are not to reach each other: nothing is delivered".into()));
    }
    let Some(there) = graph.route(scenario, item.from, item.to) else {
        return Err((PredictionStatus::NoPath, format!("no links lead from {} to {}", from.name, to.name)));
    };
    for hop in &there {
        if let RouteHop::Switch(switch) = hop
            && !virtuals::forwards(scenario, *switch)
        {
            let name = &scenario.switches[*switch].name;
            return Err((
                PredictionStatus::NoPath,
                format!("{name} has neither a controller nor entries, and is not standalone: it forwards nothing"),
            ));
        }
    }
    let back = graph.route(scenario, item.to, item.from).unwrap_or_default();
    let cut = |ends, route| {
        virtuals::insert_outputs(scenario, graph, item, ends, route).map_err(|why| (PredictionStatus::NoPath, why))
    };
    Ok([cut([item.from, item.to], there)?, cut([item.to, item.from], back)?])
}

/// Least share of the mean delay that packets wait at a station if doubts about its waiting count.
const COUNTS: f64 = 0.03;

/// Returns the reasons for which delays are known only roughly, with the names of the stations.
fn doubts(network: &QueueingNetwork<'_>, ways: &[PathDelay]) -> Vec<String> {
    let total: f64 = ways.iter().filter_map(|way| way.delay.as_ref().ok()).map(Distribution::mean).sum();
    let mut found: BTreeMap<WaitingDoubt, Vec<&str>> = BTreeMap::new();
    for (doubt, station, _) in ways.iter().flat_map(|way| &way.doubts).filter(|(.., waits)| *waits > COUNTS * total) {
        let names = found.entry(*doubt).or_default();
        let name = network.stations[*station].name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    found.into_iter().map(|(doubt, names)| format!("{} ({})", doubt.text(), names.join(", "))).collect()
}

/// Computes the result of an item's packets in a phase, over one direction or both: flows with their numbers.
pub(crate) fn phase_result<'f>(
    network: &QueueingNetwork<'_>,
    solved: &[Option<StationSolution>],
    phase: &TrafficPhase,
    flows: impl Iterator<Item = (usize, &'f UnidirectionalFlow)>,
) -> Result<PhaseResult, PredictError> {
    let wrong = |error| PredictError::at("a flow's delay", error);
    let outcome = |ways: Vec<PathDelay>| {
        let longest = ways.iter().filter_map(|way| way.longest).max_by(|a, b| a.1.total_cmp(&b.1));
        let delay = ways.iter().map(|way| way.delay.clone()).collect::<Result<Vec<_>, usize>>();
        DeliveryResult {
            arrives: ways.iter().map(|way| way.arrives).product(),
            delay: delay.map(|delays| Distribution::sum(&delays)).map_err(|station| {
                let station = &network.stations[station];
                (station.name.clone(), station.state.offered)
            }),
            longest: longest.map(|(station, seconds)| (network.stations[station].name.clone(), seconds)),
            doubts: doubts(network, &ways),
        }
    };
    let flows: Vec<(usize, &UnidirectionalFlow)> = flows.collect();
    let share = flows.first().map_or(0.0, |(_, flow)| flow.asking_share);
    let ways =
        |asks| flows.iter().map(|flow| delay_on_path(network, solved, *flow, asks)).collect::<Result<Vec<_>, _>>();
    let control = if share > 0.0 { Some((share, outcome(ways(true).map_err(wrong)?))) } else { None };
    Ok(PhaseResult {
        seconds: phase.length.as_secs_f64(),
        rate: flows.first().map_or(0.0, |(_, flow)| flow.rate),
        data: outcome(ways(false).map_err(wrong)?),
        control,
        goodput_bps: None,
        notes: Vec::new(),
    })
}
