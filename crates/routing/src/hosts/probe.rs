//! Frames that ask a host whether it is there, and how its answers are recognised.
//!
//! Each check has an Ethernet address of its own, with 32 bits that only the controller can work out. The frames come
//! from that address, so a host's answer goes to it. An answer therefore shows that the host got the question, which
//! left the network at one port only. A frame that was sent before, or by a host that did not get the question, is no
//! answer.
//!
//! - An IPv4 address is asked for by an ARP probe (RFC 5227, 2.1.1). It has no sender's IP address, so it changes no
//!   cache, and hosts answer it whatever their network is.
//! - An IPv6 address is asked for by a neighbour solicitation (RFC 4861, 4.3) from the link-local address that belongs
//!   to the Ethernet address.
//! - A host without known IP address gets an ICMPv6 echo request to all nodes, in a frame for it alone (RFC 6085). It
//!   answers by asking for the sender's Ethernet address.
use crate::map::Host;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::{eth_type, icmpv6_type};

use super::claim::ND_HOP_LIMIT;

/// First bytes of the addresses of checks, locally administered.
const PREFIX: [u8; 2] = [0x02, 0x77];
const ARP_REQUEST: u16 = 1;
const ECHO_REQUEST: u8 = 128;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Most addresses of a host that are asked for at once.
const ADDRESSES_ASKED: usize = 3;
/// Shortest frame without checksum.
const MIN_FRAME_BYTES: usize = 60;

/// Returns the address of a check with secret bits.
pub(super) fn probe_address(secret: u32) -> MacAddr {
    let [a, b, c, d] = secret.to_be_bytes();
    let [first, second] = PREFIX;
    MacAddr([first, second, a, b, c, d])
}

/// Returns true if an address may be that of a check.
pub(super) fn is_probe_address(mac: MacAddr) -> bool {
    mac.0.starts_with(&PREFIX)
}

/// Returns the link-local address that belongs to an Ethernet address (RFC 4291, appendix A).
fn link_local(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// Returns the address of a check whose link-local address is `ip`; `None` for others.
pub(super) fn probe_address_of(ip: Ipv6Addr) -> Option<MacAddr> {
    let [_, _, _, _, _, _, _, _, a, b, c, _, _, d, e, f] = ip.octets();
    let mac = MacAddr([a ^ 2, b, c, d, e, f]);
    (is_probe_address(mac) && link_local(mac) == ip).then_some(mac)
}

/// Returns the frames that ask a host whether it is there. `ips` are its addresses, those confirmed last first.
pub(super) fn frames_for_host(probe: MacAddr, mac: MacAddr, ips: &[IpAddr], vlan: Option<u16>) -> Vec<Vec<u8>> {
    if ips.is_empty() {
        return vec![echo(probe, mac, vlan)];
    }
    ips.iter().take(ADDRESSES_ASKED).map(|ip| frame_for_address(probe, mac, *ip, vlan)).collect()
}

/// Returns the frame that asks a host whether it uses an IP address.
pub(super) fn frame_for_address(probe: MacAddr, mac: MacAddr, ip: IpAddr, vlan: Option<u16>) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => {
            let (sender, target) = ((probe, Ipv4Addr::UNSPECIFIED), (MacAddr::default(), ip));
            padded(start(probe, mac, vlan).arp(ARP_REQUEST, sender, target))
        }
        IpAddr::V6(ip) => {
            let payload = [&ip.octets()[..], &[1, 1], &probe.0].concat();
            let builder = start(probe, mac, vlan).ipv6(link_local(probe), ip).ttl(ND_HOP_LIMIT);
            padded(builder.icmp(icmpv6_type::NEIGHBOUR_SOLICITATION, 0, [0; 4]).payload(&payload))
        }
    }
}

fn echo(probe: MacAddr, mac: MacAddr, vlan: Option<u16>) -> Vec<u8> {
    let builder = start(probe, mac, vlan).ipv6(link_local(probe), ALL_NODES).ttl(1);
    padded(builder.icmp(ECHO_REQUEST, 0, [0x77, 0, 0, 1]))
}

fn start(probe: MacAddr, mac: MacAddr, vlan: Option<u16>) -> FrameBuilder {
    let builder = FrameBuilder::ethernet(mac, probe);
    vlan.into_iter().fold(builder, |builder, vid| builder.vlan(eth_type::VLAN, vid, 0))
}

fn padded(builder: FrameBuilder) -> Vec<u8> {
    let mut frame = builder.build();
    frame.resize(frame.len().max(MIN_FRAME_BYTES), 0);
    frame
}

/// Returns text that names a host: its address, and its name or first IP address.
pub(super) fn describe(host: &Host) -> String {
    match (&host.name, host.ips.first()) {
        (Some(name), _) => format!("{} ({name})", host.mac),
        (None, Some(ip)) => format!("{} ({ip})", host.mac),
        (None, None) => host.mac.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::{PacketClaim, Saying};
    use super::*;
    use weir_packet::{Field, PortNo, checksum, parse};

    const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    #[test]
    fn questions_are_whole_and_change_no_cache() {
        let probe = probe_address(0x0102_0304);
        let ips: [IpAddr; 2] = [Ipv4Addr::new(10, 0, 0, 1).into(), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).into()];
        let mut frames = frames_for_host(probe, HOST, &ips, None);
        frames.extend(frames_for_host(probe, HOST, &[], Some(7)));
        assert_eq!(frames.len(), 3);
        for frame in &frames {
            let key = parse(frame, PortNo(1)).expect("an Ethernet header").key;
            assert_eq!(checksum::verify(frame), Ok(()));
            assert_eq!(key.get(Field::EthSrc), probe.to_bits().into());
            assert!(frame.len() >= MIN_FRAME_BYTES);
        }
        let claims: Vec<_> = frames.iter().filter_map(|frame| PacketClaim::read(frame)).collect();
        assert_eq!(claims[0].says, Saying::Nothing, "an ARP probe names no sender");
        assert_eq!(claims[1].says, Saying::Uses(link_local(probe).into()));
        assert_eq!(claims[2].vlan, Some(7));
    }

    #[test]
    fn addresses_of_checks_come_back() {
        let probe = probe_address(0xfeed_1234);
        assert_eq!(probe_address_of(link_local(probe)), Some(probe));
        assert_eq!(probe_address_of(link_local(HOST)), None);
        assert_eq!(probe_address_of(ALL_NODES), None);
    }
}
