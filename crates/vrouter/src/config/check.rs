//! Checks a configuration: what is wrong is named with the port, prefix, filter or pair where it is.
use super::error::ConfigError;
use super::{
    AddressPair, PacketFilter, RouteTarget, RouterPort, StaticNeighbour, StaticRoute, VirtualRouterConfig,
    is_link_local,
};
use crate::entries::metadata::next_hop_number;
use crate::prefix::AddressPrefix;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use weir_packet::{IpNet, MacAddr};

/// Most ports of a router.
pub const MAX_PORTS: usize = 256;
/// Highest OpenFlow port of a router's port: the metadata that leads packets through the tables has 16 bits for it.
pub const MAX_PORT_NUMBER: u32 = 0xff00;
/// Most routes.
pub const MAX_ROUTES: usize = 8192;
/// Most filters.
pub const MAX_FILTERS: usize = 1024;
/// Most pairs of translated addresses.
pub const MAX_TRANSLATIONS: usize = 4096;
/// Least MTU over IPv4 (RFC 791, 3.2) and over IPv6 (RFC 8200, 5), in bytes.
const LEAST_MTU: [u16; 2] = [68, 1280];

impl VirtualRouterConfig {
    /// Checks what the types of the fields leave open.
    ///
    /// # Errors
    /// The first thing that is wrong: where it is, what was found, what was expected.
    pub fn check(&self) -> Result<(), ConfigError> {
        let numbers = [
            ("ports", self.ports.len(), 1, MAX_PORTS),
            ("routes", self.routes.len(), 0, MAX_ROUTES),
            ("filters", self.filters.len(), 0, MAX_FILTERS),
            ("translations", self.translations.len(), 0, MAX_TRANSLATIONS),
        ];
        let is_wrong = |(_, found, least, most): &(_, usize, usize, usize)| !(*least..=*most).contains(found);
        if let Some((what, found, least, most)) = numbers.into_iter().find(is_wrong) {
            return Err(ConfigError::Number { what, found, least, most });
        }
        for (index, port) in self.ports.iter().enumerate() {
            check_port(port)?;
            self.check_other_ports(port, self.ports.get(..index).unwrap_or_default())?;
        }
        self.ports.iter().try_for_each(|port| self.check_neighbours(port))?;
        self.check_routes()?;
        (1..).zip(&self.filters).try_for_each(|(number, filter)| self.check_filter(number, filter))?;
        self.check_translations()?;
        self.check_next_hops()
    }

    fn check_other_ports(&self, port: &RouterPort, others: &[RouterPort]) -> Result<(), ConfigError> {
        if others.iter().any(|other| other.port == port.port) {
            return Err(port_error(port, "the port twice".to_owned(), "each port, or each VLAN of it, once"));
        }
        let routed = |net: &&IpNet| !is_link_local(net.addr);
        for net in port.addresses.iter().filter(routed) {
            for other_port in others {
                let overlaps = |other: &&IpNet| other.contains(net.addr) || net.contains(other.addr);
                if let Some(other) = other_port.addresses.iter().filter(routed).find(overlaps) {
                    let (port, other_port) = (port.port, other_port.port);
                    return Err(ConfigError::Overlap { port, net: *net, other_port, other: *other });
                }
            }
        }
        Ok(())
    }

    fn check_neighbours(&self, port: &RouterPort) -> Result<(), ConfigError> {
        for StaticNeighbour { address, mac } in &port.neighbours {
            let found = || format!("neighbour {address} with {mac}");
            if !is_host_mac(*mac) {
                return Err(port_error(port, found(), "the Ethernet address of a host"));
            }
            if !port.networks().any(|network| network.contains(*address)) || self.is_own(*address, port.port) {
                return Err(port_error(port, found(), "an address of another host on a network of the port"));
            }
            if port.neighbours.iter().filter(|other| other.address == *address).count() > 1 {
                return Err(port_error(port, found(), "each neighbour once"));
            }
        }
        Ok(())
    }

    fn check_routes(&self) -> Result<(), ConfigError> {
        let mut seen = std::collections::BTreeSet::new();
        for StaticRoute { prefix, via } in &self.routes {
            let error = |found: String, expected| Err(ConfigError::Route { prefix: *prefix, found, expected });
            if !seen.insert(*prefix) {
                return error("the prefix twice".to_owned(), "one route for each prefix");
            }
            if self.ports.iter().any(|port| port.networks().any(|network| network == *prefix)) {
                return error("the network of a port".to_owned(), "a longer or shorter prefix");
            }
            let RouteTarget::NextHop(hop) = via else { continue };
            if hop.is_ipv4() != prefix.is_ipv4() {
                return error(format!("next hop {hop}"), "a next hop of the prefix's version of IP");
            }
            let Some(port) = self.connected(*hop) else {
                return error(format!("next hop {hop}"), "an address on a network of a port");
            };
            if self.is_own(*hop, port.port) {
                return error(format!("next hop {hop}"), "another router, not an address of this one");
            }
        }
        Ok(())
    }

