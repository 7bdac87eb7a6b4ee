//! Compares parsing with another parser, etherparse.
use crate::craft::{FrameBuilder, TcpHeader};
use crate::field::{VLAN_PRESENT, ip_frag, ipv6_exthdr};
use crate::parse::{EthernetHeader, WrittenKeyWords, parse_ethernet};
use crate::test_support::any_craft;
use crate::{Field, Frame, MacAddr, ParsedHeaders, PortNo, parse, parse_common, parse_frequent};
use etherparse::{
    ArpHardwareId, EtherType, Ipv6ExtensionSlice, LinkExtSlice, LinkSlice, NetSlice, SlicedPacket, TransportSlice,
};
use proptest::prelude::*;
use std::net::Ipv4Addr;
use weir_memory::{PortableSimd, SimdInstructions, SimdOperation, run_simd};

type Fields = Vec<(Field, u128)>;

struct Common<'a>(&'a Frame, &'a mut ParsedHeaders);

impl SimdOperation for Common<'_> {
    type Output = bool;
    fn run<W: SimdInstructions>(self, wide: W) -> bool {
        parse_common(wide, self.0, PortNo(7), self.1)
    }
}

/// Checks that the parser of Ethernet headers reads what the general one reads.
fn compare_ethernet(frame: &[u8]) {
    let expected = parse(frame, PortNo(7)).ok().map(|parsed| {
        let get = |field| u64::try_from(parsed.key.get(field)).unwrap();
        let mac = |field| MacAddr::from_bits(get(field));
        let vlan = (parsed.layers.vlan_tags > 0).then(|| u16::try_from(get(Field::VlanVid) & 0xfff).unwrap());
        let eth_type = u16::try_from(get(Field::EthType)).unwrap();
        EthernetHeader { dst: mac(Field::EthDst), src: mac(Field::EthSrc), vlan, eth_type }
    });
    assert_eq!(parse_ethernet(frame), expected);
}

/// Checks that the common parser, if it takes the frame, agrees with the general one. Returns true if it takes
/// the frame.
pub(super) fn compare_common(frame: &[u8]) -> bool {
    compare_ethernet(frame);
    // Bytes after a frame in its buffer must not matter.
    let (bytes, mut frame, mut common) = (frame, Frame::from_bytes(&[0xa5; 2000]), ParsedHeaders::default());
    frame.assign(bytes);
    let is_common = run_simd(Common(&frame, &mut common));
    let mut portable = ParsedHeaders::default();
    assert_eq!(parse_common(PortableSimd, &frame, PortNo(7), &mut portable), is_common);
    if is_common {
        assert_eq!((Ok(common), portable), (ParsedHeaders::of(&frame, PortNo(7)), common), "{frame:?}");
    }
    compare_frequent(&frame);
    is_common
}

/// Checks that the parser of frequent shapes, if it takes the frame, agrees with the general one. Returns true
/// if it takes the frame.
fn compare_frequent(frame: &Frame) -> bool {
    let mut is_frequent = false;
    // The previous values of the words that the parser writes must not matter.
    for written in [WrittenKeyWords::Ordinary, WrittenKeyWords::WithIpv6] {
        let mut frequent = ParsedHeaders::default();
        let ipv6 = if written == WrittenKeyWords::WithIpv6 { 8..12 } else { 0..0 };
        (0..8).chain(ipv6).chain(16..17).for_each(|word| frequent.key.words[word] = 0xa5a5_a5a5);
        if parse_frequent(frame, PortNo(7), &mut frequent) == Some(written) {
            assert_eq!(Ok(frequent), ParsedHeaders::of(frame, PortNo(7)), "{frame:?}");
            is_frequent = true;
        }
    }
    is_frequent
}

/// Checks that parsing agrees with etherparse; returns the number of fields compared. Frames that etherparse
/// refuses, or deliberately reads differently, are not compared.
pub(super) fn compare(frame: &[u8]) -> usize {
    compare_common(frame);
    let Some(expected) = expected(frame) else { return 0 };
    let key = parse(frame, PortNo(1)).unwrap().key;
    for (field, value) in &expected {
        assert_eq!(key.get(*field), *value, "{field} of {frame:02x?}");
    }
    expected.len()
}

