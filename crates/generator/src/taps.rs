//! Taps: ports on which packets are seen on their way, in whatever they are wrapped.
use std::collections::BTreeMap;
use weir_packet::{Frame, FramePool};
use weir_port::{Counters, Port, PortError};
use weir_traffic::Probe;
use weir_traffic::recorder::Path;
use weir_units::Instant;

/// How far into a frame headers are looked for: several packet-ins may share a segment.
const REACH: usize = 65_535;
/// Frames taken from a tap at once.
const BURST: usize = 32;

/// The taps of a run, and what they saw.
pub(crate) struct Taps {
    ports: Vec<Box<dyn Port>>,
    pub(crate) path: Path,
}

impl Taps {
    pub(crate) fn new(taps: Vec<(String, Box<dyn Port>)>) -> Taps {
        let (names, ports) = taps.into_iter().unzip();
        Taps { ports, path: Path::new(names) }
    }

    pub(crate) fn ports(&mut self) -> impl Iterator<Item = &mut Box<dyn Port>> {
        self.ports.iter_mut()
    }

    /// Takes in what came; whether anything did. `now_ns` is the time as a stamp.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        now_ns: u64,
        run: Option<u16>,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
    ) -> Result<bool, PortError> {
        let mut came = false;
        for (at, port) in self.ports.iter_mut().enumerate() {
            port.receive(now, pool, batch, BURST)?;
            for frame in batch.drain(..) {
                came = true;
                for probe in Probe::all(frame.bytes(), REACH, run).filter(|probe| probe.counts) {
                    self.path.seen(at, &probe, now_ns);
                }
                pool.give(frame);
            }
        }
        Ok(came)
    }

    pub(crate) fn counters(&self, into: &mut BTreeMap<String, Counters>) {
        into.extend(self.ports.iter().map(|port| (port.info().spec.clone(), port.counters())));
    }
}
