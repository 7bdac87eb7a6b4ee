//! Reads and writes `ofp_match` (OpenFlow 1.0.0, 5.2.3): twelve fields at fixed places, and a bitmap of the fields
//! that are wildcards.
//!
//! A field whose prerequisites are not matched is ignored, whatever its value (OpenFlow 1.0.1, 3.4). The network
//! fields mean IPv4's or ARP's, depending on `dl_type`. The transport fields mean TCP's, UDP's, SCTP's or ICMP's,
//! depending on `nw_proto`. For IPv6, all network and transport fields except the addresses apply, as in Open
//! vSwitch. For `nw_src` and `nw_dst`, the bitmap holds the number of low bits that are wildcards.
use super::port;
use crate::model::{Match, MatchField};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};
use weir_packet::{Field, MacAddr};

const IN_PORT: u32 = 1 << 0;
const DL_VLAN: u32 = 1 << 1;
const DL_SRC: u32 = 1 << 2;
const DL_DST: u32 = 1 << 3;
const DL_TYPE: u32 = 1 << 4;
const NW_PROTO: u32 = 1 << 5;
const TP_SRC: u32 = 1 << 6;
const TP_DST: u32 = 1 << 7;
const NW_SRC_SHIFT: u32 = 8;
const NW_DST_SHIFT: u32 = 14;
/// Mask of the two bit counts. From 32 on, the whole address is a wildcard.
const NW_COUNT: u32 = 0x3f;
const DL_VLAN_PCP: u32 = 1 << 20;
const NW_TOS: u32 = 1 << 21;
/// All wildcards, `OFPFW_ALL`.
const ALL: u32 = (1 << 22) - 1;
/// `dl_vlan` of packets without tag (`OFP_VLAN_NONE`).
const VLAN_NONE: u16 = 0xffff;
/// Bits of the VLAN id.
const VID_MASK: u16 = 0x0fff;

/// The fields in wire format.
#[derive(Default)]
struct V10Match {
    wildcards: u32,
    in_port: u16,
    dl_src: MacAddr,
    dl_dst: MacAddr,
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: u32,
    nw_dst: u32,
    tp_src: u16,
    tp_dst: u16,
}

pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<Match> {
    let layout = V10Match::read(reader)?;
    let mut fields = Match::any();
    layout.add_ethernet(&mut fields);
    layout.add_vlan(&mut fields);
    layout.add_network(&mut fields);
    layout.add_transport(&mut fields);
    Ok(fields)
}

/// Returns the fields that the transport fields stand for.
fn transport(dl_type: u16, nw_proto: u8) -> Option<(Field, Field)> {
    match (dl_type, nw_proto) {
        (eth_type::IPV4 | eth_type::IPV6, ip_proto::TCP) => Some((Field::TcpSrc, Field::TcpDst)),
        (eth_type::IPV4 | eth_type::IPV6, ip_proto::UDP) => Some((Field::UdpSrc, Field::UdpDst)),
        (eth_type::IPV4 | eth_type::IPV6, ip_proto::SCTP) => Some((Field::SctpSrc, Field::SctpDst)),
        (eth_type::IPV4, ip_proto::ICMP) => Some((Field::Icmpv4Type, Field::Icmpv4Code)),
        (eth_type::IPV6, ip_proto::ICMPV6) => Some((Field::Icmpv6Type, Field::Icmpv6Code)),
        _ => None,
    }
}

