//! What a host left undone, recognised from the frame alone.
//!
//! XDP sees a veth peer's frames without the kernel's notes: a transport checksum that the sender left to the device holds
//! only the folded sum of the pseudo header, and with TCP segmentation offload (generic mode) the frame is a super-frame.
//! The sender's settings cannot be reached from here (it may be in another namespace), and need not be: the sum is
//! recognised. A finished frame whose checksum happens to equal it (one in 65,536) is taken for unfinished, and completing it
//! gives the same checksum again. Only a damaged one would be repaired by mistake: one in 65,536 of frames damaged on a link
//! that has no frame check sequence.
use weir_packet::frame::{Offload, PartialChecksum, Segmentation, SegmentationKind};
use weir_packet::parse::{Layers, Network, Transport};
use weir_packet::{Field, PortNo, parse};

/// What is left to be done for a frame; `None` for a super-frame that cannot be cut. Unfinished frames of more than
/// `frame_max` bytes are super-frames, to be cut to packets of `mtu` bytes.
pub(super) fn left_undone(bytes: &[u8], frame_max: usize, mtu: usize) -> Option<Offload> {
    let Some((checksum, layers)) = partial_checksum(bytes) else {
        return Some(Offload::default());
    };
    let segmentation = match bytes.len() > frame_max {
        true => Some(segmentation(bytes, &layers, mtu)?),
        false => None,
    };
    Some(Offload { checksum: Some(checksum), segmentation })
}

/// A transport checksum that holds only its pseudo header's sum.
fn partial_checksum(bytes: &[u8]) -> Option<(PartialChecksum, Layers)> {
    let parsed = parse(bytes, PortNo::LOCAL).ok()?;
    let (offset, protocol) = match parsed.layers.transport?.0 {
        Transport::Tcp => (16, 6),
        Transport::Udp => (6, 17),
        _ => return None,
    };
    if parsed.key.get(Field::IpFrag) != 0 {
        return None;
    }
    let start = parsed.layers.transport?.1;
    let field = number(bytes, usize::from(start + offset))?;
    let sum = pseudo_header_sum(bytes, parsed.layers.network?, usize::from(start), protocol)?;
    (field == sum).then_some((PartialChecksum { start, offset }, parsed.layers))
}

/// The folded one's complement sum of the pseudo header (RFC 9293, 3.1; RFC 8200, 8.1).
fn pseudo_header_sum(bytes: &[u8], network: (Network, u16), transport: usize, protocol: u32) -> Option<u16> {
    let at = usize::from(network.1);
    let (addresses, end) = match network.0 {
        Network::Ipv4 => (at + 12..at + 20, at + usize::from(number(bytes, at + 2)?)),
        Network::Ipv6 => (at + 8..at + 40, at + 40 + usize::from(number(bytes, at + 4)?)),
        Network::Arp => return None,
    };
    let length = u32::try_from(end.checked_sub(transport)?).ok()?;
    let pairs = bytes.get(addresses)?.chunks_exact(2);
    let sum: u32 = pairs.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let mut sum = sum + protocol + (length >> 16) + (length & 0xffff);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    u16::try_from(sum).ok()
}

/// How a super-frame is to be cut: TCP only, into segments that fill packets of `mtu` bytes. The sender's own segment size
/// is not known here; it is at most this unless the receiver asked for less.
fn segmentation(bytes: &[u8], layers: &Layers, mtu: usize) -> Option<Segmentation> {
    let ((Transport::Tcp, transport), (network, start)) = (layers.transport?, layers.network?) else { return None };
    let flags = bytes.get(usize::from(transport) + 13)?;
    let ecn = flags & 0x80 != 0;
    let kind = match network {
        Network::Ipv4 => SegmentationKind::Tcpv4 { ecn },
        Network::Ipv6 => SegmentationKind::Tcpv6 { ecn },
        Network::Arp => return None,
    };
    let header_bytes = transport + u16::from(bytes.get(usize::from(transport) + 12)? >> 4) * 4;
    let segment_bytes = mtu.checked_sub(usize::from(header_bytes - start))?;
    Some(Segmentation { kind, segment_bytes: u16::try_from(segment_bytes).ok()?, header_bytes })
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}
