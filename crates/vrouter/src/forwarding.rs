//! Decisions of a router about packets, straight from its configuration: the meaning that flow entries must have, and
//! the way of packets that come to the controller.
use crate::config::{
    FilterAction, IpProtocol, PacketFilter, RouteTarget, RouterPort, RouterPortId, VirtualRouterConfig, is_link_local,
};
use crate::prefix::AddressPrefix;
use std::collections::BTreeSet;
use std::net::IpAddr;
use weir_packet::answer::IpPacket;
use weir_packet::field::ip_proto;
use weir_packet::{Field, PortRange};

/// Fields of a packet that decide on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoutedFields {
    /// Port by which the packet came.
    pub input: RouterPortId,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol.
    pub protocol: IpProtocol,
    /// Source port of TCP, UDP or SCTP; 0 without one, as OpenFlow sees it.
    pub source_port: u16,
    /// Destination port of TCP, UDP or SCTP; 0 without one.
    pub destination_port: u16,
    /// Type of ICMP or ICMPv6; 0 without one.
    pub icmp_type: u8,
}

/// Decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutingDecision {
    /// A filter denies the packet: its index.
    Denied(usize),
    /// A route to a blackhole has the packet, or an address that is unique on a link only.
    Blackhole,
    /// The packet is for the router itself.
    Local,
    /// No route leads to the destination.
    NoRoute,
    /// The packet goes on.
    Forward(ForwardingPath),
}

/// Way of a packet that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardingPath {
    /// Port by which the packet leaves.
    pub output: RouterPortId,
    /// Address of the neighbour that gets it.
    pub next_hop: IpAddr,
    /// Source address with which it leaves.
    pub source: IpAddr,
    /// Destination address with which it leaves.
    pub destination: IpAddr,
}

/// Target of the longest prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteOutcome<'a> {
    /// Way by a port to a next hop. The destination itself is the next hop if it is connected.
    Way(&'a RouterPort, IpAddr),
    Blackhole,
    None,
}

impl RoutedFields {
    /// Reads the fields of a packet.
    pub fn of(input: RouterPortId, packet: &IpPacket<'_>) -> RoutedFields {
        let low = |field| u16::try_from(packet.parsed.key.get(field)).unwrap_or_default();
        let protocol = IpProtocol(u8::try_from(packet.parsed.key.get(Field::IpProto)).unwrap_or_default());
        let ports = match protocol.0 {
            ip_proto::TCP => Some((Field::TcpSrc, Field::TcpDst)),
            ip_proto::UDP => Some((Field::UdpSrc, Field::UdpDst)),
            ip_proto::SCTP => Some((Field::SctpSrc, Field::SctpDst)),
            _ => None,
        };
        let kind = match protocol.0 {
            ip_proto::ICMP => low(Field::Icmpv4Type),
            ip_proto::ICMPV6 => low(Field::Icmpv6Type),
            _ => 0,
        };
        RoutedFields {
            input,
            source: packet.source,
            destination: packet.destination,
            protocol,
            source_port: ports.map_or(0, |(source, _)| low(source)),
            destination_port: ports.map_or(0, |(_, destination)| low(destination)),
            icmp_type: u8::try_from(kind).unwrap_or_default(),
        }
    }
}

impl PacketFilter {
    /// Returns true if the filter applies to a packet that would leave by `output`, if it would.
    pub fn applies(&self, fields: &RoutedFields, output: Option<RouterPortId>) -> bool {
        let in_prefix = |prefix: Option<AddressPrefix>, addr| prefix.is_none_or(|prefix| prefix.contains(addr));
        let in_range = |range: Option<PortRange>, port| range.is_none_or(|range| range.contains(port));
        self.input.is_none_or(|input| input == fields.input)
            && self.output.is_none_or(|wanted| Some(wanted) == output)
            && self.protocol.is_none_or(|protocol| protocol == fields.protocol)
            && self.is_ipv4().is_none_or(|is_ipv4| is_ipv4 == fields.source.is_ipv4())
            && in_prefix(self.source, fields.source)
            && in_prefix(self.destination, fields.destination)
            && in_range(self.source_port, fields.source_port)
            && in_range(self.destination_port, fields.destination_port)
            && self.icmp_type.is_none_or(|kind| kind == fields.icmp_type)
    }
}

/// Decides about a packet. The TTL does not count here, nor whether the next hop answers.
pub fn decide(config: &VirtualRouterConfig, fields: &RoutedFields) -> RoutingDecision {
    let (source, destination) = (fields.source, fields.destination);
    let is_own = config.is_own(destination, fields.input);
    if !is_own && [source, destination].into_iter().any(is_link_local) {
        return RoutingDecision::Blackhole;
    }
    let arriving = config.translations.iter().find(|pair| pair.port == fields.input && pair.outside == destination);
    let new_destination = arriving.map_or(destination, |pair| pair.inside);
    let outcome = if is_own { RouteOutcome::None } else { route(config, new_destination) };
    let output = match outcome {
        RouteOutcome::Blackhole => return RoutingDecision::Blackhole,
        RouteOutcome::Way(port, _) => Some(port.port),
        RouteOutcome::None => None,
    };
    let first = config.filters.iter().position(|filter| filter.applies(fields, output));
    if let Some(index) = first.filter(|index| config.filters[*index].action == FilterAction::Deny) {
        return RoutingDecision::Denied(index);
    }
    let RouteOutcome::Way(port, next_hop) = outcome else {
        return if is_own { RoutingDecision::Local } else { RoutingDecision::NoRoute };
    };
    let leaving = config.translations.iter().find(|pair| pair.port == port.port && pair.inside == source);
    let source = leaving.map_or(source, |pair| pair.outside);
    RoutingDecision::Forward(ForwardingPath { output: port.port, next_hop, source, destination: new_destination })
}

/// Returns the target of the longest prefix that holds an address.
pub(crate) fn route(config: &VirtualRouterConfig, to: IpAddr) -> RouteOutcome<'_> {
    let connected = config.ports.iter().flat_map(|port| port.networks().map(move |network| (port, network)));
    let connected = connected.filter(|(_, network)| network.contains(to)).max_by_key(|(_, network)| network.length());
    let routes = config.routes.iter().filter(|route| route.prefix.contains(to));
    let longest = routes.max_by_key(|route| route.prefix.length());
    match (connected, longest) {
        (Some((port, network)), longest) if longest.is_none_or(|route| route.prefix.length() < network.length()) => {
            RouteOutcome::Way(port, to)
        }
        (_, Some(route)) => target(config, route.via),
        (_, None) => RouteOutcome::None,
    }
}

/// Returns the way to a route's target.
pub(crate) fn target(config: &VirtualRouterConfig, via: RouteTarget) -> RouteOutcome<'_> {
    match via {
        RouteTarget::Blackhole => RouteOutcome::Blackhole,
        RouteTarget::NextHop(hop) => {
            config.connected(hop).map_or(RouteOutcome::None, |port| RouteOutcome::Way(port, hop))
        }
    }
}

/// Returns the neighbours to which packets go whatever their destination: next hops of routes, and those of translated
/// addresses.
pub(crate) fn next_hops(config: &VirtualRouterConfig) -> BTreeSet<IpAddr> {
    let routed = config.routes.iter().map(|route| target(config, route.via));
    let translated = config.translations.iter().map(|pair| route(config, pair.inside));
    let hop = |outcome| match outcome {
        RouteOutcome::Way(_, hop) => Some(hop),
        _ => None,
    };
    routed.chain(translated).filter_map(hop).collect()
}