impl V10Match {
    fn read(reader: &mut WireReader<'_>) -> Decoded<V10Match> {
        let (wildcards, in_port) = (reader.read_u32()?, reader.read_u16()?);
        let (dl_src, dl_dst) = (reader.read_mac()?, reader.read_mac()?);
        let (dl_vlan, dl_vlan_pcp) = (reader.read_u16()?, reader.read_u8()?);
        reader.skip(1)?;
        let (dl_type, nw_tos, nw_proto) = (reader.read_u16()?, reader.read_u8()?, reader.read_u8()?);
        reader.skip(2)?;
        let (nw_src, nw_dst) = (reader.read_u32()?, reader.read_u32()?);
        let (tp_src, tp_dst) = (reader.read_u16()?, reader.read_u16()?);
        Ok(V10Match {
            wildcards,
            in_port,
            dl_src,
            dl_dst,
            dl_vlan,
            dl_vlan_pcp,
            dl_type,
            nw_tos,
            nw_proto,
            nw_src,
            nw_dst,
            tp_src,
            tp_dst,
        })
    }

    fn write(&self, writer: &mut WireWriter<'_>) {
        writer.write_u32(self.wildcards);
        writer.write_u16(self.in_port);
        writer.write_mac(self.dl_src);
        writer.write_mac(self.dl_dst);
        writer.write_u16(self.dl_vlan);
        writer.write_u8(self.dl_vlan_pcp);
        writer.write_zeros(1);
        writer.write_u16(self.dl_type);
        writer.write_u8(self.nw_tos);
        writer.write_u8(self.nw_proto);
        writer.write_zeros(2);
        writer.write_u32(self.nw_src);
        writer.write_u32(self.nw_dst);
        writer.write_u16(self.tp_src);
        writer.write_u16(self.tp_dst);
    }

    fn matches(&self, wildcard: u32) -> bool {
        self.wildcards & wildcard == 0
    }

    fn add_ethernet(&self, fields: &mut Match) {
        let known = [
            (IN_PORT, Field::InPort, u64::from(port::from_wire(self.in_port).0)),
            (DL_DST, Field::EthDst, self.dl_dst.to_bits()),
            (DL_SRC, Field::EthSrc, self.dl_src.to_bits()),
            (DL_TYPE, Field::EthType, self.dl_type.into()),
        ];
        for (_, field, value) in known.into_iter().filter(|(wildcard, ..)| self.matches(*wildcard)) {
            fields.fields.push(MatchField::Known { field, value: value.into(), mask: None });
        }
    }

    /// Adds the VLAN fields. A priority without id matches any tag with that priority. A match on packets without tag
    /// ignores the priority; if the priority is a wildcard, the VLAN id gets an explicit mask of all bits, so that a
    /// flow entry is encoded as it was received (5.4.3).
    fn add_vlan(&self, fields: &mut Match) {
        let (value, mask) = match (self.matches(DL_VLAN), self.matches(DL_VLAN_PCP)) {
            (true, true) if self.dl_vlan == VLAN_NONE => (0, None),
            (true, false) if self.dl_vlan == VLAN_NONE => (0, Some(Field::VlanVid.all_ones())),
            (true, _) => (self.dl_vlan & VID_MASK | VLAN_PRESENT, None),
            (false, true) => (VLAN_PRESENT, Some(VLAN_PRESENT.into())),
            (false, false) => return,
        };
        fields.fields.push(MatchField::Known { field: Field::VlanVid, value: value.into(), mask });
        if value == 0 {
            return;
        }
        if self.matches(DL_VLAN_PCP) {
            let value = u128::from(self.dl_vlan_pcp & 7);
            fields.fields.push(MatchField::Known { field: Field::VlanPcp, value, mask: None });
        }
    }

