use super::*;
use crate::Tunnel;
use crate::field::{ip_frag, ipv6_exthdr};

mod oracle;
mod traces;

const MACS: &str = "020000000002 020000000001";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Parses the addresses followed by `hex`, and checks that every shorter frame parses, too.
fn parsed(hex: &str) -> ParsedHeaders {
    let frame = bytes(&format!("{MACS}{hex}"));
    for length in 14..frame.len() {
        parse(&frame[..length], PortNo(7)).unwrap();
    }
    parse(&frame, PortNo(7)).unwrap()
}

/// Returns the nonzero fields, except for the ports and addresses that every frame here has.
fn fields(hex: &str) -> Vec<(Field, u128)> {
    let key = parsed(hex).key;
    let always = [Field::InPort, Field::InPhyPort, Field::EthDst, Field::EthSrc];
    for (field, value) in always.into_iter().zip([7, 7, 0x0200_0000_0002, 0x0200_0000_0001]) {
        assert_eq!(key.get(field), value);
    }
    let mut rest = key;
    always.into_iter().for_each(|field| rest.set(field, 0));
    // Fields that share bits are distinguished by their prerequisites: only applicable fields are listed.
    let applies = |field: &Field| !field.is_alias() && crate::test_support::applies(*field, &key);
    Field::ALL.into_iter().filter(applies).map(|field| (field, rest.get(field))).filter(|f| f.1 != 0).collect()
}

#[test]
fn rarp_has_the_fields_of_arp() {
    let request = "8035 0001080006040003 020000000001 0a000001 020000000002 0a000002";
    let expected = [
        (Field::EthType, 0x8035),
        (Field::ArpOp, 3),
        (Field::ArpSpa, 0x0a00_0001),
        (Field::ArpTpa, 0x0a00_0002),
        (Field::ArpSha, 0x0200_0000_0001),
        (Field::ArpTha, 0x0200_0000_0002),
    ];
    assert_eq!(fields(request), expected);
    for other in ["8035 0006080006040003", "8035 0001080010040003", "8035 0001"] {
        assert_eq!(fields(&format!("{other} {}", "00".repeat(20)))[1..], [], "no Ethernet and IPv4: {other}");
    }
}

#[test]
fn too_short() {
    assert_eq!(parse(&[0; 13], PortNo(1)), Err(FrameTooShort(13)));
}

#[test]
fn udp_over_ipv4_behind_two_tags() {
    let hex = "88a8 6064 8100 00c8 0800 45b90020000140004011 0000 0a000001 0a000002 04d2 0035 000c0000 00000000";
    let expected = [
        (Field::EthType, 0x0800),
        (Field::VlanVid, 0x1064),
        (Field::VlanPcp, 3),
        (Field::IpDscp, 0x2e),
        (Field::IpEcn, 1),
        (Field::IpProto, 17),
        (Field::Ipv4Src, 0x0a00_0001),
        (Field::Ipv4Dst, 0x0a00_0002),
        (Field::UdpSrc, 1234),
        (Field::UdpDst, 53),
    ];
    assert_eq!(fields(hex), expected);
    let layers = parsed(hex).layers;
    assert_eq!(layers.vlan_tags, 2);
    assert_eq!(layers.network, Some((NetworkProtocol::Ipv4, 22)));
    assert_eq!(layers.transport, Some((TransportProtocol::Udp, 42)));
}

#[test]
fn the_second_of_several_tags_is_noted() {
    let ipv4 = "0800 45000020000140004011 0000 0a000001 0a000002 04d2 0035 000c0000 00000000";
    let ipv6 =
        "86dd 6000000000081140 20010db8000000000000000000000001 20010db8000000000000000000000002 04d2003500080000";
    for rest in [ipv4, ipv6, "0806 0001", "88cc 0000", "0004 aaaa03000000 88cc"] {
        for (tags, second) in [
            ("", 0),
            ("8100 00c8", 0),
            ("88a8 6064 8100 00c8", 0x8100),
            ("8100 6064 88a8 00c8", 0x88a8),
            ("8100 6064 88a8 00c8 8100 0001", 0x88a8),
        ] {
            assert_eq!(parsed(&format!("{tags} {rest}")).key.second_tag(), second, "{tags} {rest}");
        }
    }
    assert_eq!(parsed("8100 0064 88a8").key.second_tag(), 0x88a8, "though it is cut short");
}

