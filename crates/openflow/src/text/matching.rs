//! Parses matches, such as `tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80`.
//!
//! Fields may be in any order. The match holds them in the order of [`Field`], in which each field follows its
//! prerequisites as OpenFlow 1.3.5, 7.2.3.6 requires. A field without effect (`nw_dst=0.0.0.0/0`) is left out.
use super::scan::KeyValueItem;
use super::{ParseError, field_value, number, raw};
use crate::model::matching::RawField;
use crate::model::{Match, MatchField};
use std::collections::BTreeMap;
use weir_packet::Field;
use weir_packet::field::{Prerequisite, VLAN_PRESENT, eth_type, ip_proto};

/// Words for protocols, each with its EtherType and, above IP, the protocol number.
pub(super) const PROTOCOLS: [(&str, u16, Option<u8>); 16] = [
    ("ip", eth_type::IPV4, None),
    ("ipv4", eth_type::IPV4, None),
    ("ipv6", eth_type::IPV6, None),
    ("icmp", eth_type::IPV4, Some(ip_proto::ICMP)),
    ("icmp6", eth_type::IPV6, Some(ip_proto::ICMPV6)),
    ("tcp", eth_type::IPV4, Some(ip_proto::TCP)),
    ("tcp6", eth_type::IPV6, Some(ip_proto::TCP)),
    ("udp", eth_type::IPV4, Some(ip_proto::UDP)),
    ("udp6", eth_type::IPV6, Some(ip_proto::UDP)),
    ("sctp", eth_type::IPV4, Some(ip_proto::SCTP)),
    ("sctp6", eth_type::IPV6, Some(ip_proto::SCTP)),
    ("arp", eth_type::ARP, None),
    ("rarp", eth_type::RARP, None),
    ("mpls", eth_type::MPLS, None),
    ("mplsm", eth_type::MPLS_MULTICAST, None),
    ("pbb", eth_type::PBB, None),
];

/// Keys that set several fields, or whose field depends on the rest of the match.
const IN_CONTEXT: [&str; 10] =
    ["nw_src", "nw_dst", "nw_proto", "nw_tos", "tp_src", "tp_dst", "icmp_type", "icmp_code", "dl_vlan", "vlan_tci"];

/// Returns every key that a match can have.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    let protocols = PROTOCOLS.into_iter().map(|(name, _, _)| name);
    protocols.chain(IN_CONTEXT).chain(field_value::names())
}

/// Returns true if the key belongs to a match.
pub(super) fn is_match_key(key: &str) -> bool {
    raw::is_name(key) || keys().any(|known| known == key)
}

/// Builds a match from its items.
pub(super) fn build(items: &[KeyValueItem<'_>]) -> Result<Match, ParseError> {
    let mut builder = MatchBuilder::default();
    let mut ordered: Vec<&KeyValueItem<'_>> = items.iter().collect();
    ordered.sort_by_key(|item| rank(item.key));
    for item in ordered {
        builder.add(item)?;
    }
    builder.finish()
}

/// Returns the rank at which an item is processed. The meaning of other keys depends on the EtherType, then on the IP
/// protocol, so these come first.
fn rank(key: &str) -> u8 {
    match key {
        "dl_type" | "eth_type" | "packet_type" => 0,
        key if PROTOCOLS.iter().any(|(name, _, _)| *name == key) => 0,
        "ip_proto" | "nw_proto" => 1,
        _ => 2,
    }
}

#[derive(Default)]
struct MatchBuilder<'a> {
    known: BTreeMap<Field, ParsedMatchField<'a>>,
    raw: Vec<RawField>,
}

struct ParsedMatchField<'a> {
    value: u128,
    mask: Option<u128>,
    from: KeyValueItem<'a>,
}

impl<'a> MatchBuilder<'a> {
    fn add(&mut self, item: &KeyValueItem<'a>) -> Result<(), ParseError> {
        if let Some((_, eth, proto)) = PROTOCOLS.into_iter().find(|(name, _, _)| *name == item.key) {
            item.alone()?;
            self.set(item, Field::EthType, u128::from(eth), None)?;
            return proto.map_or(Ok(()), |proto| self.set(item, Field::IpProto, u128::from(proto), None));
        }
        if raw::is_name(item.key) {
            self.raw.push(raw::parse(item.key, item.at, item.value("hexadecimal digits")?, item.value_at)?);
            return Ok(());
        }
        if !keys().any(|known| known == item.key) {
            return Err(unknown(item));
        }
        let value = item.value("a value behind `=`")?;
        // For a port, `ANY` is an ordinary value.
        let is_port = matches!(item.key, "in_port" | "in_phy_port");
        if value == "*" || (value == "ANY" && !is_port) {
            return Ok(());
        }
        match item.key {
            "dl_vlan" => self.add_vlan_id(item, value),
            "vlan_tci" => self.add_vlan_tci(item, value),
            "nw_tos" => self.add_type_of_service(item, value),
            "vlan_vid" if value != "0" && field_value::parse(Field::VlanVid, value).is_ok_and(lacks_present) => {
                Err(item.wrong("bit 0x1000 to be set, which says that a tag is there; dl_vlan sets it for you"))
            }
            key => {
                let field = self.field(key, item)?;
                let (value, mask) = field_value::parse(field, value).map_err(|expected| item.wrong(expected))?;
                self.set(item, field, value, mask)
            }
        }
    }

