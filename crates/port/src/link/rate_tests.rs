//! Tests of the bytes that count for a link's rate, and of the rate when the engine runs late.
use super::*;
use crate::memory;
use weir_packet::frame::{Offload, Segmentation, SegmentationKind};

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

fn send(port: &mut dyn Port, now: u64, frames: &mut Vec<Frame>) {
    port.transmit(at(now), &mut FramePool::default(), frames).unwrap();
}

/// Receives from a port; returns the number of frames.
fn look(port: &mut dyn Port, now: u64) -> u64 {
    let mut batch = Vec::new();
    port.receive(at(now), &mut FramePool::default(), &mut batch, 8192).unwrap();
    batch.len() as u64
}

fn frame(bytes: usize) -> Vec<Frame> {
    vec![Frame::from_bytes(&vec![0; bytes])]
}

/// 1 Gbit/s and 1 ms: a frame of 1000 bytes takes 8 us on the wire.
const FAST: LinkShape = LinkShape {
    rate: Some(Bps(1_000_000_000)),
    delay: Duration::from_millis(1),
    buffer: Some(ByteSize(1_000_000)),
    jitter: None,
    loss: None,
};

#[test]
fn a_super_frame_takes_the_time_of_its_segments() {
    let (near, _far) = memory::pair(64).unwrap();
    let mut link = LinkEmulator::new(Box::new(near), FAST, LinkShape::default());
    let mut long = frame(54 + 10 * 1000);
    let segmentation =
        Segmentation { kind: SegmentationKind::Tcpv4 { ecn: false }, segment_bytes: 1000, header_bytes: 54 };
    long[0].offload = Offload { segmentation: Some(segmentation), ..Offload::default() };
    send(&mut link, 0, &mut long);
    let due = at(1000) + Duration::from_nanos(10 * 1054 * 8);
    assert_eq!(link.next_wake(), Some(due), "ten frames of 1054 bytes");
}

#[test]
fn a_link_that_is_never_idle_keeps_its_rate_however_late_it_is_looked_at() {
    let (near, mut far) = memory::pair(8192).unwrap();
    let mut link = LinkEmulator::new(Box::new(near), FAST, LinkShape::default());
    let (mut sent, mut came, mut now) = (0_u64, 0_u64, 0);
    // The engine runs every 50 us to 3 ms; of 600 frames 125 are in flight, the others wait.
    for round in 0..2000_u64 {
        while sent < came + 600 {
            send(&mut link, now, &mut frame(1000));
            sent += 1;
        }
        now += if round % 7 == 0 { 3000 } else { 50 };
        look(&mut link, now);
        came += look(&mut far, now);
    }
    assert_eq!(came, (now - 1000) / 8, "one each 8 us, from when the first arrived on");
}