#[test]
fn tcp_over_ipv4_with_options() {
    let hex =
        "0800 46000030000100004006 0000 c0a80001 c0a80002 01010101 1f90 0050 00000001 00000002 5 112 ffff 0000 0000";
    let expected = [
        (Field::EthType, 0x0800),
        (Field::IpProto, 6),
        (Field::Ipv4Src, 0xc0a8_0001),
        (Field::Ipv4Dst, 0xc0a8_0002),
        (Field::TcpSrc, 8080),
        (Field::TcpDst, 80),
        (Field::TcpFlags, 0x112),
    ];
    assert_eq!(fields(hex), expected);
    assert_eq!(parsed(hex).layers.transport, Some((TransportProtocol::Tcp, 38)));
}

#[test]
fn ipv4_fragments() {
    let first = "0800 4500001c0001 2000 4011 0000 0a000001 0a000002 04d2 0035 00080000";
    assert_eq!(parsed(first).key.get(Field::IpFrag), ip_frag::ANY.into());
    assert_eq!(parsed(first).key.get(Field::UdpDst), 53);
    let later = first.replace(" 2000 ", " 0001 ");
    assert_eq!(parsed(&later).key.get(Field::IpFrag), (ip_frag::ANY | ip_frag::LATER).into());
    assert_eq!(parsed(&later).key.get(Field::UdpDst), 0);
    assert_eq!(parsed(&later).key.get(Field::IpProto), 17);
    assert_eq!(parsed(&later).layers.transport, None);
    let whole = first.replace(" 2000 ", " 4000 ");
    assert_eq!(parsed(&whole).key.get(Field::IpFrag), 0);
}

#[test]
fn lengths_that_lie() {
    let udp = "04d2 0035 00080000";
    let of_length = |total: &str| parsed(&format!("0800 4500{total}000100004011 0000 0a000001 0a000002 {udp}"));
    assert_eq!(of_length("001c").key.get(Field::UdpSrc), 1234);
    assert_eq!(of_length("05dc").key.get(Field::UdpSrc), 1234, "truncated capture: what is there counts");
    let padded = of_length("001b");
    assert_eq!((padded.key.get(Field::IpProto), padded.layers.transport), (17, None), "ports would be padding");
    assert_eq!(of_length("0013").layers.network, None, "shorter than its own header");
}

#[test]
fn ieee_802_3() {
    let snap = "001e aaaa03 000000 0806 0001080006040002 020000000001 0a000001 020000000002 0a000002";
    let expected = [
        (Field::EthType, 0x0806),
        (Field::ArpOp, 2),
        (Field::ArpSpa, 0x0a00_0001),
        (Field::ArpTpa, 0x0a00_0002),
        (Field::ArpSha, 0x0200_0000_0001),
        (Field::ArpTha, 0x0200_0000_0002),
    ];
    assert_eq!(fields(snap), expected);
    assert_eq!(parsed(snap).layers.network, Some((NetworkProtocol::Arp, 22)));
    for other in ["0026 424203 0000000000", "0026 aaaa03 00000c 2000", "0026 aaaa03 000000 0100", "0003 aaaa03"] {
        assert_eq!(fields(other), [(Field::EthType, 0x05ff)], "{other}");
    }
    assert_eq!(fields("8100 0005 0026 424203 00"), [(Field::EthType, 0x05ff), (Field::VlanVid, 0x1005)]);
}

