//! Emulates a link around any port: rate, delay, jitter, buffer and losses ([`weir_traffic::impair`]).
//!
//! Each direction is a queue in front of a wire. A frame waits until the wire is free, occupies it for the time of
//! its bytes at the rate, and arrives one delay later. Times are computed from the times of earlier frames, not from
//! when the engine runs, so a late engine delays single frames but never lowers the rate. A frame that would have to
//! wait in a full buffer is dropped and counted: `tx_full` toward the port, `rx_missed` from it. Only waiting bytes
//! count against the buffer, so a frame of any length passes an idle link. A frame that is lost on the way occupies
//! the wire first; it is counted as `tx_lost` or `rx_lost`.
//!
//! Super-frames ([`weir_packet::frame::Offload`]) count as the segments they become, each with its own headers.
//!
//! A link with a [`LinkControl`] can be changed while frames pass, and taken down and up again like an unplugged
//! cable.
mod control;
mod lateness;
#[cfg(test)]
mod rate_tests;

pub use control::{LinkControl, LinkParameters};
pub use lateness::LinkLatenessHistogram;

use crate::{FrameCounters, LinkState, Port, PortResult};
use control::LinkControlTracker;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_traffic::impair::{ImpairmentRng, LinkJitter, LinkLoss};
use weir_units::{Bps, ByteSize, Instant, SystemClock};

/// Buffer in bytes of a link with a rate, if none is configured.
pub const DEFAULT_BUFFER: ByteSize = ByteSize(256_000);
/// Maximum number of frames on one direction of a link, waiting or in flight. Further frames are dropped as if the
/// buffer were full.
pub const MAX_FRAMES: usize = 65_536;

/// Properties of one direction of a link. The default leaves frames untouched.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LinkShape {
    /// Rate in bit/s; `None`: frames take no time.
    pub rate: Option<Bps>,
    /// Propagation delay: time from sending a frame's last bit to receiving the frame.
    pub delay: Duration,
    /// Maximum number of bytes that wait for the wire; `None`: [`DEFAULT_BUFFER`].
    pub buffer: Option<ByteSize>,
    /// Variation of the delay; `None`: constant delay.
    pub jitter: Option<LinkJitter>,
    /// Loss of frames; `None`: no losses.
    pub loss: Option<LinkLoss>,
}

impl LinkShape {
    /// Returns true if frames pass untouched.
    pub fn is_none(&self) -> bool {
        self.rate.is_none() && self.delay.is_zero() && self.jitter.is_none() && self.loss.is_none()
    }
}

/// A port behind an emulated link.
pub struct LinkEmulator {
    port: Box<dyn Port>,
    egress: LinkDirection,
    ingress: LinkDirection,
    /// Frames that are due, on their way into or out of the port; kept to reuse the allocation.
    due: Vec<Frame>,
    /// Control handle that can change the link, with the state the link last adopted; `None` for a fixed link.
    followed: Option<LinkControlTracker>,
    /// Frames lost while the link was down.
    cut: LinkDownLosses,
    stamps: ArrivalTimeSource,
}

/// Source of the arrival times that received frames carry.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum ArrivalTimeSource {
    /// Stamping is off: frames carry no arrival time.
    #[default]
    None,
    /// Arrival at this end of the link, computed from the time at which the frame was read from the port.
    ReadTime,
    /// Arrival at this end of the link, computed from the arrival time that the port reports.
    PortTimestamp,
}

/// Counts of frames lost while the link was down.
#[derive(Default)]
struct LinkDownLosses {
    tx: u64,
    rx: u64,
    rx_bytes: u64,
}

impl LinkEmulator {
    /// Creates a link: `egress` applies to frames transmitted to `port`, `ingress` to frames received from it.
    pub fn new(port: Box<dyn Port>, egress: LinkShape, ingress: LinkShape) -> LinkEmulator {
        let (egress, ingress) = (LinkDirection::new(egress), LinkDirection::new(ingress));
        let (cut, stamps) = (LinkDownLosses::default(), ArrivalTimeSource::None);
        LinkEmulator { port, egress, ingress, due: Vec::new(), followed: None, cut, stamps }.seeded(0, 0)
    }

