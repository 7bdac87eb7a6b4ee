//! Computes the rates of TCP connections: a fair share of what others leave, limited by the window in a round trip;
//! then the course of each connection from start to end.
use crate::graph::{RouteGraph, RouteHop};
use crate::network::{QueueLocation, QueueingNetwork, RouteStep, UnidirectionalFlow};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use weir_model::mechanism::{TcpBulkResult, TcpBulkTransfer};
use weir_model::{Distribution, ModelError};
use weir_scenario::defaults;

/// Payload of a segment and length of its frame, in bytes: Ethernet, IP and TCP headers without options.
pub(crate) const SEGMENT_BYTES: f64 = 1460.0;
pub(crate) const FRAME_BYTES: f64 = 1514.0;
/// Frame length of an acknowledgement, in bytes; there is one for two segments.
pub(crate) const ACKNOWLEDGEMENT_BYTES: f64 = 60.0;

/// Connection in progress.
#[derive(Debug, Clone)]
pub(crate) struct TcpConnection {
    pub(crate) item: usize,
    pub(crate) route: Vec<RouteHop>,
    /// Flow of its frames, at the average rate it gets.
    pub(crate) flow: UnidirectionalFlow,
    /// Time from its start to its end.
    pub(crate) duration: Duration,
    /// Place that limits its rate; none if its window does.
    pub(crate) limited_by: Option<QueueLocation>,
    /// Rate available to it, in frames a second.
    pub(crate) available: f64,
    /// Course of the connection.
    pub(crate) transfer: Option<TcpBulkResult>,
}

impl TcpConnection {
    pub(crate) fn new(
        item: usize,
        route: Vec<RouteHop>,
        flow: UnidirectionalFlow,
        duration: Duration,
    ) -> TcpConnection {
        TcpConnection { item, route, flow, duration, limited_by: None, available: 0.0, transfer: None }
    }

    /// Returns the station with the longest service of its frames: bursts wait there, even if the window limits the
    /// rate.
    fn slowest(&self) -> Option<usize> {
        let visits = self.flow.steps.iter().filter_map(|step| match step {
            RouteStep::Visit(visit) => Some((visit.service.mean, visit.station)),
            RouteStep::ControllerTrip { .. } => None,
        });
        visits.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, station)| station)
    }

    /// Returns the service time of a frame at a station on the route, in seconds.
    fn frame_s(&self, at: usize) -> Option<f64> {
        self.flow.steps.iter().find_map(|step| match step {
            RouteStep::Visit(visit) if visit.station == at => Some(visit.service.mean),
            _ => None,
        })
    }
}

/// Returns the round-trip time without queueing, in seconds; the way back has equal delays.
fn round_trip(connection: &TcpConnection, graph: &RouteGraph) -> f64 {
    let delay =
        |hop: &RouteHop| if let RouteHop::Line(line) = hop { graph.lines[*line].spec.delay.as_secs_f64() } else { 0.0 };
    let served = |step: &RouteStep| if let RouteStep::Visit(visit) = step { visit.service.mean } else { 0.0 };
    let there: f64 = connection.route.iter().map(delay).sum();
    2.0 * there + connection.flow.steps.iter().map(served).sum::<f64>()
}

