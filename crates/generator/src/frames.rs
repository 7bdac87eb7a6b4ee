//! Builds packets of flows: UDP packets that carry the header by which they are recognised.
pub(crate) mod probe_position;

use crate::GeneratorError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_packet::checksum::internet;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Frame, FramePool, MacAddr};
use weir_traffic::{MAX_BYTES, ProbeHeader, ScheduledPacket, probe};

/// Number of source ports that distinguish flows; further flows differ in source address.
const PORTS: u64 = 32_768;
/// Maximum number of source addresses for IPv4; after that, addresses repeat.
pub const MAX_FLOW_ADDRESSES: u64 = 1 << 32;
const UDP_BYTES: usize = 8;
/// IP protocol number of UDP.
const UDP: u16 = 17;

/// Header fields of generated packets.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameSpec {
    /// Ethernet addresses: destination, then source.
    pub eth: [MacAddr; 2],
    /// VLAN identifier; `None`: untagged.
    pub vlan: Option<u16>,
    /// IP addresses of one family: source of the first flows, then destination.
    pub ip: [IpAddr; 2],
    /// UDP ports: source of the first flow, then destination.
    pub udp: [u16; 2],
    /// Destination port of packets that begin a flow; `None`: that of other packets.
    pub new_flow_port: Option<u16>,
}

impl Default for FrameSpec {
    /// Returns addresses of the benchmarking network (RFC 2544, appendix C.2.2) and the discard port.
    fn default() -> Self {
        FrameSpec {
            eth: [MacAddr([2, 0, 0, 0, 0xff, 2]), MacAddr([2, 0, 0, 0, 0xff, 1])],
            vlan: None,
            ip: [Ipv4Addr::new(198, 18, 0, 1).into(), Ipv4Addr::new(198, 19, 0, 1).into()],
            udp: [1024, 9],
            new_flow_port: None,
        }
    }
}

/// Bytes that all packets have in common.
#[derive(Debug, Clone)]
pub(crate) struct ProbeFrameTemplate {
    spec: FrameSpec,
    /// Packet of maximum length; each packet is a prefix of it.
    whole: Vec<u8>,
    /// Offset of the IP header.
    ip: usize,
    /// Offset of the UDP header.
    udp: usize,
}

impl ProbeFrameTemplate {
    /// # Errors
    /// Addresses of two families, or an invalid VLAN identifier.
    pub(crate) fn new(spec: &FrameSpec) -> Result<ProbeFrameTemplate, GeneratorError> {
        let mut craft = FrameBuilder::ethernet(spec.eth[0], spec.eth[1]);
        if let Some(vlan) = spec.vlan {
            if !(1..=4094).contains(&vlan) {
                return Err(GeneratorError::wrong("VLAN", vlan, "1 to 4094"));
            }
            craft = craft.vlan(eth_type::VLAN, vlan, 0);
        }
        // The EtherType is the last field before IP.
        let ip = craft.build().len();
        let craft = match spec.ip {
            [IpAddr::V4(source), IpAddr::V4(destination)] => craft.ipv4(source, destination),
            [IpAddr::V6(source), IpAddr::V6(destination)] => craft.ipv6(source, destination),
            [source, destination] => {
                let found = format!("{source} and {destination}");
                return Err(GeneratorError::wrong("addresses", found, "both of IPv4, or both of IPv6"));
            }
        };
        let mut whole = craft.udp(spec.udp[0], spec.udp[1]).build();
        let udp = whole.len() - UDP_BYTES;
        whole.resize(MAX_BYTES as usize, 0);
        Ok(ProbeFrameTemplate { spec: spec.clone(), whole, ip, udp })
    }

    /// Returns the minimum packet length in bytes.
    pub(crate) fn least(&self) -> usize {
        self.udp + UDP_BYTES + probe::BYTES
    }

    /// Returns the planned packet, with `probe` in its payload.
    pub(crate) fn frame(&self, planned: &ScheduledPacket, probe: &ProbeHeader, pool: &mut FramePool) -> Frame {
        let bytes = (planned.bytes as usize).clamp(self.least(), self.whole.len());
        let mut frame = pool.take(bytes);
        frame.assign(&self.whole[..bytes]);
        let packet = frame.bytes_mut();
        packet[self.udp + UDP_BYTES..self.least()].copy_from_slice(&probe.bytes());
        self.number_flow(packet, planned);
        let length = u16::try_from(bytes - self.udp).unwrap_or(u16::MAX).to_be_bytes();
        packet[self.udp + 4..self.udp + 6].copy_from_slice(&length);
        self.finish_ip(packet, length);
        frame
    }

