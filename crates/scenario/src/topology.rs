//! Converts a scenario's switches and links to a graph, and finds the links that packets take.
use crate::{Scenario, ScenarioController};
use weir_topology::{Topology, TopologyLink, TopologyNode, spanning_tree};

impl Scenario {
    /// Returns its switches and links as a graph, with rates, delays, datapath ids and ports.
    pub fn topology(&self) -> Topology {
        let takes_hosts = |at| self.hosts.iter().any(|host| host.switch == at);
        let node = |(at, switch): (usize, &crate::ScenarioSwitch)| TopologyNode {
            name: switch.name.clone(),
            place: None,
            takes_hosts: takes_hosts(at),
            dpid: Some(switch.dpid),
            line: None,
        };
        let link = |link: &crate::ScenarioLink| TopologyLink {
            ends: link.ends.map(|end| end.switch),
            rate: link.spec.rate,
            delay: Some(link.spec.delay),
            ports: Some(link.ends.map(|end| end.port)),
            line: None,
        };
        Topology {
            name: Some(self.name.clone()),
            nodes: self.switches.iter().enumerate().map(node).collect(),
            links: self.links.iter().map(link).collect(),
        }
    }

    /// Returns for each link whether packets take it. Under the embedded controller only the links of its
    /// application's spanning tree are used, otherwise all.
    pub fn used_links(&self) -> Vec<bool> {
        if !matches!(self.control, ScenarioController::Embedded { .. }) {
            return vec![true; self.links.len()];
        }
        // Nodes are numbered by datapath id because the application knows switches by it.
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
