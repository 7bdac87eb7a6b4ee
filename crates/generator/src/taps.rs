//! Taps: ports at which packets are seen on their path, in any encapsulation.
use crate::StampClock;
use std::collections::BTreeMap;
use weir_packet::{Frame, FramePool};
use weir_port::{FrameCounters, Port, PortError};
use weir_traffic::ProbeHeader;
use weir_traffic::recorder::PathRecorder;
use weir_units::Instant;

/// Range in bytes in which a frame is searched for headers: a TCP segment may hold several packet-ins.
const REACH: usize = 65_535;
/// Maximum number of frames received from a tap at a time.
const BURST: usize = 32;
/// Maximum number of bursts from a tap per round, so that no tap delays the others.
const MOST_BURSTS: usize = 64;

/// Taps of a run, and the packets seen there.
pub(crate) struct PathTaps {
    /// Ports, each with whether its frames carry their arrival time.
    ports: Vec<(Box<dyn Port>, bool)>,
    clock: StampClock,
    pub(crate) path: PathRecorder,
}

impl PathTaps {
    pub(crate) fn new(taps: Vec<(String, Box<dyn Port>)>, clock: StampClock) -> PathTaps {
        let (names, ports): (_, Vec<Box<dyn Port>>) = taps.into_iter().unzip();
        let stamped = |mut port: Box<dyn Port>| {
            let is_stamped = port.stamp_arrivals(clock.clock());
            (port, is_stamped)
        };
        PathTaps { ports: ports.into_iter().map(stamped).collect(), clock, path: PathRecorder::new(names) }
    }

    pub(crate) fn ports(&mut self) -> impl Iterator<Item = &mut Box<dyn Port>> {
        self.ports.iter_mut().map(|(port, _)| port)
    }

    /// Receives from all taps. Returns true if any frame arrived.
    pub(crate) fn receive(
        &mut self,
        run: Option<u16>,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
    ) -> Result<bool, PortError> {
        let mut came = false;
        for (at, (port, is_stamped)) in self.ports.iter_mut().enumerate() {
            // Reads all waiting frames: packets that arrive at the sink in this round must have been seen before.
            for _ in 0..MOST_BURSTS {
                let before = batch.len();
                port.receive(self.clock.now(), pool, batch, BURST)?;
                if batch.len() < before + BURST {
                    break;
                }
            }
            let now = self.clock.now();
            for frame in batch.drain(..) {
                came = true;
                let seen = if *is_stamped { Instant::from_nanos(frame.arrived()).min(now) } else { now };
                let now_ns = self.clock.stamp(seen);
                for probe in ProbeHeader::all(frame.bytes(), REACH, run).filter(|probe| probe.counts) {
                    self.path.seen(at, &probe, now_ns);
                }
                pool.give(frame);
            }
        }
        Ok(came)
    }

    pub(crate) fn counters(&self, into: &mut BTreeMap<String, FrameCounters>) {
        into.extend(self.ports.iter().map(|(port, _)| (port.info().spec.clone(), port.counters())));
    }
}