    /// Creates a link around `port` that follows `control` and reports the lateness of its frames there.
    pub fn controlled(port: Box<dyn Port>, control: LinkControl) -> LinkEmulator {
        let wanted = control.wanted();
        LinkEmulator {
            followed: Some(LinkControlTracker::new(control)),
            ..LinkEmulator::new(port, wanted.egress, wanted.ingress)
        }
    }

    /// Seeds the link's random numbers (jitter and losses) with `seed` and the link's `number`. Links with different
    /// numbers, and the two directions of a link, draw independently.
    #[must_use]
    pub fn seeded(mut self, seed: u64, number: u64) -> LinkEmulator {
        self.egress.dice = ImpairmentRng::new(seed, number.wrapping_mul(2));
        self.ingress.dice = ImpairmentRng::new(seed, number.wrapping_mul(2).wrapping_add(1));
        self
    }

    /// Transmits the frames that are due to the port.
    fn flush(&mut self, now: Instant, pool: &mut FramePool) -> PortResult {
        let late = self.followed.as_ref().map(LinkControlTracker::lateness);
        match self.egress.take_due(now, usize::MAX, &mut self.due, late) {
            // Downstream ports count from the last frame's arrival, not from when the engine ran.
            Some(arrived) => self.port.transmit(arrived, pool, &mut self.due),
            None => Ok(()),
        }
    }

    /// Adopts changed settings, if there are any. Returns true if the link is up.
    #[inline]
    fn follow(&mut self, now: Instant, pool: &mut FramePool) -> bool {
        let Some(followed) = &mut self.followed else { return true };
        match followed.news() {
            Some(wanted) => self.adopt(now, pool, &wanted),
            None => followed.is_up,
        }
    }

    #[cold]
    fn adopt(&mut self, now: Instant, pool: &mut FramePool, wanted: &LinkParameters) -> bool {
        self.egress.reshape(now, wanted.egress);
        self.ingress.reshape(now, wanted.ingress);
        if !wanted.up {
            self.cut.tx += self.egress.forget(pool).0;
            let (frames, bytes) = self.ingress.forget(pool);
            self.cut.rx += frames;
            self.cut.rx_bytes += bytes;
        }
        self.connect(wanted.up);
        wanted.up
    }

    /// Takes the link up or down. While it is down the inner port is out of service, so that the other end has no
    /// link either.
    fn connect(&mut self, up: bool) {
        let Some(followed) = self.followed.as_mut().filter(|followed| followed.is_up != up) else { return };
        followed.is_up = up;
        if let Err(error) = self.port.set_admin(up && followed.admin_up) {
            // Frames are lost here anyway; only the other end does not see the link go down.
            tracing::warn!(
                "{}: cannot set the device {} ({error})",
                self.port.info().spec,
                if up { "up" } else { "down" }
            );
        }
    }

    /// Puts received frames on the link at their arrival times, not at the time at which they were read.
    #[cold]
    fn send_as_they_came(&mut self, now: Instant, pool: &mut FramePool) {
        let mut one = Vec::with_capacity(1);
        for frame in self.due.drain(..) {
            let came = Instant::from_nanos(frame.arrived()).min(now);
            one.push(frame);
            self.ingress.send(came, pool, &mut one);
        }
    }

    /// Drops and counts frames received while the link is down.
    fn lose_received(&mut self, pool: &mut FramePool) {
        self.cut.rx += self.due.len() as u64;
        self.cut.rx_bytes += self.due.iter().map(|frame| frame.len() as u64).sum::<u64>();
        self.due.drain(..).for_each(|frame| pool.give(frame));
    }
}

