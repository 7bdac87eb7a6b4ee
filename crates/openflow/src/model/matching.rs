//! Defines matches: the list of fields in a message, and its conversion to the key and mask that tables use.
use super::error::{BadMatch, ErrorType};
use super::numbered::numbered_enum;
use super::{Bytes, wide};
use serde::Serialize;
use weir_packet::field::{Prerequisite, VLAN_PRESENT, eth_type, ip_proto};
use weir_packet::{Field, FlowKey, FlowMask, PacketType};

/// Match of a flow entry. Fields keep the order received, so that encoding reproduces the bytes decoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(transparent)]
pub struct Match {
    /// Fields, each at most once. An empty list matches every packet.
    pub fields: Vec<MatchField>,
}

/// A field of a match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum MatchField {
    /// A field that weir knows. Value and mask are right-aligned: they use the low [`Field::bits`] bits.
    Known {
        /// Field to compare.
        field: Field,
        /// Value that the packet's field must have in the bits of the mask.
        #[serde(serialize_with = "wide::value")]
        value: u128,
        /// Bits that count; `None` for all.
        #[serde(serialize_with = "wide::mask")]
        mask: Option<u128>,
    },
    /// A field that weir does not know, kept as received.
    Raw(RawField),
}

numbered_enum! {
    /// Class of a field, `OFPXMC_*` (OpenFlow 1.3.5, 7.2.3.3): says who defines the field's number.
    #[derive(Serialize)]
    #[serde(into = "u16")]
    pub enum OxmClass: u16 {
        /// `OFPXMC_NXM_0`: Nicira's fields `NXM_OF_*`.
        Nxm0 = 0x0000,
        /// `OFPXMC_NXM_1`: Nicira's fields `NXM_NX_*`.
        Nxm1 = 0x0001,
        /// `OFPXMC_OPENFLOW_BASIC`: the fields of the specification.
        OpenflowBasic = 0x8000,
        /// `OFPXMC_PACKET_REGS`: 64-bit registers (OpenFlow 1.5.1, 7.2.3.10).
        PacketRegs = 0x8001,
        /// `OFPXMC_EXPERIMENTER`: an experimenter's fields; the experimenter number precedes the value.
        Experimenter = 0xffff,
    }
}

/// An OXM entry that weir does not interpret (OpenFlow 1.3.5, 7.2.3.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct RawField {
    /// Class number, `oxm_class`, as received: a number of [`OxmClass`] or any other.
    pub class: u16,
    /// Field number, `oxm_field`, 7 bits.
    pub number: u8,
    /// True if the second half of the payload is a mask.
    pub has_mask: bool,
    /// Payload, preceded by the experimenter number if the class is `OFPXMC_EXPERIMENTER`.
    pub payload: Bytes,
}

impl Match {
    /// Returns the match that matches every packet.
    pub const fn any() -> Match {
        Match { fields: Vec::new() }
    }

    /// Adds a field to match exactly.
    #[must_use]
    pub fn with(mut self, field: Field, value: impl Into<u128>) -> Match {
        self.fields.push(MatchField::Known { field, value: value.into(), mask: None });
        self
    }

    /// Adds a field to match in the bits of `mask`.
    #[must_use]
    pub fn with_masked(mut self, field: Field, value: impl Into<u128>, mask: impl Into<u128>) -> Match {
        self.fields.push(MatchField::Known { field, value: value.into(), mask: Some(mask.into()) });
        self
    }

    /// Adds a field to match in the bits of `mask`, as OpenFlow writes it: a mask of all bits is left out, and a field
    /// of which no bit counts, too.
    #[must_use]
    pub fn with_bits(self, field: Field, value: impl Into<u128>, mask: impl Into<u128>) -> Match {
        match mask.into() {
            0 => self,
            mask if mask == field.all_ones() => self.with(field, value),
            mask => self.with_masked(field, value, mask),
        }
    }

    /// Returns value and mask of a field; `None` if the match does not have the field.
    pub fn get(&self, wanted: Field) -> Option<(u128, u128)> {
        self.fields.iter().find_map(|entry| match entry {
            MatchField::Known { field, value, mask } if *field == wanted => {
                Some((*value, mask.unwrap_or(wanted.all_ones())))
            }
            _ => None,
        })
    }

    /// Converts the match to a flow key and mask, and checks it as OpenFlow 1.3.5, 7.2.3.6 requires: every field is
    /// known, occurs at most once and has its prerequisites, masks occur only on maskable fields, and no value has
    /// bits outside its mask or its field.
    ///
    /// The packet type Ethernet is not part of the mask, whether the match names it or not: a match without a packet
    /// type is about Ethernet packets (OpenFlow 1.5.1, 7.2.3.11). The caller must not compare packets of other types
    /// with such a match.
    ///
    /// # Errors
    /// `OFPET_BAD_MATCH` with the code that the specification prescribes.
    pub fn key_and_mask(&self) -> Result<(FlowKey, FlowMask), ErrorType> {
        let (key, mut mask) = self.written()?;
        if key.get(Field::PacketType) == u128::from(PacketType::ETHERNET.to_bits()) {
            mask.set(Field::PacketType, 0);
        }
        Ok((key, mask))
    }

