//! Virtual networks of a scenario: its switches and lines as a substrate, and virtual networks as virtual switches.
mod promise;

pub use promise::{TrafficPromise, promises};

use crate::{FailMode, LinkSpec, ScenarioHost, ScenarioLink, ScenarioSwitch};
use std::time::Duration;
use weir_slicing::{CrosspointBuffer, FabricPort, FabricSpec, VirtualPortSpec, VirtualSwitch};
use weir_units::{Bps, ByteSize};
use weir_vnet::service::{
    AttachedHost, Bandwidth, BandwidthRange, HeldNetwork, Line, NetworkBook, NetworkSubstrate, NodeKind, PortName,
    ServiceError, Slice, SlicePort, SliceRole, SubstrateCable, TAG,
};

/// Virtual network of a scenario, as it was admitted.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioNetwork {
    /// Places, ways and virtual switches.
    pub held: HeldNetwork,
    /// Rate that each link may have beside the others, in both directions, in the order of the links; `None` for that
    /// of its line.
    pub rates: Vec<[Option<Bps>; 2]>,
}

impl ScenarioNetwork {
    /// Returns a network that a book holds, with its rates; `None` if there is no such network.
    pub fn of(book: &NetworkBook, name: &str) -> Option<ScenarioNetwork> {
        let held = book.network(name)?.clone();
        let rates = held.design.links.iter().map(|link| [0, 1].map(|way| book.rate(name, &link.name, way)));
        Some(ScenarioNetwork { rates: rates.collect(), held })
    }

    /// Returns the name of the network.
    pub fn name(&self) -> &str {
        &self.held.design.request.name
    }

    /// Returns the links that packets pass from one host to another: the fewest, each with its direction (0: from its
    /// first end). `None` if the network does not join the hosts.
    pub fn links_between(&self, from: &str, to: &str) -> Option<Vec<(usize, usize)>> {
        let links = &self.held.design.request.links;
        let is_host = |name: &str| !self.held.design.places.contains_key(name);
        let mut ways: Vec<(&str, Vec<(usize, usize)>)> = vec![(from, Vec::new())];
        let mut next = 0;
        while let Some((at, way)) = ways.get(next).cloned() {
            next += 1;
            if at == to && !way.is_empty() {
                return Some(way);
            }
            // Hosts pass nothing on.
            if next > 1 && is_host(at) {
                continue;
            }
            for (number, link) in links.iter().enumerate() {
                for direction in 0..2 {
                    let [begin, end] = [&link.ends[direction], &link.ends[1 - direction]];
                    if begin == at && !ways.iter().any(|(seen, _)| seen == end) {
                        let mut longer = way.clone();
                        longer.push((number, direction));
                        ways.push((end, longer));
                    }
                }
            }
        }
        None
    }

    /// Returns the longest delay of packets in profile over links; `None` if one of them has no guaranteed rate.
    pub fn delay_over(&self, links: &[(usize, usize)]) -> Option<Duration> {
        links.iter().map(|(link, way)| self.held.design.links[*link].directions[*way].delay).sum()
    }

    /// Changes all rates and times of what was promised, for a run that is slower than its scenario.
    pub fn slow(&mut self, rate: impl Fn(Bps) -> Bps, time: impl Fn(Duration) -> Duration) {
        let slower = |one: Bps| if one == Bps(0) { one } else { rate(one) };
        for link in &mut self.held.design.links {
            if let Some(promise) = &mut link.promise {
                promise.bound.0 = time(promise.bound.0);
            }
            for direction in &mut link.directions {
                direction.delay = direction.delay.map(&time);
                direction.bandwidth = Bandwidth::Range(BandwidthRange {
                    minimum: Some(slower(direction.bandwidth.minimum())),
                    maximum: direction.bandwidth.maximum().map(slower),
                });
            }
        }
    }

    /// Returns the least guaranteed rate of links.
    pub fn guaranteed_over(&self, links: &[(usize, usize)]) -> Bps {
        let minimum = |(link, way): &(usize, usize)| self.held.design.links[*link].directions[*way].bandwidth.minimum();
        links.iter().map(minimum).min().unwrap_or(Bps(0))
    }
}

