//! A port to nowhere: what is sent is discarded and counted. With `rx=on` it also receives without end, like DPDK's device
//! of the same name, so that a pipeline's cost can be measured without anything at its ends.
//!
//! `null:[NAME][,rx=on][,size=BYTES]`: frames of `size` zero bytes (14 to 9216, default 64).
use crate::spec::{Options, synthetic_mac};
use crate::{Counters, LinkState, Port, PortError, PortInfo, Ready};
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Lengths of invented frames: an Ethernet header to a jumbo.
const SIZES: std::ops::RangeInclusive<usize> = 14..=9216;
const DEFAULT_SIZE: usize = 64;

/// See the module's page.
#[derive(Debug)]
pub struct NullPort {
    info: PortInfo,
    /// Length of the frames it invents, if it does.
    size: Option<usize>,
    counters: Counters,
}

impl NullPort {
    /// A port as written in `options`.
    ///
    /// # Errors
    /// [`PortError::Spec`] for unknown options or a size out of range.
    pub fn open(name: &str, options: &Options) -> Result<Self, PortError> {
        options.expect_only(&["rx", "size"])?;
        let expected = "14 to 9216 bytes";
        let size = options.get("size", expected)?.unwrap_or(DEFAULT_SIZE);
        if !SIZES.contains(&size) {
            return Err(options.error(format!("option size: found `{size}`, expected {expected}")));
        }
        let rx = options.flag("rx", false)?;
        if !rx && options.text("size").is_some() {
            return Err(options.error("option size is for received frames: add rx=on"));
        }
        let name = if name.is_empty() { "null" } else { name };
        let spec = options.spec().to_owned();
        let info = PortInfo { mac: synthetic_mac(&spec), spec, name: name.to_owned(), mtu: 9202 };
        Ok(NullPort { info, size: rx.then_some(size), counters: Counters::default() })
    }
}

impl Port for NullPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(
        &mut self,
        _now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
    ) -> Result<(), PortError> {
        let Some(size) = self.size else { return Ok(()) };
        for _ in 0..max {
            let mut frame = pool.take(size);
            frame.receive_buffer()[..size].fill(0);
            frame.received(size);
            batch.push(frame);
        }
        self.counters.rx_packets += max as u64;
        self.counters.rx_bytes += (max * size) as u64;
        Ok(())
    }

    fn transmit(&mut self, _now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> Result<(), PortError> {
        for frame in frames.drain(..) {
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += frame.len() as u64;
            pool.give(frame);
        }
        Ok(())
    }

    fn arm(&mut self) -> Ready {
        if self.size.is_some() { Ready::Now } else { Ready::OnDescriptor }
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: None }
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::PortSpec;

    fn open(text: &str) -> Result<NullPort, PortError> {
        let spec: PortSpec = text.parse()?;
        NullPort::open(&spec.name, &spec.options)
    }

    #[test]
    fn discards_and_counts() {
        let (mut port, mut pool) = (open("null:").unwrap(), FramePool::default());
        let mut frames = vec![Frame::from_bytes(&[1; 60]); 3];
        port.transmit(Instant::ZERO, &mut pool, &mut frames).unwrap();
        port.receive(Instant::ZERO, &mut pool, &mut frames, 32).unwrap();
        assert!(frames.is_empty());
        assert_eq!((port.counters().tx_packets, port.counters().tx_bytes), (3, 180));
        assert_eq!(port.arm(), Ready::OnDescriptor);
    }

    #[test]
    fn invents_frames_when_asked() {
        let (mut port, mut pool, mut frames) =
            (open("null:n,rx=on,size=60").unwrap(), FramePool::default(), Vec::new());
        pool.give(Frame::from_bytes(&[7; 100]));
        port.receive(Instant::ZERO, &mut pool, &mut frames, 5).unwrap();
        assert_eq!(frames.len(), 5);
        assert!(frames.iter().all(|frame| frame.bytes() == [0; 60]));
        assert_eq!((port.counters().rx_packets, port.counters().rx_bytes), (5, 300));
        assert_eq!(port.arm(), Ready::Now);
    }

    #[test]
    fn sizes_are_checked() {
        for wrong in ["null:,rx=on,size=13", "null:,rx=on,size=9217", "null:,rx=on,size=x", "null:,size=60"] {
            assert!(open(wrong).is_err(), "{wrong}");
        }
    }
}
