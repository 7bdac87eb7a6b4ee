//! Writes and reads stamps in a stream's packets: stream, counting flag and send time, in the last bytes of the
//! frame.
use weir_units::Instant;

/// Length of a stamp in bytes: mark (2), stream and flag (2), send time in ns (8).
pub(super) const BYTES: usize = 12;
const MARK: [u8; 2] = *b"\xd7w";
/// Flag in the stream's number: the packet counts.
const COUNTS: u16 = 0x8000;

/// Stamp of a stream's packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamStamp {
    pub(super) stream: u16,
    pub(super) counts: bool,
    pub(super) sent: Instant,
}

/// Writes a stamp over the last bytes of a frame.
pub(super) fn write(frame: &mut [u8], stamp: StreamStamp) {
    let Some(place) = frame.last_chunk_mut::<BYTES>() else { return };
    let stream = stamp.stream | if stamp.counts { COUNTS } else { 0 };
    place[..2].copy_from_slice(&MARK);
    place[2..4].copy_from_slice(&stream.to_be_bytes());
    place[4..].copy_from_slice(&stamp.sent.as_nanos().to_be_bytes());
}

/// Reads the stamp of a frame; `None` if it has none.
pub(super) fn read(frame: &[u8]) -> Option<StreamStamp> {
    let [a, b, c, d, sent @ ..] = *frame.last_chunk::<BYTES>()?;
    let number = u16::from_be_bytes([c, d]);
    let sent = Instant::from_nanos(u64::from_be_bytes(sent));
    ([a, b] == MARK).then_some(StreamStamp { stream: number & !COUNTS, counts: number & COUNTS != 0, sent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let stamp = StreamStamp { stream: 999, counts: true, sent: Instant::from_nanos(1 << 50) };
        let mut frame = [0; 60];
        assert_eq!(read(&frame), None);
        write(&mut frame, stamp);
        assert_eq!(read(&frame), Some(stamp));
        assert_eq!(read(&frame[..BYTES - 1]), None, "too short for one");
    }
}
