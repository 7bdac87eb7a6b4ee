//! Parses TCP segments from captured frames.
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use weir_packet::parse::{NetworkProtocol, ParsedHeaders, TransportProtocol, parse};
use weir_packet::{Field, PortNo};

/// Direction of a TCP connection, by its two addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TcpDirection {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
}

impl fmt::Display for TcpDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.from, self.to)
    }
}

/// A segment of a TCP stream.
pub(super) struct TcpSegment {
    pub(super) direction: TcpDirection,
    pub(super) sequence: u32,
    pub(super) is_syn: bool,
    /// Acknowledgement number: the next sequence number that the sender expects from the other direction.
    pub(super) acknowledged: Option<u32>,
    /// Capture time in nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// The captured part of the payload.
    pub(super) data: Vec<u8>,
    /// Length of the payload as sent, in bytes.
    pub(super) length: usize,
}

/// Returns the TCP segment in a frame, or `None` if it carries none.
pub(super) fn segment(time_ns: u64, frame: &[u8]) -> Option<TcpSegment> {
    let parsed = parse(frame, PortNo(0)).ok()?;
    let (TransportProtocol::Tcp, tcp) = parsed.layers.transport? else { return None };
    let (network, ip) = parsed.layers.network?;
    let (tcp, ip) = (usize::from(tcp), usize::from(ip));
    let header: &[u8; 20] = frame.get(tcp..)?.first_chunk()?;
    let be32 = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let payload = tcp + usize::from(header[12] >> 4) * 4;
    let end = ip_end(network, ip, frame)?;
    let length = end.checked_sub(payload)?;
    Some(TcpSegment {
        direction: direction(&parsed, network),
        sequence: be32(4),
        is_syn: header[13] & 2 != 0,
        acknowledged: (header[13] & 0x10 != 0).then(|| be32(8)),
        time_ns,
        data: frame.get(payload..end.min(frame.len())).unwrap_or_default().to_vec(),
        length,
    })
}

/// Returns the end of the IP packet by its own length: it may lie before the frame's padding, or beyond the captured
/// bytes. A length of zero, as network cards with segmentation offload leave it, means the frame's end.
fn ip_end(network: NetworkProtocol, ip: usize, frame: &[u8]) -> Option<usize> {
    let be16 = |at: usize| frame.get(at..at + 2).map(|bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])));
    let (length, start) = match network {
        NetworkProtocol::Ipv4 => (be16(ip + 2)?, ip),
        NetworkProtocol::Ipv6 => (be16(ip + 4)?, ip + 40),
        NetworkProtocol::Arp | NetworkProtocol::Nsh => return None,
    };
    Some(if length == 0 { frame.len() } else { start + length })
}

#[expect(clippy::cast_possible_truncation, reason = "fields have no more bits than their types")]
fn direction(parsed: &ParsedHeaders, network: NetworkProtocol) -> TcpDirection {
    let key = &parsed.key;
    let end = |v4: Field, v6: Field, port: Field| {
        let address = match network {
            NetworkProtocol::Ipv6 => IpAddr::V6(key.get(v6).into()),
            _ => IpAddr::V4((key.get(v4) as u32).into()),
        };
        SocketAddr::new(address, key.get(port) as u16)
    };
    TcpDirection {
        from: end(Field::Ipv4Src, Field::Ipv6Src, Field::TcpSrc),
        to: end(Field::Ipv4Dst, Field::Ipv6Dst, Field::TcpDst),
    }
}
