//! Reads what a packet says of the host that sent it: its Ethernet address, an IP address, a name.
use super::dhcp::{self, DhcpMessage};
use super::probe::probe_address_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_packet::field::icmpv6_type::{NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION};
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::parse::{NetworkProtocol, ParsedHeaders, TransportProtocol, parse_ethernet};
use weir_packet::{Field, MacAddr, PortNo, parse};

/// Hop limit without which neighbour discovery is invalid: it has crossed no router (RFC 4861, 7.1).
pub(super) const ND_HOP_LIMIT: u8 = 255;
/// Bytes of the header of UDP.
const UDP_BYTES: usize = 8;

/// Claim of a packet about its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PacketClaim {
    /// Source of the Ethernet frame.
    pub(super) src: MacAddr,
    /// VLAN id of the outermost tag.
    pub(super) vlan: Option<u16>,
    /// Address of a probe, if the packet is for one or asks for it.
    pub(super) probe: Option<MacAddr>,
    pub(super) says: Saying,
}

/// Statement of a packet's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Saying {
    Nothing,
    /// The sender uses an IP address.
    Uses(IpAddr),
    /// A message of DHCP.
    Dhcp(DhcpMessage),
    /// The packet contradicts itself: it says that another Ethernet address than its source uses an IP address, or
    /// names an address that no host can have. Hosts might believe it, so it is not forwarded.
    Contradiction,
}

impl PacketClaim {
    /// Returns what a packet says; `None` without a whole Ethernet header.
    pub(super) fn read(packet: &[u8]) -> Option<PacketClaim> {
        let header = parse_ethernet(packet)?;
        let parsed = parse(packet, PortNo::ANY).ok()?;
        let solicited = || ipv6(&parsed, Field::Ipv6NdTarget).and_then(probe_address_of);
        let probe = super::probe::is_probe_address(header.dst).then_some(header.dst).or_else(solicited);
        let says = match parsed.layers.network {
            Some((NetworkProtocol::Arp, _)) if header.eth_type == eth_type::ARP => arp(header.src, &parsed),
            Some((NetworkProtocol::Ipv6, at)) => neighbour_discovery(header.src, &parsed, packet, at.into()),
            Some((NetworkProtocol::Ipv4, _)) => ipv4(&parsed, packet),
            _ => Saying::Nothing,
        };
        Some(PacketClaim { src: header.src, vlan: header.vlan, probe, says })
    }
}

/// Returns what ARP says. A probe of RFC 5227 has no sender address and says nothing.
fn arp(src: MacAddr, parsed: &ParsedHeaders) -> Saying {
    let sender = ipv4_of(parsed, Field::ArpSpa);
    if mac(parsed, Field::ArpSha) != src {
        return Saying::Contradiction;
    }
    match sender {
        Some(ip) if ip.is_unspecified() => Saying::Nothing,
        Some(ip) if is_host_ipv4(ip) => Saying::Uses(IpAddr::V4(ip)),
        _ => Saying::Contradiction,
    }
}

/// Returns what neighbour discovery says. A solicitation without source is a search for duplicates (RFC 4862, 5.4) and
/// says nothing. Messages that receivers must ignore say nothing, either.
fn neighbour_discovery(src: MacAddr, parsed: &ParsedHeaders, packet: &[u8], at: usize) -> Saying {
    let is_icmp = matches!(parsed.layers.transport, Some((TransportProtocol::Icmpv6, _)));
    let kind = parsed.key.get(Field::Icmpv6Type);
    let (is_solicitation, is_advertisement) =
        (kind == NEIGHBOUR_SOLICITATION.into(), kind == NEIGHBOUR_ADVERTISEMENT.into());
    if !is_icmp || !(is_solicitation || is_advertisement) || packet.get(at + 7) != Some(&ND_HOP_LIMIT) {
        return Saying::Nothing;
    }
    let (user, link) = match is_solicitation {
        true => (ipv6(parsed, Field::Ipv6Src), mac(parsed, Field::Ipv6NdSll)),
        false => (ipv6(parsed, Field::Ipv6NdTarget), mac(parsed, Field::Ipv6NdTll)),
    };
    // Without the option the sender means its own address. The parser leaves the target out if an option is malformed
    // or occurs twice; a receiver might read it another way.
    let has_target = ipv6(parsed, Field::Ipv6NdTarget).is_some_and(|target| !target.is_unspecified());
    if !has_target || (link != MacAddr::default() && link != src) {
        return Saying::Contradiction;
    }
    match user {
        Some(ip) if is_solicitation && ip.is_unspecified() => Saying::Nothing,
        Some(ip) if is_host_ipv6(ip) => Saying::Uses(IpAddr::V6(ip)),
        _ => Saying::Contradiction,
    }
}

/// Returns what an IPv4 packet says: only DHCP says anything.
fn ipv4(parsed: &ParsedHeaders, packet: &[u8]) -> Saying {
    let Some((TransportProtocol::Udp, at)) = parsed.layers.transport else { return Saying::Nothing };
    let ports = [parsed.key.get(Field::UdpSrc), parsed.key.get(Field::UdpDst)];
    let is_dhcp = |port: &u128| [dhcp::SERVER_PORT, dhcp::CLIENT_PORT].iter().any(|known| u128::from(*known) == *port);
    if parsed.key.get(Field::IpProto) != ip_proto::UDP.into() || !ports.iter().all(is_dhcp) {
        return Saying::Nothing;
    }
    let message = packet.get(usize::from(at) + UDP_BYTES..).and_then(dhcp::read);
    message.map_or(Saying::Nothing, Saying::Dhcp)
}

