//! Makes the virtual switches of a network whose links are routed.
use super::design::{DesignedLink, NetworkDesign, Slice, SlicePort, SliceRole};
use super::guarantee::TAG;
use super::search::DesignSearch;
use super::{Bandwidth, LinkRequest, PortName};
use weir_units::ByteSize;

impl DesignSearch<'_> {
    /// Returns the virtual switches of a network whose links are routed.
    pub(super) fn slices(&self, design: &NetworkDesign) -> Vec<Slice> {
        let network = &self.request.name;
        let mut slices: Vec<Slice> = Vec::new();
        for node in &self.request.nodes {
            let switch = &design.places[&node.name];
            let mut ports = Vec::new();
            for (link, designed) in self.request.links.iter().zip(&design.links) {
                for end in 0..2 {
                    if link.ends[end] == node.name {
                        ports.push(self.port(ports.len(), link, designed, switch, end == 0));
                    }
                }
            }
            let (name, role) = (format!("{network}-{}", node.name), SliceRole::Node(node.name.clone()));
            slices.push(Slice { name, switch: switch.clone(), role, ports });
        }
        for (link, designed) in self.request.links.iter().zip(&design.links) {
            for (at, switch) in designed.switches.iter().enumerate() {
                let is_node = |end: usize| designed.host_ports[end].is_none();
                let last = designed.switches.len() - 1;
                if at == 0 && is_node(0) || at == last && is_node(1) {
                    continue;
                }
                let ports =
                    vec![self.port(0, link, designed, switch, false), self.port(1, link, designed, switch, true)];
                let name = format!("{network}-{}-{}", designed.name, at + 1);
                slices.push(Slice {
                    name,
                    switch: switch.clone(),
                    role: SliceRole::Transit(designed.name.clone()),
                    ports,
                });
            }
        }
        slices
    }

    /// Returns the port of a link on a switch of its way, towards the second end or towards the first one.
    fn port(
        &self,
        before: usize,
        link: &LinkRequest,
        designed: &DesignedLink,
        switch: &str,
        is_towards_second: bool,
    ) -> SlicePort {
        let at = designed.switches.iter().position(|one| one == switch).unwrap_or(0);
        // The direction in which the port sends.
        let sends = usize::from(!is_towards_second);
        let cable =
            if is_towards_second { designed.cables.get(at) } else { at.checked_sub(1).map(|at| &designed.cables[at]) };
        let (port, vlan) = match cable {
            Some(cable) => {
                let end = self.substrate.cables[*cable].ends.iter().find(|end| end.switch == switch);
                (end.cloned(), designed.vlan)
            }
            None => (designed.host_ports[usize::from(is_towards_second)].clone(), designed.host_vlan),
        };
        let port = port.unwrap_or_else(|| PortName::new(switch, 0));
        let [forward, backward] = link.bandwidths().map(Bandwidth::minimum);
        let (rate_out, rate_in) = if is_towards_second { (forward, backward) } else { (backward, forward) };
        let hop = designed.directions[sends].hops.iter().find(|hop| hop.port == port);
        let least = ByteSize(2 * (self.settings.longest_packet.0 + TAG.0));
        let buffer = hop.map_or(least, |hop| hop.backlog.max(least)).max(link.buffer.unwrap_or(least));
        SlicePort {
            number: u32::try_from(before + 1).unwrap_or(u32::MAX),
            port: port.port,
            vlan,
            link: designed.name.clone(),
            sends,
            rate_in,
            rate_out,
            quantum: hop.map_or(self.settings.least_quantum, |hop| hop.quantum),
            buffer,
            burst: hop.map_or(least, |hop| hop.backlog),
        }
    }
}
