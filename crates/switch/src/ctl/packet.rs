//! Makes packets from descriptions: a frame in hexadecimal, or a match whose fields are made into a frame.
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_openflow::model::{Match, MatchField};
use weir_openflow::text;
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::field::icmpv6_type::{NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION};
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::frame::MAX_FRAME;
use weir_packet::{Field, Frame, MacAddr, PacketType, ParsedHeaders, PortNo, edit};

/// Payload of described packets; a description cannot set it.
const PAYLOAD: [u8; 18] = [0; 18];

/// Input port for parsing a described frame. The parsed key's port is not used.
const ANY_PORT: PortNo = PortNo(1);

/// A packet to trace.
#[derive(Debug)]
pub struct DescribedPacket {
    /// Bytes of the packet.
    pub frame: Frame,
    /// Input port, if the description names one.
    pub in_port: Option<PortNo>,
}

/// Parses a packet: hexadecimal digits (white space and colons are ignored), or a description such as
/// `tcp,dl_vlan=5,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80`. Fields that the description leaves out are zero, except
/// the time to live, which is 64. Each described field is in the frame, or is refused by name.
///
/// # Errors
/// A message with the text found and the text expected.
pub fn described(text: &str) -> Result<DescribedPacket, String> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    if digits.chars().all(|c| c.is_ascii_hexdigit()) && !digits.is_empty() {
        return Ok(DescribedPacket { frame: hex(&digits)?, in_port: None });
    }
    let matching = text::parse_match(text)
        .map_err(|error| format!("neither hexadecimal digits nor a packet description: {error}"))?;
    let in_port = matching.get(Field::InPort).and_then(|(port, _)| u32::try_from(port).ok()).map(PortNo);
    Ok(DescribedPacket { frame: craft(&matching)?, in_port })
}

fn hex(digits: &str) -> Result<Frame, String> {
    if !digits.len().is_multiple_of(2) {
        return Err(format!("found {} hexadecimal digits, expected an even number", digits.len()));
    }
    if digits.len() / 2 > MAX_FRAME {
        return Err(format!("found {} bytes, expected at most {MAX_FRAME}", digits.len() / 2));
    }
    let pairs = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
    let bytes: Vec<u8> = pairs.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    Ok(Frame::from_bytes(&bytes))
}

fn craft(matching: &Match) -> Result<Frame, String> {
    for field in &matching.fields {
        match field {
            MatchField::Known { field, mask: Some(mask), .. } if *mask != field.all_ones() => {
                return Err(format!("{field:?} is masked; a packet has one value"));
            }
            MatchField::Known { .. } => {}
            MatchField::Raw(raw) => return Err(format!("field {} of class {:#x} is not known", raw.number, raw.class)),
        }
    }
    let values = DescribedFields(matching);
    let packet = values.link();
    let packet = match values.number(Field::EthType) {
        eth_type::IPV4 => {
            let (source, destination) = (values.number(Field::Ipv4Src), values.number(Field::Ipv4Dst));
            values.transport(packet.ipv4(Ipv4Addr::from_bits(source), Ipv4Addr::from_bits(destination)))
        }
        eth_type::IPV6 => {
            let (source, destination) = (values.get(Field::Ipv6Src), values.get(Field::Ipv6Dst));
            values.transport(packet.ipv6(Ipv6Addr::from_bits(source), Ipv6Addr::from_bits(destination)))
        }
        eth_type::ARP => packet.arp(
            values.number(Field::ArpOp),
            (values.mac(Field::ArpSha), Ipv4Addr::from_bits(values.number(Field::ArpSpa))),
            (values.mac(Field::ArpTha), Ipv4Addr::from_bits(values.number(Field::ArpTpa))),
        ),
        eth_type::NSH => packet.nsh(0, [0; 4], PacketType::ETHERNET).payload(&[0; 60]),
        other => packet.ether_type(other).payload(&[0; 46]),
    };
    let mut frame = packet.frame();
    if values.number::<u16>(Field::EthType) == eth_type::PBB {
        let layers = parsed(&frame)?.layers;
        edit::push_pbb(&mut frame, &layers, eth_type::PBB).map_err(|error| error.to_string())?;
    }
    write_fields(&mut frame, matching)?;
    Ok(frame)
}

fn parsed(frame: &Frame) -> Result<ParsedHeaders, String> {
    ParsedHeaders::of(frame, ANY_PORT).map_err(|error| error.to_string())
}