    fn check_filter(&self, number: usize, filter: &PacketFilter) -> Result<(), ConfigError> {
        let error = |found: String, expected| Err(ConfigError::Filter { number, found, expected });
        for (what, port) in [("input", filter.input), ("output", filter.output)] {
            if let Some(id) = port.filter(|id| self.port(*id).is_none()) {
                return error(format!("{what} {id}"), "a port of the router");
            }
        }
        let prefixes = [filter.source, filter.destination].into_iter().flatten().map(AddressPrefix::is_ipv4);
        let mut versions = prefixes.chain(filter.protocol.and_then(super::IpProtocol::is_ipv4));
        let first = versions.next();
        if versions.any(|version| Some(version) != first) {
            return error("IPv4 and IPv6".to_owned(), "one version of IP in source, destination and protocol");
        }
        let has_ports = filter.protocol.is_some_and(super::IpProtocol::has_ports);
        if !has_ports && (filter.source_port.is_some() || filter.destination_port.is_some()) {
            return error("ports without a protocol that has them".to_owned(), "protocol tcp, udp or sctp");
        }
        if filter.icmp_type.is_some() && !filter.protocol.is_some_and(super::IpProtocol::is_icmp) {
            return error("a type of ICMP without its protocol".to_owned(), "protocol icmp or icmpv6");
        }
        Ok(())
    }

    fn check_translations(&self) -> Result<(), ConfigError> {
        for (index, pair) in self.translations.iter().enumerate() {
            let AddressPair { inside, outside, port } = *pair;
            let error = |found: String, expected| Err(ConfigError::Translation { inside, outside, found, expected });
            if self.port(port).is_none() {
                return error(format!("port {port}"), "a port of the router");
            }
            if inside.is_ipv4() != outside.is_ipv4() || !is_host(inside) || !is_host(outside) {
                return error("no pair of hosts".to_owned(), "two addresses of hosts, of one version of IP");
            }
            if let Some(own) = [inside, outside].into_iter().find(|addr| self.is_own(*addr, port)) {
                return error(format!("the router's address {own}"), "addresses of other hosts");
            }
            let others = self.translations.get(..index).unwrap_or_default().iter().filter(|other| other.port == port);
            if others.into_iter().any(|other| other.inside == inside || other.outside == outside) {
                return error(format!("an address twice at port {port}"), "each address in one pair of a port");
            }
            let taken = |port: &RouterPort| port.neighbours.iter().any(|known| known.address == outside);
            if self.port(port).is_some_and(taken) {
                return error(format!("a neighbour of port {port} with {outside}"), "an address that nobody else has");
            }
        }
        Ok(())
    }

    fn check_next_hops(&self) -> Result<(), ConfigError> {
        let mut numbers: BTreeMap<(bool, u32), IpAddr> = BTreeMap::new();
        for hop in crate::forwarding::next_hops(self) {
            match numbers.insert((hop.is_ipv4(), next_hop_number(hop)), hop) {
                Some(one) if one != hop => return Err(ConfigError::NextHops { one, other: hop }),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Checks a port alone.
fn check_port(port: &RouterPort) -> Result<(), ConfigError> {
    let error = |found: String, expected| Err(port_error(port, found, expected));
    if !(1..=MAX_PORT_NUMBER).contains(&port.port.number.0) {
        return error(format!("port number {}", port.port.number.0), "a port number from 1 to 65280");
    }
    if let Some(vlan) = port.port.vlan.filter(|vlan| !(1..=4094).contains(vlan)) {
        return error(format!("VLAN {vlan}"), "a VLAN from 1 to 4094");
    }
    if !is_host_mac(port.mac) {
        return error(format!("Ethernet address {}", port.mac), "the address of a host");
    }
    if port.addresses.is_empty() {
        return error("no address".to_owned(), "at least one address with its prefix, such as 10.0.1.1/24");
    }
    for (index, net) in port.addresses.iter().enumerate() {
        let width: u8 = if net.addr.is_ipv4() { 32 } else { 128 };
        if !(1..=width).contains(&net.prefix) || !is_host(net.addr) || is_end_of_network(*net) {
            return error(format!("address {net}"), "an address of a host with the prefix of its network");
        }
        if port.addresses.iter().take(index).any(|other| other.addr == net.addr) {
            return error(format!("address {net} twice"), "each address once");
        }
    }
    let has_ipv6 = port.addresses.iter().any(|net| net.addr.is_ipv6());
    match has_ipv6 {
        true if port.mtu < LEAST_MTU[1] => error(format!("MTU {}", port.mtu), "at least 1280 bytes with IPv6"),
        false if port.mtu < LEAST_MTU[0] => error(format!("MTU {}", port.mtu), "at least 68 bytes"),
        _ if port.meter == Some(0) => error("meter 0".to_owned(), "a meter from 1 on"),
        _ => Ok(()),
    }
}

fn port_error(port: &RouterPort, found: String, expected: &'static str) -> ConfigError {
    ConfigError::Port { port: port.port, found, expected }
}

fn is_host_mac(mac: MacAddr) -> bool {
    !mac.is_multicast() && mac != MacAddr::default()
}

/// Returns true if a host can have an address.
fn is_host(addr: IpAddr) -> bool {
    !addr.is_multicast() && !addr.is_unspecified() && addr != IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// Returns true for the first and the last address of a network of IPv4, which hosts do not have unless the network has
/// only two (RFC 3021).
fn is_end_of_network(net: IpNet) -> bool {
    let IpAddr::V4(addr) = net.addr else { return false };
    let behind = u32::MAX.checked_shr(net.prefix.into()).unwrap_or(0);
    net.prefix < 31 && [0, behind].contains(&(addr.to_bits() & behind))
}

#[cfg(test)]
mod tests;
