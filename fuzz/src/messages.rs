//! Messages of switches and packets of hosts for the controller of a network, made from few bytes.
use weir_openflow::model::port::{PortStatus, PortStatusReason, bits};
use weir_openflow::model::{Body, PortDesc, PortNo};
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;

/// Returns the description of a port that is up.
pub(crate) fn desc(port: PortNo) -> PortDesc {
    let mac = MacAddr::from_bits(0x0600_0000_0000 | u64::from(port.0));
    PortDesc { curr_speed: 1_000_000, ..PortDesc::new(port, mac, format!("p{port}")) }
}

/// Returns the change of a port that `choice` says.
pub(crate) fn port_status(port: PortNo, choice: u8) -> Body {
    let reasons = [PortStatusReason::Modify, PortStatusReason::Add, PortStatusReason::Delete];
    let state = if choice & 1 != 0 { bits::LINK_DOWN } else { 0 };
    let desc = PortDesc { state, ..desc(port) };
    Body::PortStatus(PortStatus { reason: reasons[usize::from(choice >> 1) % reasons.len()], desc })
}

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

/// Returns an announcement of ARP.
pub(crate) fn announcement(host: u8, ip: u8) -> Vec<u8> {
    let own = (mac(host), [10, 0, 0, ip].into());
    FrameBuilder::ethernet(MacAddr::BROADCAST, own.0).arp(1, own, (MacAddr::default(), own.1)).build()
}

/// Returns a message of DHCP with options.
pub(crate) fn dhcp(host: u8, options: &[u8]) -> Vec<u8> {
    let mut payload = vec![1, 1, 6, 0, 1, 2, 3, 4];
    payload.resize(28, 0);
    payload.extend(mac(host).0);
    payload.resize(236, 0);
    payload.extend([99, 130, 83, 99]);
    payload.extend(options);
    let frame = FrameBuilder::ethernet(MacAddr::BROADCAST, mac(host)).ipv4([0; 4].into(), [255; 4].into());
    frame.udp(68, 67).payload(&payload).build()
}

/// Returns a datagram for another subnet, over the router.
pub(crate) fn datagram(host: u8, to: u8, port: u8) -> Vec<u8> {
    let router = MacAddr([2, 0, 0, 0, 0xff, 1]);
    let frame = FrameBuilder::ethernet(router, mac(host)).ipv4([10, 0, 0, host].into(), [10, 0, to & 1, to].into());
    frame.ttl(1 + (port & 1)).udp(4000, port.into()).payload(b"data").build()
}
