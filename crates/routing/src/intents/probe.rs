//! Confirmation packets: packets of an intent that only the controller can have made, by which it sees that switches
//! carry them.
//!
//! A packet has the fields that the intent's traffic names, and one more value that ordinary traffic does not have: the
//! EtherType for local experiments (IEEE 802-2014, 9.2.3), the highest DSCP (RFC 2474), a protocol number for
//! experiments (RFC 3692), or an address for documentation (RFC 5737, RFC 3849). An entry for that value at the last
//! switch catches it. Its last bytes have a number, which is used once, and an authentication code (SipHash).
use super::config::FIRST_PRIORITY;
use std::hash::{BuildHasher, RandomState};
use weir_openflow::model::{Match, PortNo};
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};
use weir_packet::{Field, Frame, MacAddr, ParsedHeaders};

/// Source of packets of intents that name no host: a locally administered address.
pub const PROBE_MAC: MacAddr = MacAddr([0x02, 0x77, 0x72, 0x69, 0x6e, 0x74]);
/// First bytes of a packet's trailer.
const MAGIC: [u8; 8] = *b"weirprob";
/// Bytes of the content, the trailer at its end. With the shortest headers the frame has the least length of Ethernet.
const CONTENT_BYTES: usize = 64;
/// Bytes of magic, number and code.
const TRAILER_BYTES: usize = 24;

/// Values of which one distinguishes confirmation packets, in order of preference.
const MARKS: [(Field, u128); 7] = [
    (Field::EthType, eth_type::LOCAL_EXPERIMENT as u128),
    (Field::IpDscp, 63),
    (Field::IpProto, 253),
    (Field::Ipv4Src, 0xc000_0201),
    (Field::Ipv6Src, 0x2001_0db8_0000_0000_0000_0000_0000_0001),
    (Field::ArpSpa, 0xc000_0201),
    (Field::EthSrc, PROBE_MAC.to_bits() as u128),
];

/// Returns the match of confirmation packets of an intent's traffic; `None` if the traffic leaves no value free.
pub(super) fn marked(matching: &Match) -> Option<Match> {
    let marked = MARKS.into_iter().filter(|(field, _)| matching.get(*field).is_none());
    let mut marked = marked.map(|(field, value)| matching.clone().with(field, value));
    marked.find(|marked| marked.key_and_mask().is_ok() && build(marked, 0, 0).is_some())
}

/// Returns a packet that the match applies to, with a number and its code; `None` if none can be made.
pub(super) fn build(matching: &Match, number: u64, code: u64) -> Option<Vec<u8>> {
    let frame = craft(matching, &content(number, code));
    let (value, mask) = matching.key_and_mask().ok()?;
    let in_port = matching.get(Field::InPort).and_then(|(port, _)| u32::try_from(port).ok()).unwrap_or(1);
    let parsed = ParsedHeaders::of(&Frame::from_bytes(&frame), PortNo(in_port)).ok()?;
    parsed.key.matches(&value, &mask).then_some(frame)
}

/// Returns number and code of a packet; `None` for packets that are no confirmation packets.
pub(super) fn read(frame: &[u8]) -> Option<(u64, u64)> {
    let trailer = frame.last_chunk::<TRAILER_BYTES>()?;
    let ([magic, number, code], []) = trailer.as_chunks::<8>() else { return None };
    (*magic == MAGIC).then(|| (u64::from_be_bytes(*number), u64::from_be_bytes(*code)))
}

/// Returns the authentication code of a packet's number.
pub(super) fn code(key: &RandomState, number: u64) -> u64 {
    key.hash_one((MAGIC, FIRST_PRIORITY, number))
}

fn content(number: u64, code: u64) -> Vec<u8> {
    let mut content = vec![0; CONTENT_BYTES - TRAILER_BYTES];
    content.extend(MAGIC);
    content.extend(number.to_be_bytes());
    content.extend(code.to_be_bytes());
    content
}

/// Builds a frame with the values of a match.
fn craft(matching: &Match, content: &[u8]) -> Vec<u8> {
    let values = MatchValues(matching);
    let mac = |field| matching.get(field).map_or(PROBE_MAC, |(value, _)| MacAddr::from_bits(values.low_u64(value)));
    let mut frame = FrameBuilder::ethernet(mac(Field::EthDst), mac(Field::EthSrc));
    let vlan = values.u16(Field::VlanVid, 0);
    if vlan & VLAN_PRESENT != 0 {
        frame = frame.vlan(eth_type::VLAN, vlan & !VLAN_PRESENT, values.u8(Field::VlanPcp, 0));
    }
    match values.u16(Field::EthType, eth_type::LOCAL_EXPERIMENT) {
        number @ (eth_type::IPV4 | eth_type::IPV6) => values.ip(frame, number).payload(content).build(),
        eth_type::ARP => {
            let side = |sha, spa| (MacAddr::from_bits(values.u64(sha, 0)), values.u32(spa, 0).into());
            let (sender, target) = (side(Field::ArpSha, Field::ArpSpa), side(Field::ArpTha, Field::ArpTpa));
            let operation = values.u16(Field::ArpOp, 1);
            [frame.arp(operation, sender, target).build(), content.to_vec()].concat()
        }
        eth_type::MPLS => {
            let (label, class) = (values.u32(Field::MplsLabel, 16), values.u8(Field::MplsTc, 0));
            frame.mpls(label, class, 64).payload(content).build()
        }
        number => frame.ether_type(number).payload(content).build(),
    }
}

