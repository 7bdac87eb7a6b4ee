//! Prints matches in the order and spelling of `ovs-ofctl`.
use super::{field_value, matching, raw};
use crate::model::{Match, MatchField, Version};
use std::fmt::Write as _;
use weir_packet::Field;
use weir_packet::field::VLAN_PRESENT;

/// A match being printed: the fields not printed yet, and the text.
struct MatchPrinter<'a> {
    unprinted: Vec<&'a MatchField>,
    text: String,
}

/// Prints a match, with commas between fields; returns an empty text for a match of every packet.
pub(super) fn write(matching: &Match, version: Version) -> String {
    let mut writer = MatchPrinter { unprinted: matching.fields.iter().collect(), text: String::new() };
    let arp = protocol(matching).is_some_and(|(name, _)| name.ends_with("arp"));
    writer.put_field(Field::PacketType, Field::PacketType.name());
    writer.put_field(Field::PktMark, "pkt_mark");
    writer.put_protocol(matching);
    for register in Field::ALL.into_iter().filter(|field| field.is_register()) {
        writer.put_field(register, register.name());
    }
    for field in [Field::TunnelId, Field::TunSrc, Field::TunDst, Field::Metadata, Field::InPort, Field::InPhyPort] {
        writer.put_field(field, field_value::set_name(field));
    }
    writer.put_vlan(version);
    writer.put_field(Field::EthSrc, "dl_src");
    writer.put_field(Field::EthDst, "dl_dst");
    writer.put_field(Field::EthType, "dl_type");
    for (field, name) in [(Field::Ipv4Src, "nw_src"), (Field::Ipv4Dst, "nw_dst")] {
        if matching.has_prerequisite(field) {
            writer.put_field(field, name);
        }
    }
    writer.put_fields(&[Field::Ipv6Src, Field::Ipv6Dst, Field::Ipv6Flabel, Field::ArpSpa, Field::ArpTpa]);
    writer.put_fields(if arp { &[Field::ArpOp, Field::ArpSha, Field::ArpTha] } else { &[Field::IpProto] });
    writer.put_type_of_service();
    writer.put_fields(&[Field::IpEcn, Field::MplsLabel, Field::MplsTc, Field::MplsBos]);
    writer.put_field(Field::IpFrag, "nw_frag");
    writer.put_transport(matching);
    writer.put_fields(&[Field::Ipv6NdTarget, Field::Ipv6NdSll, Field::Ipv6NdTll, Field::TcpFlags]);
    writer.put_others();
    writer.text
}

/// Returns the word for the matched protocol, and how many of the fields `eth_type` and `ip_proto` it stands for.
fn protocol(matching: &Match) -> Option<(&'static str, usize)> {
    let exact = |field| matching.get(field).filter(|(_, mask)| *mask == Field::all_ones(field)).map(|(value, _)| value);
    let eth = exact(Field::EthType)?;
    let proto = exact(Field::IpProto);
    // `ovs-ofctl` has no word for PBB; `ipv4` is a synonym of `ip`.
    let words = matching::PROTOCOLS.into_iter().filter(|(name, _, _)| !matches!(*name, "pbb" | "ipv4"));
    let same_eth: Vec<_> = words.filter(|(_, word_eth, _)| u128::from(*word_eth) == eth).collect();
    let both = same_eth.iter().find(|(_, _, p)| p.is_some() && p.map(u128::from) == proto);
    both.map(|(name, _, _)| (*name, 2)).or(same_eth.first().map(|(name, _, _)| (*name, 1)))
}

impl<'a> MatchPrinter<'a> {
    fn put(&mut self, key: &str, value: &str) {
        let comma = if self.text.is_empty() { "" } else { "," };
        let equals = if value.is_empty() { "" } else { "=" };
        let _ = write!(self.text, "{comma}{key}{equals}{value}");
    }

    /// Removes a field from the fields not printed yet, and returns its value and mask.
    fn take(&mut self, wanted: Field) -> Option<(u128, Option<u128>)> {
        let at = self
            .unprinted
            .iter()
            .position(|entry| matches!(entry, MatchField::Known { field, .. } if *field == wanted))?;
        match self.unprinted.remove(at) {
            MatchField::Known { value, mask, .. } => Some((*value, *mask)),
            MatchField::Raw(_) => None,
        }
    }

    fn put_field(&mut self, field: Field, name: &str) {
        if let Some((value, mask)) = self.take(field) {
            self.put(name, &field_value::match_text(field, value, mask));
        }
    }

    fn put_fields(&mut self, fields: &[Field]) {
        for field in fields {
            self.put_field(*field, field_value::set_name(*field));
        }
    }

    fn put_protocol(&mut self, matching: &Match) {
        if let Some((name, count)) = protocol(matching) {
            self.put(name, "");
            for field in [Field::EthType, Field::IpProto].into_iter().take(count) {
                self.take(field);
            }
        }
    }