/// Writes each described field to the frame's headers, then checks that parsing the frame yields all of them.
fn write_fields(frame: &mut Frame, matching: &Match) -> Result<(), String> {
    let known = |entry: &MatchField| match entry {
        MatchField::Known { field, value, .. } => Some((*field, *value)).filter(|(field, _)| *field != Field::InPort),
        MatchField::Raw(_) => None,
    };
    let fields: Vec<(Field, u128)> = matching.fields.iter().filter_map(known).collect();
    // Fields that decide which headers exist are skipped, because writing them would remove those headers. Labels are
    // crafted as those of unicast packets, so only the multicast type is written.
    let is_header = |(field, value): &(Field, u128)| match field {
        Field::EthType => *value == u128::from(eth_type::MPLS_MULTICAST),
        field => !matches!(field, Field::IpProto | Field::VlanVid),
    };
    for (field, value) in fields.iter().copied().filter(is_header) {
        let layers = parsed(frame)?.layers;
        edit::set_field(frame, &layers, field, value);
    }
    let key = parsed(frame)?.key;
    let missing = fields.iter().find(|(field, value)| key.get(*field) != *value);
    missing.map_or(Ok(()), |(field, value)| {
        Err(format!(
            "{field}={value:#x} cannot be described, expected a field of the packet's headers; the frame's bytes in hexadecimal say all of it"
        ))
    })
}

/// Values of a description; zero for fields that it leaves out.
struct DescribedFields<'a>(&'a Match);

