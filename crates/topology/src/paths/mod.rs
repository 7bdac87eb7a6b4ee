//! Finds paths through a graph with weights and parallel links: shortest ones, several in order, and pairs that share
//! no link.
//!
//! Links are directed; a link of a network is two of them, with one `group`. Equal graphs give equal paths: among paths
//! of equal weight the one with fewer links comes first, then the one whose first differing link has the lesser number.
//!
//! ```
//! use weir_topology::paths::{WeightedGraph, WeightedLink};
//! let pairs = [(0, 1, 10), (1, 2, 10), (0, 2, 30)];
//! let both = |(group, (a, b, weight)): (usize, (usize, usize, u64))| {
//!     [(a, b), (b, a)].map(|(from, to)| WeightedLink { from, to, weight, group })
//! };
//! let graph = WeightedGraph::new(3, pairs.into_iter().enumerate().flat_map(both).collect())?;
//! let best = graph.shortest_path(0, 2, |_| true).expect("there is a way");
//! assert_eq!((best.links, best.weight), (vec![0, 2], 20));
//! let without_first = graph.shortest_path(0, 2, |link| link != 0).expect("there is another way");
//! assert_eq!(without_first.weight, 30);
//! # Ok::<(), String>(())
//! ```
mod disjoint;
mod flow;
mod ordered;
mod shortest;
#[cfg(test)]
mod tests;

pub use disjoint::DisjointPair;
pub use shortest::ShortestPaths;

use std::collections::HashMap;

/// Most nodes of a graph.
pub const MAX_GRAPH_NODES: usize = crate::MAX_NODES;
/// Most links of a graph: both directions of those of a topology.
pub const MAX_GRAPH_LINKS: usize = 2 * crate::MAX_LINKS;
/// Largest weight of a link, so that no sum of weights is too large for its type.
pub const MAX_WEIGHT: u64 = 1 << 40;
/// Most paths of [`WeightedGraph::k_shortest_paths`].
pub const MAX_PATHS: usize = 64;

/// Direction of a link with its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightedLink {
    /// Node at which it begins.
    pub from: usize,
    /// Node at which it ends.
    pub to: usize,
    /// Weight, from 1 to [`MAX_WEIGHT`]: the less, the better.
    pub weight: u64,
    /// Number of the link of the network. Both its directions have it, and no other link.
    pub group: usize,
}

/// Directed graph with weights.
#[derive(Debug, Clone)]
pub struct WeightedGraph {
    links: Vec<WeightedLink>,
    /// Links that leave each node, in the order of their numbers.
    leaving: Vec<Vec<usize>>,
    /// Links that enter each node, in the order of their numbers.
    entering: Vec<Vec<usize>>,
}

/// Path through a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WeightedPath {
    /// Numbers of its links, in order. Empty for a path from a node to itself.
    pub links: Vec<usize>,
    /// Sum of their weights.
    pub weight: u64,
}

impl WeightedGraph {
    /// Returns a graph with nodes 0 to `nodes` - 1. Links are numbered by their places in `links`.
    ///
    /// # Errors
    /// There are too many nodes or links, a link has an end that is no node or both at one node, a weight is out of
    /// range, or a group has links other than one in each direction between two nodes.
    pub fn new(nodes: usize, links: Vec<WeightedLink>) -> Result<WeightedGraph, String> {
        if nodes > MAX_GRAPH_NODES {
            return Err(format!("found {nodes} nodes, expected at most {MAX_GRAPH_NODES}"));
        }
        if links.len() > MAX_GRAPH_LINKS {
            return Err(format!("found {} links, expected at most {MAX_GRAPH_LINKS}", links.len()));
        }
        let (mut leaving, mut entering) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        let mut groups: HashMap<usize, Vec<[usize; 2]>> = HashMap::new();
        for (number, link) in links.iter().enumerate() {
            let WeightedLink { from, to, weight, group } = *link;
            if let Some(end) = [from, to].into_iter().find(|end| *end >= nodes) {
                return Err(format!("link {number}: found an end at node {end}, expected one below {nodes}"));
            }
            if from == to {
                return Err(format!("link {number}: found node {from} at both ends, expected two nodes"));
            }
            if !(1..=MAX_WEIGHT).contains(&weight) {
                return Err(format!("link {number}: found weight {weight}, expected 1 to {MAX_WEIGHT}"));
            }
            let others = groups.entry(group).or_default();
            if others.iter().any(|other| *other != [to, from]) {
                let expected = "expected one link in each direction between two nodes";
                return Err(format!("link {number}: found group {group} of another link, {expected}"));
            }
            others.push([from, to]);
            leaving[from].push(number);
            entering[to].push(number);
        }
        Ok(WeightedGraph { links, leaving, entering })
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.leaving.len()
    }

    /// Returns the links by their numbers.
    pub fn links(&self) -> &[WeightedLink] {
        &self.links
    }

    /// Returns the path of these links.
    fn path(&self, links: Vec<usize>) -> WeightedPath {
        let weight = links.iter().map(|link| self.links[*link].weight).sum();
        WeightedPath { links, weight }
    }

    /// Returns true if both are nodes of the graph.
    fn has(&self, from: usize, to: usize) -> bool {
        from.max(to) < self.nodes()
    }
}

impl WeightedPath {
    /// Returns what paths are sorted by.
    fn order(&self) -> (u64, usize, &[usize]) {
        (self.weight, self.links.len(), &self.links)
    }
}

impl PartialOrd for WeightedPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WeightedPath {
    /// Compares the weights, then the numbers of links, then the links.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}
