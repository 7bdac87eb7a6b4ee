//! Provides helpers for the tests of several modules.
use crate::craft::{FrameBuilder, TcpHeader};
use crate::field::{Prerequisite, VLAN_PRESENT, eth_type, ip_proto};
use crate::{Field, FlowKey, MacAddr, PacketType};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns true if a packet with this key has `field`, according to the field's prerequisite.
pub(crate) fn applies(field: Field, key: &FlowKey) -> bool {
    let kind = u16::try_from(key.get(Field::EthType)).unwrap();
    let ip = kind == eth_type::IPV4 || kind == eth_type::IPV6;
    let proto = key.get(Field::IpProto);
    match field.prerequisite() {
        Prerequisite::None | Prerequisite::InPort => true,
        Prerequisite::VlanPresent => key.get(Field::VlanVid) & u128::from(VLAN_PRESENT) != 0,
        Prerequisite::EthType(types) => types.contains(&kind),
        Prerequisite::IpProto(wanted) => ip && proto == u128::from(wanted),
        Prerequisite::Icmpv4 => kind == eth_type::IPV4 && proto == 1,
        Prerequisite::Icmpv6 => kind == eth_type::IPV6 && proto == 58,
        Prerequisite::Icmpv6Type(types) => {
            kind == eth_type::IPV6 && proto == 58 && types.iter().any(|t| u128::from(*t) == key.get(Field::Icmpv6Type))
        }
    }
}

/// Generates frames with every kind of header, with correct checksums.
pub(crate) fn any_craft() -> impl Strategy<Value = FrameBuilder> {
    let link = (vec((any::<bool>(), 0u16..4096, 0u8..8), 0..3), vec((0u32..1 << 20, 0u8..8, any::<u8>()), 0..3));
    let network = (0u8..4, any::<u32>(), any::<u32>(), any::<u128>(), any::<u128>(), any::<u8>(), any::<u8>());
    let transport = (0u8..6, any::<[u16; 2]>(), any::<[u32; 3]>(), vec(any::<u8>(), 0..80));
    (link, network, transport).prop_map(|((tags, labels), network, (transport, [a, b], [x, y, z], payload))| {
        let (kind, src4, dst4, src6, dst6, traffic_class, ttl) = network;
        let mut craft = FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
        for (outer, vid, pcp) in tags {
            craft = craft.vlan(if outer { eth_type::QINQ } else { eth_type::VLAN }, vid, pcp);
        }
        for (label, tc, ttl) in labels {
            craft = craft.mpls(label, tc, ttl);
        }
        craft = match kind {
            0 => craft.ipv4(src4.into(), dst4.into()),
            1 => craft.ipv6(src6.into(), dst6.into()),
            2 => return craft.arp(a, (MacAddr([2; 6]), src4.into()), (MacAddr([4; 6]), dst4.into())),
            _ => {
                let inner =
                    FrameBuilder::ethernet(MacAddr([6; 6]), MacAddr([8; 6])).ipv4(src4.into(), dst4.into()).udp(a, b);
                let kind = [PacketType::ETHERNET, PacketType::of_eth_type(eth_type::IPV4)][usize::from(ttl & 1)];
                let packet = inner.payload(&payload).build();
                let carried = if kind.is_ethernet() { &packet } else { &packet[14..] };
                return craft.nsh(dst4, [src4, x, y, z], kind).payload(carried);
            }
        };
        let [flags, icmp_type, rest @ ..] = z.to_be_bytes();
        craft = match transport {
            0 => craft.udp(a, b),
            1 => craft.tcp(TcpHeader { source: a, destination: b, sequence: x, acknowledgment: y, flags, window: 512 }),
            2 => craft.sctp(a, b),
            3 => craft.icmp(icmp_type, 0, [0, 0, rest[0], rest[1]]),
            4 => craft.icmp(if icmp_type & 1 == 0 { 135 } else { 136 }, 0, [0; 4]).payload(&nd_body(x)),
            _ => craft.ip_proto(ip_proto::ESP),
        };
        let craft = if transport == 4 { craft } else { craft.payload(&payload) };
        craft.ttl(ttl).traffic_class(traffic_class)
    })
}

/// Returns a neighbour discovery body: a target address and both link-layer address options.
fn nd_body(salt: u32) -> Vec<u8> {
    let mut body = vec![0xfe; 12];
    body.extend(salt.to_be_bytes());
    body.extend([1, 1, 2, 0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 0, 0, 2]);
    body
}
