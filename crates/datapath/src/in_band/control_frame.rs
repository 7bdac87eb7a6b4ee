//! Reads the headers of the frames that may carry a switch's control traffic: ARP (RFC 826) and neighbour discovery
//! (RFC 4861), TCP over IPv4 and IPv6, DHCP (RFC 2131) and DHCPv6 (RFC 8415). All other frames are recognised by a few
//! bytes and left alone.
use super::lost;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_packet::MacAddr;
use weir_packet::field::{eth_type, ip_proto};

/// Length of an Ethernet header without tags.
pub(super) const ETHERNET: usize = 14;
/// Length of a VLAN tag.
pub(super) const TAG: usize = 4;
/// UDP ports of DHCP (RFC 2131, 4.1) and of DHCPv6 (RFC 8415, 7.2).
pub(super) mod dhcp_port {
    pub(in super::super) const CLIENT: u16 = 68;
    pub(in super::super) const SERVER: u16 = 67;
    pub(in super::super) const CLIENT_V6: u16 = 546;
    pub(in super::super) const SERVER_V6: u16 = 547;
}

/// Addresses and headers of a frame, as far as in-band control needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ControlFrame {
    pub(super) source: MacAddr,
    pub(super) destination: MacAddr,
    pub(super) headers: ControlHeaders,
}

/// Headers behind the Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlHeaders {
    /// ARP for IPv4 over Ethernet, or neighbour discovery: the address whose station sends the message, and the address
    /// that it asks for or answers to.
    Neighbour { sender: IpAddr, target: IpAddr },
    /// TCP. `asks` is true if the receiver has to acknowledge the segment: it has data, or begins or ends a
    /// connection.
    Tcp { source: SocketAddr, destination: SocketAddr, asks: bool },
    /// DHCP or DHCPv6 from a client to a server.
    DhcpRequest { is_v6: bool },
    /// DHCP or DHCPv6 from a server to the client with this Ethernet address.
    DhcpReply { client: MacAddr, is_v6: bool },
    /// Notice of a neighbour that does not reach some stations any more.
    LostPaths,
}

impl ControlFrame {
    /// Reads a frame of a VLAN, or an untagged one if `vlan` is `None`. Returns `None` if the frame is of another VLAN,
    /// has none of these headers, or is cut short.
    #[inline]
    pub(super) fn of(bytes: &[u8], vlan: Option<u16>) -> Option<ControlFrame> {
        let kind = u16::from_be_bytes(array(bytes, 12)?);
        let (kind, start) = match vlan {
            // Notices are for the neighbour itself, not for a VLAN.
            Some(vlan) if kind != lost::ETHER_TYPE => {
                let [tag, inner] = [14, 16].map(|at| array(bytes, at).map(u16::from_be_bytes));
                if kind != eth_type::VLAN || tag? & 0xfff != vlan {
                    return None;
                }
                (inner?, ETHERNET + TAG)
            }
            _ => (kind, ETHERNET),
        };
        let headers = match kind {
            eth_type::ARP => arp(bytes.get(start..)?)?,
            eth_type::IPV4 => ipv4(bytes.get(start..)?)?,
            eth_type::IPV6 => ipv6(bytes.get(start..)?, MacAddr(array(bytes, 0)?))?,
            lost::ETHER_TYPE if lost::is_notice(bytes) => ControlHeaders::LostPaths,
            _ => return None,
        };
        Some(ControlFrame { destination: MacAddr(array(bytes, 0)?), source: MacAddr(array(bytes, 6)?), headers })
    }
}

/// Reads an ARP message; `None` if it is not about IPv4 addresses of Ethernet stations.
fn arp(message: &[u8]) -> Option<ControlHeaders> {
    // Hardware type, protocol type and the lengths of both kinds of addresses (RFC 826).
    const IPV4_OVER_ETHERNET: [u8; 6] = [0, 1, 8, 0, 6, 4];
    let is_known = array(message, 0)? == IPV4_OVER_ETHERNET;
    if is_known {
        Some(ControlHeaders::Neighbour { sender: ipv4_address(message, 14)?, target: ipv4_address(message, 24)? })
    } else {
        None
    }
}

/// Reads an IPv4 packet; `None` if it has neither TCP nor DHCP, or is a fragment without their header.
#[inline]
fn ipv4(packet: &[u8]) -> Option<ControlHeaders> {
    let [first, ..] = *packet else { return None };
    let length = usize::from(first & 0xf) * 4;
    let fragment = u16::from_be_bytes(array(packet, 6)?) & 0x1fff;
    if first >> 4 != 4 || length < 20 || fragment != 0 {
        return None;
    }
    let behind = packet.get(length..)?;
    match *packet.get(9)? {
        ip_proto::TCP => {
            // A frame may be longer than its packet, because short frames are padded. Super-frames may leave the
            // length out.
            let total = usize::from(u16::from_be_bytes(array(packet, 2)?));
            let end = if total == 0 { behind.len() } else { total.saturating_sub(length).min(behind.len()) };
            tcp([ipv4_address(packet, 12)?, ipv4_address(packet, 16)?], behind, end)
        }
        ip_proto::UDP => {
            // Place of the client's hardware address (RFC 2131, 2: chaddr) behind a UDP header of 8 bytes.
            const CLIENT_ADDRESS: usize = 8 + 28;
            let client = || array(behind, CLIENT_ADDRESS).map(MacAddr);
            dhcp(behind, false, client)
        }
        _ => None,
    }
}

