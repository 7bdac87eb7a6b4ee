//! Builds frames of control traffic, and reads them as the stations of the tests do.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_packet::MacAddr;
use weir_packet::field::{eth_type, ip_proto};

/// A message about a neighbour's address: a question to all stations, or an answer to one. ARP for IPv4, neighbour
/// discovery for IPv6.
pub(super) struct Neighbour {
    pub(super) from: (MacAddr, IpAddr),
    pub(super) to: Option<MacAddr>,
    pub(super) target: IpAddr,
}

impl Neighbour {
    pub(super) fn bytes(&self) -> Vec<u8> {
        match (self.from.1, self.target) {
            (IpAddr::V4(address), IpAddr::V4(target)) => self.arp(address, target),
            (IpAddr::V6(address), IpAddr::V6(target)) => self.discovery(address, target),
            _ => panic!("addresses of one version"),
        }
    }

    fn arp(&self, address: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
        let source = self.from.0;
        let operation = if self.to.is_some() { 2 } else { 1 };
        let mut bytes = ethernet(self.to.unwrap_or(MacAddr::BROADCAST), source, eth_type::ARP);
        bytes.extend([0, 1, 8, 0, 6, 4, 0, operation]);
        bytes.extend(source.0);
        bytes.extend(address.octets());
        bytes.extend(self.to.unwrap_or(MacAddr([0; 6])).0);
        bytes.extend(target.octets());
        bytes
    }

    /// Returns a solicitation to the group of the asked address, or an advertisement (RFC 4861, 4.3 and 4.4).
    fn discovery(&self, address: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
        let [.., high, middle, low] = target.octets();
        let (kind, about, to) = match self.to {
            None => (135, target, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(high), 0)),
            Some(_) => (136, address, target),
        };
        let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        message.extend(about.octets());
        message.extend([if self.to.is_some() { 2 } else { 1 }, 1]);
        message.extend(self.from.0.0);
        let group = MacAddr([0x33, 0x33, 0xff, high, middle, low]);
        let mut bytes = ethernet(self.to.unwrap_or(group), self.from.0, eth_type::IPV6);
        bytes.extend(ipv6(address, to, ip_proto::ICMPV6, message.len()));
        bytes.extend(message);
        bytes
    }
}

/// A TCP segment of an open connection.
pub(super) struct Tcp<'a> {
    pub(super) from: (MacAddr, SocketAddr),
    pub(super) to: (MacAddr, SocketAddr),
    pub(super) data: &'a [u8],
}

impl Tcp<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let ((source, from), (destination, to)) = (self.from, self.to);
        let mut segment = Vec::new();
        segment.extend(from.port().to_be_bytes());
        segment.extend(to.port().to_be_bytes());
        segment.extend([0, 0, 0, 1, 0, 0, 0, 1, 5 << 4, 0b1_0000, 1, 0, 0, 0, 0, 0]);
        segment.extend(self.data);
        let (kind, header) = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => (eth_type::IPV4, ipv4(from, to, ip_proto::TCP, segment.len())),
            (IpAddr::V6(from), IpAddr::V6(to)) => (eth_type::IPV6, ipv6(from, to, ip_proto::TCP, segment.len())),
            _ => panic!("addresses of one version"),
        };
        let mut bytes = ethernet(destination, source, kind);
        bytes.extend(header);
        bytes.extend(segment);
        // Short frames are padded.
        bytes.resize(bytes.len().max(60), 0);
        bytes
    }
}

/// Returns the first four bytes of a TCP segment's data; `None` for a frame about a neighbour's address.
pub(super) fn data(frame: &[u8]) -> Option<[u8; 4]> {
    const TCP_HEADER: usize = 20;
    let [kind_high, kind_low] = [frame[12], frame[13]];
    let behind = match u16::from_be_bytes([kind_high, kind_low]) {
        eth_type::IPV4 => 34,
        eth_type::IPV6 if frame[20] == ip_proto::TCP => 54,
        _ => return None,
    };
    frame[behind + TCP_HEADER..].first_chunk().copied()
}

/// Returns a DHCP message that a station sends: as a client, or as a server to the station `client`.
pub(super) fn dhcp(source: MacAddr, is_client: bool, client: MacAddr) -> Vec<u8> {
    let mut datagram = udp(if is_client { [68, 67] } else { [67, 68] });
    datagram.extend([if is_client { 1 } else { 2 }, 1, 6, 0]);
    datagram.extend([0; 24]);
    datagram.extend(client.0);
    datagram.extend([0; 200]);
    let mut bytes = ethernet(MacAddr::BROADCAST, source, eth_type::IPV4);
    bytes.extend(ipv4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, ip_proto::UDP, datagram.len()));
    bytes.extend(datagram);
    bytes
}

/// Returns a DHCPv6 message: a question to all servers, or an answer to the station `to`.
pub(super) fn dhcpv6(source: MacAddr, to: Option<MacAddr>) -> Vec<u8> {
    let datagram = udp(if to.is_none() { [546, 547] } else { [547, 546] });
    let mut bytes = ethernet(to.unwrap_or(MacAddr([0x33, 0x33, 0, 1, 0, 2])), source, eth_type::IPV6);
    bytes.extend(ipv6(Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED, ip_proto::UDP, datagram.len()));
    bytes.extend(datagram);
    bytes
}

/// Returns the frame with a VLAN tag.
pub(super) fn tagged(mut frame: Vec<u8>, vlan: u16) -> Vec<u8> {
    let [high, low] = vlan.to_be_bytes();
    frame.splice(12..12, [0x81, 0, high, low]);
    frame
}

fn udp([from, to]: [u16; 2]) -> Vec<u8> {
    [from.to_be_bytes(), to.to_be_bytes(), [0; 2], [0; 2]].concat()
}

fn ethernet(destination: MacAddr, source: MacAddr, kind: u16) -> Vec<u8> {
    [&destination.0[..], &source.0, &kind.to_be_bytes()].concat()
}

fn ipv4(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, length: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(20 + length).expect("a short packet").to_be_bytes();
    let fixed = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    [&fixed[..], &from.octets(), &to.octets()].concat()
}

fn ipv6(from: Ipv6Addr, to: Ipv6Addr, protocol: u8, length: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(length).expect("a short packet").to_be_bytes();
    let fixed = [0x60, 0, 0, 0, high, low, protocol, 255];
    [&fixed[..], &from.octets(), &to.octets()].concat()
}
