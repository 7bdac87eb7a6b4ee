//! A scenario's switches and links as a graph, and which of the links packets take.
use crate::{Control, Scenario};
use weir_topology::{Link, Node, Topology, spanning_tree};

impl Scenario {
    /// Its switches and links; as rates and delays there is what it says.
    pub fn topology(&self) -> Topology {
        let takes_hosts = |at| self.hosts.iter().any(|host| host.switch == at);
        let node = |(at, switch): (usize, &crate::Switch)| Node {
            name: switch.name.clone(),
            place: None,
            takes_hosts: takes_hosts(at),
            line: None,
        };
        let link = |link: &crate::Link| Link {
            ends: link.ends.map(|end| end.switch),
            rate: link.spec.rate,
            delay: Some(link.spec.delay),
            line: None,
        };
        Topology {
            name: Some(self.name.clone()),
            nodes: self.switches.iter().enumerate().map(node).collect(),
            links: self.links.iter().map(link).collect(),
        }
    }

    /// Which links packets take: all of them, or, under the controller in this process, those of a tree that its application keeps to.
    pub fn used_links(&self) -> Vec<bool> {
        if !matches!(self.control, Control::Embedded { .. }) {
            return vec![true; self.links.len()];
        }
        // The application knows switches by datapath id, in whose order they are nodes.
        let mut dpids: Vec<u64> =
            self.links.iter().flat_map(|link| link.ends).map(|end| self.dpid(end.switch)).collect();
        dpids.sort_unstable();
        dpids.dedup();
        let node = |switch| dpids.binary_search(&self.dpid(switch)).unwrap_or_default();
        let links: Vec<[usize; 2]> = self.links.iter().map(|link| link.ends.map(|end| node(end.switch))).collect();
        spanning_tree(dpids.len(), &links)
    }

    fn dpid(&self, switch: usize) -> u64 {
        self.switches[switch].dpid
    }
}