#[test]
fn mpls_and_pbb_end_the_key() {
    let mpls = "8100 0005 8847 000647 40 000651 3f 45000014000100004011 0000 0a000001 0a000002";
    let expected = [
        (Field::EthType, 0x8847),
        (Field::VlanVid, 0x1005),
        (Field::MplsLabel, 100),
        (Field::MplsTc, 3),
        (Field::MplsBos, 1),
    ];
    assert_eq!(fields(mpls), expected);
    let layers = parsed(mpls).layers;
    assert_eq!((layers.mpls, layers.network), (Some(18), None));
    let pbb = "88e7 08 0000cb 020000000004 020000000003 0800 45";
    assert_eq!(fields(pbb), [(Field::EthType, 0x88e7), (Field::PbbIsid, 203), (Field::PbbUca, 1)]);
}

#[test]
fn network_service_headers() {
    // Flags 3, TTL 42, metadata type 1, next protocol 4, path 0x123456, index 0xfe.
    let base = "894f 3a86 01 04 123456 fe";
    let context = "11111111 22222222 33333333 44444444";
    let expected = [
        (Field::EthType, 0x894f),
        (Field::NshFlags, 3),
        (Field::NshTtl, 42),
        (Field::NshMdtype, 1),
        (Field::NshNp, 4),
        (Field::NshSpi, 0x12_3456),
        (Field::NshSi, 0xfe),
        (Field::NshC1, 0x1111_1111),
        (Field::NshC2, 0x2222_2222),
        (Field::NshC3, 0x3333_3333),
        (Field::NshC4, 0x4444_4444),
    ];
    assert_eq!(fields(&format!("{base}{context} 0800 45")), expected);
    assert_eq!(parsed(&format!("8100 0005 {base}{context}")).layers.network, Some((NetworkProtocol::Nsh, 18)));
    let values = format!("{} 1000 0a 04 01020304 0800", base.replace("3a86 01", "3a84 02"));
    let second = fields(&values);
    assert_eq!(second[..3], expected[..3]);
    assert_eq!(second[3..], [(Field::NshMdtype, 2), expected[4], expected[5], expected[6]]);
    for wrong in [base.into(), format!("{} {context}", base.replace("3a86", "7a86")), values.replace("3a84", "3abf")] {
        assert_eq!(fields(&wrong), expected[..1], "{wrong}");
    }
}

#[test]
fn packets_without_ethernet_and_tunnels() {
    let mut frame =
        Frame::from_bytes(&bytes("45000020000140004011 0000 0a000001 0a000002 04d2 0035 000c0000 00000000"));
    let as_it_is = |frame: &Frame| {
        let mut parsed = ParsedHeaders::default();
        parse_frame(frame, PortNo(7), &mut parsed).map(|()| parsed)
    };
    frame.set_packet_type(crate::PacketType::of_eth_type(0x0800));
    frame.tunnel = Tunnel { id: 77, src: 0x0a00_0009, dst: 0x0a00_0008 };
    let parsed = as_it_is(&frame).unwrap();
    let get = |fields: [Field; 8]| fields.map(|field| parsed.key.get(field));
    use Field::*;
    assert_eq!(
        get([PacketType, EthType, UdpDst, TunnelId, TunSrc, TunDst, InPort, InPhyPort]),
        [0x1_0800, 0, 53, 77, 0x0a00_0009, 0x0a00_0008, 7, 7]
    );
    frame.set_packet_type(crate::PacketType::ETHERNET);
    assert_eq!(as_it_is(&frame).unwrap().key.get(TunnelId), 77);
    frame.truncate(13);
    assert_eq!(as_it_is(&frame), Err(FrameTooShort(13)));
    frame.set_packet_type(crate::PacketType::NSH);
    assert_eq!(as_it_is(&frame).unwrap().layers, Layers::default());
}

#[test]
fn tags_beyond_the_maximum_are_not_looked_behind() {
    let tags = "8100 0001".repeat(9) + "0800";
    let parsed = parsed(&tags);
    assert_eq!(parsed.layers.vlan_tags, MAX_VLAN_TAGS);
    assert_eq!(parsed.key.get(Field::EthType), 0x8100);
}

