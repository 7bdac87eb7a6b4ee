//! When which traffic is there: a scenario's time cut into pieces during which nothing starts or ends.
use std::time::Duration;
use weir_scenario::{Traffic, TrafficKind};

/// More pieces are not told apart: all traffic is taken as there at once.
pub(crate) const MOST_PHASES: usize = 64;

/// A piece of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Phase {
    /// Items that are there, by their number.
    pub(crate) items: Vec<usize>,
    /// How long it is all together.
    pub(crate) length: Duration,
}

/// When an item is there.
pub(crate) fn span(item: &Traffic) -> (Duration, Duration) {
    let length = match &item.kind {
        TrafficKind::Ping { count, interval } => interval.saturating_mul(*count),
        TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } => *duration,
    };
    (item.start, item.start.saturating_add(length))
}

/// The pieces in which something is there, those with the same items as one; and whether they are told apart.
pub(crate) fn phases(traffic: &[Traffic]) -> (Vec<Phase>, bool) {
    let spans: Vec<(Duration, Duration)> = traffic.iter().map(span).collect();
    let mut edges: Vec<Duration> = spans.iter().flat_map(|(from, to)| [*from, *to]).collect();
    edges.sort();
    edges.dedup();
    let mut phases: Vec<Phase> = Vec::new();
    for edge in edges.windows(2) {
        let there = |(_, (from, to)): &(usize, &(Duration, Duration))| *from <= edge[0] && edge[1] <= *to;
        let items: Vec<usize> = spans.iter().enumerate().filter(there).map(|(at, _)| at).collect();
        if items.is_empty() {
            continue;
        }
        let length = edge[1] - edge[0];
        match phases.iter_mut().find(|phase| phase.items == items) {
            Some(phase) => phase.length += length,
            None => phases.push(Phase { items, length }),
        }
        if phases.len() > MOST_PHASES {
            let longest = spans.iter().map(|(from, to)| *to - *from).max().unwrap_or_default();
            return (vec![Phase { items: (0..traffic.len()).collect(), length: longest }], false);
        }
    }
    (phases, true)
}