fn expected(frame: &[u8]) -> Option<Fields> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let mut fields = link(&packet)?;
    match &packet.net {
        None => {}
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let offset = header.fragments_offset().value();
            let frag = frag(header.more_fragments() || offset != 0, offset != 0);
            fields.extend([
                (Field::Ipv4Src, u32::from(header.source_addr()).into()),
                (Field::Ipv4Dst, u32::from(header.destination_addr()).into()),
                (Field::IpDscp, header.dcp().value().into()),
                (Field::IpEcn, header.ecn().value().into()),
                (Field::IpProto, header.protocol().0.into()),
                (Field::IpFrag, frag.into()),
            ]);
            // etherparse continues behind an authentication header, which OpenFlow has only for IPv6.
            if ip.extensions().auth.is_some() {
                return Some(fields);
            }
        }
        Some(NetSlice::Ipv6(ip)) => fields.extend(ipv6(ip)?),
        Some(NetSlice::Arp(arp)) => {
            let kind = (arp.hw_addr_type(), arp.proto_addr_type(), arp.hw_addr_size(), arp.proto_addr_size());
            if kind == (ArpHardwareId::ETHERNET, EtherType::IPV4, 6, 4) {
                fields.extend([
                    (Field::ArpOp, arp.operation().0.into()),
                    (Field::ArpSha, number(arp.sender_hw_addr())),
                    (Field::ArpSpa, number(arp.sender_protocol_addr())),
                    (Field::ArpTha, number(arp.target_hw_addr())),
                    (Field::ArpTpa, number(arp.target_protocol_addr())),
                ]);
            }
        }
    }
    match (&packet.net, &packet.transport) {
        // etherparse reads ICMP with the number of the other IP version, for which OpenFlow has no fields.
        (Some(NetSlice::Ipv6(_)), Some(TransportSlice::Icmpv4(_))) => {}
        (Some(NetSlice::Ipv4(_)), Some(TransportSlice::Icmpv6(_))) => {}
        (_, found) => fields.extend(found.iter().flat_map(transport)),
    }
    Some(fields)
}

fn link(packet: &SlicedPacket<'_>) -> Option<Fields> {
    let Some(LinkSlice::Ethernet2(ethernet)) = &packet.link else { return None };
    let mut eth_type = ethernet.ether_type().0;
    let mut fields =
        vec![(Field::EthDst, number(&ethernet.destination())), (Field::EthSrc, number(&ethernet.source()))];
    for (index, extension) in packet.link_exts.iter().enumerate() {
        let LinkExtSlice::Vlan(tag) = extension else { return None };
        // etherparse takes the number that Q-in-Q had before its standard for a tag's.
        if eth_type == 0x9100 {
            return None;
        }
        if index == 0 {
            fields.push((Field::VlanVid, (tag.vlan_identifier().value() | VLAN_PRESENT).into()));
            fields.push((Field::VlanPcp, tag.priority_code_point().value().into()));
        }
        eth_type = tag.ether_type().0;
    }
    // etherparse stops after three tags, and takes an 802.3 length for a type.
    if eth_type < 0x600 || [0x8100, 0x88a8].contains(&eth_type) {
        return None;
    }
    fields.push((Field::EthType, eth_type.into()));
    Some(fields)
}

fn ipv6(ip: &etherparse::Ipv6Slice<'_>) -> Option<Fields> {
    let header = ip.header();
    // etherparse takes a length of zero for "up to the end of the frame".
    if header.payload_length() == 0 && !ip.payload().payload.is_empty() {
        return None;
    }
    let (mut exthdr, mut fragment) = (0, (false, false));
    for extension in ip.extensions().clone() {
        exthdr |= match &extension {
            Ipv6ExtensionSlice::HopByHop(_) => ipv6_exthdr::HOP,
            Ipv6ExtensionSlice::Routing(_) => ipv6_exthdr::ROUTER,
            Ipv6ExtensionSlice::Fragment(header) => {
                let later = header.fragment_offset().value() != 0;
                fragment = (later || header.more_fragments(), later);
                ipv6_exthdr::FRAG
            }
            Ipv6ExtensionSlice::DestinationOptions(_) => ipv6_exthdr::DEST,
            Ipv6ExtensionSlice::Authentication(_) => ipv6_exthdr::AUTH,
        };
    }
    let mut fields = vec![
        (Field::Ipv6Src, number(&header.source())),
        (Field::Ipv6Dst, number(&header.destination())),
        (Field::Ipv6Flabel, header.flow_label().value().into()),
        (Field::IpDscp, header.dscp().value().into()),
        (Field::IpEcn, header.ecn().value().into()),
        (Field::IpFrag, frag(fragment.0, fragment.1).into()),
    ];
    let proto = ip.payload().ip_number.0;
    // etherparse has no bits for these two headers, nor for the order of headers.
    if !fragment.1 && ![50, 59].contains(&proto) {
        fields.push((Field::IpProto, proto.into()));
        let order = ipv6_exthdr::UNSEQ | ipv6_exthdr::UNREP;
        let ours = parse(
            &[&[0; 12], &[0x86, 0xdd][..], header.slice(), ip.extensions().slice(), &[0; 20]].concat(),
            PortNo(1),
        );
        assert_eq!(ours.unwrap().key.get(Field::Ipv6Exthdr) & !u128::from(order), exthdr.into());
    }
    Some(fields)
}

