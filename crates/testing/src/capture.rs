//! Makes captures for tests.

/// Frame of a capture.
#[derive(Debug, Clone)]
pub struct CapturedFrame {
    /// Time in nanoseconds since 1970.
    pub time_ns: u64,
    /// Length on the wire, in bytes.
    pub wire_bytes: u32,
    /// Captured bytes, at most as many as there were on the wire.
    pub bytes: Vec<u8>,
}

impl CapturedFrame {
    /// Returns a frame of zeros of which only the first 14 bytes were captured.
    pub fn new(time_ns: u64, wire_bytes: u32) -> CapturedFrame {
        CapturedFrame { time_ns, wire_bytes, bytes: vec![0; 14] }
    }
}

/// Returns a pcap file of Ethernet frames with times in nanoseconds.
pub fn pcap(frames: &[CapturedFrame]) -> Vec<u8> {
    let mut file = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    for frame in frames {
        let (seconds, ns) = (frame.time_ns / 1_000_000_000, frame.time_ns % 1_000_000_000);
        let word = |number: u64| u32::try_from(number).expect("a time before 2106").to_le_bytes();
        let captured = u32::try_from(frame.bytes.len()).expect("a short frame").to_le_bytes();
        file.extend([word(seconds), word(ns), captured, frame.wire_bytes.to_le_bytes()].concat());
        file.extend(&frame.bytes);
    }
    file
}