impl DescribedFields<'_> {
    fn get(&self, field: Field) -> u128 {
        self.0.get(field).map_or(0, |(value, _)| value)
    }

    /// Returns the value of a field that is not wider than `T`.
    fn number<T: TryFrom<u128> + Default>(&self, field: Field) -> T {
        self.get(field).try_into().unwrap_or_default()
    }

    fn mac(&self, field: Field) -> MacAddr {
        let [_, _, bytes @ ..] = self.number::<u64>(field).to_be_bytes();
        MacAddr(bytes)
    }

    fn link(&self) -> FrameBuilder {
        let packet = FrameBuilder::ethernet(self.mac(Field::EthDst), self.mac(Field::EthSrc));
        let packet = match self.0.get(Field::VlanVid) {
            Some((vid, _)) if vid != 0 => {
                packet.vlan(0x8100, self.number::<u16>(Field::VlanVid) & 0xfff, self.number(Field::VlanPcp))
            }
            _ => packet,
        };
        match self.number(Field::EthType) {
            eth_type::MPLS | eth_type::MPLS_MULTICAST => {
                packet.mpls(self.number(Field::MplsLabel), self.number(Field::MplsTc), 64)
            }
            _ => packet,
        }
    }

    fn transport(&self, packet: FrameBuilder) -> FrameBuilder {
        let class = self.number::<u8>(Field::IpDscp) << 2 | self.number::<u8>(Field::IpEcn);
        let packet = packet.traffic_class(class);
        let packet = match self.number(Field::IpProto) {
            ip_proto::TCP => packet.tcp(TcpHeader {
                source: self.number(Field::TcpSrc),
                destination: self.number(Field::TcpDst),
                flags: self.number(Field::TcpFlags),
                ..TcpHeader::default()
            }),
            ip_proto::UDP => packet.udp(self.number(Field::UdpSrc), self.number(Field::UdpDst)),
            ip_proto::SCTP => packet.sctp(self.number(Field::SctpSrc), self.number(Field::SctpDst)),
            ip_proto::ICMP => packet.icmp(self.number(Field::Icmpv4Type), self.number(Field::Icmpv4Code), [0; 4]),
            ip_proto::ICMPV6
                if matches!(self.number::<u8>(Field::Icmpv6Type), NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT) =>
            {
                return self.neighbour_discovery(packet);
            }
            ip_proto::ICMPV6 => packet.icmp(self.number(Field::Icmpv6Type), self.number(Field::Icmpv6Code), [0; 4]),
            other => packet.ip_proto(other),
        };
        packet.payload(&PAYLOAD)
    }

    /// Builds a neighbour solicitation or advertisement (RFC 4861, 4.3 and 4.4) with the option that may carry a
    /// link-layer address.
    fn neighbour_discovery(&self, packet: FrameBuilder) -> FrameBuilder {
        let kind = self.number(Field::Icmpv6Type);
        let option = if kind == NEIGHBOUR_SOLICITATION { [1, 1] } else { [2, 1] };
        // The target and the link-layer address are written later, like other fields.
        let body = [&[0; 16][..], &option, &[0; 6]].concat();
        packet.icmp(kind, self.number(Field::Icmpv6Code), [0; 4]).payload(&body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::parse;

    fn frame(text: &str) -> Result<Frame, String> {
        described(text).map(|described| described.frame)
    }

    fn field(text: &str, field: Field) -> u128 {
        parse(frame(text).unwrap().bytes(), PortNo(1)).unwrap().key.get(field)
    }

    /// A packet for each field, which has the field with a value that is no default.
    const FIELDS: [&str; 48] = [
        "dl_src=02:00:00:00:00:01",
        "dl_dst=02:00:00:00:00:02",
        "dl_type=0x88cc",
        "dl_vlan=5",
        "dl_vlan=5,dl_vlan_pcp=3",
        "mpls,mpls_label=77",
        "mpls,mpls_tc=5",
        "mpls,mpls_bos=1",
        "mpls,mpls_bos=0",
        "mplsm,mpls_label=9",
        "dl_type=0x88e7,pbb_isid=0x123456",
        "dl_type=0x88e7,pbb_uca=1",
        "dl_type=0x894f,nsh_spi=7",
        "dl_type=0x894f,nsh_si=200",
        "dl_type=0x894f,nsh_c1=1",
        "dl_type=0x894f,nsh_c4=4",
        "arp,arp_op=2",
        "arp,arp_spa=10.0.0.1",
        "arp,arp_tpa=10.0.0.2",
        "arp,arp_sha=02:00:00:00:00:03",
        "arp,arp_tha=02:00:00:00:00:04",
        "ip,nw_proto=89",
        "ip,nw_src=10.0.0.1",
        "ip,nw_dst=10.0.0.2",
        "ip,ip_dscp=46",
        "ip,nw_ecn=3",
        "tcp,tp_src=1",
        "tcp,tp_dst=2",
        "tcp,tcp_flags=0x12",
        "udp,tp_src=1",
        "udp,tp_dst=2",
        "sctp,tp_src=1",
        "sctp,tp_dst=2",
        "icmp,icmp_type=8",
        "icmp,icmp_code=4",
        "ipv6,ipv6_src=fd00::1",
        "ipv6,ipv6_dst=fd00::2",
        "ipv6,ipv6_label=0x12345",
        "ipv6,nw_proto=89",
        "tcp6,tp_dst=2",
        "tcp6,tcp_flags=0x2",
        "udp6,tp_src=1",
        "sctp6,tp_src=1",
        "icmp6,icmpv6_type=128",
        "icmp6,icmp_type=135,nd_target=fd00::1",
        "icmp6,icmp_type=135,nd_sll=02:00:00:00:00:05",
        "icmp6,icmp_type=136,nd_target=fd00::1",
        "icmp6,icmp_type=136,nd_tll=02:00:00:00:00:06",
    ];

    #[test]
    fn every_header_field_is_in_the_frame() {
        for text in FIELDS {
            let matching = text::parse_match(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let frame = frame(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let key = ParsedHeaders::of(&frame, PortNo(1)).unwrap().key;
            for entry in &matching.fields {
                let MatchField::Known { field, value, .. } = entry else { unreachable!("all fields are known") };
                assert_eq!(key.get(*field), *value, "{field} of {text}");
            }
            weir_packet::checksum::verify(frame.bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        }
    }

    #[test]
    fn what_no_frame_holds_is_refused_by_name() {
        for (text, name) in [
            ("metadata=5", "metadata"),
            ("tunnel_id=7", "tunnel_id"),
            ("tun_src=10.0.0.1", "tun_src"),
            ("reg0=1", "reg0"),
            ("xxreg1=1", "xxreg1"),
            ("ip,nw_frag=later", "ip_frag"),
            ("ipv6,ipv6_exthdr=1", "ipv6_exthdr"),
            ("tcp,tcp_flags=0x100", "tcp_flags"),
            ("in_port=1,in_phy_port=2", "in_phy_port"),
        ] {
            let error = frame(text).unwrap_err();
            assert!(error.contains(name), "{text}: {error}");
        }
    }

    #[test]
    fn the_port_is_told() {
        assert_eq!(described("in_port=3,tcp").unwrap().in_port, Some(PortNo(3)));
        assert_eq!(described("tcp").unwrap().in_port, None);
    }

    #[test]
    fn descriptions_become_the_packets_they_describe() {
        let tcp = "tcp,dl_vlan=5,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80";
        assert_eq!(field(tcp, Field::VlanVid), 0x1005);
        assert_eq!(field(tcp, Field::EthSrc), 0x0200_0000_0001);
        assert_eq!(field(tcp, Field::Ipv4Dst), 0x0a00_0002);
        assert_eq!(field(tcp, Field::TcpDst), 80);
        assert_eq!(field("udp6,ipv6_dst=::2,tp_src=53", Field::UdpSrc), 53);
        assert_eq!(field("arp,arp_op=1,arp_tpa=10.0.0.9", Field::ArpTpa), 0x0a00_0009);
        assert_eq!(field("icmp,icmp_type=8", Field::Icmpv4Type), 8);
        assert_eq!(field("dl_type=0x88cc", Field::EthType), 0x88cc);
    }

    #[test]
    fn hexadecimal_is_taken_as_it_is() {
        let text = "ff:ff:ff:ff:ff:ff 020000000001 0806";
        assert_eq!(frame(text).unwrap().bytes(), b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x08\x06");
    }

    #[test]
    fn what_is_not_one_packet_is_refused() {
        for (wrong, reason) in
            [("abc", "even number"), ("ip,nw_src=10.0.0.0/8", "masked"), ("tpc", "neither"), ("icpm", "`icmp`?")]
        {
            let error = frame(wrong).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
