//! Metadata that leads packets of several routers through the same tables.
//!
//! | bits | what |
//! |---|---|
//! | 54 to 63 | number of the router |
//! | 38 to 53 | OpenFlow port by which the packet leaves; 0 before the route is known, and for the controller |
//! | 26 to 37 | VLAN of this port; 0 for none |
//! | 0 to 25 | number of the next hop; 0 for the destination itself |
//!
//! All numbers follow from the configuration alone. They stay the same while other ports and routes come and go, so
//! that entries of an old and a new configuration understand each other during a change.
use crate::config::RouterPortId;
use std::net::IpAddr;

/// Highest number of a router on a switch.
pub const MAX_ROUTER_NUMBER: u16 = 0x3ff;
/// Bits of the router's number.
pub(crate) const ROUTER_BITS: u64 = 0xffc0_0000_0000_0000;
/// Bits of the router's number and of the port by which the packet leaves.
pub(crate) const PORT_BITS: u64 = 0xffff_ffff_fc00_0000;
/// Bits of the next hop's number.
const HOP_BITS: u64 = 0x03ff_ffff;

/// Returns the metadata of a packet: its router, the port by which it leaves, and the number of the next hop.
pub(crate) fn metadata(router: u16, output: Option<RouterPortId>, hop: u32) -> u64 {
    let port = output.map_or(0, |id| u64::from(id.number.0 & 0xffff) << 38 | u64::from(id.vlan.unwrap_or(0)) << 26);
    u64::from(router) << 54 | port | u64::from(hop) & HOP_BITS
}

/// Returns the number of a next hop: 26 bits of a hash of its address (FNV-1a; RFC 9923), never 0.
pub(crate) fn next_hop_number(addr: IpAddr) -> u32 {
    let hash = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let hash = match addr {
        IpAddr::V4(v4) => hash(&v4.octets()),
        IpAddr::V6(v6) => hash(&v6.octets()),
    };
    u32::try_from((hash ^ hash >> 26 ^ hash >> 52) & HOP_BITS).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap() {
        let all = metadata(MAX_ROUTER_NUMBER, Some(RouterPortId::tagged(0xffff, 0xfff)), u32::MAX);
        assert_eq!(all, u64::MAX);
        assert_eq!(metadata(MAX_ROUTER_NUMBER, None, 0), ROUTER_BITS);
        assert_eq!(metadata(MAX_ROUTER_NUMBER, Some(RouterPortId::tagged(0xffff, 0xfff)), 0), PORT_BITS);
        assert_eq!(PORT_BITS ^ HOP_BITS, u64::MAX);
    }

    #[test]
    fn neighbouring_addresses_have_different_numbers() {
        let hops = (0..1000_u32).map(|last| next_hop_number(std::net::Ipv4Addr::from(0x0a00_0000 + last).into()));
        let numbers: std::collections::BTreeSet<u32> = hops.collect();
        assert!(numbers.len() > 995 && !numbers.contains(&0), "{}", numbers.len());
    }
}
