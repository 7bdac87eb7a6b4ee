//! Finds pairs of paths that share no link: J. W. Suurballe and R. E. Tarjan, "A quick method for finding shortest
//! pairs of disjoint paths", Networks 14, 1984.
//!
//! A pair is a flow of two units of least weight. The first unit takes the shortest path, the second one may push it
//! aside. Both directions of a link are never in such a flow, because without them it weighs less. For paths that
//! share no node either, each node is two with a link of capacity one in between (R. Bhandari, "Survivable Networks",
//! 1999).
use super::flow::FlowNetwork;
use super::{WeightedGraph, WeightedPath};

/// Two paths between the same nodes that share no link, in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisjointPair {
    /// The paths, the shorter first.
    pub paths: [WeightedPath; 2],
    /// True if they share no node either, except their ends.
    pub node_disjoint: bool,
}

impl WeightedGraph {
    /// Returns two paths from one node to another, over the links that `usable` accepts, that share no link and have
    /// the least sum of weights. Pairs that share no node are preferred, whatever they weigh. `None` if every two paths
    /// share a link.
    pub fn disjoint_pair(&self, from: usize, to: usize, usable: impl Fn(usize) -> bool) -> Option<DisjointPair> {
        if from == to || !self.has(from, to) {
            return None;
        }
        let by_nodes = self.pair(from, to, &usable, true).map(|paths| DisjointPair { paths, node_disjoint: true });
        by_nodes.or_else(|| {
            let paths = self.pair(from, to, &usable, false)?;
            Some(DisjointPair { paths, node_disjoint: false })
        })
    }

    /// Returns the pair of least weight that shares no link, and no node if `by_nodes`.
    fn pair(
        &self,
        from: usize,
        to: usize,
        usable: &impl Fn(usize) -> bool,
        by_nodes: bool,
    ) -> Option<[WeightedPath; 2]> {
        // Node n receives at 2 n and sends at 2 n + 1; without the rule for nodes it does both at 2 n.
        let sender = |node: usize| 2 * node + usize::from(by_nodes);
        let mut network = FlowNetwork::new(2 * self.nodes());
        for (number, link) in self.links.iter().enumerate().filter(|(number, _)| usable(*number)) {
            network.add(sender(link.from), 2 * link.to, link.weight, Some(number));
        }
        if by_nodes {
            (0..self.nodes()).for_each(|node| network.add(2 * node, sender(node), 0, None));
        }
        let both = network.push(sender(from), 2 * to) && network.push(sender(from), 2 * to);
        let used = both.then(|| network.used())?;
        let first = self.shortest_path(from, to, |link| used.contains(&link))?;
        let second = self.shortest_path(from, to, |link| used.contains(&link) && !first.links.contains(&link))?;
        Some([first, second])
    }
}
