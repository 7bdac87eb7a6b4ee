//! Builds frames with correct lengths and checksums, for tests, simulated hosts and traced packets.
//!
//! ```
//! use weir_packet::{MacAddr, craft::FrameBuilder};
//! let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
//! let frame = FrameBuilder::ethernet(b, a)
//!     .vlan(0x8100, 100, 3)
//!     .ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
//!     .udp(1234, 53)
//!     .payload(b"hello")
//!     .build();
//! assert_eq!(frame.len(), 14 + 4 + 20 + 8 + 5);
//! assert_eq!(weir_packet::checksum::verify(&frame), Ok(()));
//! ```
use crate::checksum::{OnesComplementSum, sctp_checksum};
use crate::field::{eth_type, ip_proto};
use crate::{Frame, MacAddr, PacketType, nsh};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Builder of a frame: headers are added from the outside in, then [`FrameBuilder::build`] returns the frame.
#[derive(Debug, Clone)]
pub struct FrameBuilder {
    /// Addresses and VLAN tags, up to the last type field.
    link: Vec<u8>,
    labels: Vec<u32>,
    network: NetworkHeaderSpec,
    traffic_class: u8,
    ttl: u8,
    transport: TransportHeaderSpec,
    payload: Vec<u8>,
    /// Network service header before the payload; empty for none.
    service: Vec<u8>,
}

#[derive(Debug, Clone)]
enum NetworkHeaderSpec {
    /// EtherType of an arbitrary payload.
    Other(u16),
    Ipv4(Ipv4Addr, Ipv4Addr),
    Ipv6(Ipv6Addr, Ipv6Addr),
}

#[derive(Debug, Clone)]
enum TransportHeaderSpec {
    /// Protocol number of an arbitrary payload.
    Other(u8),
    Udp([u8; 4]),
    Tcp(TcpHeader),
    Sctp([u8; 4]),
    /// Type, code, and the four bytes after the checksum.
    Icmp(u8, u8, [u8; 4]),
}

/// Fields of a TCP header, without the checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "named by RFC 9293, 3.1")]
pub struct TcpHeader {
    pub source: u16,
    pub destination: u16,
    pub sequence: u32,
    pub acknowledgment: u32,
    /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    pub window: u16,
}

impl FrameBuilder {
    /// Starts a frame with the given addresses and no further content.
    pub fn ethernet(destination: MacAddr, source: MacAddr) -> FrameBuilder {
        FrameBuilder {
            link: [destination.0, source.0].concat(),
            labels: Vec::new(),
            network: NetworkHeaderSpec::Other(0xffff),
            traffic_class: 0,
            ttl: 64,
            transport: TransportHeaderSpec::Other(ip_proto::NO_NEXT),
            payload: Vec::new(),
            service: Vec::new(),
        }
    }

    /// Adds a VLAN tag inside the previous ones.
    #[must_use]
    pub fn vlan(mut self, tpid: u16, vid: u16, pcp: u8) -> FrameBuilder {
        self.link.extend(tpid.to_be_bytes());
        self.link.extend((u16::from(pcp) << 13 | vid & 0xfff).to_be_bytes());
        self
    }

    /// Adds an MPLS label stack entry inside the previous ones.
    #[must_use]
    pub fn mpls(mut self, label: u32, tc: u8, ttl: u8) -> FrameBuilder {
        self.labels.push(label << 12 | u32::from(tc & 7) << 9 | u32::from(ttl));
        self
    }

    /// Sets an ARP packet for IPv4 over Ethernet (RFC 826) as content.
    #[must_use]
    pub fn arp(mut self, operation: u16, sender: (MacAddr, Ipv4Addr), target: (MacAddr, Ipv4Addr)) -> FrameBuilder {
        let mut packet = vec![0, 1, 8, 0, 6, 4];
        packet.extend(operation.to_be_bytes());
        for (mac, ip) in [sender, target] {
            packet.extend(mac.0);
            packet.extend(ip.octets());
        }
        self.payload = packet;
        self.ether_type(eth_type::ARP)
    }

