//! Frames of the test traffic generators (RFC 8456, section 4.2), announcements of hosts, and what a frame of the
//! network is: test traffic or a discovery message of the controller.
use std::net::Ipv4Addr;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;

/// Frame check sequence: part of the frame sizes of section 4.2 as in RFC 2544, section 9.1, and absent here.
const FCS_BYTES: usize = 4;
/// Bytes of Ethernet, IPv4 and UDP headers.
const HEADER_BYTES: usize = 14 + 20 + 8;
/// First bytes of the payload of test traffic.
const MAGIC: [u8; 4] = *b"8456";
/// Length of an announcement without frame check sequence.
const ANNOUNCEMENT_BYTES: usize = 60;
/// EtherTypes of LLDP (IEEE 802.1AB) and of the broadcast variant of some controllers (BDDP).
const LLDP: [u8; 2] = [0x88, 0xcc];
const BDDP: [u8; 2] = [0x89, 0x42];
/// Destination of IPv4's EtherType in a frame, and its value.
const ETHER_TYPE_AT: usize = 12;
const IPV4: [u8; 2] = [0x08, 0x00];
const UDP_PORT: u16 = 8456;

/// Place of a host of the test traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostPlace {
    /// Behind TP1 (0) or TP2 (1).
    Generator(usize),
    /// Sends asynchronous messages of a switch, at its first edge port.
    Source(usize),
    /// Is sent to by asynchronous messages of a switch, at its second edge port.
    Target(usize),
}

/// A host: a place and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TestHost {
    pub(super) place: HostPlace,
    pub(super) number: u32,
}

impl TestHost {
    /// Returns the Ethernet address, locally administered. Hosts differ in it for numbers below 2^24.
    pub(super) fn mac(self) -> MacAddr {
        let (kind, node) = match self.place {
            HostPlace::Generator(generator) => (0x02, generator),
            HostPlace::Source(node) => (0x06, node),
            HostPlace::Target(node) => (0x0a, node),
        };
        let ([.., high, low], [_, a, b, c]) = (node.to_be_bytes(), self.number.to_be_bytes());
        MacAddr([kind, high, low, a, b, c])
    }

    /// Returns the IPv4 address. Hosts at generators differ in it for numbers below 2^24, the others may share one.
    pub(super) fn ip(self) -> Ipv4Addr {
        let [_, a, b, c] = self.number.to_be_bytes();
        match self.place {
            HostPlace::Generator(generator) => Ipv4Addr::from([if generator == 0 { 10 } else { 11 }, a, b, c]),
            HostPlace::Source(node) => Ipv4Addr::from([12, node.to_be_bytes()[7], b, c]),
            HostPlace::Target(node) => Ipv4Addr::from([13, node.to_be_bytes()[7], b, c]),
        }
    }

    /// Returns the number of a source of asynchronous messages of a switch, from its Ethernet address.
    pub(super) fn source_number(mac: MacAddr, node: usize) -> Option<u32> {
        let [kind, high, low, a, b, c] = mac.0;
        let is_own = [high, low] == node.to_be_bytes()[6..];
        (kind == 0x06 && is_own).then(|| u32::from_be_bytes([0, a, b, c]))
    }
}

/// Number of a frame within a stream of test traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameNumber {
    pub(super) stream: u32,
    pub(super) sequence: u32,
}

/// Returns a frame of test traffic that has `bytes` bytes on the wire, including the frame check sequence.
pub(super) fn traffic(from: TestHost, to: TestHost, number: FrameNumber, bytes: usize) -> Vec<u8> {
    let mut payload = vec![0; bytes.saturating_sub(FCS_BYTES + HEADER_BYTES).max(12)];
    payload[..4].copy_from_slice(&MAGIC);
    payload[4..8].copy_from_slice(&number.stream.to_be_bytes());
    payload[8..12].copy_from_slice(&number.sequence.to_be_bytes());
    let frame = FrameBuilder::ethernet(to.mac(), from.mac()).ipv4(from.ip(), to.ip());
    frame.udp(UDP_PORT, UDP_PORT).payload(&payload).build()
}

/// Returns the number of a frame of test traffic; `None` for any other frame.
pub(super) fn number(frame: &[u8]) -> Option<FrameNumber> {
    let payload = frame.get(HEADER_BYTES..HEADER_BYTES + 12)?;
    let is_traffic = frame[ETHER_TYPE_AT..ETHER_TYPE_AT + 2] == IPV4 && payload[..4] == MAGIC;
    let word = |at: usize| Some(u32::from_be_bytes(payload[at..at + 4].try_into().ok()?));
    is_traffic.then_some(FrameNumber { stream: word(4)?, sequence: word(8)? })
}

/// Returns the gratuitous ARP request (RFC 5227, section 3) by which a host makes itself known, as in A.4.4.
pub(super) fn announcement(host: TestHost) -> Vec<u8> {
    let sender = (host.mac(), host.ip());
    let mut frame =
        FrameBuilder::ethernet(MacAddr::BROADCAST, host.mac()).arp(1, sender, (MacAddr([0; 6]), host.ip())).build();
    frame.resize(ANNOUNCEMENT_BYTES, 0);
    frame
}

/// Returns true for a discovery message of a controller.
pub(super) fn is_discovery(frame: &[u8]) -> bool {
    frame.get(ETHER_TYPE_AT..ETHER_TYPE_AT + 2).is_some_and(|found| found == LLDP || found == BDDP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_their_size_and_their_number() {
        let [from, to] =
            [0, 1].map(|generator| TestHost { place: HostPlace::Generator(generator), number: 0x01_02_03 });
        for bytes in [128, 512, 1508] {
            let sent = FrameNumber { stream: 7, sequence: 0xffff_fffe };
            let frame = traffic(from, to, sent, bytes);
            assert_eq!((frame.len() + FCS_BYTES, number(&frame)), (bytes, Some(sent)));
            assert!(!is_discovery(&frame));
            weir_packet::checksum::verify(&frame).unwrap();
        }
        assert_eq!(number(&announcement(from)), None);
        assert_eq!(number(&[0; 20]), None);
    }

    #[test]
    fn hosts_are_told_apart() {
        let places = [HostPlace::Generator(0), HostPlace::Generator(1), HostPlace::Source(300), HostPlace::Target(300)];
        let macs: std::collections::HashSet<_> =
            places.iter().flat_map(|place| (0..3).map(|number| TestHost { place: *place, number }.mac().0)).collect();
        assert_eq!(macs.len(), 12);
        let source = TestHost { place: HostPlace::Source(300), number: 70_000 };
        assert_eq!(TestHost::source_number(source.mac(), 300), Some(70_000));
        assert_eq!(TestHost::source_number(source.mac(), 44), None);
        assert!(is_discovery(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0xcc]) && !is_discovery(&[0; 13]));
    }
}