impl Port for LinkEmulator {
    crate::traits::inner_port!();

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let is_there = self.follow(now, pool);
        self.flush(now, pool)?;
        self.port.receive(now, pool, &mut self.due, max)?;
        if !is_there {
            self.lose_received(pool);
        }
        match self.stamps {
            ArrivalTimeSource::PortTimestamp => self.send_as_they_came(now, pool),
            _ => self.ingress.send(now, pool, &mut self.due),
        }
        self.ingress.take_due(now, max, batch, self.followed.as_ref().map(LinkControlTracker::lateness));
        Ok(())
    }

    fn stamp_arrivals(&mut self, clock: SystemClock) -> bool {
        self.stamps = if self.port.stamp_arrivals(clock) {
            ArrivalTimeSource::PortTimestamp
        } else {
            ArrivalTimeSource::ReadTime
        };
        self.ingress.are_stamped = true;
        true
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        if !self.follow(now, pool) {
            self.cut.tx += frames.len() as u64;
            frames.drain(..).for_each(|frame| pool.give(frame));
        }
        self.egress.send(now, pool, frames);
        self.flush(now, pool)
    }

    fn next_wake(&self) -> Option<Instant> {
        [self.egress.next_due(), self.ingress.next_due(), self.port.next_wake()].into_iter().flatten().min()
    }

    /// False: frames leave after the call of [`Port::transmit`] that brought them.
    fn stamp_departures(&mut self, _clock: SystemClock) -> bool {
        false
    }

    fn departed(&mut self) -> Option<Instant> {
        None
    }

    fn link(&mut self) -> LinkState {
        let wanted = self.followed.as_ref().map(LinkControlTracker::wants_up);
        if let Some(up) = wanted {
            // The link follows its control at once, without waiting for the next frame.
            self.connect(up);
        }
        let link = self.port.link();
        LinkState { speed: self.egress.shape.rate.or(link.speed), up: link.up && wanted != Some(false) }
    }

    fn counters(&self) -> FrameCounters {
        let mut counters = self.port.counters();
        counters.tx_full += self.egress.dropped;
        counters.rx_missed += self.ingress.dropped;
        counters.tx_lost += self.egress.lost;
        counters.rx_lost += self.ingress.lost;
        counters.tx_errors += self.cut.tx;
        counters.rx_errors += self.cut.rx;
        // Frames that were dropped, were lost or still wait here have not reached the engine.
        let kept = self.ingress.dropped + self.ingress.lost + self.ingress.frames.len() as u64 + self.cut.rx;
        let kept_bytes = self.ingress.gone_bytes + self.ingress.held_bytes + self.cut.rx_bytes;
        counters.rx_packets = counters.rx_packets.saturating_sub(kept);
        counters.rx_bytes = counters.rx_bytes.saturating_sub(kept_bytes);
        counters
    }

    fn set_admin(&mut self, up: bool) -> io::Result<()> {
        let is_there = self.followed.as_mut().is_none_or(|followed| {
            followed.admin_up = up;
            followed.is_up
        });
        self.port.set_admin(up && is_there)
    }

    fn take_rate(&mut self) -> Option<(Bps, ByteSize)> {
        match self.egress.shape.rate.take() {
            Some(rate) => Some((rate, ByteSize(self.egress.buffer_bytes))),
            None => self.port.take_rate(),
        }
    }
}

/// State of one direction of a link.
struct LinkDirection {
    shape: LinkShape,
    buffer_bytes: u64,
    /// Time at which the wire has sent all frames accepted so far.
    free_at: Instant,
    /// Frames waiting or in flight, in order of arrival.
    frames: VecDeque<InFlightFrame>,
    /// Start time and wire bytes of each frame that the wire has not begun to send.
    waiting: VecDeque<(Instant, u64)>,
    /// Sum of the bytes in `waiting`.
    waiting_bytes: u64,
    held_bytes: u64,
    dropped: u64,
    lost: u64,
    /// Bytes of dropped and lost frames.
    gone_bytes: u64,
    /// Arrival time of the latest frame whose order is kept.
    last_arrival: Instant,
    /// True if frames must carry their arrival time.
    are_stamped: bool,
    dice: ImpairmentRng,
}

/// A frame waiting for the wire or in flight.
struct InFlightFrame {
    /// Time at which the wire begins to send the frame.
    begins: Instant,
    arrives: Instant,
    frame: Frame,
}

