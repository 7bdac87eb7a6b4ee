//! What several modules' tests share.
use crate::field::{Prerequisite, VLAN_PRESENT, eth_type};
use crate::{Field, FlowKey};

/// Whether a packet with this key has `field`, as its prerequisite says.
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