    /// Sets the EtherType; the payload is its content.
    #[must_use]
    pub fn ether_type(self, number: u16) -> FrameBuilder {
        FrameBuilder { network: NetworkHeaderSpec::Other(number), ..self }
    }

    /// Adds a network service header with metadata of type 1 before the payload, a packet of type `kind`. `path` is
    /// the service path and, in the low eight bits, the service index.
    #[must_use]
    pub fn nsh(self, path: u32, context: [u32; 4], kind: PacketType) -> FrameBuilder {
        let mut header = nsh::build(nsh::MD1, nsh::next_protocol(kind).unwrap_or(0), []).unwrap_or_default();
        header[4..8].copy_from_slice(&path.to_be_bytes());
        header.truncate(nsh::BASE_BYTES);
        header.extend(context.iter().flat_map(|word| word.to_be_bytes()));
        FrameBuilder { service: header, ..self.ether_type(eth_type::NSH) }
    }

    /// Adds an IPv4 header.
    #[must_use]
    pub fn ipv4(self, source: Ipv4Addr, destination: Ipv4Addr) -> FrameBuilder {
        FrameBuilder { network: NetworkHeaderSpec::Ipv4(source, destination), ..self }
    }

    /// Adds an IPv6 header.
    #[must_use]
    pub fn ipv6(self, source: Ipv6Addr, destination: Ipv6Addr) -> FrameBuilder {
        FrameBuilder { network: NetworkHeaderSpec::Ipv6(source, destination), ..self }
    }

    /// Sets IP's TTL or hop limit; the default is 64.
    #[must_use]
    pub fn ttl(self, ttl: u8) -> FrameBuilder {
        FrameBuilder { ttl, ..self }
    }

    /// Sets IP's type of service or traffic class: DSCP in the high six bits, ECN in the low two.
    #[must_use]
    pub fn traffic_class(self, traffic_class: u8) -> FrameBuilder {
        FrameBuilder { traffic_class, ..self }
    }

    /// Adds a UDP header.
    #[must_use]
    pub fn udp(self, source: u16, destination: u16) -> FrameBuilder {
        FrameBuilder { transport: TransportHeaderSpec::Udp(ports(source, destination)), ..self }
    }

    /// Adds a TCP header without options.
    #[must_use]
    pub fn tcp(self, header: TcpHeader) -> FrameBuilder {
        FrameBuilder { transport: TransportHeaderSpec::Tcp(header), ..self }
    }

    /// Adds an SCTP header; the payload is its chunks.
    #[must_use]
    pub fn sctp(self, source: u16, destination: u16) -> FrameBuilder {
        FrameBuilder { transport: TransportHeaderSpec::Sctp(ports(source, destination)), ..self }
    }

    /// Adds an ICMP header over IPv4, or an ICMPv6 header over IPv6. `rest` is the four bytes after the checksum,
    /// such as identifier and sequence number.
    #[must_use]
    pub fn icmp(self, kind: u8, code: u8, rest: [u8; 4]) -> FrameBuilder {
        FrameBuilder { transport: TransportHeaderSpec::Icmp(kind, code, rest), ..self }
    }

    /// Sets the IP protocol number; the payload is its content.
    #[must_use]
    pub fn ip_proto(self, number: u8) -> FrameBuilder {
        FrameBuilder { transport: TransportHeaderSpec::Other(number), ..self }
    }

    /// Sets the content of the innermost header. Length fields saturate at 65535.
    #[must_use]
    pub fn payload(self, bytes: &[u8]) -> FrameBuilder {
        FrameBuilder { payload: bytes.to_vec(), ..self }
    }

    /// Returns the finished frame, see [`FrameBuilder::build`].
    pub fn frame(&self) -> Frame {
        Frame::from_bytes(&self.build())
    }