/// Reads an IPv6 packet to a station; `None` if its first header is neither TCP, nor DHCPv6, nor neighbour discovery.
/// None of these has extension headers in practice, and neighbour discovery must not be fragmented (RFC 6980).
fn ipv6(packet: &[u8], station: MacAddr) -> Option<ControlHeaders> {
    /// Length of the header without extensions.
    const HEADER: usize = 40;
    /// Hop limit of neighbour discovery, which no router has lowered (RFC 4861, 7.1.1).
    const NOT_ROUTED: u8 = 255;
    let [first, ..] = *packet else { return None };
    if first >> 4 != 6 {
        return None;
    }
    let behind = packet.get(HEADER..)?;
    match *packet.get(6)? {
        ip_proto::TCP => {
            let total = usize::from(u16::from_be_bytes(array(packet, 4)?));
            let end = if total == 0 { behind.len() } else { total.min(behind.len()) };
            tcp([ipv6_address(packet, 8)?, ipv6_address(packet, 24)?], behind, end)
        }
        ip_proto::UDP => dhcp(behind, true, || Some(station)),
        ip_proto::ICMPV6 if *packet.get(7)? == NOT_ROUTED => {
            neighbour_discovery([ipv6_address(packet, 8)?, ipv6_address(packet, 24)?], behind)
        }
        _ => None,
    }
}

/// Reads a message of neighbour discovery between these addresses (RFC 4861, 4.1 to 4.4); `None` for other messages of
/// ICMPv6.
fn neighbour_discovery([from, to]: [IpAddr; 2], message: &[u8]) -> Option<ControlHeaders> {
    /// Place of the address that a solicitation asks for, and that an advertisement is about.
    const TARGET: usize = 8;
    const ROUTER_SOLICITATION: u8 = 133;
    const ROUTER_ADVERTISEMENT: u8 = 134;
    const SOLICITATION: u8 = 135;
    const ADVERTISEMENT: u8 = 136;
    let (sender, target) = match *message.first()? {
        ROUTER_SOLICITATION | ROUTER_ADVERTISEMENT => (from, to),
        SOLICITATION => (from, ipv6_address(message, TARGET)?),
        ADVERTISEMENT => (ipv6_address(message, TARGET)?, to),
        _ => return None,
    };
    Some(ControlHeaders::Neighbour { sender, target })
}

/// Reads a TCP segment of `length` bytes between these addresses (RFC 9293, 3.1).
#[inline]
fn tcp([from, to]: [IpAddr; 2], segment: &[u8], length: usize) -> Option<ControlHeaders> {
    const FIN_OR_SYN: u8 = 0b11;
    let port = |at| array(segment, at).map(u16::from_be_bytes);
    let [offset, flags] = array(segment, 12)?;
    let has_data = length > usize::from(offset >> 4) * 4;
    Some(ControlHeaders::Tcp {
        source: SocketAddr::new(from, port(0)?),
        destination: SocketAddr::new(to, port(2)?),
        asks: has_data || flags & FIN_OR_SYN != 0,
    })
}

/// Reads a message of DHCP, or of DHCPv6, behind an IP header. `client` reads the Ethernet address of a reply's client.
/// Returns `None` if the ports are others.
#[inline]
fn dhcp(datagram: &[u8], is_v6: bool, client: impl Fn() -> Option<MacAddr>) -> Option<ControlHeaders> {
    let (client_port, server_port) =
        if is_v6 { (dhcp_port::CLIENT_V6, dhcp_port::SERVER_V6) } else { (dhcp_port::CLIENT, dhcp_port::SERVER) };
    let port = |at| array(datagram, at).map(u16::from_be_bytes);
    match (port(0)?, port(2)?) {
        (from, to) if (from, to) == (client_port, server_port) => Some(ControlHeaders::DhcpRequest { is_v6 }),
        (from, to) if (from, to) == (server_port, client_port) => {
            Some(ControlHeaders::DhcpReply { client: client()?, is_v6 })
        }
        _ => None,
    }
}

#[inline]
fn ipv4_address(bytes: &[u8], at: usize) -> Option<IpAddr> {
    array(bytes, at).map(|octets| Ipv4Addr::from_octets(octets).into())
}

#[inline]
fn ipv6_address(bytes: &[u8], at: usize) -> Option<IpAddr> {
    array(bytes, at).map(|octets| Ipv6Addr::from_octets(octets).into())
}

/// Returns the bytes at a place; `None` if the frame ends before.
#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
