//! What only flow-mods of 1.0 have.
use crate::shape::WordMatches;
use weir_openflow::Version;
use weir_openflow::model::{FlowMod, Match};
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::{Field, FlowKey, FlowMask};

/// How a flow-mod is carried out where versions differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(super) version: Version,
    /// The priority that entries have in lookups and strict commands; the flow-mod's own is only told.
    pub(super) priority: u16,
    /// Which type of a frame `eth_type` is.
    pub(super) reading: TypeReading,
}

/// Which type of a frame a match on `eth_type` is about, where that has several VLAN tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeReading {
    /// The one behind all tags (OpenFlow 1.3.5, table 13).
    BehindAllTags,
    /// The one behind the outermost tag, which a second tag may have (OpenFlow 1.0.0, figure 4).
    BehindOneTag,
}

impl TypeReading {
    /// What messages of a version mean. Nicira's, with matches of their own, mean the same in all versions.
    pub(crate) fn of(version: Version, is_nicira: bool) -> TypeReading {
        if version == Version::V10 && !is_nicira { TypeReading::BehindOneTag } else { TypeReading::BehindAllTags }
    }

    /// An entry's match as tables compare it.
    pub(crate) fn words(self, mut key: FlowKey, mut mask: FlowMask) -> WordMatches {
        if self == TypeReading::BehindOneTag && mask.get(Field::EthType) != 0 && !reads_a_tag(&mut key, &mut mask) {
            // Frames with a second tag have that tag's type.
            mask.count_second_tag(true);
        }
        WordMatches::new(&key, &mask)
    }

    /// What is compared with the entries' matches to find those that are at least as specific. An entry of either reading is
    /// about a type that is not a tag's.
    pub(crate) fn filter_words(self, mut key: FlowKey, mut mask: FlowMask) -> WordMatches {
        if self == TypeReading::BehindOneTag {
            reads_a_tag(&mut key, &mut mask);
        }
        WordMatches::new(&key, &mask)
    }
}

/// The same match as [`TypeReading::words`] gives it in the other reading; none if it is on no type.
pub(super) fn other_reading(words: &WordMatches) -> Option<WordMatches> {
    let (mut key, mut mask) = words.key_and_mask();
    match (mask.get(Field::EthType) != 0, mask.counts_second_tag()) {
        (false, false) => return None,
        (false, true) => {
            key.set(Field::EthType, key.second_tag().into());
            mask.set(Field::EthType, Field::EthType.all_ones());
            mask.count_second_tag(false);
        }
        (true, true) => mask.count_second_tag(false),
        (true, false) if reads_a_tag(&mut key, &mut mask) => {}
        (true, false) => mask.count_second_tag(true),
    }
    Some(WordMatches::new(&key, &mask))
}

/// Exchanges a type that is a second tag's for what frames' keys say of that tag; whether it was one.
fn reads_a_tag(key: &mut FlowKey, mask: &mut FlowMask) -> bool {
    let number = u16::try_from(key.get(Field::EthType)).unwrap_or_default();
    if mask.get(Field::EthType) == 0 || !matches!(number, eth_type::VLAN | eth_type::QINQ) {
        return false;
    }
    key.set_second_tag(number);
    mask.count_second_tag(true);
    key.set(Field::EthType, 0);
    mask.set(Field::EthType, 0);
    true
}

impl Manner {
    /// The manner of a version's own flow-mod: in 1.0 an entry without wildcards comes before all others, whatever its
    /// priority (OpenFlow 1.0.0, 3.4).
    pub(crate) fn of(flow: &FlowMod, version: Version) -> Manner {
        let is_first = version == Version::V10 && is_exact(&flow.matching);
        let priority = if is_first { u16::MAX } else { flow.priority };
        Manner { priority, version, reading: TypeReading::of(version, false) }
    }

    /// The manner of Nicira's flow-mod, which has the same order in all versions.
    pub(crate) fn of_nicira(flow: &FlowMod, version: Version) -> Manner {
        Manner { version, priority: flow.priority, reading: TypeReading::of(version, true) }
    }
}

/// Whether a match of 1.0 has no wildcard: it names every field that packets it matches have.
fn is_exact(matching: &Match) -> bool {
    let value =
        |field: Field| matching.get(field).filter(|(_, mask)| *mask == field.all_ones()).map(|(value, _)| value);
    let has = |fields: &[Field]| fields.iter().all(|field| value(*field).is_some());
    if !has(&[Field::InPort, Field::EthSrc, Field::EthDst, Field::VlanVid, Field::EthType]) {
        return false;
    }
    if value(Field::VlanVid) != Some(0) && !has(&[Field::VlanPcp]) {
        return false;
    }
    match value(Field::EthType).and_then(|number| u16::try_from(number).ok()) {
        Some(eth_type::IPV4) => {
            has(&[Field::Ipv4Src, Field::Ipv4Dst, Field::IpDscp, Field::IpProto]) && has(ports(value(Field::IpProto)))
        }
        Some(eth_type::ARP) => has(&[Field::ArpSpa, Field::ArpTpa, Field::ArpOp]),
        _ => true,
    }
}

/// The fields of a transport that 1.0 looks into.
fn ports(proto: Option<u128>) -> &'static [Field] {
    match proto.and_then(|number| u8::try_from(number).ok()) {
        Some(ip_proto::TCP) => &[Field::TcpSrc, Field::TcpDst],
        Some(ip_proto::UDP) => &[Field::UdpSrc, Field::UdpDst],
        Some(ip_proto::ICMP) => &[Field::Icmpv4Type, Field::Icmpv4Code],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::text::parse_match;

    #[test]
    fn exact_names_all_that_is_there() {
        let link = "in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02";
        let ip = "nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0";
        let cases = [
            (format!("{link},vlan_tci=0x0000,dl_type=0x88cc"), true),
            (format!("{link},dl_vlan=5,dl_vlan_pcp=0,dl_type=0x88cc"), true),
            (format!("{link},dl_vlan=5,dl_type=0x88cc"), false),
            (format!("{link},dl_type=0x88cc"), false),
            (format!("{link},vlan_tci=0x0000,tcp,{ip},tp_src=1,tp_dst=2"), true),
            (format!("{link},vlan_tci=0x0000,tcp,{ip},tp_src=1"), false),
            (format!("{link},vlan_tci=0x0000,ip,nw_proto=89,{ip}"), true),
            (format!("{link},vlan_tci=0x0000,ip,{ip}"), false),
            (format!("{link},vlan_tci=0x0000,arp,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=1"), true),
            (format!("{link},vlan_tci=0x0000,arp,arp_spa=10.0.0.0/8,arp_tpa=10.0.0.2,arp_op=1"), false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_exact(&parse_match(&text).unwrap()), expected, "{text}");
        }
    }
}
