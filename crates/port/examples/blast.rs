//! Sends 60-byte UDP frames (64 on a wire) through a port as fast as one core can, for measuring switches:
//! `blast PORT SOURCE_MAC DESTINATION_MAC SECONDS`, with the port as `weir switch --port` takes it.
use std::process::ExitCode;
use std::time::Duration;
use weir_packet::{Frame, FramePool, MacAddr};
use weir_port::spec;
use weir_units::{Clock as _, Instant, SystemClock};

/// Number of frames per call of `transmit`.
const BATCH: usize = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, source, destination, seconds] = arguments.as_slice() else {
        eprintln!("usage: blast PORT SOURCE_MAC DESTINATION_MAC SECONDS");
        return ExitCode::from(2);
    };
    match blast(port, source, destination, seconds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("blast: {error}");
            ExitCode::from(2)
        }
    }
}

fn blast(port: &str, source: &str, destination: &str, seconds: &str) -> Result<(), Box<dyn std::error::Error>> {
    let frame = udp_frame(source.parse()?, destination.parse()?);
    let length = Duration::from_secs(seconds.parse()?);
    let mut port = spec::open(&port.parse()?)?;
    let mut pool = FramePool::default();
    let mut frames = Vec::with_capacity(BATCH);
    let clock = SystemClock::start();
    while clock.now() < Instant::ZERO + length {
        frames.extend((0..BATCH).map(|_| pool.copy(&frame)));
        port.transmit(clock.now(), &mut pool, &mut frames)?;
    }
    let sent = port.counters().tx_packets;
    println!(
        "sent {sent} frames, {:.0} per second, dropped {}",
        sent as f64 / length.as_secs_f64(),
        port.counters().tx_dropped()
    );
    Ok(())
}

/// Returns a frame from 10.99.0.1:1024 to 10.99.0.2:9 with 18 bytes of payload and no UDP checksum.
fn udp_frame(source: MacAddr, destination: MacAddr) -> Frame {
    let mut bytes = [destination.0, source.0].concat();
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0x25, 0xf7, 10, 99, 0, 1, 10, 99, 0, 2]);
    bytes.extend([4, 0, 0, 9, 0, 26, 0, 0]);
    bytes.resize(60, 0);
    Frame::from_bytes(&bytes)
}