/// Shares the capacity that `others` leave of each line and data path: all rates grow alike until something limits
/// them (max-min fairness).
pub(crate) fn share_capacity(
    connections: &mut [TcpConnection],
    others: &[UnidirectionalFlow],
    network: &QueueingNetwork<'_>,
    graph: &RouteGraph,
) {
    // Share of each queue's time that is left.
    let mut left: HashMap<usize, f64> = HashMap::new();
    for flow in others {
        for step in flow.steps.iter() {
            if let RouteStep::Visit(visit) = step {
                *left.entry(visit.station).or_insert(1.0) -= flow.rate * visit.service.mean;
            }
        }
    }
    let visits: Vec<Vec<(usize, f64)>> = connections
        .iter()
        .map(|connection| {
            let visit = |step: &RouteStep| {
                if let RouteStep::Visit(visit) = step { Some((visit.station, visit.service.mean)) } else { None }
            };
            connection.flow.steps.iter().filter_map(visit).collect()
        })
        .collect();
    let window = defaults::TCP_WINDOW_BYTES as f64 / SEGMENT_BYTES;
    let most: Vec<f64> = connections.iter().map(|one| window / round_trip(one, graph).max(1e-9)).collect();
    let mut rates = vec![0.0f64; connections.len()];
    let mut held: Vec<Option<Option<usize>>> = vec![None; connections.len()];
    while held.iter().any(Option::is_none) {
        let growing = |at: &usize| held[*at].is_none();
        let mut use_of: HashMap<usize, f64> = HashMap::new();
        for at in (0..connections.len()).filter(growing) {
            for (station, time) in &visits[at] {
                *use_of.entry(*station).or_default() += time;
            }
        }
        let by_station = use_of.iter().map(|(station, time)| {
            (left.get(station).copied().unwrap_or(1.0).max(0.0) / time.max(1e-15), Some(*station))
        });
        let by_window = (0..connections.len()).filter(growing).map(|at| (most[at] - rates[at], None));
        let order = |a: &(f64, Option<usize>), b: &(f64, Option<usize>)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let Some((step, holder)) = by_station.chain(by_window).min_by(order) else { break };
        let step = step.max(0.0);
        for (station, time) in &use_of {
            *left.entry(*station).or_insert(1.0) -= step * time;
        }
        for at in 0..connections.len() {
            if held[at].is_some() {
                continue;
            }
            rates[at] += step;
            let full = visits[at].iter().any(|(station, _)| Some(*station) == holder);
            if full {
                held[at] = Some(holder);
            } else if most[at] - rates[at] <= 1e-9 * most[at] {
                held[at] = Some(None);
            }
        }
    }
    for (((connection, rate), held), visits) in connections.iter_mut().zip(rates).zip(held).zip(&visits) {
        let more =
            |(station, time): &(usize, f64)| left.get(station).copied().unwrap_or(1.0).max(0.0) / time.max(1e-15);
        connection.flow.rate = rate;
        connection.available = rate + visits.iter().map(more).fold(f64::INFINITY, f64::min);
        connection.limited_by = held.flatten().map(|station| network.locations[station]);
    }
}

/// Computes the course of each connection from start to end, and updates its average rate. Returns the waiting time
/// at the queues that connections fill, by station.
pub(crate) fn compute_courses(
    connections: &mut [TcpConnection],
    graph: &RouteGraph,
    network: &QueueingNetwork<'_>,
) -> Result<BTreeMap<usize, Distribution>, ModelError> {
    let held = |one: &TcpConnection| one.limited_by.and_then(|place| network.find(place));
    let mut together: HashMap<usize, f64> = HashMap::new();
    for one in connections.iter() {
        if let Some(station) = held(one) {
            *together.entry(station).or_default() += one.flow.rate;
        }
    }
    let mut queues: BTreeMap<usize, Distribution> = BTreeMap::new();
    for one in connections.iter_mut().filter(|one| one.flow.rate > 0.0) {
        let station = held(one);
        let share = station.map_or(1.0, |station| one.flow.rate / together[&station]);
        let transfer =
            bulk_parameters(one, station.or(one.slowest()), share, round_trip(one, graph), network).solve()?;
        if let Some(station) = station {
            let parts = transfer.queue.iter().map(|(share, seconds)| Ok((*share, Distribution::constant(*seconds)?)));
            let queue = Distribution::mixture(&parts.collect::<Result<Vec<_>, ModelError>>()?)?;
            let all = queues.remove(&station).map_or(queue.clone(), |known| Distribution::sum([&known, &queue]));
            queues.insert(station, all);
        }
        let per_second = transfer.payload_bytes / SEGMENT_BYTES / one.duration.as_secs_f64().max(1e-9);
        one.flow.rate = per_second.min(one.available);
        one.transfer = Some(transfer);
    }
    Ok(queues)
}

/// Returns the parameters of a connection at the queue that limits it, with its share of that buffer.
fn bulk_parameters(
    one: &TcpConnection,
    station: Option<usize>,
    share: f64,
    round_trip_s: f64,
    network: &QueueingNetwork<'_>,
) -> TcpBulkTransfer {
    let available = FRAME_BYTES * one.available;
    let line = station.and_then(|at| one.frame_s(at)).map_or(available, |frame_s| FRAME_BYTES / frame_s.max(1e-15));
    let places = |at: usize| network.stations[at].places.map(|places| places as f64 * FRAME_BYTES);
    let buffer = |at: usize| network.stations[at].buffer_s.map(|seconds| seconds * line).or(places(at));
    TcpBulkTransfer {
        share: available.min(line),
        line,
        round_trip_s: round_trip_s.max(1e-9),
        buffer_bytes: station.and_then(buffer).map_or(f64::INFINITY, |bytes| bytes * share),
        window_bytes: defaults::TCP_WINDOW_BYTES as f64,
        first_bytes: defaults::TCP_INITIAL_WINDOW_BYTES as f64,
        segment_bytes: SEGMENT_BYTES,
        frame_bytes: FRAME_BYTES,
        timeout_s: defaults::TCP_MIN_RTO.as_secs_f64(),
        duration_s: one.duration.as_secs_f64(),
        patience_s: defaults::TCP_LINGER.as_secs_f64(),
    }
}
