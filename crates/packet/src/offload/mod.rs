//! Does in software the work that a frame's sender left to the port.
//!
//! The sender's statements are not trusted: headers are found by parsing, and a frame whose statements do not fit its
//! headers is dropped. Jumbograms ("big TCP", more than 65535 bytes of IP) are not supported.
mod segment;

use crate::checksum::{OnesComplementSum, sctp_checksum};
use crate::datagram::IpDatagram;
use crate::frame::PartialChecksum;
use crate::parse::TransportProtocol;
use crate::{Frame, FramePool};

pub use segment::{MAX_SEGMENTS, WireSize};

/// Completes a partial transport checksum and cuts a super-frame into segments. Appends the finished frames to `out`;
/// a frame without offload is appended unchanged. Buffers are taken from and returned to `pool`.
///
/// Returns false if the frame was dropped: its offload does not fit its headers (a hostile or damaged sender), or it
/// would make more than [`MAX_SEGMENTS`].
pub fn finish(mut frame: Frame, pool: &mut FramePool, out: &mut Vec<Frame>) -> bool {
    let done = match (frame.offload.segmentation, frame.offload.checksum) {
        (Some(segmentation), _) => {
            let done = segment::cut(&frame, segmentation, pool, out);
            pool.give(frame);
            return done.is_some();
        }
        (None, Some(partial)) => complete(&mut frame, partial),
        (None, None) => Some(()),
    };
    match done {
        Some(()) => {
            frame.offload.checksum = None;
            out.push(frame);
        }
        None => pool.give(frame),
    }
    done.is_some()
}

/// Completes the checksum of the segment that starts at `partial.start`: a CRC for SCTP, otherwise the Internet
/// checksum, whose field already holds the pseudo header's sum. Padding after the IP packet is not included.
fn complete(frame: &mut Frame, partial: PartialChecksum) -> Option<()> {
    let (start, offset) = (usize::from(partial.start), usize::from(partial.offset));
    let datagram = IpDatagram::innermost(frame.bytes(), frame.packet_type());
    let (kind, end) = match datagram {
        Some(IpDatagram { transport: Some((kind, at)), end, .. }) if at == start => (Some(kind), end),
        _ => (None, frame.len()),
    };
    let segment = frame.bytes_mut().get_mut(start..end)?;
    if kind == Some(TransportProtocol::Sctp) && offset == 8 {
        let checksum = sctp_checksum(segment)?;
        segment[8..12].copy_from_slice(&checksum);
        return Some(());
    }
    segment.get(offset..offset + 2)?;
    let checksum = nonzero(OnesComplementSum::default().plus(segment).checksum());
    segment[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// Returns zero in its other representation, 0xffff: in UDP, zero means "no checksum", and for other protocols both
/// are equal.
fn nonzero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

#[cfg(test)]
mod tests;
