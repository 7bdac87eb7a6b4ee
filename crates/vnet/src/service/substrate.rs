//! Describes the network that virtual networks share: switches with numbered ports, lines between them, and hosts.
use super::ServiceError;
use crate::admission::MAX_DELAY;
use crate::allocation::MAX_CAPACITY;
use crate::hops::hops;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_topology::paths::{WeightedGraph, WeightedLink};
use weir_units::Bps;

/// Port of a switch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortName {
    /// Name of the switch.
    pub switch: String,
    /// Port number there.
    pub port: u32,
}

impl PortName {
    /// Returns the name of a port.
    pub fn new(switch: impl Into<String>, port: u32) -> PortName {
        PortName { switch: switch.into(), port }
    }
}

impl std::fmt::Display for PortName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.switch, self.port)
    }
}

/// Line from a port to a switch or to a host. Both directions have this rate and this delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Bits of frames a second, overhead on the line included.
    pub capacity: Bps,
    /// Constant time from the last bit sent to the last bit received.
    pub propagation: Duration,
}

/// Line between two switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubstrateCable {
    /// Ports at both ends.
    pub ends: [PortName; 2],
    /// Rate and delay.
    pub line: Line,
}

/// Host at a port of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedHost {
    /// Name of the host.
    pub name: String,
    /// Port of a switch that the host is at.
    pub port: PortName,
    /// Rate and delay of its line.
    pub line: Line,
}

/// Network that virtual networks share.
#[derive(Debug, Clone)]
pub struct NetworkSubstrate {
    pub(super) switches: Vec<String>,
    pub(super) cables: Vec<SubstrateCable>,
    pub(super) hosts: BTreeMap<String, AttachedHost>,
    /// Lines by the ports that send on them.
    pub(super) lines: BTreeMap<PortName, Line>,
    /// Switches as nodes; links 2i and 2i + 1 are the directions of cable i.
    pub(super) graph: WeightedGraph,
    /// Fewest cables from each switch to each other one; `None` if no way leads there.
    pub(super) hops: Vec<Vec<Option<u16>>>,
}

impl NetworkSubstrate {
    /// Returns a substrate.
    ///
    /// # Errors
    /// Two items have one name, two lines one port, an end names no switch, a rate or a delay is out of range, or
    /// there are more switches or cables than a graph may have.
    pub fn new(
        switches: Vec<String>,
        cables: Vec<SubstrateCable>,
        hosts: Vec<AttachedHost>,
    ) -> Result<NetworkSubstrate, ServiceError> {
        let mut names = BTreeSet::new();
        for name in switches.iter().chain(hosts.iter().map(|host| &host.name)) {
            if !names.insert(name) {
                return Err(ServiceError::Substrate(format!("found the name {name} twice, expected each once")));
            }
        }
        let mut lines = BTreeMap::new();
        let ends = cables.iter().flat_map(|cable| cable.ends.iter().map(|end| (end, cable.line)));
        for (port, line) in ends.chain(hosts.iter().map(|host| (&host.port, host.line))) {
            check_line(port, line)?;
            if !switches.contains(&port.switch) {
                return Err(ServiceError::Substrate(format!("found a line at {port}, which is at no switch")));
            }
            if lines.insert(port.clone(), line).is_some() {
                return Err(ServiceError::Substrate(format!("found two lines at {port}, expected one")));
            }
        }
        let place = |end: &PortName| switches.iter().position(|switch| *switch == end.switch).unwrap_or(usize::MAX);
        let directions = cables.iter().enumerate().flat_map(|(group, cable)| {
            let [a, b] = [place(&cable.ends[0]), place(&cable.ends[1])];
            [[a, b], [b, a]].map(|[from, to]| WeightedLink { from, to, weight: 1, group })
        });
        let graph = WeightedGraph::new(switches.len(), directions.collect()).map_err(ServiceError::Substrate)?;
        let ends: Vec<[usize; 2]> = graph.links().iter().map(|link| [link.from, link.to]).collect();
        let hops = hops(switches.len(), &ends);
        let hosts = hosts.into_iter().map(|host| (host.name.clone(), host)).collect();
        Ok(NetworkSubstrate { switches, cables, hosts, lines, graph, hops })
    }

    /// Returns the names of the switches.
    pub fn switches(&self) -> &[String] {
        &self.switches
    }

    /// Returns the hosts by their names.
    pub fn hosts(&self) -> &BTreeMap<String, AttachedHost> {
        &self.hosts
    }

    /// Returns the line that a port sends on; `None` if there is none.
    pub fn line(&self, port: &PortName) -> Option<Line> {
        self.lines.get(port).copied()
    }

    pub(super) fn place(&self, switch: &str) -> Option<usize> {
        self.switches.iter().position(|one| one == switch)
    }

    /// Returns the port that sends in a direction of a cable, and the one that receives there.
    pub(super) fn ports_of(&self, direction: usize) -> [&PortName; 2] {
        let [a, b] = &self.cables[direction / 2].ends;
        if direction.is_multiple_of(2) { [a, b] } else { [b, a] }
    }
}

fn check_line(port: &PortName, line: Line) -> Result<(), ServiceError> {
    if !(1..=MAX_CAPACITY.0).contains(&line.capacity.0) {
        let problem = format!("line at {port}: found a rate of {}, expected 1bit/s to {MAX_CAPACITY}", line.capacity);
        return Err(ServiceError::Substrate(problem));
    }
    if line.propagation > MAX_DELAY {
        let problem = format!("line at {port}: found a delay of {:?}, expected at most 1000s", line.propagation);
        return Err(ServiceError::Substrate(problem));
    }
    Ok(())
}