/// Returns the substrate of switches, hosts and links. Lines with random loss or jitter carry no virtual networks,
/// because nothing could be promised there, and neither do switches that are divided into other virtual switches.
///
/// # Errors
/// A line of the substrate has no rate.
pub fn substrate(
    switches: &[ScenarioSwitch],
    hosts: &[ScenarioHost],
    links: &[ScenarioLink],
) -> Result<NetworkSubstrate, ServiceError> {
    let is_whole = |switch: usize| switches[switch].virtual_switches.is_empty();
    let is_sure = |spec: &LinkSpec| spec.loss.is_none() && spec.jitter.is_none();
    let port = |switch: usize, port: u32| PortName::new(switches[switch].name.as_str(), port);
    let line = |spec: &LinkSpec, port: &PortName| {
        let missing = || {
            let problem = format!(
                "found no `rate` of the line at port {port}, expected one: virtual networks are promised shares of it"
            );
            ServiceError::Substrate(problem)
        };
        Ok(Line { capacity: spec.rate.ok_or_else(missing)?, propagation: spec.delay })
    };
    let cables = links.iter().filter(|link| is_sure(&link.spec) && link.ends.iter().all(|end| is_whole(end.switch)));
    let cables = cables.map(|link| {
        let ends = link.ends.map(|end| port(end.switch, end.port));
        Ok(SubstrateCable { line: line(&link.spec, &ends[0])?, ends })
    });
    let attached = hosts.iter().filter(|host| is_sure(&host.link) && is_whole(host.switch)).map(|host| {
        let port = port(host.switch, host.port);
        Ok(AttachedHost { name: host.name.clone(), line: line(&host.link, &port)?, port })
    });
    let whole = (0..switches.len()).filter(|switch| is_whole(*switch));
    NetworkSubstrate::new(
        whole.map(|switch| switches[switch].name.clone()).collect(),
        cables.collect::<Result<_, ServiceError>>()?,
        attached.collect::<Result<_, ServiceError>>()?,
    )
}

/// Returns the virtual switch that a network has as this slice, with its present rates.
pub fn virtual_switch(book: &NetworkBook, held: &HeldNetwork, slice: usize, fabric: &FabricSpec) -> VirtualSwitch {
    let (dpid, slice) = (held.dpids[slice], &held.design.slices[slice]);
    let network = &held.design.request.name;
    let ports: Vec<VirtualPortSpec> =
        slice.ports.iter().map(|port| virtual_port(book, network, slice, port, fabric)).collect();
    let least = slice.ports.iter().map(|port| port.buffer).min().unwrap_or(ByteSize(0));
    let pairs = slice.ports.iter().flat_map(|from| slice.ports.iter().map(move |to| (from, to)));
    let larger = pairs.filter(|(from, to)| from.number != to.number && to.buffer > least);
    let buffers = larger.map(|(from, to)| CrosspointBuffer { from: from.number, to: to.number, buffer: to.buffer });
    let buffers = buffers.collect();
    // Nothing leaves where it came from.
    let pairs = slice.ports.iter().flat_map(|from| slice.ports.iter().map(move |to| [from.number, to.number]));
    let paths = pairs.filter(|[from, to]| from != to).collect();
    let plain = VirtualSwitch::new(&slice.name, dpid, ports, least, fabric);
    let node = match &slice.role {
        SliceRole::Node(name) => held.design.request.nodes.iter().find(|node| node.name == *name),
        SliceRole::Transit(_) => None,
    };
    match node {
        Some(node) if node.kind == NodeKind::Bridge => {
            VirtualSwitch { buffers, paths: Some(paths), fail_mode: FailMode::Standalone, ..plain }
        }
        Some(node) => VirtualSwitch { buffers, paths: Some(paths), connect: node.connect.clone(), ..plain },
        None => {
            let entries = vec!["in_port=1,actions=output:2".to_owned(), "in_port=2,actions=output:1".to_owned()];
            VirtualSwitch { buffers, paths: Some(paths), tables: 1, entries, ..plain }
        }
    }
}

fn virtual_port(
    book: &NetworkBook,
    network: &str,
    slice: &Slice,
    port: &SlicePort,
    fabric: &FabricSpec,
) -> VirtualPortSpec {
    let physical = fabric.ports.iter().find(|known| known.port == port.port);
    let physical = physical.copied().unwrap_or(FabricPort { port: port.port, rate: Bps(0) });
    let ceiling = book.ceiling(network, slice, port);
    // A port without a guarantee passes packets, too, and a share of zero would not.
    let rate_out = port.rate_out.min(ceiling.unwrap_or(port.rate_out)).max(Bps(1));
    VirtualPortSpec {
        number: port.number,
        ceiling: ceiling.map(|ceiling| ceiling.max(rate_out)),
        ceiling_burst: port.burst,
        quantum: port.quantum,
        vlan: port.vlan,
        ..VirtualPortSpec::new(&physical, port.rate_in.max(Bps(1)), rate_out)
    }
}

/// Returns the fabric that a switch without one has for virtual networks: its ports, buffers of `crosspoint`, and
/// packets with the tag that tells links apart.
pub fn fabric(ports: impl IntoIterator<Item = (u32, Bps)>, longest: ByteSize, crosspoint: ByteSize) -> FabricSpec {
    let mut ports: Vec<FabricPort> = ports.into_iter().map(|(port, rate)| FabricPort { port, rate }).collect();
    ports.sort_by_key(|port| port.port);
    FabricSpec { ports, crosspoint, max_packet: ByteSize(longest.0 + TAG.0), ..FabricSpec::default() }
}
