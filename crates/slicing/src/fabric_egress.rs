//! Transmits frames from the fabric on the line of an output.
//!
//! The line keeps its own time. Packets that should have left since the last call leave at once, each charged at its
//! own time. A late engine therefore loses no rate, and no flow exceeds the line's rate. Packets that arrived in
//! between are not included, because an output is driven before a packet is inserted for it.
use crate::FabricSpec;
use std::collections::VecDeque;
use std::time::Duration;
use weir_fabric::{DequeueStop, Fabric, OutputLine, PortIndex};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_units::{Bps, Instant};

/// Maximum lateness that a line makes up for; the rest of a longer absence of the engine is lost.
const CATCH_UP: Duration = Duration::from_millis(10);
/// Maximum number of frames that leave at once; further due frames leave in the next round.
const MOST: usize = 256;
/// Maximum number of bytes of the physical switch's own frames that wait for a line without virtual switches' frames.
/// Frames beyond it are dropped and counted.
const OWN_BYTES: usize = 256 * 1024;

/// Output of the fabric: its line and the frames that leave by it.
#[derive(Debug)]
pub struct FabricEgressLine {
    /// Number of the physical port.
    pub port: PortNo,
    index: PortIndex,
    line: OutputLine,
    /// Time at which the idle line last got a frame, or later if the engine was away for long.
    since: Instant,
    /// True if a frame may be queued.
    is_pending: bool,
    /// Time before which the fabric has no frame to send, unless one is inserted.
    wait: Instant,
    /// Frames from the physical switch's own tables. They use capacity that virtual switches leave.
    own: VecDeque<Frame>,
    own_bytes: usize,
    /// Number of the physical switch's own frames that found no room.
    pub own_dropped: u64,
    /// Frames on their way to the port.
    pub leaving: Vec<Frame>,
}

impl FabricEgressLine {
    /// Returns the outlets of a fabric, one per port.
    pub fn all(fabric: &FabricSpec) -> Vec<FabricEgressLine> {
        let index = |place| PortIndex(u16::try_from(place).unwrap_or(u16::MAX));
        let ports = fabric.ports.iter().enumerate();
        ports.map(|(place, port)| FabricEgressLine::new(PortNo(port.port), index(place), port.rate)).collect()
    }

    /// Returns the outlet of a port with the line rate `rate`.
    pub fn new(port: PortNo, index: PortIndex, rate: Bps) -> FabricEgressLine {
        FabricEgressLine {
            port,
            index,
            line: OutputLine::new(rate, Duration::ZERO),
            since: Instant::ZERO,
            is_pending: false,
            wait: Instant::ZERO,
            own: VecDeque::new(),
            own_bytes: 0,
            own_dropped: 0,
            leaving: Vec::new(),
        }
    }

    /// Notes at `now` that a frame was inserted into the fabric for this outlet.
    #[inline]
    pub fn expect(&mut self, now: Instant) {
        if !self.is_pending {
            (self.is_pending, self.since) = (true, now);
        }
        self.wait = Instant::ZERO;
    }

    /// Queues a frame of the physical switch's own, or drops and counts it.
    pub fn take_own(&mut self, now: Instant, frame: Frame, pool: &mut FramePool) {
        if self.own_bytes + frame.len() > OWN_BYTES {
            self.own_dropped += 1;
            return pool.give(frame);
        }
        self.own_bytes += frame.len();
        self.own.push_back(frame);
        self.expect(now);
    }

    /// Time of the next call of [`FabricEgressLine::drive`]; [`Instant::FAR`] if no frame is queued.
    pub fn due(&self) -> Instant {
        if self.is_pending { self.line.free_at().max(self.since).max(self.wait) } else { Instant::FAR }
    }

    /// Moves the frames that leave by `now` from the fabric to `leaving`.
    pub fn drive(&mut self, now: Instant, fabric: &mut Fabric<Frame>) {
        if !self.is_pending {
            return;
        }
        self.since = self.since.max(Instant::from_nanos(now.as_nanos().saturating_sub(CATCH_UP_NS)));
        let mut at = self.due();
        while at <= now && self.leaving.len() < MOST {
            let (line, leaving) = (&mut self.line, &mut self.leaving);
            let pause = fabric.dequeue_run(at, self.index, |departure| {
                at = line.send(at, departure.bytes);
                leaving.push(departure.item);
                (at <= now && leaving.len() < MOST).then_some(at)
            });
            match pause {
                DequeueStop::Stopped => return,
                // No frame of a virtual switch may leave now, so the line is free for the physical switch's own.
                DequeueStop::Wait(until) if !self.send_own(at) => self.wait = until,
                DequeueStop::Empty if !self.send_own(at) => {
                    self.is_pending = false;
                    return;
                }
                DequeueStop::Wait(_) | DequeueStop::Empty => {}
            }
            at = self.due();
        }
    }

    fn send_own(&mut self, at: Instant) -> bool {
        let Some(frame) = self.own.pop_front() else { return false };
        self.own_bytes -= frame.len();
        self.line.send(at, u32::try_from(frame.wire_bytes()).unwrap_or(u32::MAX));
        self.leaving.push(frame);
        true
    }

