//! Rules for flow-mods that differ between versions, mostly those of 1.0.
use crate::table::EthTypeReading;
use weir_openflow::Version;
use weir_openflow::model::{FlowMod, Match};
use weir_packet::Field;
use weir_packet::field::{eth_type, ip_proto};

/// How a flow-mod is applied where versions differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowModSemantics {
    pub(crate) version: Version,
    /// Priority of the entry in lookups and strict commands. The flow-mod's own priority is only reported.
    pub(crate) priority: u16,
    /// Which EtherType of a frame with several tags `eth_type` means.
    pub(crate) reading: EthTypeReading,
}

impl FlowModSemantics {
    /// Returns the manner of a version's own flow-mod. In 1.0 an entry without wildcards has precedence over all
    /// others, whatever its priority (OpenFlow 1.0.0, 3.4).
    pub(crate) fn of(flow: &FlowMod, version: Version) -> FlowModSemantics {
        let is_first = version == Version::V10 && is_exact(&flow.matching);
        let priority = if is_first { u16::MAX } else { flow.priority };
        FlowModSemantics { priority, version, reading: EthTypeReading::of(version, false) }
    }

    /// Returns the manner of Nicira's flow-mod, which orders entries by priority in all versions.
    pub(crate) fn of_nicira(flow: &FlowMod, version: Version) -> FlowModSemantics {
        FlowModSemantics { version, priority: flow.priority, reading: EthTypeReading::of(version, true) }
    }
}

/// Returns true if a match of 1.0 has no wildcard: it names every field of the packets it matches.
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

/// Returns the fields of a transport protocol that 1.0 can match.
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
