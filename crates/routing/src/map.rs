//! The map of a network as the controller knows it: switches with their ports, links, islands, and hosts.
use crate::islands::MapIsland;
use crate::state::{HostState, NetworkLink, NetworkPort, SwitchState};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;
use weir_openflow::model::{PortDesc, PortNo};
use weir_packet::MacAddr;
use weir_units::Instant;

/// A port of a switch. As text `DPID:PORT`, with the datapath id in hexadecimal, such as `1f:3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchPort {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// Number of the port.
    pub port: PortNo,
}

impl SwitchPort {
    /// Returns the port with this number at a switch.
    pub const fn new(dpid: u64, port: PortNo) -> SwitchPort {
        SwitchPort { dpid, port }
    }
}

impl fmt::Display for SwitchPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}:{}", self.dpid, self.port)
    }
}

impl FromStr for SwitchPort {
    type Err = String;

    fn from_str(text: &str) -> Result<SwitchPort, String> {
        let error = || format!("found `{text}`, expected DPID:PORT, such as 1f:3");
        let (dpid, port) = text.split_once(':').ok_or_else(error)?;
        Ok(SwitchPort { dpid: parse_dpid(dpid).ok_or_else(error)?, port: port.parse().map_err(|_| error())? })
    }
}

impl Serialize for SwitchPort {
    fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SwitchPort {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Returns the datapath id that `text` names in hexadecimal, with or without `0x`; `None` if it names none.
pub fn parse_dpid(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// Switches, links and hosts of a network.
#[derive(Debug, Clone, Default)]
pub struct NetworkMap {
    pub(crate) switches: BTreeMap<u64, MapSwitch>,
    /// Links by each of their ends.
    pub(crate) links: BTreeMap<SwitchPort, MapLink>,
    /// Switches of others between ports.
    pub(crate) islands: Vec<MapIsland>,
    pub(crate) hosts: BTreeMap<MacAddr, Host>,
    /// Number of changes of switches, ports and links, so that what was calculated from them can be kept.
    pub(crate) version: u64,
    /// Number that changes with switches, links and islands, not with ports.
    pub(crate) links_version: u64,
}

/// A switch that is connected.
#[derive(Debug, Clone)]
pub struct MapSwitch {
    /// Ports by their numbers, also those that are down.
    pub ports: BTreeMap<PortNo, PortDesc>,
    /// Number of flow tables.
    pub n_tables: u8,
}

/// Direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct MapLink {
    /// Port at the other end.
    pub to: SwitchPort,
    /// Time that a packet takes to the other end, as far as it was measured.
    pub delay: Option<Duration>,
    /// True if it failed again and again, so that it is used only where no other way is.
    pub damped: bool,
}

/// A host and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Ethernet address.
    pub mac: MacAddr,
    /// Port to which it is connected.
    pub at: SwitchPort,
    /// IP addresses that it uses.
    pub ips: BTreeSet<IpAddr>,
    /// Name that it gave itself (DHCP), if any.
    pub name: Option<String>,
    /// Time of its last packet that the controller saw.
    pub seen: Instant,
}

impl NetworkMap {
    /// Adds a switch, in place of one with its datapath id. For tests of applications; the controller keeps its map
    /// itself.
    pub fn add_switch(&mut self, dpid: u64, switch: MapSwitch) {
        self.switches.insert(dpid, switch);
        self.note_links_changed();
    }

    /// Notes that switches, links or islands have changed.
    pub(crate) fn note_links_changed(&mut self) {
        self.version += 1;
        self.links_version += 1;
    }

    /// Adds a host, in place of one with its Ethernet address. For tests of applications, as
    /// [`NetworkMap::add_switch`].
    pub fn add_host(&mut self, host: Host) {
        self.hosts.insert(host.mac, host);
    }

    /// Returns the switches that are connected, by their datapath ids.
    pub fn switches(&self) -> &BTreeMap<u64, MapSwitch> {
        &self.switches
    }

    /// Returns the links that are up, once for each of their ends.
    pub fn links(&self) -> &BTreeMap<SwitchPort, MapLink> {
        &self.links
    }

    /// Returns the islands: switches of others to which several ports lead.
    pub fn islands(&self) -> &[MapIsland] {
        &self.islands
    }

    /// Returns the port at the other end of what a port leads to: of its link, or of an island at the switch `dpid`.
    pub fn far_end(&self, from: SwitchPort, dpid: u64) -> Option<SwitchPort> {
        let link = self.links.get(&from).map(|link| link.to).filter(|to| to.dpid == dpid);
        link.or_else(|| self.over_island(from).find(|at| at.dpid == dpid))
    }

    /// Returns the ports that a port reaches over an island.
    pub fn over_island(&self, from: SwitchPort) -> impl Iterator<Item = SwitchPort> + '_ {
        let joining = self.islands.iter().filter(move |island| island.joins.contains(&from));
        joining.flat_map(|island| island.joins.iter().copied()).filter(move |at| *at != from)
    }

