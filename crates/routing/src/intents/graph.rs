//! The map's links as a graph that is kept from one search to the next, with the shortest trees found so far.
use super::config::IntentConfig;
use super::way::{DirectedLink, link};
use crate::map::{MapLink, NetworkMap, SwitchPort};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use weir_topology::paths::{MAX_WEIGHT, ShortestPaths, WeightedGraph, WeightedLink, WeightedPath};

/// Length in nanoseconds that is added to links that failed again and again: other ways are preferred to them.
pub(super) const DAMPED_NS: u64 = 10_000_000_000;
/// Most pairs of ways that are kept.
const MOST_PAIRS: usize = 4096;

/// Direction of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Toward {
    /// From all switches to the root.
    Root,
    /// From the root to all switches.
    Leaves,
}

/// Two ways that share no link.
pub(super) type DisjointWays = [Vec<DirectedLink>; 2];

/// Links that are up in both directions between connected switches, as a graph. [`KeptGraph::refresh`] brings it to a
/// map; as long as links and their lengths stay the same, what was found is kept.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptGraph {
    /// Numbers of switches.
    nodes: BTreeMap<u64, usize>,
    /// Links by their numbers, in the direction of packets and in the order of the ports at which they begin.
    links: Vec<DirectedLink>,
    /// The links with lengths, and turned around for trees towards leaves; `None` if the network is too large.
    graphs: Option<[WeightedGraph; 2]>,
    /// Shortest trees over all links, by root and direction.
    trees: Vec<[OnceCell<ShortestPaths>; 2]>,
    /// Shortest pairs over all links, by their ends.
    pairs: RefCell<HashMap<[usize; 2], Option<DisjointWays>>>,
}

impl KeptGraph {
    /// Brings the graph to a map. Nothing that was found is forgotten unless a switch, a link or a length is another.
    pub(super) fn refresh(&mut self, map: &NetworkMap, config: &IntentConfig) {
        if !self.is_of(map, config) {
            *self = KeptGraph::of(map, config);
        }
    }

    fn is_of(&self, map: &NetworkMap, config: &IntentConfig) -> bool {
        let Some([graph, _]) = &self.graphs else { return false };
        let known = self.links.iter().zip(graph.links()).map(|(ends, known)| (*ends, known.weight));
        self.nodes.keys().eq(map.switches().keys()) && known.eq(usable(map, config))
    }

    fn of(map: &NetworkMap, config: &IntentConfig) -> KeptGraph {
        let nodes: BTreeMap<u64, usize> = map.switches().keys().copied().zip(0..).collect();
        let (mut links, mut weighted, mut turned) = (Vec::new(), Vec::new(), Vec::new());
        let mut groups: BTreeMap<SwitchPort, usize> = BTreeMap::new();
        for (ends, weight) in usable(map, config) {
            let [out, into] = ends;
            let Some((from, to)) = nodes.get(&out.dpid).copied().zip(nodes.get(&into.dpid).copied()) else { continue };
            let next = groups.len();
            let group = *groups.entry(out.min(into)).or_insert(next);
            weighted.push(WeightedLink { from, to, weight, group });
            turned.push(WeightedLink { from: to, to: from, weight, group });
            links.push(ends);
        }
        let graph = |links| WeightedGraph::new(nodes.len(), links).ok();
        let graphs = graph(weighted).zip(graph(turned)).map(|(there, back)| [there, back]);
        let trees = nodes.iter().map(|_| Default::default()).collect();
        KeptGraph { nodes, links, graphs, trees, pairs: RefCell::default() }
    }

    /// Returns the number of a switch in the graph.
    pub(super) fn node(&self, dpid: u64) -> Option<usize> {
        self.nodes.get(&dpid).copied()
    }

    /// Returns the number of switches.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the links by their numbers.
    pub(super) fn links(&self) -> &[DirectedLink] {
        &self.links
    }

    /// Returns the graph whose links lead from the switches to the root of a tree, or the other way round.
    pub(super) fn graph(&self, toward: Toward) -> Option<&WeightedGraph> {
        self.graphs.as_ref().map(|[there, back]| if toward == Toward::Root { there } else { back })
    }

    /// Returns the shortest ways between a switch and all others over all links.
    pub(super) fn tree(&self, root: usize, toward: Toward) -> Option<&ShortestPaths> {
        let [to_root, to_leaves] = self.trees.get(root)?;
        let kept = if toward == Toward::Root { to_root } else { to_leaves };
        let graph = self.graph(toward)?;
        Some(kept.get_or_init(|| graph.shortest_paths_to(root, |_| true)))
    }

    /// Returns two ways that share no link and together are the shortest over all links; `None` if there are none.
    pub(super) fn pair(&self, from: usize, to: usize) -> Option<DisjointWays> {
        let mut pairs = self.pairs.borrow_mut();
        if pairs.len() >= MOST_PAIRS {
            pairs.clear();
        }
        pairs.entry([from, to]).or_insert_with(|| self.pair_over(from, to, |_| true)).clone()
    }

    /// Returns the shortest pair over the links that `usable` accepts by their numbers.
    pub(super) fn pair_over(&self, from: usize, to: usize, usable: impl Fn(usize) -> bool) -> Option<DisjointWays> {
        let pair = self.graph(Toward::Root)?.disjoint_pair(from, to, usable)?;
        Some(pair.paths.each_ref().map(|path| self.directed(path)))
    }

    /// Returns the links of a path.
    pub(super) fn directed(&self, path: &WeightedPath) -> Vec<DirectedLink> {
        path.links.iter().filter_map(|number| self.links.get(*number)).copied().collect()
    }
}

/// Returns the links that are up in both directions between two connected switches, with their lengths.
fn usable<'a>(map: &'a NetworkMap, config: &'a IntentConfig) -> impl Iterator<Item = (DirectedLink, u64)> + 'a {
    map.links().keys().filter_map(|out| {
        let here = link(map, *out).filter(|link| link.to.dpid != out.dpid)?;
        let back = map.links().get(&here.to)?;
        (back.to == *out).then(|| ([*out, here.to], length(here, config)))
    })
}

/// Returns the length of a link in nanoseconds: its delay and the time of the switch before it.
fn length(link: &MapLink, config: &IntentConfig) -> u64 {
    let delay = link.delay.unwrap_or(config.assumed_link_delay).saturating_add(config.switch_delay);
    let damped = if link.damped { DAMPED_NS } else { 0 };
    nanos(delay).saturating_add(damped).clamp(1, MAX_WEIGHT)
}

/// Returns the nanoseconds of a duration, at most `u64::MAX`.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