    fn add_network(&self, fields: &mut Match) {
        let mut add = |field, value: u8| {
            fields.fields.push(MatchField::Known { field, value: value.into(), mask: None });
        };
        let addresses = match self.dl_type {
            _ if !self.matches(DL_TYPE) => return,
            eth_type::IPV4 => [Field::Ipv4Src, Field::Ipv4Dst],
            eth_type::ARP | eth_type::RARP => [Field::ArpSpa, Field::ArpTpa],
            // 1.0 has no IPv6 addresses.
            eth_type::IPV6 => [Field::Ipv6Src, Field::Ipv6Dst],
            _ => return,
        };
        let is_ip = addresses[0] != Field::ArpSpa;
        if is_ip && self.matches(NW_TOS) {
            add(Field::IpDscp, self.nw_tos >> 2);
        }
        if self.matches(NW_PROTO) {
            add(if is_ip { Field::IpProto } else { Field::ArpOp }, self.nw_proto);
        }
        if self.dl_type != eth_type::IPV6 {
            add_address(addresses[0], self.nw_src, self.wildcards >> NW_SRC_SHIFT, fields);
            add_address(addresses[1], self.nw_dst, self.wildcards >> NW_DST_SHIFT, fields);
        }
    }

    fn add_transport(&self, fields: &mut Match) {
        if !self.matches(DL_TYPE | NW_PROTO) {
            return;
        }
        let Some((source, destination)) = transport(self.dl_type, self.nw_proto) else { return };
        for (wildcard, field, value) in [(TP_SRC, source, self.tp_src), (TP_DST, destination, self.tp_dst)] {
            if self.matches(wildcard) {
                // Only the low 8 of the 16 bits count for an ICMP type or code (5.2.3).
                let value = u128::from(value) & field.all_ones();
                fields.fields.push(MatchField::Known { field, value, mask: None });
            }
        }
    }

    /// Sets a field; returns `None` if 1.0 cannot express it.
    #[expect(clippy::cast_possible_truncation, reason = "values were checked against their fields' widths")]
    fn set(&mut self, field: Field, value: u128, mask: u128) -> Option<()> {
        let exact = mask == field.all_ones();
        match field {
            Field::Ipv4Src | Field::ArpSpa => {
                self.nw_src = value as u32;
                self.count(NW_SRC_SHIFT, mask as u32)?;
            }
            Field::Ipv4Dst | Field::ArpTpa => {
                self.nw_dst = value as u32;
                self.count(NW_DST_SHIFT, mask as u32)?;
            }
            Field::VlanVid => self.set_vlan(value as u16, mask as u16)?,
            _ if !exact => return None,
            Field::InPort => {
                self.in_port = port::to_wire(weir_packet::PortNo(value as u32))?;
                self.wildcards &= !IN_PORT;
            }
            Field::EthDst => {
                self.dl_dst = MacAddr::from_bits(value as u64);
                self.wildcards &= !DL_DST;
            }
            Field::EthSrc => {
                self.dl_src = MacAddr::from_bits(value as u64);
                self.wildcards &= !DL_SRC;
            }
            Field::EthType => {
                self.dl_type = value as u16;
                self.wildcards &= !DL_TYPE;
            }
            Field::VlanPcp => {
                self.dl_vlan_pcp = value as u8;
                self.wildcards &= !DL_VLAN_PCP;
            }
            Field::IpDscp => {
                self.nw_tos = (value as u8) << 2;
                self.wildcards &= !NW_TOS;
            }
            Field::IpProto | Field::ArpOp => {
                self.nw_proto = u8::try_from(value).ok()?;
                self.wildcards &= !NW_PROTO;
            }
            Field::TcpSrc | Field::UdpSrc | Field::SctpSrc | Field::Icmpv4Type | Field::Icmpv6Type => {
                self.tp_src = value as u16;
                self.wildcards &= !TP_SRC;
            }
            Field::TcpDst | Field::UdpDst | Field::SctpDst | Field::Icmpv4Code | Field::Icmpv6Code => {
                self.tp_dst = value as u16;
                self.wildcards &= !TP_DST;
            }
            _ => return None,
        }
        Some(())
    }

    /// Sets the VLAN id: no tag, or a tag with this id. A match on any tag is only possible with a priority;
    /// [`encode`] checks that.
    fn set_vlan(&mut self, value: u16, mask: u16) -> Option<()> {
        match (value, mask) {
            (0, 0x1fff) => self.dl_vlan = VLAN_NONE,
            (_, 0x1fff) => self.dl_vlan = value & VID_MASK,
            (VLAN_PRESENT, VLAN_PRESENT) => return Some(()),
            _ => return None,
        }
        self.wildcards &= !DL_VLAN;
        Some(())
    }