    /// Returns the hosts by their addresses.
    pub fn hosts(&self) -> &BTreeMap<MacAddr, Host> {
        &self.hosts
    }

    /// Returns the host that uses an IP address.
    pub fn host_of_ip(&self, ip: IpAddr) -> Option<&Host> {
        self.hosts.values().find(|host| host.ips.contains(&ip))
    }

    /// Returns true if a port is up.
    pub fn is_up(&self, at: SwitchPort) -> bool {
        let desc = self.switches.get(&at.dpid).and_then(|switch| switch.ports.get(&at.port));
        desc.is_some_and(is_port_up)
    }

    /// Returns true if a port leads to another switch, directly or through switches of others. The port of an island
    /// at which its hosts are does not count.
    pub fn is_trunk(&self, at: SwitchPort) -> bool {
        let is_of = |island: &MapIsland| island.ports.contains(&at) && island.host_port() != Some(at);
        self.links.contains_key(&at) || self.islands.iter().any(is_of)
    }

    /// Returns the port at which hosts of the island are that joins a port to other parts of the network; `None` if no
    /// island does.
    pub fn shared_by(&self, at: SwitchPort) -> Option<SwitchPort> {
        self.islands.iter().find(|island| island.joins.contains(&at)).and_then(MapIsland::host_port)
    }

    /// Returns true if an island joins a port to other parts of the network.
    pub fn is_shared(&self, at: SwitchPort) -> bool {
        self.shared_by(at).is_some()
    }

    /// Returns the ports that are up and lead to no other switch, over all switches.
    pub fn edge_ports(&self) -> impl Iterator<Item = SwitchPort> + '_ {
        let ports = |(dpid, switch): (&u64, &MapSwitch)| {
            let dpid = *dpid;
            let up = switch.ports.iter().filter(|(port, desc)| port.is_ordinary() && is_port_up(desc));
            up.map(move |(port, _)| SwitchPort::new(dpid, *port)).collect::<Vec<_>>()
        };
        self.switches.iter().flat_map(ports).filter(|at| !self.is_trunk(*at))
    }

    /// Returns a number that changes with switches, ports and links.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the switches for display.
    pub fn switch_states(&self) -> Vec<SwitchState> {
        let port = |(number, desc): (&PortNo, &PortDesc)| NetworkPort {
            number: *number,
            name: desc.name.clone(),
            up: is_port_up(desc),
            rate_kbps: desc.curr_speed,
        };
        let switch = |(dpid, switch): (&u64, &MapSwitch)| SwitchState {
            dpid: *dpid,
            ports: switch.ports.iter().map(port).collect(),
        };
        self.switches.iter().map(switch).collect()
    }

    /// Returns the links for display, each once, from its lesser end. An island has one from its least port to each
    /// other one.
    pub fn link_states(&self) -> Vec<NetworkLink> {
        let once = self.links.iter().filter(|(from, link)| **from < link.to);
        let direct = once.map(|(from, link)| NetworkLink {
            delay_us: link.delay.map(|delay| delay.as_secs_f64() * 1e6),
            damped: link.damped,
            ..NetworkLink::between(*from, link.to)
        });
        let through = |island: &MapIsland| {
            let (least, island) = (island.host_port(), island.clone());
            let others = island.ports.clone().into_iter().skip(1);
            let state = move |to: SwitchPort| {
                let blocked = !island.joins.contains(&to);
                Some(NetworkLink { indirect: true, blocked, ..NetworkLink::between(least?, to) })
            };
            others.filter_map(state).collect::<Vec<_>>()
        };
        direct.chain(self.islands.iter().flat_map(through)).collect()
    }

    /// Returns the hosts for display.
    pub fn host_states(&self, now: Instant) -> Vec<HostState> {
        let state = |host: &Host| HostState {
            mac: host.mac,
            at: host.at,
            ips: host.ips.iter().copied().collect(),
            name: host.name.clone(),
            seen_s: now.since(host.seen).as_secs_f64(),
        };
        self.hosts.values().map(state).collect()
    }
}

/// Returns true if a port is neither switched off nor without link.
pub fn is_port_up(desc: &PortDesc) -> bool {
    use weir_openflow::model::port::bits;
    desc.config & bits::PORT_DOWN == 0 && desc.state & bits::LINK_DOWN == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_switches_are_read_and_written() {
        let port = SwitchPort::new(0x1f, PortNo(3));
        assert_eq!((port.to_string().as_str(), "1f:3".parse(), "0x1f:3".parse()), ("1f:3", Ok(port), Ok(port)));
        for wrong in ["", "1f", "x:1", "1:y", ":", "1:2:3"] {
            assert!(wrong.parse::<SwitchPort>().unwrap_err().contains("expected DPID:PORT"), "{wrong}");
        }
    }
}