    /// Writes the source port, the source address and the destination port of the packet's flow.
    fn number_flow(&self, packet: &mut [u8], planned: &ScheduledPacket) {
        let port = self.spec.udp[0].wrapping_add((planned.flow % PORTS) as u16);
        packet[self.udp..self.udp + 2].copy_from_slice(&port.to_be_bytes());
        let address = planned.flow / PORTS;
        if address > 0 {
            match self.spec.ip[0] {
                IpAddr::V4(first) => {
                    #[expect(clippy::cast_possible_truncation, reason = "they begin again after 2^32")]
                    let own = Ipv4Addr::from_bits(first.to_bits().wrapping_add(address as u32));
                    packet[self.ip + 12..self.ip + 16].copy_from_slice(&own.octets());
                }
                IpAddr::V6(first) => {
                    let own = Ipv6Addr::from_bits(first.to_bits().wrapping_add(address.into()));
                    packet[self.ip + 8..self.ip + 24].copy_from_slice(&own.octets());
                }
            }
        }
        if let (true, Some(port)) = (planned.is_new_flow, self.spec.new_flow_port) {
            packet[self.udp + 2..self.udp + 4].copy_from_slice(&port.to_be_bytes());
        }
    }

    /// Writes lengths and checksums; `length` is the UDP length.
    fn finish_ip(&self, packet: &mut [u8], length: [u8; 2]) {
        let whole = packet.len();
        let addresses = match self.spec.ip[0] {
            IpAddr::V4(_) => {
                let total = u16::try_from(whole - self.ip).unwrap_or(u16::MAX).to_be_bytes();
                packet[self.ip + 2..self.ip + 4].copy_from_slice(&total);
                packet[self.ip + 10..self.ip + 12].fill(0);
                let checksum = internet(&[&packet[self.ip..self.udp]]);
                packet[self.ip + 10..self.ip + 12].copy_from_slice(&checksum.to_be_bytes());
                self.ip + 12..self.ip + 20
            }
            IpAddr::V6(_) => {
                packet[self.ip + 4..self.ip + 6].copy_from_slice(&length);
                self.ip + 8..self.ip + 40
            }
        };
        packet[self.udp + 6..self.udp + 8].fill(0);
        // The payload after the header is zero and does not change the sum.
        let parts = [&packet[addresses], &UDP.to_be_bytes()[..], &length[..], &packet[self.udp..self.least()]];
        let checksum = match internet(&parts) {
            // A checksum of 0 would mean that there is none (RFC 768).
            0 => u16::MAX,
            checksum => checksum,
        };
        packet[self.udp + 6..self.udp + 8].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::checksum;
    use weir_units::Instant;

    fn planned(bytes: u32, flow: u64, is_new_flow: bool) -> ScheduledPacket {
        ScheduledPacket { at: Instant::ZERO, bytes, flow, is_new_flow }
    }

    const PROBE: ProbeHeader =
        ProbeHeader { run: 3, sequence: 5, sent_ns: 123_456_789, is_new_flow: false, counts: true, is_wall: false };

    #[test]
    fn packets_of_any_length_and_flow_are_right() {
        let six = [Ipv6Addr::LOCALHOST.into(), Ipv6Addr::UNSPECIFIED.into()];
        let mut pool = FramePool::new(4, 4);
        for spec in [
            FrameSpec::default(),
            FrameSpec { vlan: Some(7), ..FrameSpec::default() },
            FrameSpec { ip: six, ..FrameSpec::default() },
        ] {
            let template = ProbeFrameTemplate::new(&spec).unwrap();
            for bytes in [template.least(), 100, 101, 1500, 65_535] {
                for flow in [0, 1, 40_000, 1 << 33, 1 << 50] {
                    let bytes = u32::try_from(bytes).unwrap();
                    let frame = template.frame(&planned(bytes, flow, false), &PROBE, &mut pool);
                    assert_eq!(frame.bytes_len(), bytes);
                    assert_eq!(checksum::verify(frame.bytes()), Ok(()), "{spec:?}, {bytes} bytes, flow {flow}");
                    assert_eq!(ProbeHeader::find(frame.bytes(), Some(3)), Some(PROBE));
                }
            }
        }
        assert_eq!(
            ProbeFrameTemplate::new(&FrameSpec::default()).unwrap().least(),
            60,
            "fits the shortest Ethernet frame"
        );
    }

    #[test]
    fn flows_differ_in_port_then_in_address() {
        let template = ProbeFrameTemplate::new(&FrameSpec { new_flow_port: Some(99), ..FrameSpec::default() }).unwrap();
        let mut pool = FramePool::new(4, 4);
        let mut headers = |flow, is_new| {
            let frame = template.frame(&planned(60, flow, is_new), &PROBE, &mut pool);
            let b = frame.bytes();
            (b[29], u16::from_be_bytes([b[34], b[35]]), u16::from_be_bytes([b[36], b[37]]))
        };
        assert_eq!(headers(0, false), (1, 1024, 9));
        assert_eq!(headers(2, true), (1, 1026, 99));
        assert_eq!(headers(32_767, false), (1, 33_791, 9));
        assert_eq!(headers(32_768, false), (2, 1024, 9));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mixed = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
        let error = ProbeFrameTemplate::new(&FrameSpec { ip: mixed, ..FrameSpec::default() }).unwrap_err().to_string();
        assert_eq!(error, "addresses: found ::1 and 127.0.0.1, expected both of IPv4, or both of IPv6");
        assert!(ProbeFrameTemplate::new(&FrameSpec { vlan: Some(4095), ..FrameSpec::default() }).is_err());
    }
}