impl LinkDirection {
    fn new(shape: LinkShape) -> LinkDirection {
        LinkDirection {
            shape,
            buffer_bytes: shape.buffer.unwrap_or(DEFAULT_BUFFER).0,
            free_at: Instant::ZERO,
            frames: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            held_bytes: 0,
            dropped: 0,
            lost: 0,
            gone_bytes: 0,
            last_arrival: Instant::ZERO,
            are_stamped: false,
            dice: ImpairmentRng::new(0, 0),
        }
    }

    /// Accepts frames; drops those that would overfill the buffer.
    fn send(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) {
        self.advance(now);
        for frame in frames.drain(..) {
            let bytes = frame.len() as u64;
            let on_wire = frame.wire_bytes();
            let waits = self.free_at > now && self.waiting_bytes + on_wire > self.buffer_bytes;
            if waits || self.frames.len() >= MAX_FRAMES {
                self.dropped += 1;
                self.gone_bytes += bytes;
                pool.give(frame);
            } else if let Some(lost) = self.push(now, frame) {
                self.lost += 1;
                self.gone_bytes += bytes;
                pool.give(lost);
            }
        }
    }

    /// Schedules transmission of a frame for when the wire is free. Returns the frame if it is lost on the way.
    fn push(&mut self, now: Instant, frame: Frame) -> Option<Frame> {
        let (bytes, on_wire) = (frame.len() as u64, frame.wire_bytes());
        let begins = self.free_at.max(now);
        self.free_at = begins + self.shape.rate.map_or(Duration::ZERO, |rate| rate.time_of(on_wire));
        if begins > now {
            self.waiting_bytes += on_wire;
            self.waiting.push_back((begins, on_wire));
        }
        if self.shape.loss.is_some_and(|loss| self.dice.loses(loss)) {
            return Some(frame);
        }
        self.held_bytes += bytes;
        self.put(begins, frame);
        None
    }

    /// Schedules arrival of the frame just serialised.
    fn put(&mut self, begins: Instant, frame: Frame) {
        match self.shape.jitter {
            None => {
                // Only frames from before a change of the delay can arrive later.
                let arrives = (self.free_at + self.shape.delay).max(self.last_arrival);
                self.frames.push_back(InFlightFrame { begins, arrives, frame });
            }
            Some(jitter) => self.put_with_jitter(jitter, begins, frame),
        }
    }

    fn put_with_jitter(&mut self, jitter: LinkJitter, begins: Instant, frame: Frame) {
        let arrives = self.free_at + self.dice.delay(self.shape.delay, jitter);
        if jitter.reorder {
            let place = self.frames.partition_point(|other| other.arrives <= arrives);
            self.frames.insert(place, InFlightFrame { begins, arrives, frame });
        } else {
            self.last_arrival = self.last_arrival.max(arrives);
            self.frames.push_back(InFlightFrame { begins, arrives: self.last_arrival, frame });
        }
    }

    /// Removes frames that the wire has begun to send from the buffer.
    fn advance(&mut self, now: Instant) {
        while let Some((_, bytes)) = self.waiting.pop_front_if(|(begins, _)| *begins <= now) {
            self.waiting_bytes -= bytes;
        }
    }

    /// Applies a new shape. Frames that the wire has begun to send keep their times; no frame overtakes another.
    fn reshape(&mut self, now: Instant, shape: LinkShape) {
        self.advance(now);
        if shape == self.shape {
            return;
        }
        self.shape = shape;
        self.buffer_bytes = shape.buffer.unwrap_or(DEFAULT_BUFFER).0;
        let (begun, mut again): (Vec<InFlightFrame>, Vec<InFlightFrame>) =
            std::mem::take(&mut self.frames).into_iter().partition(|frame| frame.begins <= now);
        again.sort_by_key(|frame| frame.begins);
        self.last_arrival = begun.last().map_or(Instant::ZERO, |last| last.arrives);
        self.frames = begun.into();
        let mut again = again.into_iter().peekable();
        let waiting = std::mem::take(&mut self.waiting);
        // The wire is free when the first waiting frame was to begin.
        self.free_at = waiting.front().map_or(self.free_at, |(begins, _)| *begins);
        for (began, bytes) in waiting {
            let begins = self.free_at;
            self.free_at += shape.rate.map_or(Duration::ZERO, |rate| rate.time_of(bytes));
            self.waiting.push_back((begins, bytes));
            // Without an entry in `again` the frame was drawn as lost; it only occupies the wire.
            if let Some(frame) = again.next_if(|frame| frame.begins == began) {
                self.put(begins, frame.frame);
            }
        }
    }