/// Returns IPv6 from ::1 to ::2 with traffic class 0xb9, flow label 0x12345 and next header `next`.
fn ipv6(next: &str, payload: &str) -> String {
    let length = bytes(payload).len();
    let address = "000000000000000000000000000000";
    format!("86dd 6b912345 {length:04x} {next} 40 {address}01 {address}02 {payload}")
}

#[test]
fn ipv6_extension_headers_in_order() {
    let padding = "00 010400000000";
    let chain = format!(
        "3c{padding} 2b{padding} 2c 00 0400 00000000 33 00 0001 00000000 06 01 0000 0000000000000000 1f90 0050 00000000 00000000 5002 0000 0000 0000"
    );
    let hex = ipv6("00", &chain);
    let all = ipv6_exthdr::HOP | ipv6_exthdr::DEST | ipv6_exthdr::ROUTER | ipv6_exthdr::FRAG | ipv6_exthdr::AUTH;
    let expected = [
        (Field::EthType, 0x86dd),
        (Field::IpDscp, 0x2e),
        (Field::IpEcn, 1),
        (Field::IpProto, 6),
        (Field::TcpSrc, 8080),
        (Field::TcpDst, 80),
        (Field::Ipv6Src, 1),
        (Field::Ipv6Dst, 2),
        (Field::Ipv6Flabel, 0x12345),
        (Field::Ipv6Exthdr, all.into()),
        (Field::TcpFlags, 2),
        (Field::IpFrag, ip_frag::ANY.into()),
    ];
    assert_eq!(fields(&hex), expected);
    assert_eq!(parsed(&hex).layers.transport, Some((TransportProtocol::Tcp, 98)));
}

#[test]
fn ipv6_extension_headers_out_of_order() {
    let exthdr = |next, payload: &str| {
        let key = parsed(&ipv6(next, payload)).key;
        (u64::try_from(key.get(Field::Ipv6Exthdr)).unwrap(), key.get(Field::IpProto))
    };
    use ipv6_exthdr::{DEST, ESP, FRAG, HOP, NONEXT, ROUTER, UNREP, UNSEQ};
    let rest = "00 010400000000";
    assert_eq!(exthdr("3b", ""), (NONEXT, 59));
    assert_eq!(exthdr("32", "00000001"), (ESP, 50));
    assert_eq!(exthdr("2b", &format!("00{rest} 3b{rest}")), (ROUTER | HOP | UNSEQ | NONEXT, 59));
    assert_eq!(exthdr("3c", &format!("2b{rest} 3c{rest} 3b{rest}")), (DEST | ROUTER | NONEXT, 59));
    assert_eq!(exthdr("3c", &format!("3c{rest} 3c{rest} 3b{rest}")), (DEST | UNREP | NONEXT, 59));
    assert_eq!(exthdr("2c", "11 00 fff9 00000001 04d2"), (FRAG, 44), "a later fragment");
    let too_many = format!("3c{rest}").repeat(17);
    assert_eq!(exthdr("3c", &too_many).1, 0);
    assert_eq!(exthdr("3c", "11 01 0104"), (0, 0), "cut short");
}

#[test]
fn neighbour_discovery() {
    let target = "fe80000000000000 0000000000000001";
    let nd = |kind: &str, options: &str| {
        let key = parsed(&ipv6("3a", &format!("{kind} 0000 00000000 {target} {options}"))).key;
        [Field::Ipv6NdTarget, Field::Ipv6NdSll, Field::Ipv6NdTll].map(|field| key.get(field))
    };
    let address = 0xfe80 << 112 | 1;
    let (source, destination) = ("0101 020000000001", "0201 020000000002");
    assert_eq!(nd("8700", source), [address, 0x0200_0000_0001, 0]);
    assert_eq!(nd("8800", &format!("{source} {destination}")), [address, 0, 0x0200_0000_0002]);
    assert_eq!(nd("8700", ""), [address, 0, 0]);
    assert_eq!(nd("8700", &format!("{source} {source}")), [0; 3], "twice");
    assert_eq!(nd("8700", "0100 020000000001"), [0; 3], "of length zero");
    assert_eq!(nd("8701", source), [0; 3], "another code");
}
