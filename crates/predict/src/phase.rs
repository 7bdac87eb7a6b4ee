//! Divides a scenario's time into phases during which no traffic starts or ends.
use std::time::Duration;
use weir_scenario::{TrafficItem, TrafficKind};

/// Most phases; with more, all traffic counts as simultaneous.
pub(crate) const MAX_PHASES: usize = 64;

/// Phase with constant traffic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrafficPhase {
    /// Indices of the items present.
    pub(crate) items: Vec<usize>,
    /// Total length of the phase.
    pub(crate) length: Duration,
}

/// Returns the start and end of an item.
pub(crate) fn span(item: &TrafficItem) -> (Duration, Duration) {
    let length = match &item.kind {
        TrafficKind::Ping { count, interval } => interval.saturating_mul(*count),
        TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } => *duration,
    };
    (item.start, item.start.saturating_add(length))
}

/// Returns the phases with traffic, joining those with equal items, and true if phases are distinguished.
pub(crate) fn phases(traffic: &[TrafficItem]) -> (Vec<TrafficPhase>, bool) {
    let spans: Vec<(Duration, Duration)> = traffic.iter().map(span).collect();
    let mut edges: Vec<Duration> = spans.iter().flat_map(|(from, to)| [*from, *to]).collect();
    edges.sort();
    edges.dedup();
    let mut phases: Vec<TrafficPhase> = Vec::new();
    for edge in edges.windows(2) {
        let there = |(_, (from, to)): &(usize, &(Duration, Duration))| *from <= edge[0] && edge[1] <= *to;
        let items: Vec<usize> = spans.iter().enumerate().filter(there).map(|(at, _)| at).collect();
        if items.is_empty() {
            continue;
        }
        let length = edge[1] - edge[0];
        match phases.iter_mut().find(|phase| phase.items == items) {
            Some(phase) => phase.length += length,
            None => phases.push(TrafficPhase { items, length }),
        }
        if phases.len() > MAX_PHASES {
            let longest = spans.iter().map(|(from, to)| *to - *from).max().unwrap_or_default();
            return (vec![TrafficPhase { items: (0..traffic.len()).collect(), length: longest }], false);
        }
    }
    (phases, true)
}