    /// Drops all frames that wait or are in flight. Returns their number and bytes.
    fn forget(&mut self, pool: &mut FramePool) -> (u64, u64) {
        let lost = (self.frames.len() as u64, self.held_bytes);
        self.frames.drain(..).for_each(|lost| pool.give(lost.frame));
        self.waiting.clear();
        (self.waiting_bytes, self.held_bytes) = (0, 0);
        (self.free_at, self.last_arrival) = (Instant::ZERO, Instant::ZERO);
        lost
    }

    /// Appends at most `max` frames that have arrived by `now`. Returns the arrival time of the last one.
    fn take_due(
        &mut self,
        now: Instant,
        max: usize,
        into: &mut Vec<Frame>,
        late: Option<&LinkLatenessHistogram>,
    ) -> Option<Instant> {
        self.advance(now);
        let late = late.filter(|_| !self.shape.is_none());
        let mut last = None;
        for _ in 0..max {
            let Some(mut arrived) = self.frames.pop_front_if(|next| next.arrives <= now) else { break };
            last = Some(arrived.arrives);
            if self.are_stamped {
                arrived.frame.set_arrived(arrived.arrives.as_nanos());
            }
            self.held_bytes -= arrived.frame.len() as u64;
            if let Some(late) = late {
                late.note(now.since(arrived.arrives));
            }
            into.push(arrived.frame);
        }
        last
    }