    /// Sets the number of low address bits that are wildcards; returns `None` if the mask is not a prefix.
    fn count(&mut self, shift: u32, mask: u32) -> Option<()> {
        let low = mask.trailing_zeros();
        if mask.leading_ones() + low != 32 {
            return None;
        }
        self.wildcards = self.wildcards & !(NW_COUNT << shift) | low << shift;
        Some(())
    }
}

/// Adds an address whose low `wildcards & 0x3f` bits are wildcards, unless all bits are.
fn add_address(field: Field, address: u32, wildcards: u32, fields: &mut Match) {
    let Some(mask) = u32::MAX.checked_shl(wildcards & NW_COUNT) else { return };
    let value = u128::from(address & mask);
    let mask = (mask != u32::MAX).then_some(mask.into());
    fields.fields.push(MatchField::Known { field, value, mask });
}

/// Writes a match. Wildcard fields are zero. The bit count of an address that is a wildcard is 32 if `dl_type` is
/// matched, as in Open vSwitch, otherwise all ones, so that a match of every packet has `OFPFW_ALL`.
pub(crate) fn encode(matching: &Match, writer: &mut WireWriter<'_>) -> Encoded {
    if let Err(error) = matching.key_and_mask() {
        return Err(writer.cannot(format!("a match that is not valid: {error:?}")));
    }
    let mut layout = V10Match { wildcards: ALL, ..V10Match::default() };
    if matching.get(Field::EthType).is_some() {
        layout.wildcards &= !(31 << NW_SRC_SHIFT | 31 << NW_DST_SHIFT);
    }
    for entry in &matching.fields {
        let MatchField::Known { field, value, mask } = entry else {
            return Err(writer.cannot("a field unknown to weir"));
        };
        if (*field, *value, *mask) == (Field::VlanVid, 0, None) {
            layout.wildcards &= !DL_VLAN_PCP;
        }
        let mask = mask.unwrap_or(field.all_ones());
        if mask != 0 && layout.set(*field, *value, mask).is_none() {
            return Err(writer.cannot(format!("a match on {field} {value:#x}, mask {mask:#x}")));
        }
    }
    if matching.get(Field::VlanVid).is_some_and(|(_, mask)| mask == VLAN_PRESENT.into()) && !layout.matches(DL_VLAN_PCP)
    {
        return Err(writer.cannot("a match on any VLAN tag without its priority"));
    }
    layout.write(writer);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::model::{Body, FlowMod, Match};
    use crate::{Message, Version, decode, encode};
    use weir_packet::Field;
    use weir_packet::field::{eth_type, ip_proto};

    /// Clause 5.2.3: "only lower 8 bits used for ICMP type" and code.
    #[test]
    fn of_an_icmp_type_the_low_bits_count() {
        let icmp = Match::any()
            .with(Field::EthType, u32::from(eth_type::IPV4))
            .with(Field::IpProto, u32::from(ip_proto::ICMP))
            .with(Field::Icmpv4Type, 8_u32)
            .with(Field::Icmpv4Code, 3_u32);
        let body = Body::FlowMod(FlowMod::add(5, icmp.clone(), vec![]));
        let mut bytes = Vec::new();
        encode(&Message { xid: 1, body }, Version::V10, &mut bytes).unwrap();
        // The 40-byte match follows the header and ends with tp_src and tp_dst.
        assert_eq!(bytes[44..48], [0, 8, 0, 3]);
        (bytes[44], bytes[46]) = (1, 0xff);
        let Body::FlowMod(read) = decode(&bytes).unwrap().body else { panic!("another message") };
        assert_eq!(read.matching, icmp);
    }
}
