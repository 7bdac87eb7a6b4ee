//! The kept graph finds what a graph made anew for each search finds, over random changes of maps.
use super::bed::TestNetwork;
use crate::intents::IntentConfig;
use crate::intents::graph::{KeptGraph, Toward};
use crate::intents::search::Links;
use crate::intents::way::{DirectedLink, link};
use crate::map::{MapSwitch, NetworkMap, SwitchPort};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_topology::paths::{WeightedGraph, WeightedLink};

/// Graph of the links that `allowed` accepts, and nothing else.
struct FreshGraph {
    nodes: BTreeMap<u64, usize>,
    links: Vec<DirectedLink>,
    graph: WeightedGraph,
}

impl FreshGraph {
    /// In a graph towards the leaves all links are turned around.
    fn of(map: &NetworkMap, toward: Toward, allowed: &dyn Fn(&DirectedLink) -> bool) -> FreshGraph {
        let config = IntentConfig::default();
        let nodes: BTreeMap<u64, usize> = map.switches().keys().copied().zip(0..).collect();
        let (mut links, mut weighted, mut groups) = (Vec::new(), Vec::new(), BTreeMap::new());
        for out in map.links().keys() {
            let Some(here) = link(map, *out) else { continue };
            if !allowed(&[*out, here.to]) {
                continue;
            }
            let (mut from, mut to) = (nodes[&out.dpid], nodes[&here.to.dpid]);
            if toward == Toward::Leaves {
                (from, to) = (to, from);
            }
            let next = groups.len();
            let group = *groups.entry(*out.min(&here.to)).or_insert(next);
            let delay = here.delay.unwrap_or(config.assumed_link_delay) + config.switch_delay;
            let damped = if here.damped { Duration::from_secs(10) } else { Duration::ZERO };
            let weight = u64::try_from((delay + damped).as_nanos()).unwrap();
            weighted.push(WeightedLink { from, to, weight, group });
            links.push([*out, here.to]);
        }
        let graph = WeightedGraph::new(nodes.len(), weighted).unwrap();
        FreshGraph { nodes, links, graph }
    }

    /// Returns the shortest way between a switch and the root of a tree.
    fn way(&self, root: u64, dpid: u64, toward: Toward) -> Option<Vec<DirectedLink>> {
        let paths = self.graph.shortest_paths_to(*self.nodes.get(&root)?, |_| true);
        let (mut at, mut links) = (*self.nodes.get(&dpid)?, Vec::new());
        while paths.distances[at]? != 0 {
            let next = paths.next[at][0];
            links.push(self.links[next]);
            at = self.graph.links()[next].to;
        }
        if toward == Toward::Leaves {
            links.reverse();
        }
        Some(links)
    }

    fn pair(&self, from: u64, to: u64) -> Option<[Vec<DirectedLink>; 2]> {
        let (from, to) = (*self.nodes.get(&from)?, *self.nodes.get(&to)?);
        let pair = self.graph.disjoint_pair(from, to, |_| true)?;
        Some(pair.paths.map(|path| path.links.iter().map(|link| self.links[*link]).collect()))
    }
}

fn change(network: &mut TestNetwork, random: &mut fastrand::Rng, n: u64) {
    let wires: Vec<SwitchPort> = network.wires.keys().copied().collect();
    let at = *random.choice(&wires).unwrap();
    let is_up = network.map.links.contains_key(&at);
    match random.u8(0..6) {
        0 => network.set_link(at, !is_up),
        1 if is_up => network.set_delay(at, Duration::from_micros(random.u64(1..4) * 100)),
        2 if is_up => {
            let damped = random.bool();
            let to = network.wires[&at];
            for at in [at, to] {
                network.map.links.get_mut(&at).unwrap().damped = damped;
            }
        }
        3 => {
            // A switch goes, and comes back without a word about its links.
            let dpid = random.u64(1..=n);
            match network.map.switches.remove(&dpid) {
                Some(_) => network.map.links.retain(|from, link| from.dpid != dpid && link.to.dpid != dpid),
                None => _ = network.map.switches.insert(dpid, MapSwitch { ports: BTreeMap::new(), n_tables: 8 }),
            }
        }
        _ => {}
    }
}

/// Says whether a search may use a link.
type LinkFilter<'a> = &'a dyn Fn(&DirectedLink) -> bool;

#[test]
fn the_kept_graph_is_as_a_fresh_one_over_random_changes() {
    let mut filtered_ways = 0;
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let n = random.u64(3..9);
        let mut links: Vec<(u64, u64)> = (2..=n).map(|dpid| (random.u64(1..dpid), dpid)).collect();
        for _ in 0..2 * n {
            links.push((random.u64(1..n), n));
        }
        let mut network = TestNetwork::new(n, &links, IntentConfig::default());
        let (config, mut kept) = (IntentConfig::default(), KeptGraph::default());
        for _ in 0..60 {
            // Switches without ports of their own would make changes of links fail.
            let all =
                (1..=n).all(|dpid| network.map.switches.get(&dpid).is_some_and(|switch| !switch.ports.is_empty()));
            if all {
                change(&mut network, &mut random, n);
            } else {
                network = TestNetwork::new(n, &links, IntentConfig::default());
            }
            kept.refresh(&network.map, &config);
            let refused = [random.u64(0..4), random.u64(1..=n)];
            let excludes = |ends: &DirectedLink| ends[0].port.0 as u64 % 4 == refused[0] || ends[0].dpid == refused[1];
            let some = |ends: &DirectedLink| !excludes(ends);
            let every = |_: &DirectedLink| true;
            let filters: [(LinkFilter<'_>, bool); 2] = [(&every, true), (&some, false)];
            for (allowed, all) in filters {
                let search = Links { graph: &kept, allowed, all };
                let (from, to) = (random.u64(1..=n), random.u64(1..=n));
                let fresh = FreshGraph::of(&network.map, Toward::Root, allowed);
                assert_eq!(search.shortest(from, to), fresh.way(to, from, Toward::Root), "seed {seed}");
                assert_eq!(search.pair(from, to), fresh.pair(from, to), "seed {seed}");
                assert_eq!(search.pair(from, to), fresh.pair(from, to), "seed {seed}, again");
                let turned = FreshGraph::of(&network.map, Toward::Leaves, allowed);
                let tree = search.tree(from, Toward::Leaves);
                for leaf in 1..=n {
                    let way = tree.as_ref().and_then(|tree| tree.links(leaf));
                    assert_eq!(way, turned.way(from, leaf, Toward::Leaves), "seed {seed}");
                    let over_all = Links { graph: &kept, allowed: &every, all: true }.shortest(leaf, from);
                    let over_some = search.shortest(leaf, from);
                    filtered_ways += usize::from(over_some.is_some() && over_all != over_some);
                }
            }
        }
    }
    assert!(filtered_ways > 100, "{filtered_ways} ways differ from those over all links");
}
