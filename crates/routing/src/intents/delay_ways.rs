//! Ways between two ends by the delay that is expected on them, for bounds that the shortest way exceeds.
//!
//! The expected delay of a way is a sum over its links, so the ways of least expected delay are the shortest paths of a
//! graph (Yen 1971). A percentile is no such sum: each way is checked against the bound by itself, in that order, and
//! the first one that keeps it is taken. The constant parts alone are a lower bound of every percentile; if no way
//! keeps the bound even without waiting, one is enough to say so. In the worst case there are only constant parts, and
//! the first way is the best one. At most [`MAX_PATHS`] ways are looked at, so a percentile that only a later way keeps
//! is not found.
use super::delay::DelayInput;
use super::find::{FoundWays, WaySearch};
use super::graph::{DAMPED_NS, Toward};
use super::lanes::{Demand, Lane};
use super::spec::{DelayBound, IntentKind};
use super::way::{DirectedLink, Way, link};
use weir_model::Distribution;
use weir_topology::paths::{MAX_PATHS, MAX_WEIGHT, WeightedGraph, WeightedLink, WeightedPath};

/// Numbers of ways that are asked for in turn: mostly a few are enough.
const STAGES: [usize; 3] = [1, 8, MAX_PATHS];

/// Ways of an intent by their expected delay.
pub(super) struct DelayWays<'a> {
    search: &'a WaySearch<'a>,
    /// Number of ways that may keep the bound.
    most: usize,
    /// The links with their expected delays in nanoseconds.
    graph: Option<WeightedGraph>,
    /// Links whose delay is known and that the intent may use, by their numbers.
    usable: Vec<bool>,
}

/// Delay of a link in nanoseconds, in both directions for two hosts.
#[derive(Clone, Copy)]
struct LinkDelay {
    constant: f64,
    expected: f64,
}

impl<'a> DelayWays<'a> {
    /// Prepares the ways of an intent that has one way, or one in each direction.
    pub(super) fn of(search: &'a WaySearch<'a>) -> DelayWays<'a> {
        let kept = search.input.graph;
        let delays: Vec<Option<LinkDelay>> = match &search.wanted.delay {
            Some(bound) => kept.links().iter().map(|ends| link_delay(search, ends, bound)).collect(),
            None => Vec::new(),
        };
        let graph = |delay: fn(&LinkDelay) -> f64| {
            let weight = |delays: &Option<LinkDelay>| delays.as_ref().map_or(MAX_WEIGHT, |found| weight(delay(found)));
            let links = kept.graph(Toward::Root)?.links().iter().zip(&delays);
            let links = links.map(|(link, delays)| WeightedLink { weight: weight(delays), ..*link });
            WeightedGraph::new(kept.nodes(), links.collect()).ok()
        };
        let mut ways = DelayWays {
            search,
            most: MAX_PATHS,
            graph: graph(|delay| delay.constant),
            usable: delays.iter().map(Option::is_some).collect(),
        };
        ways.most = if ways.may_keep_bound() { MAX_PATHS } else { 1 };
        ways.graph = graph(|delay| delay.expected);
        ways
    }

    /// Returns the ways, those of the least expected delay first.
    pub(super) fn found(&self) -> impl Iterator<Item = FoundWays> + '_ {
        let before = std::iter::once(0).chain(STAGES);
        before.zip(STAGES).flat_map(|(tried, most)| self.ways(most).into_iter().skip(tried)).take(self.most)
    }

    /// Returns false if the constant part of every way exceeds the bound.
    fn may_keep_bound(&self) -> bool {
        let Some(bound) = &self.search.wanted.delay else { return true };
        // Of two directions, one takes at least half of the sum.
        let directions = if self.search.wanted.kind == IntentKind::HostToHost { 2.0 } else { 1.0 };
        let least = self.paths(1).first().map(|path| path.weight as f64 / directions);
        least.is_some_and(|least| least <= bound.most.0.as_secs_f64() * 1e9)
    }

    fn ways(&self, most: usize) -> Vec<FoundWays> {
        let ([from, ..], [to, ..]) = (self.search.ends.from.as_slice(), self.search.ends.to.as_slice()) else {
            return Vec::new();
        };
        let found = |path: &WeightedPath| {
            let way = Way { from: from.at, links: self.search.input.graph.directed(path), to: to.at };
            FoundWays { ways: self.search.directions(way), spare: Vec::new(), lacks: None }
        };
        self.paths(most).iter().map(found).collect()
    }

    fn paths(&self, most: usize) -> Vec<WeightedPath> {
        let kept = self.search.input.graph;
        let ends = [self.search.ends.from.first(), self.search.ends.to.first()];
        let [from, to] = ends.map(|end| end.and_then(|end| kept.node(end.at.dpid)));
        let Some(((graph, from), to)) = self.graph.as_ref().zip(from).zip(to) else { return Vec::new() };
        graph.k_shortest_paths(from, to, most, |number| self.usable.get(number).is_some_and(|usable| *usable))
    }
}

/// Returns the delay of a link with the intent's own bandwidth on it; `None` if it is not known or the link is not to
/// be used.
fn link_delay(search: &WaySearch<'_>, ends: &DirectedLink, bound: &DelayBound) -> Option<LinkDelay> {
    if !search.may_use(ends) {
        return None;
    }
    let [out, into] = *ends;
    let is_both = search.wanted.kind == IntentKind::HostToHost;
    let lanes = [Some(Lane::From(out)), is_both.then_some(Lane::From(into))];
    let lanes = || lanes.into_iter().flatten();
    let demand: Demand = lanes().map(|lane| (lane, search.wanted.bandwidth)).collect();
    let load = |lane: Lane| search.input.load(lane, &demand);
    let input = DelayInput { map: search.input.map, config: search.input.config, load: &load };
    let mut sum = LinkDelay { constant: 0.0, expected: 0.0 };
    for lane in lanes() {
        let (constant_s, wait) = input.part(lane, bound.kind).ok()?;
        sum.constant += constant_s * 1e9;
        sum.expected += (constant_s + wait.as_ref().map_or(0.0, Distribution::mean)) * 1e9;
    }
    let damped = link(search.input.map, out).is_some_and(|link| link.damped);
    sum.expected += if damped { DAMPED_NS as f64 } else { 0.0 };
    Some(sum)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited before")]
fn weight(nanos: f64) -> u64 {
    (nanos.round().clamp(1.0, MAX_WEIGHT as f64)) as u64
}
