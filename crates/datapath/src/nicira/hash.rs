//! Hashes packets for the choice of a link by `multipath` and of a port by `bundle`. All packets of a flow get the
//! same choice.
use weir_openflow::model::PortNo;
use weir_openflow::model::nicira::{BundleAction, HashFields, MultipathAction, MultipathAlgorithm};
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::{Field, FlowKey};

/// Maximum number of draws of `iter_hash`. Each draw succeeds with a probability of at least one half.
const MAX_DRAWS: u32 = 64;

/// Mixes every bit of a number into all bits (the finalizer of SplitMix64).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Hashes the fields of a packet. Symmetric hashes combine both ends, so that both directions of a conversation take
/// the same way.
fn hash(fields: HashFields, basis: u16, key: &FlowKey) -> u64 {
    let get = |field: Field| key.get(field);
    let symmetric = |a: Field, b: Field| get(a) ^ get(b);
    let is_ipv6 = get(Field::EthType) == u128::from(eth_type::IPV6);
    let is_ip = is_ipv6 || get(Field::EthType) == u128::from(eth_type::IPV4);
    let (src, dst) = if is_ipv6 { (Field::Ipv6Src, Field::Ipv6Dst) } else { (Field::Ipv4Src, Field::Ipv4Dst) };
    let of_ip = |value: u128| if is_ip { value } else { 0 };
    let proto = of_ip(get(Field::IpProto));
    let ports = |protocols: &[u8]| {
        let there = protocols.iter().any(|number| u128::from(*number) == proto);
        if there { symmetric(Field::TcpSrc, Field::TcpDst) } else { 0 }
    };
    let addresses = of_ip(symmetric(src, dst));
    let streams: &[u8] = &[ip_proto::TCP, ip_proto::SCTP];
    let values: [u128; 5] = match fields {
        HashFields::EthSrc => [get(Field::EthSrc), 0, 0, 0, 0],
        HashFields::NwSrc => [of_ip(get(src)), 0, 0, 0, 0],
        HashFields::NwDst => [of_ip(get(dst)), 0, 0, 0, 0],
        HashFields::SymmetricL3 => [addresses, 0, 0, 0, 0],
        HashFields::SymmetricL3L4 => [addresses, proto, ports(streams), 0, 0],
        HashFields::SymmetricL3L4Udp => {
            [addresses, proto, ports(&[ip_proto::TCP, ip_proto::SCTP, ip_proto::UDP]), 0, 0]
        }
        HashFields::SymmetricL4 => [
            symmetric(Field::EthSrc, Field::EthDst),
            get(Field::VlanVid) | get(Field::EthType) << 16,
            addresses,
            proto,
            ports(streams),
        ],
    };
    values.into_iter().fold(u64::from(basis), |hash, value| {
        #[expect(clippy::cast_possible_truncation, reason = "the high half goes in as well")]
        let folded = (value >> 64) as u64 ^ (value as u64).rotate_left(1);
        mix(hash ^ folded)
    })
}

/// Returns the link of a packet, a number below the number of links.
pub(super) fn link(multipath: &MultipathAction, key: &FlowKey) -> u16 {
    let links = u64::from(multipath.max_link) + 1;
    let hash = hash(multipath.fields, multipath.basis, key);
    let link = match multipath.algorithm {
        MultipathAlgorithm::ModuloN => hash % links,
        MultipathAlgorithm::HashThreshold => ((hash >> 32) * links) >> 32,
        MultipathAlgorithm::Hrw => (0..links).max_by_key(|link| mix(hash ^ link)).unwrap_or(0),
        MultipathAlgorithm::IterHash => {
            let modulo = u64::from(multipath.arg);
            let is_fit = modulo >= links && modulo / 2 <= links;
            let modulo = if is_fit { modulo } else { links.next_power_of_two() };
            let mut draws = std::iter::successors(Some(hash), |hash| Some(mix(*hash))).take(MAX_DRAWS as usize);
            draws.find(|hash| hash % modulo < links).map_or(hash % links, |hash| hash % modulo)
        }
    };
    u16::try_from(link).unwrap_or(multipath.max_link)
}

/// Returns the member of a bundle that a packet takes, among the members that are up.
pub(super) fn member(bundle: &BundleAction, key: &FlowKey, is_up: impl Fn(PortNo) -> bool) -> Option<PortNo> {
    let mut live = (0_u64..).zip(&bundle.members).filter(|(_, port)| is_up(**port));
    let chosen = if bundle.is_hrw {
        let hash = hash(bundle.fields, bundle.basis, key);
        live.max_by_key(|(number, _)| mix(hash ^ number))
    } else {
        live.next()
    };
    chosen.map(|(_, port)| *port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::Subfield;

    fn key(src: u32, dst: u32) -> FlowKey {
        let mut key = FlowKey::EMPTY;
        key.set(Field::EthType, eth_type::IPV4.into());
        key.set(Field::Ipv4Src, src.into());
        key.set(Field::Ipv4Dst, dst.into());
        key
    }

    #[test]
    fn links_are_spread_and_symmetric() {
        use MultipathAlgorithm::{HashThreshold, Hrw, IterHash, ModuloN};
        for algorithm in [ModuloN, HashThreshold, Hrw, IterHash] {
            let dst = Subfield::all(Field::Reg0);
            let multipath =
                MultipathAction { fields: HashFields::SymmetricL3L4, basis: 7, algorithm, max_link: 4, arg: 0, dst };
            let mut counts = [0_u32; 5];
            for src in 0..5000 {
                let link = link(&multipath, &key(src, 99));
                assert_eq!(link, self::link(&multipath, &key(99, src)));
                counts[usize::from(link)] += 1;
            }
            assert!(counts.iter().all(|count| (700..1300).contains(count)), "{algorithm:?} {counts:?}");
        }
    }

    #[test]
    fn members_that_are_down_are_passed_over() {
        let members = vec![PortNo(1), PortNo(2), PortNo(3)];
        let mut bundle = BundleAction { is_hrw: false, fields: HashFields::NwSrc, basis: 0, members, dst: None };
        assert_eq!(member(&bundle, &key(1, 2), |port| port != PortNo(1)), Some(PortNo(2)));
        bundle.is_hrw = true;
        for src in 0..1000 {
            let before = member(&bundle, &key(src, 2), |_| true);
            let after = member(&bundle, &key(src, 2), |port| port != PortNo(1));
            // Only flows of the member that is down move.
            assert!(before == Some(PortNo(1)) || before == after);
            assert_ne!(after, Some(PortNo(1)));
        }
        assert_eq!(member(&bundle, &key(1, 2), |_| false), None);
    }
}