    fn next_due(&self) -> Option<Instant> {
        self.frames.front().map(|next| next.arrives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{self, MemoryPort};
    use weir_traffic::impair::JitterLaw;
    use weir_units::Clock as _;

    const MS: Duration = Duration::from_millis(1);

    fn at(time: Duration) -> Instant {
        Instant::ZERO + time
    }

    /// Returns a link around one end of a memory pair, and the other end.
    fn link(egress: LinkShape, ingress: LinkShape) -> (LinkEmulator, MemoryPort) {
        let (near, far) = memory::pair(1024).unwrap();
        (LinkEmulator::new(Box::new(near), egress, ingress), far)
    }

    fn frames(count: usize, bytes: usize) -> Vec<Frame> {
        (0..count).map(|_| Frame::from_bytes(&vec![0; bytes])).collect()
    }

    fn send(port: &mut dyn Port, now: Duration, count: usize, bytes: usize) {
        port.transmit(at(now), &mut FramePool::default(), &mut frames(count, bytes)).unwrap();
    }

    fn receive(port: &mut dyn Port, now: Duration) -> usize {
        let mut batch = Vec::new();
        port.receive(at(now), &mut FramePool::default(), &mut batch, 1000).unwrap();
        batch.len()
    }

    /// 8 Mbit/s: a frame of 1000 bytes takes one millisecond.
    const SLOW: LinkShape = LinkShape {
        rate: Some(Bps(8_000_000)),
        delay: Duration::ZERO,
        buffer: Some(ByteSize(3000)),
        jitter: None,
        loss: None,
    };

    #[test]
    fn frames_leave_at_the_rate_and_arrive_a_delay_later() {
        let (mut link, mut far) = link(LinkShape { delay: 10 * MS, ..SLOW }, LinkShape::default());
        send(&mut link, Duration::ZERO, 2, 1000);
        assert_eq!(link.next_wake(), Some(at(11 * MS)));
        receive(&mut link, 11 * MS - Duration::from_nanos(1));
        assert_eq!(receive(&mut far, Duration::ZERO), 0);
        receive(&mut link, 11 * MS);
        assert_eq!(receive(&mut far, Duration::ZERO), 1);
        assert_eq!(link.next_wake(), Some(at(12 * MS)));
        receive(&mut link, 40 * MS);
        assert_eq!((receive(&mut far, Duration::ZERO), link.next_wake()), (1, None));
    }

    #[test]
    fn a_late_engine_does_not_lower_the_rate() {
        let (mut link, mut far) = link(SLOW, LinkShape::default());
        send(&mut link, Duration::ZERO, 3, 1000);
        receive(&mut link, MS * 5 / 2);
        assert_eq!(receive(&mut far, Duration::ZERO), 2);
        assert_eq!(link.next_wake(), Some(at(3 * MS)));
    }

    #[test]
    fn a_full_buffer_drops_the_tail() {
        let (mut link, mut far) = link(SLOW, LinkShape::default());
        send(&mut link, Duration::ZERO, 6, 1000);
        assert_eq!(link.counters().tx_full, 2, "one under way, three wait, two are dropped");
        send(&mut link, MS, 2, 1000);
        assert_eq!(link.counters().tx_full, 3, "one place became free");
        receive(&mut link, 100 * MS);
        assert_eq!(receive(&mut far, Duration::ZERO), 5);
        assert_eq!(link.counters().tx_packets, 5);
    }

    #[test]
    fn an_idle_link_passes_a_frame_longer_than_its_buffer() {
        let (mut link, mut far) = link(SLOW, LinkShape::default());
        send(&mut link, Duration::ZERO, 1, 9000);
        receive(&mut link, 9 * MS);
        assert_eq!((receive(&mut far, Duration::ZERO), link.counters().tx_full), (1, 0));
    }

    #[test]
    fn received_frames_are_shaped_and_counted_when_they_arrive() {
        let (mut link, mut far) = link(LinkShape::default(), SLOW);
        send(&mut far, Duration::ZERO, 5, 1000);
        assert_eq!(receive(&mut link, Duration::ZERO), 0);
        assert_eq!((link.counters().rx_packets, link.counters().rx_bytes), (0, 0));
        assert_eq!(link.counters().rx_missed, 1);
        assert_eq!(receive(&mut link, 2 * MS), 2);
        assert_eq!((link.counters().rx_packets, link.counters().rx_bytes), (2, 2000));
    }

    #[test]
    fn frames_say_when_they_arrived_however_late_they_are_taken() {
        let clock = SystemClock::start();
        let (mut link, mut far) = link(LinkShape::default(), LinkShape { delay: 2 * MS, ..LinkShape::default() });
        assert!(link.stamp_arrivals(clock));
        let before = clock.now();
        far.transmit(before, &mut FramePool::default(), &mut frames(1, 100)).unwrap();
        let after = clock.now();
        while clock.now() < after + 3 * MS {
            std::thread::yield_now();
        }
        let mut batch = Vec::new();
        link.receive(clock.now(), &mut FramePool::default(), &mut batch, 8).unwrap();
        let came = Instant::from_nanos(batch[0].arrived());
        // The two readings of the clock may differ by up to 100 microseconds.
        assert!(came + MS / 10 > before + 2 * MS && came < after + 2 * MS + MS / 10, "{came:?}, sent at {before:?}");
    }

    #[test]
    fn pure_delay_keeps_order_and_is_bounded() {
        let (mut link, _far) = link(LinkShape::default(), LinkShape::default());
        assert!(link.egress.shape.is_none());
        link.egress = LinkDirection::new(LinkShape { delay: MS, ..LinkShape::default() });
        send(&mut link, Duration::ZERO, MAX_FRAMES + 10, 60);
        assert_eq!((link.egress.frames.len(), link.counters().tx_full), (MAX_FRAMES, 10));
        assert_eq!(link.egress.waiting_bytes, 0, "without a rate nothing waits");
    }

    /// Sends numbered frames 1 ms apart. Returns arrival time and number of each, in order of arrival.
    fn arrivals(shape: LinkShape, count: u32) -> Vec<(Duration, u32)> {
        let (link, mut far) = link(shape, LinkShape::default());
        let (mut link, mut pool, mut arrived) = (link.seeded(5, 1), FramePool::default(), Vec::new());
        let mut take = |now| {
            let mut batch = Vec::new();
            far.receive(now, &mut FramePool::default(), &mut batch, 1000).unwrap();
            let numbers = batch.iter().map(|frame| u32::from_be_bytes(*frame.bytes().first_chunk().unwrap()));
            arrived.extend(numbers.map(|number| (now - Instant::ZERO, number)));
        };
        for number in 0..=count {
            let now = at(MS * number);
            while let Some(due) = link.next_wake().filter(|due| *due <= now || number == count) {
                link.receive(due, &mut pool, &mut Vec::new(), 0).unwrap();
                take(due);
            }
            if number < count {
                let mut frame = vec![Frame::from_bytes(&number.to_be_bytes().repeat(20))];
                link.transmit(now, &mut pool, &mut frame).unwrap();
                take(now);
            }
        }
        arrived
    }

    #[test]
    fn jitter_varies_the_delay_and_keeps_the_order_unless_told() {
        let jitter = LinkJitter { size: 3 * MS, law: JitterLaw::Uniform, reorder: false };
        let shape = LinkShape { delay: 10 * MS, jitter: Some(jitter), ..LinkShape::default() };
        let kept = arrivals(shape, 2000);
        assert!(kept.iter().map(|(_, number)| *number).eq(0..2000));
        let late = |(at, number): &(Duration, u32)| (7 * MS..=13 * MS).contains(&(*at - MS * *number));
        assert!(kept.iter().all(late));
        let free = arrivals(LinkShape { jitter: Some(LinkJitter { reorder: true, ..jitter }), ..shape }, 2000);
        assert!(free.iter().all(late) && free.is_sorted_by_key(|(at, _)| *at));
        assert!(free.windows(2).any(|pair| pair[0].1 > pair[1].1), "some overtake");
        let mut numbers: Vec<u32> = free.iter().map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..2000), "none is lost or doubled");
        let mean = free.iter().map(|(at, number)| *at - MS * *number).sum::<Duration>() / 2000;
        // Five standard errors of 3 ms / sqrt(3) / sqrt(2000).
        assert!(mean.abs_diff(10 * MS) < Duration::from_micros(194), "{mean:?}");
    }