/// Returns true if a host can have an address.
pub(super) fn is_host_ipv4(ip: Ipv4Addr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast() && !ip.is_loopback()
}

fn is_host_ipv6(ip: Ipv6Addr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback()
}

fn mac(parsed: &ParsedHeaders, field: Field) -> MacAddr {
    u64::try_from(parsed.key.get(field)).map(MacAddr::from_bits).unwrap_or_default()
}

fn ipv4_of(parsed: &ParsedHeaders, field: Field) -> Option<Ipv4Addr> {
    u32::try_from(parsed.key.get(field)).ok().map(Ipv4Addr::from)
}

/// Returns an address of an IPv6 packet; `None` for other packets.
fn ipv6(parsed: &ParsedHeaders, field: Field) -> Option<Ipv6Addr> {
    let is_ipv6 = matches!(parsed.layers.network, Some((NetworkProtocol::Ipv6, _)));
    is_ipv6.then(|| Ipv6Addr::from(parsed.key.get(field)))
}

#[cfg(test)]
mod tests {
    use super::super::dhcp::tests::message;
    use super::*;
    use weir_packet::craft::FrameBuilder;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);
    const A4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const A6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const B6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

    fn says(frame: &[u8]) -> Saying {
        PacketClaim::read(frame).expect("a whole header").says
    }

    fn arp(operation: u16, sender: (MacAddr, Ipv4Addr)) -> Vec<u8> {
        FrameBuilder::ethernet(MacAddr::BROADCAST, A).arp(operation, sender, (MacAddr([0; 6]), B4)).build()
    }

    fn nd(kind: u8, src: Ipv6Addr, target: Ipv6Addr, options: &[&[u8]], hop_limit: u8) -> Vec<u8> {
        let payload = [&target.octets()[..], &options.concat()].concat();
        FrameBuilder::ethernet(B, A).ipv6(src, B6).ttl(hop_limit).icmp(kind, 0, [0; 4]).payload(&payload).build()
    }

    fn option(kind: u8, mac: MacAddr) -> Vec<u8> {
        [&[kind, 1][..], &mac.0].concat()
    }

    #[test]
    fn arp_says_the_senders_address() {
        assert_eq!(says(&arp(1, (A, A4))), Saying::Uses(A4.into()));
        assert_eq!(says(&arp(2, (A, A4))), Saying::Uses(A4.into()));
        assert_eq!(says(&arp(1, (A, Ipv4Addr::UNSPECIFIED))), Saying::Nothing, "a probe of RFC 5227");
        assert_eq!(says(&arp(2, (B, A4))), Saying::Contradiction, "for another host");
        for wrong in [Ipv4Addr::BROADCAST, Ipv4Addr::LOCALHOST, Ipv4Addr::new(224, 0, 0, 1)] {
            assert_eq!(says(&arp(1, (A, wrong))), Saying::Contradiction, "{wrong}");
        }
    }

    #[test]
    fn neighbour_discovery_says_source_or_target() {
        let (own, other) = (option(1, A), option(1, B));
        assert_eq!(says(&nd(135, A6, B6, &[&own], 255)), Saying::Uses(A6.into()));
        assert_eq!(says(&nd(135, Ipv6Addr::UNSPECIFIED, A6, &[], 255)), Saying::Nothing, "a search for duplicates");
        assert_eq!(says(&nd(135, A6, B6, &[&other], 255)), Saying::Contradiction);
        let (own, other) = (option(2, A), option(2, B));
        assert_eq!(says(&nd(136, A6, A6, &[&own], 255)), Saying::Uses(A6.into()));
        assert_eq!(says(&nd(136, A6, A6, &[], 255)), Saying::Uses(A6.into()), "without option");
        assert_eq!(says(&nd(136, A6, A6, &[&other], 255)), Saying::Contradiction);
        assert_eq!(says(&nd(136, A6, A6, &[&own, &other], 255)), Saying::Contradiction, "an option twice");
        assert_eq!(says(&nd(136, A6, A6, &[&own], 64)), Saying::Nothing, "receivers ignore it");
        assert_eq!(says(&nd(128, A6, A6, &[], 255)), Saying::Nothing, "an echo request");
    }

    #[test]
    fn dhcp_is_read_and_other_data_says_nothing() {
        let payload = message(1, A, Ipv4Addr::UNSPECIFIED, &[53, 1, 1, 255]);
        let udp = |ports: (u16, u16)| {
            let builder = FrameBuilder::ethernet(MacAddr::BROADCAST, A).ipv4(A4, Ipv4Addr::BROADCAST);
            builder.udp(ports.0, ports.1).payload(&payload).build()
        };
        assert!(matches!(says(&udp((68, 67))), Saying::Dhcp(DhcpMessage::FromClient { client: A, .. })));
        assert_eq!(says(&udp((53, 67))), Saying::Nothing);
    }

    #[test]
    fn pieces_of_packets_are_read_without_panic() {
        let frames = [arp(1, (A, A4)), nd(135, A6, B6, &[&option(1, A)], 255), nd(136, A6, A6, &[&option(2, A)], 255)];
        for frame in frames {
            let lengths = 0..=frame.len();
            let read = lengths.filter(|length| PacketClaim::read(&frame[..*length]).is_some()).count();
            assert_eq!(read, frame.len() + 1 - 14);
        }
    }
}
