//! How much TCP connections get: what others leave, shared alike, and no more than their window in a round trip.
use crate::graph::{Graph, Hop};
use crate::network::{Flow, Network, Place, Step};
use std::collections::HashMap;
use weir_scenario::native;

/// A segment's payload, and its frame: Ethernet, IP and TCP headers without options.
pub(crate) const SEGMENT_BYTES: f64 = 1460.0;
pub(crate) const FRAME_BYTES: f64 = 1514.0;
/// The frame of an acknowledgement, of which there is one for two segments.
pub(crate) const ACKNOWLEDGEMENT_BYTES: f64 = 60.0;

/// A connection under way.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) item: usize,
    pub(crate) route: Vec<Hop>,
    pub(crate) flow: Flow,
    /// What its frames get, in bits per second.
    pub(crate) rate_bps: f64,
    /// What holds it back; none: its window.
    pub(crate) held_by: Option<Place>,
}

/// A round trip when nothing waits, in seconds: the way back is as long.
fn round_trip(connection: &Connection, graph: &Graph) -> f64 {
    let delay = |hop: &Hop| if let Hop::Line(line) = hop { graph.lines[*line].spec.delay.as_secs_f64() } else { 0.0 };
    let served = |step: &Step| if let Step::Visit(visit) = step { visit.service.mean } else { 0.0 };
    let there: f64 = connection.route.iter().map(delay).sum();
    2.0 * there + connection.flow.steps.iter().map(served).sum::<f64>()
}

/// Shares what `others` leave of each line and data path: all grow alike until something holds them (max-min fairness).
pub(crate) fn share(connections: &mut [Connection], others: &[Flow], network: &Network<'_>, graph: &Graph) {
    // Time that a frame of a connection takes at each queue, and what is left of each queue's time.
    let mut left: HashMap<usize, f64> = HashMap::new();
    for flow in others {
        for step in flow.steps.iter() {
            if let Step::Visit(visit) = step {
                *left.entry(visit.station).or_insert(1.0) -= flow.rate * visit.service.mean;
            }
        }
    }
    let visits: Vec<Vec<(usize, f64)>> = connections
        .iter()
        .map(|connection| {
            let visit = |step: &Step| {
                if let Step::Visit(visit) = step { Some((visit.station, visit.service.mean)) } else { None }
            };
            connection.flow.steps.iter().filter_map(visit).collect()
        })
        .collect();
    let window = native::TCP_WINDOW_BYTES as f64 / SEGMENT_BYTES;
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
    for ((connection, rate), held) in connections.iter_mut().zip(rates).zip(held) {
        connection.flow.rate = rate;
        connection.rate_bps = rate * FRAME_BYTES * 8.0;
        connection.held_by = held.flatten().map(|station| network.places[station]);
    }
}

/// What waits, in seconds, at lines and outputs that connections keep full, by station: what their windows hold beyond what is on the way, as much as the
/// buffer takes.
pub(crate) fn standing(connections: &[Connection], graph: &Graph, network: &Network<'_>) -> HashMap<usize, f64> {
    let mut seconds: HashMap<usize, f64> = HashMap::new();
    let window = native::TCP_WINDOW_BYTES as f64 / SEGMENT_BYTES * FRAME_BYTES;
    for one in connections {
        let Some(place @ (Place::Line(_) | Place::Output(..))) = one.held_by else { continue };
        let Some(station) = network.find(place) else { continue };
        let frame_s = one.flow.steps.iter().find_map(|step| match step {
            Step::Visit(visit) if visit.station == station => Some(visit.service.mean),
            _ => None,
        });
        let on_the_way = one.rate_bps / 8.0 * round_trip(one, graph);
        let frames = (window - on_the_way).max(0.0) / FRAME_BYTES;
        *seconds.entry(station).or_default() += frames * frame_s.unwrap_or(0.0);
    }
    for (station, seconds) in &mut seconds {
        *seconds = seconds.min(network.stations[*station].buffer_s.unwrap_or(f64::INFINITY));
    }
    seconds
}
