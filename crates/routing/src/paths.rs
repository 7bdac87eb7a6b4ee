//! Shortest ways through the network, and others in order.
use crate::map::{MapLink, NetworkMap, SwitchPort};
use std::collections::{BTreeMap, BTreeSet};
use weir_topology::paths::{WeightedGraph, WeightedLink};

/// Weight of a link, and of one that failed again and again: it is used only where no other way is.
const LINK: u64 = 1;
const DAMPED_LINK: u64 = 1 << 20;
/// Weight of the way through an island, which joins only parts that no links join.
const ISLAND: u64 = 1 << 40;

/// Links of a network as a graph, all of equal weight.
#[derive(Debug)]
pub struct MapGraph {
    graph: WeightedGraph,
    /// Numbers of the switches in the graph.
    nodes: BTreeMap<u64, usize>,
    /// Ports at which the graph's links begin, by their numbers.
    ports: Vec<SwitchPort>,
    /// Switches to which those of these links lead that pass islands.
    over_islands: BTreeMap<usize, u64>,
}

/// Shortest ways from all switches to one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaysTo {
    /// Ports with which the shortest ways of each switch begin, in order; none at the destination. Switches without a
    /// way are left out.
    pub next: BTreeMap<u64, Vec<SwitchPort>>,
    /// Next switches of those whose way begins with an island.
    over_islands: BTreeMap<u64, u64>,
}

impl MapGraph {
    /// Returns the graph of a network's links; `None` if the network is larger than a graph may be
    /// ([`weir_topology::paths::MAX_GRAPH_NODES`]).
    pub fn of(map: &NetworkMap) -> Option<MapGraph> {
        let nodes: BTreeMap<u64, usize> = map.switches().keys().copied().zip(0..).collect();
        let (mut ports, mut links, mut groups) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (from, link) in map.links() {
            let ends = nodes.get(&from.dpid).zip(nodes.get(&link.to.dpid)).filter(|(a, b)| a != b);
            let Some((a, b)) = ends else { continue };
            let n_groups = groups.len();
            let group = *groups.entry(*from.min(&link.to)).or_insert(n_groups);
            links.push(WeightedLink { from: *a, to: *b, weight: weight(link), group });
            ports.push(*from);
        }
        let mut over_islands = BTreeMap::new();
        let mut pairs: BTreeMap<[SwitchPort; 2], usize> = BTreeMap::new();
        for (from, to) in map.islands().iter().flat_map(|island| pairs_of(&island.joins)) {
            let Some((a, b)) = nodes.get(&from.dpid).zip(nodes.get(&to.dpid)).filter(|(a, b)| a != b) else { continue };
            let next = groups.len() + pairs.len();
            let group = *pairs.entry([from.min(to), from.max(to)]).or_insert(next);
            over_islands.insert(links.len(), to.dpid);
            links.push(WeightedLink { from: *a, to: *b, weight: ISLAND, group });
            ports.push(from);
        }
        let graph = WeightedGraph::new(nodes.len(), links).ok()?;
        Some(MapGraph { graph, nodes, ports, over_islands })
    }

    /// Returns the shortest ways to a switch. Empty if it is not connected.
    pub fn ways_to(&self, destination: u64) -> WaysTo {
        let Some(node) = self.nodes.get(&destination) else { return WaysTo::default() };
        let shortest = self.graph.shortest_paths_to(*node, |_| true);
        let reached = self.nodes.iter().filter(|(_, node)| shortest.distances[**node].is_some());
        let mut ways = WaysTo::default();
        for (dpid, node) in reached {
            let links = &shortest.next[*node];
            ways.next.insert(*dpid, links.iter().map(|link| self.ports[*link]).collect());
            let over = links.first().and_then(|link| self.over_islands.get(link));
            ways.over_islands.extend(over.map(|to| (*dpid, *to)));
        }
        ways
    }

    /// Returns the shortest `most` ways between two switches, the best first, by the ports at which their links begin.
    pub fn ways(&self, from: u64, to: u64, most: usize) -> Vec<Vec<SwitchPort>> {
        let Some((from, to)) = self.nodes.get(&from).zip(self.nodes.get(&to)) else { return Vec::new() };
        let paths = self.graph.k_shortest_paths(*from, *to, most, |_| true);
        paths.iter().map(|path| path.links.iter().map(|link| self.ports[*link]).collect()).collect()
    }
}

impl WaysTo {
    /// Returns the ports of one shortest way from a switch, in order; `None` if there is no way.
    pub fn path(&self, map: &NetworkMap, from: u64) -> Option<Vec<SwitchPort>> {
        let mut ports = Vec::new();
        let mut at = from;
        loop {
            let Some(port) = self.next.get(&at)?.first() else { return Some(ports) };
            ports.push(*port);
            at = self.next_switch(map, *port)?;
        }
    }

    /// Returns the switch to which a port leads with which a way begins.
    pub fn next_switch(&self, map: &NetworkMap, from: SwitchPort) -> Option<u64> {
        let direct = map.links().get(&from).map(|link| link.to.dpid);
        direct.or_else(|| self.over_islands.get(&from.dpid).copied())
    }
}

/// Returns all pairs of two ports, in both directions.
fn pairs_of(ports: &BTreeSet<SwitchPort>) -> Vec<(SwitchPort, SwitchPort)> {
    let pairs = ports.iter().flat_map(|from| ports.iter().map(move |to| (*from, *to)));
    pairs.filter(|(from, to)| from != to).collect()
}

fn weight(link: &MapLink) -> u64 {
    if link.damped { DAMPED_LINK } else { LINK }
}
