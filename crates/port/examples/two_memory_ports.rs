//! Two ports joined in memory, one of them behind an emulated link with a rate and a delay, in virtual time.
//!
//! `cargo run -p weir-port --example two_memory_ports`
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_port::link::{LinkEmulator, LinkShape};
use weir_port::{Port, memory};
use weir_units::{Bps, ByteSize, Instant};

/// Number of frames to send at once.
const FRAMES: usize = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (left, mut right) = memory::pair(256)?;
    // 10 Mbit/s, 1 ms, and room for five frames that wait. Frames pass the other way untouched.
    let shape = LinkShape {
        rate: Some(Bps(10_000_000)),
        delay: Duration::from_millis(1),
        buffer: Some(ByteSize(5 * 1250)),
        ..LinkShape::default()
    };
    let mut left = LinkEmulator::new(Box::new(left), shape, LinkShape::default());

    // No call blocks and none reads a clock: the time is whatever the caller says.
    let (mut now, mut pool) = (Instant::ZERO, FramePool::default());
    let mut frames = vec![Frame::from_bytes(&[0; 1250]); FRAMES];
    left.transmit(now, &mut pool, &mut frames)?;
    let mut received = Vec::new();
    while let Some(due) = left.next_wake() {
        now = due;
        left.transmit(now, &mut pool, &mut frames)?;
        right.receive(now, &mut pool, &mut received, 64)?;
        for frame in received.drain(..) {
            println!("at {:>6.3} ms: {} bytes", now.as_secs_f64() * 1e3, frame.len());
            pool.give(frame);
        }
    }
    let counters = left.counters();
    println!("sent {}, dropped {} because the buffer was full", counters.tx_packets, counters.tx_dropped());
    Ok(())
}
