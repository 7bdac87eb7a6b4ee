//! Finds places for nodes and ways for links, and reserves them.
use super::design::{DesignedDirection, DesignedLink, LinkHop, NetworkDesign};
use super::guarantee::SchedulerPort;
use super::ledger::{Ledger, SwitchLimits, shared_port};
use super::{
    Bandwidth, LinkRequest, NetworkServiceRequest, NetworkShortage, NetworkSubstrate, PortName, RefusedNetworkWay,
    ShareSettings,
};
use std::cell::Cell;
use weir_topology::paths::WeightedPath;
use weir_units::{Bps, ByteSize};

/// Ways that are examined for a link, the shortest.
pub(super) const MAX_WAYS: usize = 8;
/// A link that is refused, with what each way is short of.
pub(super) struct RefusedDesign {
    pub(super) link: String,
    pub(super) ways: Vec<RefusedNetworkWay>,
}

/// Finds a design for one request.
pub(super) struct DesignSearch<'a> {
    pub(super) substrate: &'a NetworkSubstrate,
    pub(super) settings: &'a ShareSettings,
    pub(super) limits: &'a SwitchLimits,
    pub(super) request: &'a NetworkServiceRequest,
}

impl DesignSearch<'_> {
    /// Finds a design and reserves what it needs. If there is none, returns the refusal of the cheapest placement, with
    /// what each way is short of if `explain` is true; nothing is reserved then.
    pub(super) fn design(&self, ledger: &mut Ledger, explain: bool) -> Result<NetworkDesign, RefusedDesign> {
        let placements = self.placements();
        for places in &placements {
            if let Ok(design) = self.route(ledger, places, false) {
                return Ok(design);
            }
        }
        let first = placements.first().filter(|_| explain);
        let explained = first.and_then(|places| self.route(ledger, places, true).err());
        Err(explained.unwrap_or_else(|| RefusedDesign {
            link: self.request.links[0].name(),
            ways: vec![RefusedNetworkWay { switches: Vec::new(), shortages: vec![NetworkShortage::Place] }],
        }))
    }

    /// Routes all links of a placement and reserves them and their virtual switches, or returns the link that is
    /// refused.
    fn route(&self, ledger: &mut Ledger, places: &[usize], explain: bool) -> Result<NetworkDesign, RefusedDesign> {
        let named = self.request.nodes.iter().zip(places);
        let mut design = NetworkDesign {
            request: self.request.clone(),
            places: named.map(|(node, place)| (node.name.clone(), self.substrate.switches[*place].clone())).collect(),
            links: Vec::new(),
            slices: Vec::new(),
        };
        for link in &self.request.links {
            match self.route_link(ledger, &design, link, explain) {
                Ok(routed) => {
                    ledger.reserve_link(&routed);
                    design.links.push(routed);
                }
                Err(ways) => {
                    release(ledger, &design);
                    return Err(RefusedDesign { link: link.name(), ways });
                }
            }
        }
        for slice in self.slices(&design) {
            if let Some(shortage) = ledger.slice_shortage(self.limits, &slice) {
                let link = slice.ports.first().map_or_else(String::new, |port| port.link.clone());
                let ways = vec![RefusedNetworkWay { switches: vec![slice.switch], shortages: vec![shortage] }];
                release(ledger, &design);
                return Err(RefusedDesign { link, ways });
            }
            ledger.reserve_slice(&slice);
            design.slices.push(slice);
        }
        Ok(design)
    }

    /// Returns the first way of a link that is short of nothing, or what each is short of if `explain` is true.
    fn route_link(
        &self,
        ledger: &Ledger,
        design: &NetworkDesign,
        link: &LinkRequest,
        explain: bool,
    ) -> Result<DesignedLink, Vec<RefusedNetworkWay>> {
        let hosts = [0, 1].map(|end| self.substrate.hosts.get(&link.ends[end]));
        let switches = [0, 1].map(|end| match hosts[end] {
            Some(host) => host.port.switch.clone(),
            None => design.places[&link.ends[end]].clone(),
        });
        let ends = [0, 1].map(|end| self.substrate.place(&switches[end]).unwrap_or(usize::MAX));
        let refuse =
            |shortage| Err(vec![RefusedNetworkWay { switches: vec![switches[0].clone()], shortages: vec![shortage] }]);
        for host in hosts.into_iter().flatten() {
            if !ledger.has_host_port(&host.port, link.vlan) {
                return refuse(NetworkShortage::HostPort { host: host.name.clone(), vlan: link.vlan });
            }
        }
        if ends[0] == ends[1] && hosts.iter().all(Option::is_none) {
            return refuse(NetworkShortage::OneSwitch { switch: switches[0].clone() });
        }
        // A virtual switch has each port once, so a node's links leave by different ports.
        let taken: Vec<&PortName> = [0, 1].into_iter().flat_map(|end| ports_of_node(design, &link.ends[end])).collect();
        let usable = |direction: usize| {
            let avoided = |port: &PortName| link.avoid.contains(&port.switch) && !switches.contains(&port.switch);
            let at_end = |port: &&PortName| {
                (0..2).any(|end| hosts[end].is_none() && port.switch == switches[end]) && taken.contains(port)
            };
            let ports = self.substrate.ports_of(direction);
            !ports.iter().any(|port| avoided(port)) && !ports.iter().any(at_end)
        };
        let graph = &self.substrate.graph;
        let designed = |path: &WeightedPath| {
            let host_ports = hosts.map(|host| host.map(|host| host.port.clone()));
            self.designed(ledger, link, host_ports, ends[0], &path.links)
        };
        // Most links get the shortest way over lines with enough rate. Searches ask for a direction many times.
        let known: Vec<Cell<Option<bool>>> = vec![Cell::new(None); graph.links().len()];
        let has_room = |direction: usize| {
            let examined = || usable(direction) && self.has_room(ledger, link, direction);
            let is_known = known[direction].get().unwrap_or_else(examined);
            known[direction].set(Some(is_known));
            is_known
        };
        let shortest = graph.shortest_path(ends[0], ends[1], has_room);
        if let Some(designed) = shortest.as_ref().and_then(|path| designed(path).ok()) {
            return Ok(designed);
        }
        if shortest.is_some() {
            let others = graph.k_shortest_paths(ends[0], ends[1], MAX_WAYS, has_room);
            if let Some(designed) = others.iter().skip(1).find_map(|path| designed(path).ok()) {
                return Ok(designed);
            }
        }
        if !explain {
            return Err(Vec::new());
        }
        let paths = graph.k_shortest_paths(ends[0], ends[1], MAX_WAYS, usable);
        if paths.is_empty() {
            return refuse(NetworkShortage::Way { switches: switches.clone() });
        }
        Err(paths.iter().filter_map(|path| designed(path).err()).collect())
    }

    /// Returns true if both directions of a cable have the rates that a link asks for, the forward one in this
    /// direction of the cable.
    fn has_room(&self, ledger: &Ledger, link: &LinkRequest, direction: usize) -> bool {
        let ports = self.substrate.ports_of(direction).into_iter().zip(link.bandwidths());
        let is_short = |(port, bandwidth): (&PortName, Bandwidth)| {
            let Some(shared) = shared_port(self.substrate, port, true) else { return true };
            ledger.share_shortage(self.settings, port, shared, bandwidth.minimum()).is_some()
        };
        !ports.into_iter().any(is_short)
    }

    /// Returns a link over these directions of cables, or what it is short of.
    fn designed(
        &self,
        ledger: &Ledger,
        link: &LinkRequest,
        host_ports: [Option<PortName>; 2],
        first: usize,
        path: &[usize],
    ) -> Result<DesignedLink, RefusedNetworkWay> {
        let mut switches = vec![self.substrate.switches[first].clone()];
        switches.extend(path.iter().map(|direction| self.substrate.ports_of(*direction)[1].switch.clone()));
        let cables: Vec<usize> = path.iter().map(|direction| direction / 2).collect();
        let forward: Vec<&PortName> = path.iter().map(|direction| self.substrate.ports_of(*direction)[0]).collect();
        let backward: Vec<&PortName> =
            path.iter().rev().map(|direction| self.substrate.ports_of(*direction)[1]).collect();
        let vlan = ledger.free_vlan(&cables);
        let mut shortages = Vec::new();
        if vlan.is_none() {
            shortages.push(NetworkShortage::Vlan { port: forward[0].clone() });
        }
        let burst = link.burst.unwrap_or(ByteSize(2 * self.settings.longest_packet.0));
        let directions = [0, 1].map(|at| {
            let bandwidth = link.bandwidths()[at];
            let minimum = bandwidth.minimum();
            if let Some(port) = &host_ports[at]
                && let Some(line) = self.substrate.line(port)
            {
                shortages.extend(ledger.entry_shortage(port, line.capacity, minimum));
            }
            let tagged = if at == 0 { &forward } else { &backward };
            let last = host_ports[1 - at].as_ref().map(|port| (port, link.vlan.is_some()));
            let ports = tagged.iter().map(|port| (*port, true)).chain(last);
            let ports: Vec<(&PortName, SchedulerPort)> = ports
                .filter_map(|(port, is_tagged)| Some((port, shared_port(self.substrate, port, is_tagged)?)))
                .collect();
            let short =
                ports.iter().filter_map(|(port, shared)| ledger.share_shortage(self.settings, port, *shared, minimum));
            shortages.extend(short);
            let shared: Vec<SchedulerPort> = ports.iter().map(|(_, shared)| *shared).collect();
            let bound = self.settings.bound(minimum, burst, &shared);
            let hops = ports.iter().zip(&bound.backlogs).map(|((port, shared), backlog)| LinkHop {
                port: (*port).clone(),
                quantum: ByteSize(self.settings.quantum(minimum, *shared)),
                backlog: *backlog,
            });
            let delay = (minimum > Bps(0)).then_some(bound.delay);
            DesignedDirection { bandwidth, burst, hops: hops.collect(), delay }
        });
        if shortages.is_empty()
            && let Some(promise) = &link.delay
            && let Some(bound) = directions.iter().filter_map(|direction| direction.delay).max()
            && bound > promise.bound.0
        {
            shortages.push(NetworkShortage::Delay { bound, asked: promise.bound.0 });
        }
        if !shortages.is_empty() {
            return Err(RefusedNetworkWay { switches, shortages });
        }
        Ok(DesignedLink {
            name: link.name(),
            switches,
            vlan: vlan.filter(|_| !cables.is_empty()),
            cables,
            host_ports,
            host_vlan: link.vlan,
            promise: link.delay,
            directions,
        })
    }
}

/// Gives back what a design has reserved.
pub(super) fn release(ledger: &mut Ledger, design: &NetworkDesign) {
    design.links.iter().for_each(|link| ledger.release_link(link));
    design.slices.iter().for_each(|slice| ledger.release_slice(slice));
}

/// Returns the ports that routed links of a node use on its switch.
fn ports_of_node<'a>(design: &'a NetworkDesign, node: &str) -> Vec<&'a PortName> {
    let links = design.request.links.iter().zip(&design.links);
    let ends = links.flat_map(|(asked, designed)| (0..2).map(move |end| (asked, designed, end)));
    let own = ends.filter(|(asked, _, end)| asked.ends[*end] == node);
    own.filter_map(|(_, designed, end)| designed.directions[end].hops.first().map(|hop| &hop.port)).collect()
}
