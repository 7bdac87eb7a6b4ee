//! Describes the network that virtual links are routed over: switches, the links between them, hosts at switches.
use super::WayError;
use crate::admission::{LinkAdmission, QueuedLink};
use std::collections::BTreeMap;
use weir_topology::Topology;
use weir_topology::paths::{MAX_GRAPH_LINKS, MAX_GRAPH_NODES};
use weir_units::ByteSize;

/// A link between two switches, in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchLink {
    /// Name of the switch at which it begins.
    pub from: String,
    /// Name of the switch at which it ends.
    pub to: String,
    /// Capacity, delays and buffer, with the name of the link.
    pub queue: QueuedLink,
    /// Cost of using the link, at least 1. Ways are looked for in the order of their costs.
    pub cost: u32,
}

impl SwitchLink {
    /// Returns a link of cost 1, so that the cost of a way is the number of its links.
    pub fn new(from: impl Into<String>, to: impl Into<String>, queue: QueuedLink) -> SwitchLink {
        SwitchLink { from: from.into(), to: to.into(), queue, cost: 1 }
    }
}

/// A network of switches and links. Hosts are at switches: the end of a virtual link at a host is one at its switch.
#[derive(Debug, Clone)]
pub struct Substrate {
    overhead: ByteSize,
    switches: Vec<String>,
    /// Switch by its name, and by the names of its hosts.
    places: BTreeMap<String, usize>,
    links: Vec<SwitchLink>,
    /// Switches at which each link begins and ends.
    ends: Vec<[usize; 2]>,
    link_places: BTreeMap<String, usize>,
}

impl Substrate {
    /// Returns a substrate. Each frame takes `overhead` on the lines in addition to its bytes,
    /// [`ETHERNET_OVERHEAD`](crate::admission::ETHERNET_OVERHEAD) for Ethernet.
    ///
    /// # Errors
    /// Two switches or two links have one name, a link begins or ends at no switch or has both ends at one, a number is
    /// out of range, or there are more than [`MAX_SWITCHES`](super::MAX_SWITCHES) switches or [`MAX_GRAPH_LINKS`]
    /// links.
    pub fn new<S: Into<String>>(
        overhead: ByteSize,
        switches: impl IntoIterator<Item = S>,
        links: impl IntoIterator<Item = SwitchLink>,
    ) -> Result<Substrate, WayError> {
        let mut substrate = Substrate {
            overhead,
            switches: Vec::new(),
            places: BTreeMap::new(),
            links: Vec::new(),
            ends: Vec::new(),
            link_places: BTreeMap::new(),
        };
        for name in switches {
            substrate.switches.push(name.into());
            substrate.add_place("switch", substrate.switches.len() - 1)?;
        }
        for link in links {
            let place = |name: &String| {
                let unknown =
                    || WayError::UnknownPlace { what: format!("link {}", link.queue.name), place: name.clone() };
                substrate.switches_only(name).ok_or_else(unknown)
            };
            let ends = [place(&link.from)?, place(&link.to)?];
            if ends[0] == ends[1] || link.cost == 0 {
                let what = if link.cost == 0 { "a cost of 0" } else { "both ends at one switch" };
                return Err(WayError::MalformedLink { link: link.queue.name, what });
            }
            substrate.link_places.insert(link.queue.name.clone(), substrate.links.len());
            substrate.ends.push(ends);
            substrate.links.push(link);
        }
        for (kind, found, most) in [
            ("switches", substrate.switches.len(), super::MAX_SWITCHES),
            ("links", substrate.links.len(), MAX_GRAPH_LINKS.min(crate::allocation::MAX_LINKS)),
        ] {
            if found > most {
                return Err(WayError::TooMany { kind, found, most });
            }
        }
        substrate.admission().map(|_| substrate)
    }

    /// Returns the substrate of a topology. Each of its links becomes two, one in each direction, named `a-b` by the
    /// switches; further links between these are named `a-b-2` and so on. Rates and delays of propagation are those of
    /// the topology, or those of `usual` where it has none; all else is that of `usual`.
    ///
    /// # Errors
    /// Fails for the reasons of [`Substrate::new`].
    pub fn from_topology(overhead: ByteSize, topology: &Topology, usual: &QueuedLink) -> Result<Substrate, WayError> {
        let mut parallel: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        let mut links = Vec::new();
        for link in &topology.links {
            let [a, b] = link.ends;
            for [from, to] in [[a, b], [b, a]] {
                let number = parallel.entry([from, to]).and_modify(|number| *number += 1).or_insert(1);
                let [from, to] = [from, to].map(|end| topology.nodes[end].name.as_str());
                let name = if *number == 1 { format!("{from}-{to}") } else { format!("{from}-{to}-{number}") };
                let capacity = link.rate.unwrap_or(usual.capacity);
                let propagation = link.delay.unwrap_or(usual.propagation);
                let queue = QueuedLink { name, capacity, propagation, ..usual.clone() };
                links.push(SwitchLink::new(from, to, queue));
            }
        }
        Substrate::new(overhead, topology.nodes.iter().map(|node| node.name.as_str()), links)
    }

    /// Adds a host at a switch.
    ///
    /// # Errors
    /// There is no such switch, or a switch or a host has this name.
    pub fn with_host(mut self, host: impl Into<String>, switch: &str) -> Result<Substrate, WayError> {
        let host = host.into();
        let unknown = || WayError::UnknownPlace { what: format!("host {host}"), place: switch.to_owned() };
        let place = self.switches_only(switch).ok_or_else(unknown)?;
        if self.places.insert(host.clone(), place).is_some() {
            return Err(WayError::Duplicate { kind: "place", name: host });
        }
        Ok(self)
    }

    /// Returns the names of the switches, in the order in which they were given.
    pub fn switches(&self) -> &[String] {
        &self.switches
    }

    /// Returns the links, in the order in which they were given.
    pub fn links(&self) -> &[SwitchLink] {
        &self.links
    }

    /// Returns the name of the switch with this name or with this host.
    pub fn switch_at(&self, place: &str) -> Option<&str> {
        self.place(place).map(|switch| self.switches[switch].as_str())
    }

    /// Returns the number of the switch with this name or with this host.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Returns the number of the link with this name.
    pub(super) fn link_place(&self, name: &str) -> Option<usize> {
        self.link_places.get(name).copied()
    }

    /// Returns the numbers of the switches at which the links begin and end.
    pub(crate) fn ends(&self) -> &[[usize; 2]] {
        &self.ends
    }

    /// Returns the names of links by their numbers.
    pub(super) fn names(&self, links: &[usize]) -> Vec<String> {
        links.iter().map(|link| self.links[*link].queue.name.clone()).collect()
    }

    /// Returns the bytes that each frame takes on a line in addition.
    pub(super) fn overhead(&self) -> ByteSize {
        self.overhead
    }

    /// Returns the admission of virtual links over these links, without any.
    pub(super) fn admission(&self) -> Result<LinkAdmission, WayError> {
        Ok(LinkAdmission::new(self.overhead, self.links.iter().map(|link| link.queue.clone()))?)
    }

    fn switches_only(&self, name: &str) -> Option<usize> {
        self.place(name).filter(|place| self.switches[*place] == name)
    }

    fn add_place(&mut self, kind: &'static str, place: usize) -> Result<(), WayError> {
        let name = self.switches[place].clone();
        if self.places.insert(name.clone(), place).is_some() {
            return Err(WayError::Duplicate { kind, name });
        }
        Ok(())
    }
}

const _: () = assert!(super::MAX_SWITCHES * 3 <= MAX_GRAPH_NODES, "a graph of turns has three nodes for each switch");
