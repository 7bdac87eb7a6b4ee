//! Records every frame of any port, in both directions, in a capture file, and logs it at level `trace`.
use crate::pcap::PcapFileWriter;
use crate::{FrameCounters, LinkState, Port, PortResult};
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Wrapper that records a port's frames.
pub struct PortTracer {
    port: Box<dyn Port>,
    capture: PcapFileWriter,
}

impl PortTracer {
    /// Records `port`'s frames: received ones as passed to the engine, transmitted ones as passed by the engine.
    pub fn new(port: Box<dyn Port>, capture: PcapFileWriter) -> PortTracer {
        PortTracer { port, capture }
    }

    fn record(&mut self, now: Instant, direction: &str, frames: &[Frame]) {
        for frame in frames {
            tracing::trace!(port = self.port.info().name, bytes = frame.len(), "{direction}");
            // The file holds Ethernet frames: packets of other types get an Ethernet header with empty addresses.
            let mut framed;
            let bytes = if frame.packet_type().is_ethernet() {
                frame.bytes()
            } else {
                framed = frame.clone();
                let _ = weir_packet::edit::encap_ethernet(&mut framed);
                framed.bytes()
            };
            if let Err(error) = self.capture.write(now, bytes) {
                tracing::warn!(port = self.port.info().name, %error, "the capture ends here: it cannot be written");
            }
        }
    }
}

impl Port for PortTracer {
    crate::traits::inner_port!();

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let before = batch.len();
        self.port.receive(now, pool, batch, max)?;
        self.record(now, "received", &batch[before..]);
        Ok(())
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.record(now, "transmitted", frames);
        self.port.transmit(now, pool, frames)
    }

    /// Flushes the capture file so that its readers see recent frames, and returns the inner port's link.
    fn link(&mut self) -> LinkState {
        self.capture.flush();
        self.port.link()
    }

    fn counters(&self) -> FrameCounters {
        self.port.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;
    use crate::pcap::PcapFileReader;

    #[test]
    fn both_directions_are_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.pcap");
        let (near, mut far) = memory::pair(8).unwrap();
        let (mut pool, mut batch) = (FramePool::default(), Vec::new());
        let mut port = PortTracer::new(Box::new(near), PcapFileWriter::create(&path).unwrap());
        let frame = |byte| Frame::from_bytes(&[byte; 60]);
        port.transmit(Instant::from_nanos(5), &mut pool, &mut vec![frame(1), frame(2)]).unwrap();
        far.transmit(Instant::ZERO, &mut pool, &mut vec![frame(3)]).unwrap();
        port.receive(Instant::from_nanos(9), &mut pool, &mut batch, 8).unwrap();
        assert_eq!(batch.len(), 1);
        assert!(port.link().up);
        let mut reader = PcapFileReader::open(&path).unwrap();
        let mut seen = Vec::new();
        while let Some((time_ns, frame)) = reader.next(&mut pool).unwrap() {
            seen.push((time_ns, frame.bytes()[0]));
        }
        let start = seen[0].0;
        let seen: Vec<_> = seen.iter().map(|(time_ns, byte)| (time_ns - start, *byte)).collect();
        assert_eq!(seen, [(0, 1), (0, 2), (4, 3)]);
    }
}