    /// Prints the VLAN tag as `dl_vlan` and `dl_vlan_pcp` if these can express it, otherwise as bits of the whole
    /// tag.
    fn put_vlan(&mut self, version: Version) {
        let present = u128::from(VLAN_PRESENT);
        let vid = self.take(Field::VlanVid).map(|(value, mask)| (value, mask.unwrap_or(Field::VlanVid.all_ones())));
        let pcp = self.take(Field::VlanPcp).map(|(value, _)| value);
        let (vid, pcp) = match self.take(Field::VlanTci) {
            None => (vid, pcp),
            Some((value, mask)) => {
                // Fields for parts of the tag may be present as well, with other bits.
                let (vid, vid_mask) = vid.unwrap_or_default();
                let (pcp, pcp_mask) = pcp.map_or((0, 0), |pcp| (pcp << 13, 0xe000));
                let (value, mask) = (value | vid | pcp, mask.unwrap_or(0xffff) | vid_mask | pcp_mask);
                match mask >> 13 {
                    0 => (Some((value & 0x1fff, mask & 0x1fff)), None),
                    7 => (Some((value & 0x1fff, mask & 0x1fff)), Some(value >> 13)),
                    _ => return self.put("vlan_tci", &format!("0x{value:04x}/0x{mask:04x}")),
                }
            }
        };
        match (vid, pcp) {
            (None, None) => {}
            // In 1.0, a match on packets without tag covers all bits of the tag.
            (Some((0, 0x1fff)), None) if version == Version::V10 => self.put("vlan_tci", "0x0000"),
            (Some((value, 0x1fff)), pcp) if value & present != 0 => {
                self.put("dl_vlan", &(value & 0xfff).to_string());
                if let Some(pcp) = pcp {
                    self.put("dl_vlan_pcp", &pcp.to_string());
                }
            }
            (Some((0x1000, 0x1000)), Some(pcp)) => self.put("dl_vlan_pcp", &pcp.to_string()),
            (None, Some(pcp)) => self.put("vlan_pcp", &pcp.to_string()),
            (Some((value, mask)), pcp) => {
                let value = value | pcp.unwrap_or(0) << 13;
                let mask = mask | if pcp.is_some() { 0xe000 } else { 0 };
                self.put("vlan_tci", &format!("0x{value:04x}/0x{mask:04x}"));
            }
        }
    }

    fn put_type_of_service(&mut self) {
        if let Some((dscp, _)) = self.take(Field::IpDscp) {
            self.put("nw_tos", &(dscp << 2).to_string());
        }
    }

    /// Prints ports as `tp_src` and `tp_dst`, and ICMP type and code as `icmp_type` and `icmp_code`, if the match
    /// contains the protocol they depend on.
    fn put_transport(&mut self, matching: &Match) {
        const FIELDS: [(Field, &str); 10] = [
            (Field::TcpSrc, "tp_src"),
            (Field::TcpDst, "tp_dst"),
            (Field::UdpSrc, "tp_src"),
            (Field::UdpDst, "tp_dst"),
            (Field::SctpSrc, "tp_src"),
            (Field::SctpDst, "tp_dst"),
            (Field::Icmpv4Type, "icmp_type"),
            (Field::Icmpv4Code, "icmp_code"),
            (Field::Icmpv6Type, "icmp_type"),
            (Field::Icmpv6Code, "icmp_code"),
        ];
        for (field, name) in FIELDS {
            if matching.has_prerequisite(field) {
                self.put_field(field, name);
            }
        }
    }

    /// Prints the remaining fields: fields whose prerequisites are missing, and fields that weir does not know.
    fn put_others(&mut self) {
        for entry in std::mem::take(&mut self.unprinted) {
            match entry {
                MatchField::Known { field, value, mask } => {
                    self.put(field.name(), &field_value::match_text(*field, *value, *mask));
                }
                MatchField::Raw(field) => self.put(&raw::name(field), &raw::hex(&field.payload.0)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::field::{eth_type, ip_proto};

    #[test]
    fn fields_come_in_the_order_of_ovs() {
        let matching = Match::any()
            .with(Field::TcpDst, 80_u16)
            .with(Field::InPort, 1_u32)
            .with(Field::IpProto, ip_proto::TCP)
            .with(Field::EthType, eth_type::IPV4)
            .with(Field::VlanVid, VLAN_PRESENT | 5)
            .with_masked(Field::Ipv4Dst, 0x0a00_0000_u32, 0xff00_0000_u32);
        assert_eq!(write(&matching, Version::V13), "tcp,in_port=1,dl_vlan=5,nw_dst=10.0.0.0/8,tp_dst=80");
    }

    #[test]
    fn packet_types_come_first() {
        let text = "packet_type=(1,0x800),nw_dst=1.2.3.4";
        let matching = crate::text::parse_match(text).unwrap();
        assert_eq!(matching.fields.first(), Match::any().with(Field::PacketType, 0x1_0800_u32).fields.first());
        assert_eq!(write(&matching, Version::V13), text);
        let nsh =
            "dl_type=0x894f,nsh_flags=1,nsh_ttl=5,nsh_mdtype=1,nsh_np=3,nsh_spi=0x123456,nsh_si=255,nsh_c1=0x44/0xff";
        assert_eq!(write(&crate::text::parse_match(nsh).unwrap(), Version::V13), nsh);
    }

    #[test]
    fn a_field_without_its_prerequisite_keeps_its_own_name() {
        let matching = Match::any().with(Field::TcpDst, 80_u16).with(Field::VlanPcp, 3_u8).with(Field::Ipv4Src, 1_u32);
        assert_eq!(write(&matching, Version::V13), "vlan_pcp=3,tcp_dst=80,ipv4_src=0.0.0.1");
    }
}
