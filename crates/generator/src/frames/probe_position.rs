//! Finds room for a header in a captured packet: at the end of its payload, the part that receiving programs read
//! last.
use weir_packet::checksum::updated;
use weir_packet::parse::{NetworkProtocol, TransportProtocol};
use weir_packet::{PortNo, parse};
use weir_traffic::{ProbeHeader, probe};

/// Position of a header in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProbePosition {
    at: usize,
    checksum_at: usize,
    /// True if a checksum of 0 means that there is none (RFC 768).
    is_udp: bool,
}

impl ProbePosition {
    /// Returns the position for a header in a frame. Complete TCP and UDP packets have room if their payload is long
    /// enough.
    pub(crate) fn find(frame: &[u8]) -> Option<ProbePosition> {
        let layers = parse(frame, PortNo(0)).ok()?.layers;
        let (network, ip) = layers.network?;
        let (transport, at) = layers.transport?;
        let (ip, transport_at) = (usize::from(ip), usize::from(at));
        let number = |at: usize| frame.get(at..at + 2).map(|pair| usize::from(u16::from_be_bytes([pair[0], pair[1]])));
        let end = match network {
            // Fragments do not contain a complete payload.
            NetworkProtocol::Ipv4 if number(ip + 6)? & 0x3fff == 0 => ip + number(ip + 2)?,
            NetworkProtocol::Ipv6 => ip + 40 + number(ip + 4)?,
            _ => return None,
        };
        let (headers, checksum) = match transport {
            TransportProtocol::Udp => (8, 6),
            TransportProtocol::Tcp => (usize::from(frame.get(transport_at + 12)? >> 4) * 4, 16),
            _ => return None,
        };
        if end > frame.len() {
            return None;
        }
        // Checksums add 16-bit words from the start of the transport header, so the header is aligned to them.
        let at = end.checked_sub(probe::BYTES + (end - transport_at) % 2)?;
        let has_room = at >= transport_at + headers && headers >= 8;
        has_room.then_some(ProbePosition {
            at,
            checksum_at: transport_at + checksum,
            is_udp: transport == TransportProtocol::Udp,
        })
    }

    /// Writes a header at the position and updates the checksum, which stays as correct as it was.
    pub(crate) fn write(&self, frame: &mut [u8], probe: &ProbeHeader) {
        let new = probe.bytes();
        let Some(old) = frame.get_mut(self.at..self.at + probe::BYTES) else { return };
        let mut before = [0; probe::BYTES];
        before.copy_from_slice(old);
        old.copy_from_slice(&new);
        let Some(field) = frame.get_mut(self.checksum_at..self.checksum_at + 2) else { return };
        let checksum = u16::from_be_bytes([field[0], field[1]]);
        if self.is_udp && checksum == 0 {
            return;
        }
        let checksum = match updated(checksum, &before, &new) {
            0 if self.is_udp => u16::MAX,
            checksum => checksum,
        };
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use weir_packet::MacAddr;
    use weir_packet::checksum::verify;
    use weir_packet::craft::{FrameBuilder, TcpHeader};
    use weir_packet::field::eth_type;

    const PROBE: ProbeHeader =
        ProbeHeader { run: 9, sequence: 3, sent_ns: 1 << 40, is_new_flow: false, counts: true, is_wall: false };

    fn ethernet() -> FrameBuilder {
        FrameBuilder::ethernet(MacAddr([2; 6]), MacAddr([4; 6]))
    }

    fn ip(craft: FrameBuilder) -> FrameBuilder {
        craft.ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))
    }

    #[test]
    fn packets_of_any_length_get_it_and_stay_right() {
        for bytes in [18, 19, 20, 100, 101, 1000, 1459, 1460] {
            let payload: Vec<u8> = (0..bytes).map(|at: u32| u8::try_from(at * 7 % 251).unwrap()).collect();
            for craft in [
                ip(ethernet()).udp(1, 2),
                ip(ethernet().vlan(eth_type::VLAN, 7, 0)).udp(1, 2),
                ip(ethernet()).tcp(TcpHeader::default()),
            ] {
                let mut frame = craft.payload(&payload).build();
                let length = frame.len();
                let place = ProbePosition::find(&frame).unwrap_or_else(|| panic!("{bytes} bytes are room enough"));
                place.write(&mut frame, &PROBE);
                assert_eq!((verify(&frame), frame.len()), (Ok(()), length), "{bytes} bytes");
                assert_eq!(ProbeHeader::find(&frame, Some(9)), Some(PROBE), "{bytes} bytes");
            }
        }
    }

    #[test]
    fn what_has_no_room_is_left_alone() {
        let short = ip(ethernet()).udp(1, 2).payload(&[0; 17]).build();
        let other = ip(ethernet()).icmp(8, 0, [0; 4]).payload(&[0; 100]).build();
        let mut fragment = ip(ethernet()).udp(1, 2).payload(&[0; 100]).build();
        fragment[20] |= 0x20;
        let mut cut = ip(ethernet()).udp(1, 2).payload(&[0; 100]).build();
        cut.truncate(100);
        for frame in [short, other, fragment, cut, Vec::new(), vec![0; 1500]] {
            assert_eq!(ProbePosition::find(&frame), None, "{frame:?}");
        }
        // UDP without a checksum stays without one.
        let mut without = ip(ethernet()).udp(1, 2).payload(&[1; 40]).build();
        without[40..42].fill(0);
        let place = ProbePosition::find(&without).unwrap();
        place.write(&mut without, &PROBE);
        assert_eq!((&without[40..42], ProbeHeader::find(&without, None)), (&[0, 0][..], Some(PROBE)));
    }
}