fn transport(transport: &TransportSlice<'_>) -> Fields {
    match transport {
        TransportSlice::Tcp(tcp) => vec![
            (Field::TcpSrc, tcp.source_port().into()),
            (Field::TcpDst, tcp.destination_port().into()),
            (Field::TcpFlags, (u128::from(tcp.slice()[12]) & 0xf) << 8 | u128::from(tcp.slice()[13])),
        ],
        TransportSlice::Udp(udp) => {
            vec![(Field::UdpSrc, udp.source_port().into()), (Field::UdpDst, udp.destination_port().into())]
        }
        TransportSlice::Icmpv4(icmp) => {
            vec![(Field::Icmpv4Type, icmp.type_u8().into()), (Field::Icmpv4Code, icmp.code_u8().into())]
        }
        TransportSlice::Icmpv6(icmp) => {
            vec![(Field::Icmpv6Type, icmp.type_u8().into()), (Field::Icmpv6Code, icmp.code_u8().into())]
        }
        TransportSlice::Igmp(_) => vec![],
    }
}

fn frag(any: bool, later: bool) -> u64 {
    (u64::from(any) * ip_frag::ANY) | (u64::from(later) * ip_frag::LATER)
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

proptest! {
    #[test]
    fn agrees_with_etherparse(craft in any_craft()) {
        let frame = craft.build();
        // etherparse refuses ICMP messages whose length does not fit their type.
        prop_assert!(compare(&frame) >= 3 || SlicedPacket::from_ethernet(&frame).is_err());
    }

    #[test]
    fn agrees_with_etherparse_on_damaged_frames(
        craft in any_craft(), cut in 0usize..200, damage in proptest::collection::vec((12usize..100, any::<u8>()), 0..4)
    ) {
        let mut frame = craft.build();
        frame.truncate(cut.max(14));
        for (at, byte) in damage {
            frame.get_mut(at).into_iter().for_each(|place| *place = byte);
        }
        compare(&frame);
    }

    #[test]
    fn anything_parses(mut frame in proptest::collection::vec(any::<u8>(), 14..200), kind in 0usize..8) {
        let kinds = [[0x08, 0x00], [0x86, 0xdd], [0x81, 0x00], [0x08, 0x06], [0x88, 0x47], [0x88, 0xe7], [0x00, 0x20]];
        if let Some(kind) = kinds.get(kind) {
            frame[12..14].copy_from_slice(kind);
        }
        compare(&frame);
    }
}

#[test]
fn the_common_shape_is_recognised() {
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let ethernet = || FrameBuilder::ethernet(MacAddr::from_bits(1), MacAddr::from_bits(2));
    assert!(compare_common(&ethernet().ipv4(a, b).udp(1, 2).payload(&[0; 18]).build()));
    assert!(compare_common(&ethernet().ipv4(a, b).tcp(TcpHeader::default()).payload(&[0; 6]).build()));
    assert!(compare_common(&ethernet().vlan(0x8100, 5, 3).ipv4(a, b).tcp(TcpHeader::default()).build()));
    assert!(!compare_common(
        &ethernet().vlan(0x8100, 5, 3).vlan(0x8100, 6, 3).ipv4(a, b).tcp(TcpHeader::default()).build()
    ));
    assert!(!compare_common(&ethernet().ipv4(a, b).build()));
}

#[test]
fn frequent_shapes_are_recognised() {
    let ipv4 = |craft: FrameBuilder| craft.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let ipv6 = |craft: FrameBuilder| craft.ipv6(1.into(), 2.into());
    for tags in 0..3 {
        let link = || {
            (0..tags)
                .fold(FrameBuilder::ethernet(MacAddr::from_bits(1), MacAddr::from_bits(2)), |c, _| c.vlan(0x8100, 5, 3))
        };
        let shapes = [
            ipv4(link().mpls(77, 3, 64).mpls(78, 0, 64)).udp(1, 2),
            ipv6(link()).udp(1, 2).payload(&[0; 4]),
            ipv6(link()).tcp(TcpHeader { flags: 0x12, ..TcpHeader::default() }),
            ipv6(link()).icmp(128, 0, [0; 4]),
            ipv4(link()).icmp(8, 0, [0; 4]),
        ];
        for shape in shapes {
            assert_eq!(compare_frequent(&shape.frame()), tags < 2, "{:?}", shape.frame());
        }
        for other in
            [ipv6(link()).icmp(135, 0, [0; 4]).payload(&[0; 16]), ipv6(link()).ip_proto(50), ipv4(link()).ip_proto(50)]
        {
            assert!(!compare_frequent(&other.frame()));
        }
    }
}
