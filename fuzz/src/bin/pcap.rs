//! Reads bytes as a capture file (pcap and pcapng), in pieces. Frames and their number must not exceed what the bytes
//! can hold.
//!
//! The first byte is the length of the pieces; 0 stands for the whole file at once.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::io::Read;
use weir_fuzz::bounded_by;
use weir_packet::FramePool;
use weir_packet::frame::MAX_FRAME;
use weir_port::pcap::PcapFileReader;

/// Memory of a reader in bytes: a buffer of 1 MiB, and room for interfaces and frames.
const READER_BYTES: usize = 4 << 20;

struct Pieces {
    bytes: Vec<u8>,
    at: usize,
    length: usize,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = into.len().min(self.length).min(self.bytes.len() - self.at);
        into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&length, bytes)) = input.split_first() else { return };
    bounded_by(READER_BYTES + 16 * bytes.len(), || read(bytes, length));
});

fn read(bytes: &[u8], length: u8) {
    let length = if length == 0 { usize::MAX } else { length.into() };
    let Ok(mut reader) = PcapFileReader::new(Pieces { bytes: bytes.to_vec(), at: 0, length }) else { return };
    let (mut pool, mut total, mut frames) = (FramePool::new(0, 0), 0, 0);
    let mut damaged = false;
    loop {
        match reader.next(&mut pool) {
            Ok(Some((_, frame))) => {
                assert!(!damaged, "a frame behind the damage");
                assert!(frame.len() <= MAX_FRAME);
                total += frame.len();
                frames += 1;
                pool.give(frame);
            }
            Ok(None) => break,
            Err(_) => assert!(!std::mem::replace(&mut damaged, true), "damage is told once"),
        }
    }
    // Each record has a header of at least 12 bytes.
    let held = total + 12 * (frames + usize::try_from(reader.skipped()).expect("few records"));
    assert!(held <= bytes.len(), "{frames} frames of {total} bytes from {}", bytes.len());
}