    #[test]
    fn lost_frames_take_their_time_and_are_counted() {
        let loss = Some(LinkLoss { share: 1.0, burst: None });
        let (mut link, mut far) = link(LinkShape { loss, ..SLOW }, LinkShape { loss, ..LinkShape::default() });
        send(&mut link, Duration::ZERO, 6, 1000);
        assert_eq!((link.counters().tx_full, link.counters().tx_lost), (2, 4), "the buffer fills all the same");
        assert_eq!((link.next_wake(), link.counters().tx_dropped()), (None, 2));
        send(&mut far, Duration::ZERO, 3, 1000);
        assert_eq!(receive(&mut link, Duration::ZERO), 0);
        assert_eq!((link.counters().rx_lost, link.counters().rx_packets, link.counters().rx_bytes), (3, 0, 0));
    }

    #[test]
    fn losses_have_their_share() {
        let loss = Some(LinkLoss { share: 0.25, burst: Some(3.0) });
        let arrived = arrivals(LinkShape { loss, ..LinkShape::default() }, 20_000).len();
        // Five standard errors; bursts of 3 make one 1 / sqrt(20000 / (2 * 3)).
        assert!((14_500..15_500).contains(&arrived), "{arrived}");
    }

    #[test]
    fn changes_hold_for_what_has_not_begun() {
        let (near, mut far) = memory::pair(1024).unwrap();
        let control = LinkControl::new(LinkShape { delay: 10 * MS, ..SLOW }, LinkShape::default());
        let mut link = LinkEmulator::controlled(Box::new(near), control.clone());
        send(&mut link, Duration::ZERO, 3, 1000);
        // Ten times the rate and no delay: the first frame has begun and keeps its times; the others do not overtake
        // it.
        let fast = LinkShape { rate: Some(Bps(80_000_000)), delay: Duration::ZERO, ..SLOW };
        control.change(|wanted| wanted.egress = fast);
        receive(&mut link, MS / 2);
        assert_eq!(link.next_wake(), Some(at(11 * MS)));
        assert_eq!(link.link().speed, fast.rate);
        send(&mut link, 2 * MS, 1, 1000);
        receive(&mut link, 11 * MS - Duration::from_nanos(1));
        assert_eq!(receive(&mut far, Duration::ZERO), 0);
        receive(&mut link, 11 * MS);
        assert_eq!((receive(&mut far, Duration::ZERO), link.next_wake()), (4, None));
        send(&mut link, 12 * MS, 1, 1000);
        assert_eq!(link.next_wake(), Some(at(12 * MS + MS / 10)));
    }