/// Values of a match, or others where it has none.
struct MatchValues<'a>(&'a Match);

#[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
impl MatchValues<'_> {
    fn value(&self, field: Field, otherwise: u128) -> u128 {
        self.0.get(field).map_or(otherwise, |(value, _)| value)
    }

    const fn low_u64(&self, value: u128) -> u64 {
        value as u64
    }

    fn u64(&self, field: Field, otherwise: u64) -> u64 {
        self.value(field, otherwise.into()) as u64
    }

    fn u32(&self, field: Field, otherwise: u32) -> u32 {
        self.value(field, otherwise.into()) as u32
    }

    fn u16(&self, field: Field, otherwise: u16) -> u16 {
        self.value(field, otherwise.into()) as u16
    }

    fn u8(&self, field: Field, otherwise: u8) -> u8 {
        self.value(field, otherwise.into()) as u8
    }

    /// Adds headers of IP and of what it carries.
    fn ip(&self, frame: FrameBuilder, number: u16) -> FrameBuilder {
        let frame = if number == eth_type::IPV4 {
            let [from, to] = [Field::Ipv4Src, Field::Ipv4Dst].map(|field| self.u32(field, 0xc000_0201).into());
            frame.ipv4(from, to)
        } else {
            let documentation = 0x2001_0db8 << 96 | 1;
            let [from, to] = [Field::Ipv6Src, Field::Ipv6Dst].map(|field| self.value(field, documentation).into());
            frame.ipv6(from, to)
        };
        let frame = frame.traffic_class(self.u8(Field::IpDscp, 0) << 2 | self.u8(Field::IpEcn, 0) & 3);
        let ports = |from, to| (self.u16(from, 0), self.u16(to, 0));
        match self.u8(Field::IpProto, ip_proto::UDP) {
            ip_proto::TCP => {
                let (source, destination) = ports(Field::TcpSrc, Field::TcpDst);
                let flags = self.u16(Field::TcpFlags, 0) as u8;
                frame.tcp(TcpHeader { source, destination, flags, ..TcpHeader::default() })
            }
            ip_proto::UDP => {
                let (source, destination) = ports(Field::UdpSrc, Field::UdpDst);
                frame.udp(source, destination)
            }
            ip_proto::SCTP => {
                let (source, destination) = ports(Field::SctpSrc, Field::SctpDst);
                frame.sctp(source, destination)
            }
            ip_proto::ICMP if number == eth_type::IPV4 => {
                frame.icmp(self.u8(Field::Icmpv4Type, 8), self.u8(Field::Icmpv4Code, 0), [0; 4])
            }
            ip_proto::ICMPV6 if number == eth_type::IPV6 => {
                frame.icmp(self.u8(Field::Icmpv6Type, 128), self.u8(Field::Icmpv6Code, 0), [0; 4])
            }
            other => frame.ip_proto(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::text::{format_match, parse_match};

    #[test]
    fn packets_have_the_fields_of_the_traffic_and_a_mark() {
        let cases = [
            ("", "dl_type=0x88b5"),
            ("dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02", "dl_type=0x88b5"),
            ("dl_vlan=7,dl_vlan_pcp=3", "dl_type=0x88b5"),
            ("ip", "nw_tos=252"),
            ("tcp,nw_dst=10.0.0.0/8,tp_dst=80", "nw_tos=252"),
            ("udp6,ipv6_dst=fe80::1,tp_src=53", "nw_tos=252"),
            ("icmp,icmp_type=8", "nw_tos=252"),
            ("sctp,tp_dst=9", "nw_tos=252"),
            ("ip,nw_tos=184", "nw_proto=253"),
            ("tcp,nw_tos=184", "nw_src=192.0.2.1"),
            ("tcp6,nw_tos=184", "ipv6_src=2001:db8::1"),
            ("arp,arp_op=1", "arp_spa=192.0.2.1"),
            ("dl_type=0x88cc", "dl_src=02:77:72:69:6e:74"),
        ];
        for (traffic, mark) in cases {
            let marked = marked(&parse_match(traffic).unwrap()).unwrap_or_else(|| panic!("{traffic}"));
            assert!(format_match(&marked).contains(mark), "{traffic}: {}", format_match(&marked));
            let frame = build(&marked, 7, 9).unwrap();
            assert!(frame.len() >= 60);
            assert_eq!(read(&frame), Some((7, 9)), "{traffic}");
        }
        assert_eq!(marked(&parse_match("tcp,nw_tos=184,nw_src=10.0.0.1,dl_src=02:00:00:00:00:01").unwrap()), None);
    }

    #[test]
    fn other_packets_are_no_confirmation() {
        let frame = build(&Match::any(), 7, 9).unwrap();
        for length in 0..frame.len() {
            assert_eq!(read(&frame[..length]), None);
        }
        let (one, other) = (RandomState::new(), RandomState::new());
        assert!(code(&one, 7) == code(&one, 7) && code(&one, 7) != code(&one, 8) && code(&one, 7) != code(&other, 7));
    }
}
