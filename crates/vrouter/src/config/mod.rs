//! Configuration of a virtual router: ports, routes, filters, translations.
mod check;
mod error;
mod text;

pub use check::{MAX_FILTERS, MAX_PORT_NUMBER, MAX_PORTS, MAX_ROUTES, MAX_TRANSLATIONS};
pub use error::ConfigError;
pub use text::{IpProtocol, RouteTarget, RouterPortId};

use crate::prefix::AddressPrefix;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use weir_packet::{IpNet, MacAddr, PortRange};

/// Configuration of a virtual router. [`VirtualRouterConfig::check`] says what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct VirtualRouterConfig {
    /// Name, for display.
    pub name: String,
    /// Ports, at least one.
    pub ports: Vec<RouterPort>,
    /// Routes besides those to the networks of the ports. The longest prefix wins.
    #[serde(default)]
    pub routes: Vec<StaticRoute>,
    /// Filters in their order: the first that applies decides. Packets that none applies to are permitted.
    #[serde(default)]
    pub filters: Vec<PacketFilter>,
    /// Addresses that are translated one to one.
    #[serde(default)]
    pub translations: Vec<AddressPair>,
}

/// A port of a virtual router: a port of the switch, or one VLAN of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterPort {
    /// OpenFlow port of the switch, with the VLAN whose tag packets have outside.
    pub port: RouterPortId,
    /// Ethernet address of the router at the port.
    pub mac: MacAddr,
    /// Addresses of the router at the port, each with the prefix of its network.
    pub addresses: Vec<IpNet>,
    /// Largest IP packet in bytes that the port's link carries.
    #[serde(default = "default_mtu")]
    pub mtu: u16,
    /// OpenFlow meter that packets pass before they leave by the port.
    #[serde(default)]
    pub meter: Option<u32>,
    /// OpenFlow queue of the port in which packets wait.
    #[serde(default)]
    pub queue: Option<u32>,
    /// Neighbours whose Ethernet address is known beforehand. They are not asked and do not age.
    #[serde(default)]
    pub neighbours: Vec<StaticNeighbour>,
}

/// MTU of Ethernet links (RFC 894).
const fn default_mtu() -> u16 {
    1500
}

/// A neighbour that is known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticNeighbour {
    /// IP address, on a network of the port.
    pub address: IpAddr,
    /// Ethernet address.
    pub mac: MacAddr,
}

/// A route to a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticRoute {
    /// Destinations.
    pub prefix: AddressPrefix,
    /// Next hop, or `blackhole`.
    pub via: RouteTarget,
}

/// Filter of packets. It applies to packets that have all that it names, as they came to the router: before addresses
/// are translated.
///
/// Filters are about packets that the router forwards and about those to its own addresses, but not about ARP and
/// neighbour discovery. Later fragments have no ports of TCP, UDP and SCTP and no type of ICMP, so that filters which
/// name these do not apply to them, except for those with port or type 0: OpenFlow sees zeros there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PacketFilter {
    /// Decision about the packets.
    pub action: FilterAction,
    /// Port by which they come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<RouterPortId>,
    /// Port by which they would leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<RouterPortId>,
    /// Protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<IpProtocol>,
    /// Source addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<AddressPrefix>,
    /// Destination addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<AddressPrefix>,
    /// Source ports of TCP, UDP or SCTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<PortRange>,
    /// Destination ports of TCP, UDP or SCTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<PortRange>,
    /// Type of ICMP or ICMPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icmp_type: Option<u8>,
}

/// Decision of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterAction {
    /// Packets pass.
    Permit,
    /// Packets are dropped without a word to the sender.
    Deny,
}

/// Two addresses of which the router makes one the other: packets from `inside` that leave by the port get the source
/// `outside`, and packets that come by the port to `outside` get the destination `inside`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressPair {
    /// Address of the host behind the router.
    pub inside: IpAddr,
    /// Address by which others know the host. The router answers for it at the port.
    pub outside: IpAddr,
    /// Port outside of which the other address is used.
    pub port: RouterPortId,
}

impl PacketFilter {
    /// Returns a filter that applies to all packets.
    pub const fn all(action: FilterAction) -> PacketFilter {
        PacketFilter {
            action,
            input: None,
            output: None,
            protocol: None,
            source: None,
            destination: None,
            source_port: None,
            destination_port: None,
            icmp_type: None,
        }
    }

    /// Returns whether the filter is about IPv4 (true) or IPv6 (false) only; `None` if it is about both.
    pub(crate) fn is_ipv4(&self) -> Option<bool> {
        let prefix = self.source.or(self.destination).map(AddressPrefix::is_ipv4);
        prefix.or(self.protocol.and_then(IpProtocol::is_ipv4))
    }
}

impl VirtualRouterConfig {
    /// Returns a port.
    pub fn port(&self, id: RouterPortId) -> Option<&RouterPort> {
        self.ports.iter().find(|port| port.port == id)
    }

    /// Returns the port on one of whose networks an address is; `None` for addresses that are not connected, and for
    /// those of IPv6 that are unique on a link only.
    pub fn connected(&self, addr: IpAddr) -> Option<&RouterPort> {
        self.ports.iter().find(|port| port.networks().any(|network| network.contains(addr)))
    }

    /// Returns true if packets to an address that come by a port are for the router itself.
    pub fn is_own(&self, addr: IpAddr, input: RouterPortId) -> bool {
        self.ports.iter().any(|port| port.is_own(addr) && (!is_link_local(addr) || port.port == input))
    }
}

impl RouterPort {
    /// Returns the networks that are connected by the port. Addresses of IPv6 that are unique on a link only are not
    /// routed (RFC 4291, 2.5.6).
    pub fn networks(&self) -> impl Iterator<Item = AddressPrefix> + '_ {
        self.addresses.iter().filter(|net| !is_link_local(net.addr)).map(|net| AddressPrefix::of(*net))
    }

    /// Returns true if an address is the router's at this port.
    pub fn is_own(&self, addr: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.addr == addr)
    }

    /// Returns the address with which the router speaks to a host: on the host's network, or else the first of the
    /// host's version of IP.
    pub fn address_for(&self, host: IpAddr) -> Option<IpAddr> {
        let near = self.addresses.iter().find(|own| own.contains(host));
        near.or_else(|| self.addresses.iter().find(|own| own.addr.is_ipv4() == host.is_ipv4())).map(|own| own.addr)
    }
}

/// Returns true for addresses of IPv6 that are unique on a link only (RFC 4291, 2.5.6).
pub(crate) fn is_link_local(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V6(v6) if v6.is_unicast_link_local())
}