    /// Drops the physical switch's own frames.
    pub fn forget_own(&mut self, pool: &mut FramePool) {
        self.own.drain(..).for_each(|frame| pool.give(frame));
        self.own_bytes = 0;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a constant that fits")]
const CATCH_UP_NS: u64 = CATCH_UP.as_nanos() as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_fabric::{
        Crosspoint, FabricConfig, FabricPacket, InputConfig, OutputConfig, VirtualPort, VirtualSwitchConfig,
        VirtualSwitchIndex,
    };

    const RATE: Bps = Bps(1_000_000_000);
    const SIZE: u32 = 1000;

    /// Returns a fabric with one port, and virtual switches with these quanta and ceilings.
    fn fabric(cuts: &[(u32, Option<Bps>)]) -> Fabric<Frame> {
        let config = FabricConfig {
            inputs: vec![InputConfig { rate: RATE }],
            outputs: vec![OutputConfig::new(RATE, 1_000_000)],
            ..FabricConfig::default()
        };
        let mut fabric = Fabric::new(config).unwrap();
        for (number, (quantum, ceiling)) in cuts.iter().enumerate() {
            let port =
                VirtualPort { quantum: *quantum, ceiling: *ceiling, ..VirtualPort::new(PortIndex(0), Bps(1_000_000)) };
            fabric.add(Instant::ZERO, VirtualSwitchConfig::new(&number.to_string(), vec![port], 100_000)).unwrap();
        }
        fabric
    }

    /// Keeps all queues full and drives the outlet at intervals of `every` for 10 ms. Returns the departed packets
    /// per switch, which is identified by their first byte.
    fn shares(fabric: &mut Fabric<Frame>, cuts: u16, every: Duration) -> Vec<u64> {
        let mut outlet = FabricEgressLine::new(PortNo(1), PortIndex(0), RATE);
        let (mut pool, mut dropped) = (FramePool::default(), Vec::new());
        let (mut now, mut left) = (Instant::ZERO, vec![0; usize::from(cuts)]);
        while now <= Instant::ZERO + Duration::from_millis(10) {
            outlet.drive(now, fabric);
            for frame in outlet.leaving.drain(..) {
                left[usize::from(frame.bytes()[0])] += 1;
                pool.give(frame);
            }
            for number in 0..cuts {
                let at = Crosspoint { switch: VirtualSwitchIndex(number), input: PortIndex(0), output: PortIndex(0) };
                let mut bytes = vec![0; SIZE as usize];
                bytes[0] = u8::try_from(number).unwrap();
                while fabric.enqueue(now, at, FabricPacket::new(SIZE, Frame::from_bytes(&bytes)), &mut dropped) {}
                dropped.clear();
            }
            outlet.expect(now);
            now += every;
        }
        left
    }

    #[test]
    fn a_line_is_shared_by_weights_whenever_it_is_asked() {
        for every in [8, 100].map(Duration::from_micros) {
            let left = shares(&mut fabric(&[(1000, None), (3000, None)]), 2, every);
            let all: u64 = left.iter().sum();
            // 10 ms at 1 Gbit/s, with 8 us per packet.
            assert!((1245..=1251).contains(&all), "{every:?}: {left:?}");
            assert!(left[0].abs_diff(all / 4) <= 3, "{every:?}: {left:?}");
        }
    }

    #[test]
    fn nobody_goes_beyond_a_ceiling() {
        let left = shares(&mut fabric(&[(1000, Some(Bps(200_000_000))), (1000, None)]), 2, Duration::from_micros(8));
        assert!((245..=251).contains(&left[0]), "{left:?}");
        assert!(left.iter().sum::<u64>() >= 1245, "the other has the rest: {left:?}");
    }

    #[test]
    fn a_late_engine_catches_up_only_so_far() {
        let mut fabric = fabric(&[(1000, None)]);
        let mut outlet = FabricEgressLine::new(PortNo(1), PortIndex(0), RATE);
        let at = Crosspoint { switch: VirtualSwitchIndex(0), input: PortIndex(0), output: PortIndex(0) };
        let mut dropped = Vec::new();
        while fabric.enqueue(Instant::ZERO, at, FabricPacket::new(SIZE, Frame::from_bytes(&[0; 60])), &mut dropped) {}
        outlet.expect(Instant::ZERO);
        outlet.drive(Instant::ZERO + Duration::from_micros(40), &mut fabric);
        assert_eq!(outlet.leaving.len(), 6, "at 0, 8, ... 40 us");
        assert_eq!(outlet.due(), Instant::ZERO + Duration::from_micros(48));
    }

    #[test]
    fn the_switchs_own_frames_have_what_is_left() {
        let mut fabric = fabric(&[(1000, None)]);
        let mut outlet = FabricEgressLine::new(PortNo(1), PortIndex(0), RATE);
        let (mut pool, mut dropped) = (FramePool::default(), Vec::new());
        let at = Crosspoint { switch: VirtualSwitchIndex(0), input: PortIndex(0), output: PortIndex(0) };
        for _ in 0..300 {
            outlet.take_own(Instant::ZERO, Frame::from_bytes(&[1; SIZE as usize]), &mut pool);
        }
        assert_eq!(outlet.own_dropped, 300 - (OWN_BYTES as u64) / u64::from(SIZE));
        (0..5).for_each(|_| {
            _ = fabric.enqueue(Instant::ZERO, at, FabricPacket::new(SIZE, Frame::from_bytes(&[0; 60])), &mut dropped)
        });
        outlet.drive(Instant::ZERO + Duration::from_micros(40), &mut fabric);
        let own = outlet.leaving.iter().map(|frame| frame.bytes()[0]).collect::<Vec<_>>();
        assert_eq!(own, [0, 0, 0, 0, 0, 1]);
    }
}
