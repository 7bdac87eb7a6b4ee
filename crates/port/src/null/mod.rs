//! Discards and counts transmitted frames. With `rx=on` the port also generates received frames without end, like
//! DPDK's device of this name, so that a pipeline's cost can be measured without real ports.
//!
//! `null:[NAME][,rx=on][,size=BYTES]`: frames of `size` zero bytes (14 to 9216, default 64).
//!
//! `null:[NAME],rx=on,headers=KIND[,flows=N][,spread=N][,order=ORDER][,seed=N][,file=FILE][,size=BYTES]`: frames with
//! headers (60 to 1514 bytes, default 60). The first 64 bytes are written for each frame; bytes after the headers are
//! not initialised.
//! * `headers`: `udp`, `mac`, `mpls`, `masks`, or `destinations` (IPv4 addresses in `file`, one per line) or `listed`
//!   (the frames of a capture in `file`); see [`FlowHeaderKind`] for the fields of each kind.
//! * `flows`: number of distinct flows (default 1, for a list all of them). `spread`: number of distinct values of
//!   the field that flow entries match on (default: as many as flows).
//! * `order`: `cycle` (default) or `random`, drawn with `seed` (default 1); see [`FlowSequence`].
mod flow_sequence;
mod flows;
mod options;
#[cfg(test)]
mod tests;

pub use flow_sequence::{FlowSequence, MAX_FLOWS};
pub use flows::{FlowHeaderKind, GeneratedFlows, HEADER, HeaderBytes, SIZES};

use crate::spec::{PortOptions, synthetic_mac};
use crate::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult, ReceiveReadiness};
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Number of flows drawn at once.
const CHUNK: usize = 64;

/// Port that discards transmitted frames and optionally generates received frames.
#[derive(Debug)]
pub struct NullPort {
    info: PortInfo,
    source: NullFrameSource,
    counters: FrameCounters,
}

/// Kind of received frames.
#[derive(Debug)]
enum NullFrameSource {
    Nothing,
    /// Frames of this many zero bytes.
    Zeroes(usize),
    Flows(Box<GeneratedFlows>, FlowSequence),
}

impl NullPort {
    /// Opens a port as `options` specify.
    ///
    /// # Errors
    /// [`PortError::Spec`] for unknown options or a number out of range, [`PortError::System`] for a file that cannot
    /// be read.
    pub fn open(name: &str, options: &PortOptions) -> Result<Self, PortError> {
        let source = options::source(options)?;
        let name = if name.is_empty() { "null" } else { name };
        Ok(NullPort::new(name, options.spec(), source))
    }

    /// Creates a port that receives frames of `flows` without end.
    pub fn generating(name: &str, flows: GeneratedFlows, order: FlowSequence) -> NullPort {
        NullPort::new(name, &format!("null:{name}"), NullFrameSource::Flows(Box::new(flows), order))
    }

    fn new(name: &str, spec: &str, source: NullFrameSource) -> NullPort {
        let info = PortInfo { mac: synthetic_mac(spec), spec: spec.to_owned(), name: name.to_owned(), mtu: 9202 };
        NullPort { info, source, counters: FrameCounters::default() }
    }
}

impl Port for NullPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, _now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let size = match &mut self.source {
            NullFrameSource::Nothing => return Ok(()),
            NullFrameSource::Zeroes(size) => {
                batch.extend((0..max).map(|_| zeroes(pool, *size)));
                *size
            }
            NullFrameSource::Flows(flows, order) => {
                generate(flows, order, pool, batch, max);
                flows.size()
            }
        };
        self.counters.rx_packets += max as u64;
        self.counters.rx_bytes += (max * size) as u64;
        Ok(())
    }

    fn transmit(&mut self, _now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        let mut bytes = 0;
        self.counters.tx_packets += frames.len() as u64;
        frames.iter().for_each(|frame| bytes += frame.len() as u64);
        self.counters.tx_bytes += bytes;
        pool.give_burst(frames);
        Ok(())
    }

    fn arm(&mut self) -> ReceiveReadiness {
        if matches!(self.source, NullFrameSource::Nothing) {
            ReceiveReadiness::OnDescriptor
        } else {
            ReceiveReadiness::Now
        }
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: None }
    }

    fn counters(&self) -> FrameCounters {
        self.counters
    }
}

fn zeroes(pool: &mut FramePool, size: usize) -> Frame {
    let mut frame = pool.take(size);
    frame.begin_receive()[..size].fill(0);
    frame.finish_receive(size);
    frame
}

fn generate(
    flows: &GeneratedFlows,
    order: &mut FlowSequence,
    pool: &mut FramePool,
    batch: &mut Vec<Frame>,
    max: usize,
) {
    let mut numbers = [0; CHUNK];
    let mut left = max;
    while left > 0 {
        let burst = &mut numbers[..left.min(CHUNK)];
        left -= burst.len();
        order.fill(burst);
        flows.make(burst, pool, batch);
    }
}