    /// Returns the field that a key denotes, given the protocols that are already set.
    fn field(&self, key: &str, item: &KeyValueItem<'a>) -> Result<Field, ParseError> {
        let without_ethernet = self.exact(Field::PacketType).filter(|kind| kind >> 16 == 1).map(|kind| kind & 0xffff);
        let eth = without_ethernet.or(self.exact(Field::EthType)).unwrap_or_default();
        let proto = self.exact(Field::IpProto).unwrap_or_default();
        let is_arp = [eth_type::ARP, eth_type::RARP].iter().any(|arp| u128::from(*arp) == eth);
        let is_v6 = eth == u128::from(eth_type::IPV6);
        let number = u8::try_from(proto).unwrap_or_default();
        let field = match key {
            "nw_src" if is_arp => Some(Field::ArpSpa),
            "nw_dst" if is_arp => Some(Field::ArpTpa),
            "nw_src" => Some(Field::Ipv4Src),
            "nw_dst" => Some(Field::Ipv4Dst),
            "nw_proto" if is_arp => Some(Field::ArpOp),
            "icmp_type" | "icmpv4_type" | "icmpv6_type" if is_v6 => Some(Field::Icmpv6Type),
            "icmp_code" | "icmpv4_code" | "icmpv6_code" if is_v6 => Some(Field::Icmpv6Code),
            "tp_src" | "tp_dst" => return transport(key == "tp_src", number).ok_or_else(|| self.no_ports(item)),
            key => field_value::named(key),
        };
        field.ok_or_else(|| unknown(item))
    }

    fn no_ports(&self, item: &KeyValueItem<'a>) -> ParseError {
        ParseError::new(item.at, item.key, "tcp, udp, sctp, icmp or their IPv6 kin to be matched as well")
    }

    fn exact(&self, field: Field) -> Option<u128> {
        self.known.get(&field).filter(|entry| entry.mask.is_none()).map(|entry| entry.value)
    }

    fn set(
        &mut self,
        item: &KeyValueItem<'a>,
        field: Field,
        value: u128,
        mask: Option<u128>,
    ) -> Result<(), ParseError> {
        if mask == Some(0) {
            return Ok(());
        }
        match self.known.get(&field) {
            Some(old) if (old.value, old.mask) == (value, mask) => Ok(()),
            Some(old) => {
                let reason = format!("nothing that sets {field} again: `{}` set it to another value", old.from.key);
                Err(ParseError::new(item.at, item.key, reason))
            }
            None => {
                self.known.insert(field, ParsedMatchField { value, mask, from: *item });
                Ok(())
            }
        }
    }

    fn add_vlan_id(&mut self, item: &KeyValueItem<'a>, value: &str) -> Result<(), ParseError> {
        let expected = "a VLAN id from 0 to 4095, or 0xffff for packets without tag";
        let id = number::u16(value).ok().filter(|id| *id < VLAN_PRESENT || *id == 0xffff);
        let id = id.ok_or_else(|| item.wrong(expected))?;
        let vid = if id == 0xffff { 0 } else { id | VLAN_PRESENT };
        self.set(item, Field::VlanVid, u128::from(vid), None)
    }

    /// Parses the whole VLAN tag: priority 3 bits, present 1 bit, id 12 bits.
    fn add_vlan_tci(&mut self, item: &KeyValueItem<'a>, text: &str) -> Result<(), ParseError> {
        let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
        let value = number::u16(value).map_err(|expected| item.wrong(expected))?;
        let mask = mask.map_or(Ok(0xffff), |mask| number::u16(mask).map_err(|expected| item.wrong(expected)))?;
        let value = value & mask;
        let (vid, vid_mask, has_tag) = (value & 0x1fff, mask & 0x1fff, value & VLAN_PRESENT != 0);
        // The fields for parts of the tag cannot express some bits of the priority alone, or the priority of a tag
        // that may be missing.
        let priority = match mask >> 13 {
            0 => Some(None),
            7 if has_tag => Some(Some(value >> 13)),
            7 if value == 0 && mask & VLAN_PRESENT != 0 => Some(None),
            _ => None,
        };
        let Some(priority) = priority.filter(|_| vid_mask != 0x1fff || has_tag || vid == 0) else {
            let mask = Some(u128::from(mask)).filter(|mask| *mask != Field::VlanTci.all_ones());
            return self.set(item, Field::VlanTci, u128::from(value), mask);
        };
        let vid_mask = Some(vid_mask).filter(|mask| *mask != 0x1fff).map(u128::from);
        self.set(item, Field::VlanVid, u128::from(vid), vid_mask)?;
        priority.map_or(Ok(()), |priority| self.set(item, Field::VlanPcp, u128::from(priority), None))
    }