    /// Converts the fields that the match names to a flow key and mask, including the packet type Ethernet: a
    /// non-strict flow-mod or statistics request without a packet type is about entries of all types (OpenFlow 1.3.5,
    /// 6.4). Checks the match like [`Match::key_and_mask`].
    ///
    /// # Errors
    /// `OFPET_BAD_MATCH` with the code that the specification prescribes.
    pub fn written(&self) -> Result<(FlowKey, FlowMask), ErrorType> {
        let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
        let vlan = |field| matches!(field, Field::VlanTci | Field::VlanVid | Field::VlanPcp);
        let mut seen = FieldSet::default();
        let context = PrerequisiteValues::of(self);
        for entry in &self.fields {
            let MatchField::Known { field, value, mask: bits } = entry else {
                return Err(BadMatch::BadField.into());
            };
            context.check(*field, *value, *bits)?;
            if !seen.insert(*field) {
                return Err(BadMatch::DupField.into());
            }
            let bits = bits.unwrap_or(field.all_ones());
            if (field.is_register() || vlan(*field)) && mask.get(*field) & bits != 0 {
                // Another name for bits already matched: a narrower or wider register, or the whole VLAN tag.
                return Err(BadMatch::DupField.into());
            }
            // Fields of different protocols share storage in the key; prerequisites exclude two of them in one match.
            key.set(*field, value & bits | key.get(*field) & !bits);
            mask.set(*field, bits | mask.get(*field));
        }
        Ok((key, mask))
    }

    /// Returns true if the match contains the prerequisites of `field` (OpenFlow 1.3.5, table 12).
    pub(crate) fn has_prerequisite(&self, field: Field) -> bool {
        PrerequisiteValues::of(self).has_prerequisite(field)
    }
}

/// Set of the fields seen so far, one bit a field.
#[derive(Default)]
struct FieldSet([u64; 4]);