    /// Returns the bytes of the finished frame, without padding and frame check sequence.
    pub fn build(&self) -> Vec<u8> {
        let (number, packet) = match self.network {
            NetworkHeaderSpec::Other(number) => (number, [self.service.as_slice(), &self.payload].concat()),
            NetworkHeaderSpec::Ipv4(source, destination) => (eth_type::IPV4, self.ipv4_packet(source, destination)),
            NetworkHeaderSpec::Ipv6(source, destination) => (eth_type::IPV6, self.ipv6_packet(source, destination)),
        };
        let number = if self.labels.is_empty() { number } else { eth_type::MPLS };
        let mut frame = self.link.clone();
        frame.extend(number.to_be_bytes());
        for (index, label) in self.labels.iter().enumerate() {
            let bottom = if index + 1 == self.labels.len() { 0x100 } else { 0 };
            frame.extend((label | bottom).to_be_bytes());
        }
        frame.extend(packet);
        frame
    }

    fn ipv4_packet(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
        let addresses = [source.octets(), destination.octets()].concat();
        let (proto, segment) = self.segment(ip_proto::ICMP, &addresses);
        let mut packet = vec![0x45, self.traffic_class];
        packet.extend(length(20 + segment.len()));
        packet.extend([0, 0, 0x40, 0, self.ttl, proto, 0, 0]);
        packet.extend(addresses);
        let checksum = OnesComplementSum::default().plus(&packet).checksum();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(segment);
        packet
    }

    fn ipv6_packet(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let addresses = [source.octets(), destination.octets()].concat();
        let (proto, segment) = self.segment(ip_proto::ICMPV6, &addresses);
        let mut packet = (6 << 28 | u32::from(self.traffic_class) << 20).to_be_bytes().to_vec();
        packet.extend(length(segment.len()));
        packet.extend([proto, self.ttl]);
        packet.extend(addresses);
        packet.extend(segment);
        packet
    }

    /// Returns the transport's protocol number, and its header and payload. `icmp` is the number of ICMP for this IP
    /// version, `addresses` both IP addresses.
    fn segment(&self, icmp: u8, addresses: &[u8]) -> (u8, Vec<u8>) {
        let (proto, mut segment, field) = match self.transport {
            TransportHeaderSpec::Other(number) => return (number, self.payload.clone()),
            TransportHeaderSpec::Udp(ports) => {
                let length = length(8 + self.payload.len());
                (ip_proto::UDP, [&ports[..], &length, &[0, 0]].concat(), 6)
            }
            TransportHeaderSpec::Tcp(header) => (ip_proto::TCP, header.bytes().to_vec(), 16),
            TransportHeaderSpec::Sctp(ports) => (ip_proto::SCTP, [&ports[..], &[0; 8]].concat(), 8),
            TransportHeaderSpec::Icmp(kind, code, rest) => (icmp, [&[kind, code, 0, 0], &rest[..]].concat(), 2),
        };
        segment.extend(&self.payload);
        if proto == ip_proto::SCTP {
            let checksum = sctp_checksum(&segment).expect("the header is whole");
            segment[field..field + 4].copy_from_slice(&checksum);
            return (proto, segment);
        }
        let pseudo_header = match proto {
            ip_proto::ICMP => OnesComplementSum::default(),
            _ => OnesComplementSum::default().plus(addresses).plus_u32(proto.into()).plus(&length(segment.len())),
        };
        let checksum = match pseudo_header.plus(&segment).checksum() {
            0 if proto == ip_proto::UDP => 0xffff,
            checksum => checksum,
        };
        segment[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        (proto, segment)
    }
}

impl TcpHeader {
    fn bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&ports(self.source, self.destination));
        bytes[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.acknowledgment.to_be_bytes());
        bytes[12..14].copy_from_slice(&[5 << 4, self.flags]);
        bytes[14..16].copy_from_slice(&self.window.to_be_bytes());
        bytes
    }
}

fn ports(source: u16, destination: u16) -> [u8; 4] {
    (u32::from(source) << 16 | u32::from(destination)).to_be_bytes()
}

fn length(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes()
}
