//! Packets that people describe: a frame in hexadecimal, or a match whose fields are made into a frame.
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_openflow::model::{Match, MatchField};
use weir_openflow::text;
use weir_packet::craft::{Craft, TcpHeader};
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::frame::MAX_FRAME;
use weir_packet::{Field, Frame, MacAddr};

/// Bytes of the payload, which nobody describes.
const PAYLOAD: [u8; 18] = [0; 18];

/// Reads a packet: hexadecimal digits (white space and colons do not count), or a description such as
/// `tcp,dl_vlan=5,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80`. What a description leaves out is zero, but for the time to
/// live: 64.
///
/// # Errors
/// What was found, and what was expected.
pub(super) fn frame(text: &str) -> Result<Frame, String> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    if digits.chars().all(|c| c.is_ascii_hexdigit()) && !digits.is_empty() {
        return hex(&digits);
    }
    let matching = text::parse_match(text)
        .map_err(|error| format!("neither hexadecimal digits nor a packet description: {error}"))?;
    craft(&matching)
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
    let values = Values(matching);
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
        other => packet.ether_type(other).payload(&[0; 46]),
    };
    Ok(packet.frame())
}

/// The values of a description; zero for what it leaves out.
struct Values<'a>(&'a Match);

impl Values<'_> {
    fn get(&self, field: Field) -> u128 {
        self.0.get(field).map_or(0, |(value, _)| value)
    }

    /// The value of a field that is not wider than the type asked for.
    fn number<T: TryFrom<u128> + Default>(&self, field: Field) -> T {
        self.get(field).try_into().unwrap_or_default()
    }

    fn mac(&self, field: Field) -> MacAddr {
        let [_, _, bytes @ ..] = self.number::<u64>(field).to_be_bytes();
        MacAddr(bytes)
    }

    fn link(&self) -> Craft {
        let packet = Craft::ethernet(self.mac(Field::EthDst), self.mac(Field::EthSrc));
        let packet = match self.0.get(Field::VlanVid) {
            Some((vid, _)) if vid != 0 => {
                packet.vlan(0x8100, self.number::<u16>(Field::VlanVid) & 0xfff, self.number(Field::VlanPcp))
            }
            _ => packet,
        };
        match self.0.get(Field::MplsLabel) {
            Some(_) => packet.mpls(self.number(Field::MplsLabel), self.number(Field::MplsTc), 64),
            None => packet,
        }
    }

    fn transport(&self, packet: Craft) -> Craft {
        let class = self.number::<u8>(Field::IpDscp) << 2 | self.number::<u8>(Field::IpEcn);
        let packet = packet.traffic_class(class);
        let packet = match self.number(Field::IpProto) {
            ip_proto::TCP => packet.tcp(TcpHeader {
                source: self.number(Field::TcpSrc),
                destination: self.number(Field::TcpDst),
                ..TcpHeader::default()
            }),
            ip_proto::UDP => packet.udp(self.number(Field::UdpSrc), self.number(Field::UdpDst)),
            ip_proto::SCTP => packet.sctp(self.number(Field::SctpSrc), self.number(Field::SctpDst)),
            ip_proto::ICMP => packet.icmp(self.number(Field::Icmpv4Type), self.number(Field::Icmpv4Code), [0; 4]),
            ip_proto::ICMPV6 => packet.icmp(self.number(Field::Icmpv6Type), self.number(Field::Icmpv6Code), [0; 4]),
            other => packet.ip_proto(other),
        };
        packet.payload(&PAYLOAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::{PortNo, parse};

    fn field(text: &str, field: Field) -> u128 {
        parse(frame(text).unwrap().bytes(), PortNo(1)).unwrap().key.get(field)
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