impl FieldSet {
    /// Adds the field; returns true if it was not in the set.
    fn insert(&mut self, field: Field) -> bool {
        let (word, bit) = (usize::from(field as u8 >> 6), 1 << (field as u8 & 63));
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

/// Values that prerequisites of other fields depend on, gathered in one pass over the match. If a field occurs twice,
/// the first occurrence counts.
#[derive(Default)]
struct PrerequisiteValues {
    packet_type: Option<u128>,
    eth_type: Option<u128>,
    ip_proto: Option<u128>,
    icmpv6_type: Option<u128>,
    has_tag: Option<bool>,
    has_in_port: bool,
}

impl PrerequisiteValues {
    fn of(matching: &Match) -> PrerequisiteValues {
        let mut context = PrerequisiteValues::default();
        let (mut eth_type, mut ip_proto, mut icmpv6_type) = (None, None, None);
        for entry in &matching.fields {
            let MatchField::Known { field, value, mask } = entry else { continue };
            let exact = || mask.is_none_or(|mask| mask == field.all_ones()).then_some(*value);
            match field {
                Field::InPort => context.has_in_port = true,
                Field::PacketType => drop(context.packet_type.get_or_insert(*value)),
                Field::EthType => drop(eth_type.get_or_insert_with(exact)),
                Field::IpProto => drop(ip_proto.get_or_insert_with(exact)),
                Field::Icmpv6Type => drop(icmpv6_type.get_or_insert_with(exact)),
                Field::VlanVid => {
                    let bits = value & mask.unwrap_or(field.all_ones()) & u128::from(VLAN_PRESENT);
                    context.has_tag.get_or_insert(bits != 0);
                }
                _ => {}
            }
        }
        let without_ethernet = context.without_ethernet().map(u128::from);
        context.eth_type = without_ethernet.or(eth_type.flatten());
        (context.ip_proto, context.icmpv6_type) = (ip_proto.flatten(), icmpv6_type.flatten());
        context
    }

    fn check(&self, field: Field, value: u128, mask: Option<u128>) -> Result<(), ErrorType> {
        if !self.has_prerequisite(field) || field.is_ethernet() && self.without_ethernet().is_some() {
            return Err(BadMatch::BadPrereq.into());
        }
        if mask.is_some_and(|mask| mask != field.all_ones()) && !field.is_maskable() {
            return Err(BadMatch::BadMask.into());
        }
        let bits = mask.unwrap_or(field.all_ones());
        if value & !field.all_ones() != 0 || value & !bits != 0 {
            return Err(if mask.is_some() { BadMatch::BadWildcards } else { BadMatch::BadValue }.into());
        }
        if bits & !field.all_ones() != 0 {
            return Err(BadMatch::BadMask.into());
        }
        // VLAN id 0x0000 means "no tag". Any other id without the present bit has no meaning (OpenFlow 1.3.5, table
        // 13).
        let vid = u128::from(VLAN_PRESENT);
        if field == Field::VlanVid && mask.is_none() && value != 0 && value & vid == 0 {
            return Err(BadMatch::BadValue.into());
        }
        Ok(())
    }

    /// Returns the EtherType that the matched packet type implies, if that type has no Ethernet header.
    fn without_ethernet(&self) -> Option<u16> {
        PacketType::from_bits(u32::try_from(self.packet_type?).ok()?).eth_type()
    }

    fn has_prerequisite(&self, field: Field) -> bool {
        let eth_in = |types: &[u16]| self.eth_type.is_some_and(|t| types.iter().any(|x| u128::from(*x) == t));
        let proto = |number: u8| self.ip_proto == Some(u128::from(number));
        match field.prerequisite() {
            Prerequisite::None => true,
            Prerequisite::VlanPresent => self.has_tag == Some(true),
            Prerequisite::InPort => self.has_in_port,
            Prerequisite::EthType(types) => eth_in(types),
            Prerequisite::IpProto(number) => eth_in(&[eth_type::IPV4, eth_type::IPV6]) && proto(number),
            Prerequisite::Icmpv4 => eth_in(&[eth_type::IPV4]) && proto(ip_proto::ICMP),
            Prerequisite::Icmpv6 => eth_in(&[eth_type::IPV6]) && proto(ip_proto::ICMPV6),
            Prerequisite::Icmpv6Type(types) => {
                eth_in(&[eth_type::IPV6])
                    && proto(ip_proto::ICMPV6)
                    && self.icmpv6_type.is_some_and(|t| types.iter().any(|x| u128::from(*x) == t))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prerequisites_and_masks_are_checked() {
        let ipv4 = Match::any().with(Field::EthType, eth_type::IPV4);
        assert!(ipv4.clone().with_masked(Field::Ipv4Dst, 0x0a00_0000_u32, 0xff00_0000_u32).key_and_mask().is_ok());
        let cases: [(Match, BadMatch); 8] = [
            (Match::any().with(Field::Ipv4Dst, 1_u32), BadMatch::BadPrereq),
            (ipv4.clone().with(Field::EthType, eth_type::IPV4), BadMatch::DupField),
            (ipv4.clone().with_masked(Field::IpDscp, 1_u32, 1_u32), BadMatch::BadMask),
            (ipv4.clone().with_masked(Field::Ipv4Src, 1_u32, 2_u32), BadMatch::BadWildcards),
            (ipv4.clone().with(Field::IpDscp, 64_u32), BadMatch::BadValue),
            (ipv4.with(Field::TcpDst, 80_u16), BadMatch::BadPrereq),
            (Match::any().with(Field::VlanPcp, 1_u32), BadMatch::BadPrereq),
            (Match::any().with(Field::VlanVid, 5_u32), BadMatch::BadValue),
        ];
        for (wrong, code) in cases {
            assert_eq!(wrong.key_and_mask(), Err(code.into()), "{wrong:?}");
        }
    }

    #[test]
    fn packets_without_ethernet_are_told_by_their_type() {
        let typed = |kind: u32| Match::any().with(Field::PacketType, kind);
        let (key, mask) = typed(0x1_0800).with(Field::Ipv4Dst, 7_u32).key_and_mask().unwrap();
        assert_eq!((key.get(Field::PacketType), mask.get(Field::EthType)), (0x1_0800, 0));
        assert!(typed(0x1_894f).with(Field::NshSpi, 7_u32).key_and_mask().is_ok());
        assert!(typed(0).with(Field::EthDst, 7_u32).key_and_mask().is_ok());
        let wrong = [
            typed(0x1_86dd).with(Field::Ipv4Dst, 7_u32),
            typed(0x1_0800).with(Field::EthDst, 7_u32),
            typed(0x1_0800).with(Field::VlanVid, 0_u32),
            typed(0x1_0800).with(Field::EthType, 0x0800_u32),
        ];
        for wrong in wrong {
            assert_eq!(wrong.key_and_mask(), Err(BadMatch::BadPrereq.into()), "{wrong:?}");
        }
        let has_type = |matching: Match| matching.key_and_mask().unwrap().1.get(Field::PacketType) != 0;
        assert!(has_type(typed(0x1_0800)));
        assert!(!has_type(typed(0)) && !has_type(Match::any()), "both are about Ethernet packets");
        assert_eq!(typed(0).written().unwrap().1.get(Field::PacketType), Field::PacketType.all_ones());
    }

    #[test]
    fn any_tag_and_one_tag() {
        let tagged = Match::any().with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT).with(Field::VlanPcp, 3_u8);
        let (key, mask) = tagged.key_and_mask().unwrap();
        assert_eq!((key.get(Field::VlanVid), mask.get(Field::VlanVid)), (0x1000, 0x1000));
        assert_eq!(mask.get(Field::VlanPcp), 7);
    }
}
