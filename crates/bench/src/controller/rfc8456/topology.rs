//! Networks of emulated switches for the tests of RFC 8456: leaf-spine (section 4.1), line and ring, and where the two
//! traffic generators are.
use serde::Serialize;
use std::collections::VecDeque;
use weir_units::counted;

/// Port of each switch at which a traffic generator is, or could be.
pub(super) const EDGE_PORT: u32 = 1;
/// Second port of each switch without a link: hosts that asynchronous messages are sent to.
pub(super) const SECOND_EDGE_PORT: u32 = 2;
/// First port of a switch that may have a link.
const FIRST_LINK_PORT: u32 = 3;

/// Rule by which switches are linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TestTopology {
    /// Each leaf is linked to each spine; the generators are at the first and the last leaf
    LeafSpine,
    /// Each switch is linked to the next; the generators are at the ends
    Line,
    /// A line whose ends are linked, too; the generators are opposite to each other
    Ring,
}

/// A port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub(super) struct PortPlace {
    /// Number of the switch, from 0 on. Its datapath id is one more.
    pub(super) node: usize,
    pub(super) port: u32,
}

/// Network to emulate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct TestNetworkPlan {
    /// Number of switches.
    pub(super) nodes: usize,
    /// Links by their two ends.
    pub(super) links: Vec<[PortPlace; 2]>,
    /// Ports of TP1 and TP2.
    pub(super) generators: [PortPlace; 2],
    /// The network in words.
    pub(super) name: String,
}

/// Peer at the other end of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortPeer {
    /// A switch's port, through the link with this number.
    Link(usize, PortPlace),
    /// TP1 (0) or TP2 (1).
    Generator(usize),
    Nothing,
}

impl TestNetworkPlan {
    /// Returns the network. `leaves` is the number of leaves, or of all switches of a line and a ring.
    ///
    /// # Errors
    /// There are too few switches for the rule.
    pub(super) fn new(rule: TestTopology, leaves: usize, spines: usize) -> Result<TestNetworkPlan, String> {
        let least = if rule == TestTopology::Ring { 3 } else { 2 };
        if leaves < least {
            return Err(format!("--leaves {leaves}: expected at least {least} switches that are no spines"));
        }
        let pairs: Vec<[usize; 2]> = match rule {
            TestTopology::LeafSpine => {
                (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| [leaf, leaves + spine])).collect()
            }
            TestTopology::Line => (1..leaves).map(|node| [node - 1, node]).collect(),
            TestTopology::Ring => (0..leaves).map(|node| [node, (node + 1) % leaves]).collect(),
        };
        let (nodes, last, name) = match rule {
            TestTopology::LeafSpine => (
                leaves + spines,
                leaves - 1,
                format!("leaf-spine of {leaves} leaves and {}", counted(spines, "spine", "spines")),
            ),
            TestTopology::Line => (leaves, leaves - 1, format!("line of {leaves} switches")),
            TestTopology::Ring => (leaves, leaves / 2, format!("ring of {leaves} switches")),
        };
        Ok(TestNetworkPlan::linked(nodes, &pairs, last, name))
    }

    /// Returns switches without links, for tests of sessions alone.
    pub(super) fn isolated(nodes: usize) -> TestNetworkPlan {
        TestNetworkPlan::linked(nodes, &[], nodes.saturating_sub(1), format!("{nodes} switches without links"))
    }

    fn linked(nodes: usize, pairs: &[[usize; 2]], last: usize, name: String) -> TestNetworkPlan {
        let mut next = vec![FIRST_LINK_PORT; nodes];
        let mut place = |node: usize| {
            next[node] += 1;
            PortPlace { node, port: next[node] - 1 }
        };
        let links = pairs.iter().map(|ends| ends.map(&mut place)).collect();
        let generators = [0, last].map(|node| PortPlace { node, port: EDGE_PORT });
        TestNetworkPlan { nodes, links, generators, name }
    }

    /// Returns the ports of each switch with their peers, by number from 1 on.
    pub(super) fn peers(&self) -> Vec<Vec<PortPeer>> {
        let mut peers = vec![vec![PortPeer::Nothing; SECOND_EDGE_PORT as usize]; self.nodes];
        for (number, [a, b]) in self.links.iter().enumerate() {
            // Ports of a switch are numbered in the order of the links.
            peers[a.node].push(PortPeer::Link(number, *b));
            peers[b.node].push(PortPeer::Link(number, *a));
        }
        for (generator, place) in self.generators.iter().enumerate() {
            if !self.links.is_empty() {
                peers[place.node][place.port as usize - 1] = PortPeer::Generator(generator);
            }
        }
        peers
    }

    /// Returns true if some switches have more than one path between them.
    pub(super) fn has_redundant_paths(&self) -> bool {
        self.links.len() >= self.nodes
    }

    /// Returns the number of switches on a shortest path between the generators, without one link if it is given;
    /// `None` if there is no path.
    pub(super) fn path_nodes(&self, without: Option<usize>) -> Option<usize> {
        let [from, to] = self.generators.map(|place| place.node);
        let mut distance = vec![None; self.nodes];
        distance[from] = Some(1);
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for (number, [a, b]) in self.links.iter().enumerate() {
                let next = match (a.node == node, b.node == node) {
                    (true, _) => b.node,
                    (_, true) => a.node,
                    _ => continue,
                };
                if Some(number) != without && distance[next].is_none() {
                    distance[next] = distance[node].map(|nodes: usize| nodes + 1);
                    queue.push_back(next);
                }
            }
        }
        distance[to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_spine_links_each_leaf_to_each_spine() {
        let plan = TestNetworkPlan::new(TestTopology::LeafSpine, 3, 2).unwrap();
        assert_eq!((plan.nodes, plan.links.len(), plan.has_redundant_paths()), (5, 6, true));
        assert_eq!(plan.generators, [PortPlace { node: 0, port: 1 }, PortPlace { node: 2, port: 1 }]);
        assert_eq!((plan.path_nodes(None), plan.path_nodes(Some(0))), (Some(3), Some(3)));
        let star = TestNetworkPlan::new(TestTopology::LeafSpine, 4, 1).unwrap();
        assert!(!star.has_redundant_paths());
        assert_eq!(star.name, "leaf-spine of 4 leaves and 1 spine");
        assert_eq!(star.path_nodes(Some(0)), None);
        assert!(TestNetworkPlan::new(TestTopology::Ring, 2, 1).unwrap_err().contains("at least 3"));
    }

    #[test]
    fn ports_and_peers_agree() {
        for rule in [TestTopology::LeafSpine, TestTopology::Line, TestTopology::Ring] {
            let plan = TestNetworkPlan::new(rule, 5, 3).unwrap();
            let peers = plan.peers();
            for (number, [a, b]) in plan.links.iter().enumerate() {
                for (from, to) in [(a, b), (b, a)] {
                    assert_eq!(peers[from.node][from.port as usize - 1], PortPeer::Link(number, *to), "{rule:?}");
                }
            }
            let ports = |wanted| peers.iter().flatten().filter(|peer| **peer == wanted).count();
            assert_eq!((ports(PortPeer::Generator(0)), ports(PortPeer::Generator(1))), (1, 1), "{rule:?}");
        }
        let ring = TestNetworkPlan::new(TestTopology::Ring, 5, 0).unwrap();
        assert_eq!((ring.path_nodes(None), ring.path_nodes(Some(0))), (Some(3), Some(4)));
        assert!(TestNetworkPlan::isolated(3).peers().iter().flatten().all(|peer| *peer == PortPeer::Nothing));
    }
}