    /// Parses the type of service: the DSCP and two zero bits.
    fn add_type_of_service(&mut self, item: &KeyValueItem<'a>, value: &str) -> Result<(), ParseError> {
        let tos = number::u8(value).ok().filter(|tos| tos & 3 == 0);
        let tos = tos.ok_or_else(|| item.wrong("a number from 0 to 252 whose two low bits are zero"))?;
        self.set(item, Field::IpDscp, u128::from(tos >> 2), None)
    }

    fn finish(mut self) -> Result<Match, ParseError> {
        if let Some(entry) = self.known.get(&Field::VlanPcp)
            && !self.known.contains_key(&Field::VlanVid)
        {
            let present = u128::from(VLAN_PRESENT);
            let from = entry.from;
            self.set(&from, Field::VlanVid, present, Some(present))?;
        }
        if let Some(entry) = self.known.get(&Field::VlanTci)
            && [Field::VlanVid, Field::VlanPcp].iter().any(|part| self.known.contains_key(part))
        {
            return Err(entry.from.wrong("no other field of the VLAN tag beside it: vlan_tci can say all of them"));
        }
        let fields = self.known.iter().map(|(field, entry)| MatchField::Known {
            field: *field,
            value: entry.value,
            mask: entry.mask,
        });
        let mut matching = Match { fields: fields.collect() };
        // The packet type is a prerequisite of other fields, so it comes first regardless of its number.
        let is_type = |field: &MatchField| matches!(field, MatchField::Known { field: Field::PacketType, .. });
        matching.fields.sort_by_key(|field| !is_type(field));
        // Prerequisites are checked per field, so that the error can name the field that lacks them.
        for (field, entry) in &self.known {
            if let Some(needs) = missing(*field, &matching) {
                return Err(ParseError::new(entry.from.at, entry.from.key, format!("{needs} to be matched as well")));
            }
        }
        matching.fields.extend(self.raw.into_iter().map(MatchField::Raw));
        Ok(matching)
    }
}

fn unknown(item: &KeyValueItem<'_>) -> ParseError {
    ParseError::unknown(item.at, item.key, "a match field", keys())
}

fn lacks_present((value, mask): (u128, Option<u128>)) -> bool {
    let present = u128::from(VLAN_PRESENT);
    mask.is_none() && value & present == 0 && value != 0
}

/// Returns the transport field for an IP protocol. ICMP type and code replace the ports, as in OpenFlow 1.0.
fn transport(source: bool, proto: u8) -> Option<Field> {
    let (src, dst) = match proto {
        ip_proto::TCP => (Field::TcpSrc, Field::TcpDst),
        ip_proto::UDP => (Field::UdpSrc, Field::UdpDst),
        ip_proto::SCTP => (Field::SctpSrc, Field::SctpDst),
        ip_proto::ICMP => (Field::Icmpv4Type, Field::Icmpv4Code),
        ip_proto::ICMPV6 => (Field::Icmpv6Type, Field::Icmpv6Code),
        _ => return None,
    };
    Some(if source { src } else { dst })
}

/// Returns the text of a prerequisite of the field that the match lacks; `None` if it lacks none.
fn missing(field: Field, matching: &Match) -> Option<&'static str> {
    if matching.has_prerequisite(field) {
        return None;
    }
    Some(match field.prerequisite() {
        Prerequisite::None => return None,
        Prerequisite::InPort => "in_port",
        Prerequisite::VlanPresent => "a VLAN tag (dl_vlan, or vlan_vid=0x1000/0x1000)",
        Prerequisite::EthType([eth_type::IPV4]) => "ip",
        Prerequisite::EthType([eth_type::IPV6]) => "ipv6",
        Prerequisite::EthType([eth_type::ARP, ..]) => "arp or rarp",
        Prerequisite::EthType([eth_type::MPLS, ..]) => "mpls or mplsm",
        Prerequisite::EthType([eth_type::PBB]) => "pbb",
        Prerequisite::EthType([eth_type::NSH]) => "dl_type=0x894f or packet_type=(1,0x894f)",
        Prerequisite::EthType(_) => "ip or ipv6",
        Prerequisite::IpProto(ip_proto::TCP) => "tcp or tcp6",
        Prerequisite::IpProto(ip_proto::UDP) => "udp or udp6",
        Prerequisite::IpProto(_) => "sctp or sctp6",
        Prerequisite::Icmpv4 => "icmp",
        Prerequisite::Icmpv6 => "icmp6",
        Prerequisite::Icmpv6Type([135]) => "icmp6 and icmp_type=135",
        Prerequisite::Icmpv6Type([136]) => "icmp6 and icmp_type=136",
        Prerequisite::Icmpv6Type(_) => "icmp6 and icmp_type=135 or 136",
    })
}
