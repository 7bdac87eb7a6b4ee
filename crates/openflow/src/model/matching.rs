//! Matches: the list that a message carries, and the key and mask that tables use.
use super::error::{BadMatch, ErrorType};
use super::{Bytes, wide};
use serde::Serialize;
use weir_packet::field::{Prerequisite, VLAN_PRESENT, eth_type, ip_proto};
use weir_packet::{Field, FlowKey, FlowMask, PacketType};

/// What a flow entry matches: fields in the order they came, so that encoding gives back the bytes decoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(transparent)]
pub struct Match {
    /// The fields, each at most once; none matches everything.
    pub fields: Vec<MatchField>,
}

/// One field of a match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum MatchField {
    /// A field weir knows. The value's and mask's bits lie in the low [`Field::bits`] bits.
    Known {
        /// Which.
        field: Field,
        /// What it must be where the mask has ones.
        #[serde(serialize_with = "wide::value")]
        value: u128,
        /// Bits that count; none for all.
        #[serde(serialize_with = "wide::mask")]
        mask: Option<u128>,
    },
    /// A field weir does not know, kept as it came.
    Raw(RawField),
}

/// An OXM entry that is not looked into (OpenFlow 1.3.5, 7.2.3.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct RawField {
    /// `oxm_class`.
    pub class: u16,
    /// `oxm_field`, 7 bits.
    pub number: u8,
    /// Whether the payload's second half is a mask.
    pub has_mask: bool,
    /// The payload, with the experimenter's number in front if the class is `OFPXMC_EXPERIMENTER`.
    pub payload: Bytes,
}

impl Match {
    /// Matches everything.
    pub const fn any() -> Match {
        Match { fields: Vec::new() }
    }

    /// Adds an exactly matched field.
    #[must_use]
    pub fn with(mut self, field: Field, value: impl Into<u128>) -> Match {
        self.fields.push(MatchField::Known { field, value: value.into(), mask: None });
        self
    }

    /// Adds a field of which only the bits in `mask` count.
    #[must_use]
    pub fn with_masked(mut self, field: Field, value: impl Into<u128>, mask: impl Into<u128>) -> Match {
        self.fields.push(MatchField::Known { field, value: value.into(), mask: Some(mask.into()) });
        self
    }

    /// The value and mask of a field, if it is matched on.
    pub fn get(&self, wanted: Field) -> Option<(u128, u128)> {
        self.fields.iter().find_map(|entry| match entry {
            MatchField::Known { field, value, mask } if *field == wanted => {
                Some((*value, mask.unwrap_or(wanted.all_ones())))
            }
            _ => None,
        })
    }

    /// The match as a flow key and mask, checked as OpenFlow 1.3.5, 7.2.3.6 demands: every field known, at most once, with
    /// its prerequisites, masked only where that is allowed, no value bit outside its mask, no value too large.
    ///
    /// # Errors
    /// `OFPET_BAD_MATCH` with the code that the specification names.
    pub fn key_and_mask(&self) -> Result<(FlowKey, FlowMask), ErrorType> {
        let (key, mut mask) = self.written()?;
        if self.finds_what_is_absent() {
            mask.set(Field::PacketType, Field::PacketType.all_ones());
        }
        Ok((key, mask))
    }

    /// The fields that the match names, and nothing that they imply: what non-strict flow-mods and statistics requests compare
    /// with those of entries (OpenFlow 1.3.5, 6.4).
    ///
    /// # Errors
    /// As [`Match::key_and_mask`].
    pub fn written(&self) -> Result<(FlowKey, FlowMask), ErrorType> {
        let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
        let vlan = |field| matches!(field, Field::VlanTci | Field::VlanVid | Field::VlanPcp);
        let mut seen = Seen::default();
        let context = Context::of(self);
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
                // The same bits under another name: a narrower or wider register, the whole VLAN tag.
                return Err(BadMatch::DupField.into());
            }
            // Fields of exclusive packets share places; prerequisites keep them from meeting in one match.
            key.set(*field, value & bits | key.get(*field) & !bits);
            mask.set(*field, bits | mask.get(*field));
        }
        Ok((key, mask))
    }

    /// Whether the match is on Ethernet fields with values that a packet without Ethernet header seems to have: zeros. It then
    /// matches Ethernet packets only, which other values see to by themselves (OpenFlow 1.5.1, 7.2.3.11).
    fn finds_what_is_absent(&self) -> bool {
        let ethernet = |entry: &MatchField| match entry {
            MatchField::Known { field, value, mask } if field.is_ethernet() => Some(value & mask.unwrap_or(u128::MAX)),
            _ => None,
        };
        let mut values = self.fields.iter().filter_map(ethernet).peekable();
        values.peek().is_some() && values.all(|value| value == 0)
    }

    /// Whether the match has what `field` needs beside it (OpenFlow 1.3.5, table 12).
    pub(crate) fn has_prerequisite(&self, field: Field) -> bool {
        Context::of(self).has_prerequisite(field)
    }
}

/// The fields met so far.
#[derive(Default)]
struct Seen([u64; 4]);

impl Seen {
    /// Whether the field is met for the first time.
    fn insert(&mut self, field: Field) -> bool {
        let (word, bit) = (usize::from(field as u8 >> 6), 1 << (field as u8 & 63));
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

/// What fields of a match need of the others, gathered in one pass. Of a field that comes twice, the first counts.
#[derive(Default)]
struct Context {
    packet_type: Option<u128>,
    eth_type: Option<u128>,
    ip_proto: Option<u128>,
    icmpv6_type: Option<u128>,
    has_tag: Option<bool>,
    has_in_port: bool,
}

impl Context {
    fn of(matching: &Match) -> Context {
        let mut context = Context::default();
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
        // VLAN id 0x0000 says "no tag"; any other id without the present bit says nothing (OpenFlow 1.3.5, table 13).
        let vid = u128::from(VLAN_PRESENT);
        if field == Field::VlanVid && mask.is_none() && value != 0 && value & vid == 0 {
            return Err(BadMatch::BadValue.into());
        }
        Ok(())
    }

    /// The EtherType of packets of a type that has no Ethernet header, if the match is on one.
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
        let is_implied = |matching: Match| matching.key_and_mask().unwrap().1.get(Field::PacketType) != 0;
        assert!(is_implied(Match::any().with(Field::VlanVid, 0_u32)));
        assert!(is_implied(Match::any().with_masked(Field::EthDst, 0_u32, 1_u64 << 40)));
        assert!(!is_implied(Match::any().with(Field::VlanVid, 0_u32).with(Field::EthType, 0x0800_u32)));
        assert!(!is_implied(Match::any().with(Field::InPort, 0_u32)));
    }

    #[test]
    fn any_tag_and_one_tag() {
        let tagged = Match::any().with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT).with(Field::VlanPcp, 3_u8);
        let (key, mask) = tagged.key_and_mask().unwrap();
        assert_eq!((key.get(Field::VlanVid), mask.get(Field::VlanVid)), (0x1000, 0x1000));
        assert_eq!(mask.get(Field::VlanPcp), 7);
    }
}