    #[test]
    fn lateness_is_told() {
        let (near, _far) = memory::pair(1024).unwrap();
        let control = LinkControl::new(SLOW, LinkShape::default());
        let mut link = LinkEmulator::controlled(Box::new(near), control.clone());
        send(&mut link, Duration::ZERO, 1, 1000);
        receive(&mut link, 3 * MS);
        assert_eq!(control.lateness().counts().collect::<Vec<_>>(), [(2_000_000, 1)]);
    }

    #[test]
    fn a_link_that_is_pulled_out_loses_everything_until_it_is_back() {
        let (near, far) = memory::pair(1024).unwrap();
        let mut far = LinkEmulator::controlled(Box::new(far), LinkControl::new(LinkShape::default(), SLOW));
        let control = LinkControl::new(SLOW, LinkShape::default());
        let mut link = LinkEmulator::controlled(Box::new(near), control.clone());
        send(&mut link, Duration::ZERO, 2, 1000);
        control.change(|wanted| wanted.up = false);
        assert!(!link.link().up && !far.link().up, "at once, and at both ends");
        send(&mut link, MS, 3, 1000);
        receive(&mut link, 9 * MS);
        assert_eq!((receive(&mut far, 20 * MS), link.counters().tx_errors, link.next_wake()), (0, 5, None));
        // Administrative up does not bring back a link that its control took down.
        link.set_admin(true).unwrap();
        assert!(!link.link().up);
        control.change(|wanted| wanted.up = true);
        assert!(link.link().up && far.link().up);
        send(&mut link, 20 * MS, 1, 1000);
        receive(&mut link, 21 * MS);
        receive(&mut far, 21 * MS);
        assert_eq!(receive(&mut far, 22 * MS), 1);
        link.set_admin(false).unwrap();
        control.change(|wanted| wanted.up = false);
        link.link();
        control.change(|wanted| wanted.up = true);
        assert!(!link.link().up, "nor does the lab bring back what a controller took out of service");
    }

    #[test]
    fn what_comes_in_by_a_link_that_is_pulled_out_is_lost() {
        let (near, mut far) = memory::pair(1024).unwrap();
        let control = LinkControl::new(LinkShape::default(), SLOW);
        let mut link = LinkEmulator::controlled(Box::new(near), control.clone());
        send(&mut far, Duration::ZERO, 2, 1000);
        receive(&mut link, Duration::ZERO);
        send(&mut far, Duration::ZERO, 1, 1000);
        control.change(|wanted| wanted.up = false);
        assert_eq!(receive(&mut link, 9 * MS), 0);
        let counters = link.counters();
        assert_eq!((counters.rx_packets, counters.rx_bytes, counters.rx_errors), (0, 0, 3));
    }

    #[test]
    fn a_cut_wire_ends_the_link() {
        let (mut link, far) = link(SLOW, SLOW);
        assert_eq!(link.link(), LinkState { up: true, speed: SLOW.rate });
        drop(far);
        assert!(!link.link().up);
    }
}
