//! Queues in front of any port: what is transmitted waits in the queue its frame names, and leaves by minimum rate, priority
//! and maximum rate ([`scheduler`]).
//!
//! The line's rate is the port's: that of a link around it ([`crate::shaper`]), which hands it over to the queues, or that of
//! its device. In the first case a frame reaches the port when its last bit was sent, as with a link; in the second when its
//! first bit is, since the device takes the rest of the time. A port without a rate sends at once whatever is below its
//! maximum. Super-frames count the bytes of their segments for rates, and the bytes they have for buffers and counters.
//!
//! A frame for a queue that is not there waits in the default one (number 0), which every port has: so does Open vSwitch, and
//! OpenFlow leaves it open. How many did is counted ([`Queues::strays`]).
pub mod config;
pub mod scheduler;

#[cfg(test)]
mod tests;

pub use config::QueueConfig;
use config::{MAX_BUFFER, MIN_BUFFER};
pub use scheduler::{Departure, MAX_QUEUES, QueueCounters, QueueState, Scheduler};

use crate::{Counters, LinkState, Port, PortError, PortInfo, Ready};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use weir_packet::frame::DEFAULT_QUEUE;
use weir_packet::{Frame, FramePool};
use weir_units::{Bps, Instant, SystemClock};

/// The queues of a port.
#[derive(Debug)]
pub struct Queues {
    scheduler: Scheduler<Frame>,
    strays: u64,
    /// Frames dropped in all, also in queues that were removed.
    dropped: u64,
}

impl Queues {
    fn new(rate: Option<Bps>) -> Queues {
        Queues { scheduler: Scheduler::new(rate), strays: 0, dropped: 0 }
    }

    /// The queues, ascending by number.
    pub fn iter(&self) -> impl Iterator<Item = QueueState> {
        self.scheduler.queues()
    }

    /// The rate they share.
    pub fn rate(&self) -> Option<Bps> {
        self.scheduler.rate()
    }

    /// Frames that waited in the default queue since theirs is not there.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Adds a queue, or changes one; frames that wait in it stay.
    ///
    /// # Errors
    /// As [`Scheduler::set`].
    pub fn set(&mut self, now: Instant, config: QueueConfig) -> Result<(), String> {
        self.scheduler.set(now, config)
    }

    /// Removes a queue; frames that waited in it go to the default one, as far as they fit there. Of the default queue only
    /// the settings go. Whether it was there.
    pub fn remove(&mut self, now: Instant, id: u32, pool: &mut FramePool) -> bool {
        let Some(left) = self.scheduler.remove(id) else { return false };
        left.into_iter().for_each(|frame| self.put(now, DEFAULT_QUEUE, frame, pool));
        true
    }

    /// Takes a frame in, or drops and counts it.
    fn push(&mut self, now: Instant, frame: Frame, pool: &mut FramePool) {
        let queue = frame.queue;
        if queue != DEFAULT_QUEUE && !self.scheduler.has(queue) {
            self.strays += 1;
        }
        self.put(now, queue, frame, pool);
    }

    fn put(&mut self, now: Instant, queue: u32, frame: Frame, pool: &mut FramePool) {
        let (bytes, charge) = (frame.len() as u64, frame.wire_bytes());
        if let Err(frame) = self.scheduler.push(now, queue, bytes, charge, frame) {
            self.dropped += 1;
            pool.give(frame);
        }
    }
}

/// Puts queues in front of a port, if there are any to put.
///
/// # Errors
/// As [`Scheduler::set`].
pub fn queued(port: Box<dyn Port>, configs: Vec<QueueConfig>) -> Result<Box<dyn Port>, String> {
    if configs.is_empty() {
        return Ok(port);
    }
    let mut queued = Queued::new(port);
    configs.into_iter().try_for_each(|config| queued.queues.set(Instant::ZERO, config))?;
    Ok(Box::new(queued))
}

/// A port with queues.
pub struct Queued {
    port: Box<dyn Port>,
    queues: Queues,
    /// Whether the rate is that of a link, which is ours now.
    is_link: bool,
    /// Frames whose last bit is not sent yet, in order.
    on_line: VecDeque<(Instant, Frame)>,
    /// Frames on their way into the port; kept to reuse its room.
    leaving: Vec<Frame>,
}

impl Queued {
    /// Puts queues in front of what is transmitted to `port`: at first only the default one.
    pub fn new(mut port: Box<dyn Port>) -> Queued {
        let link = port.take_rate();
        let rate = link.map(|(rate, _)| rate).or_else(|| port.link().speed);
        let mut queues = Queues::new(rate);
        if let Some((_, buffer)) = link {
            // Within its limits by construction.
            let _ = queues
                .set(Instant::ZERO, QueueConfig { buffer: buffer.clamp(MIN_BUFFER, MAX_BUFFER), ..Default::default() });
        }
        Queued { port, queues, is_link: link.is_some(), on_line: VecDeque::new(), leaving: Vec::new() }
    }

    /// Hands frames whose time has come to the port.
    fn flush(&mut self, now: Instant, pool: &mut FramePool) -> Result<(), PortError> {
        while let Some(departure) = self.queues.scheduler.pop(now) {
            if self.is_link {
                self.on_line.push_back((departure.ends, departure.item));
            } else {
                self.leaving.push(departure.item);
            }
        }
        while let Some((ends, frame)) = self.on_line.pop_front_if(|(ends, _)| *ends <= now) {
            self.leaving.push(frame);
            // The link's delay counts from the last bit, not from when somebody looked.
            self.port.transmit(ends, pool, &mut self.leaving)?;
        }
        if self.leaving.is_empty() { Ok(()) } else { self.port.transmit(now, pool, &mut self.leaving) }
    }
}

impl Port for Queued {
    fn info(&self) -> &PortInfo {
        self.port.info()
    }

    fn receive(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
    ) -> Result<(), PortError> {
        self.flush(now, pool)?;
        self.port.receive(now, pool, batch, max)
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> Result<(), PortError> {
        self.flush(now, pool)?;
        for frame in frames.drain(..) {
            self.queues.push(now, frame, pool);
            // A line that is free begins with the first, which leaves its place to the next.
            if self.queues.scheduler.next_begin().is_some_and(|begin| begin <= now) {
                self.flush(now, pool)?;
            }
        }
        Ok(())
    }

    fn stamp_arrivals(&mut self, clock: SystemClock) -> bool {
        self.port.stamp_arrivals(clock)
    }

    fn keep_schedule(&mut self) {
        self.port.keep_schedule();
    }

    fn is_scheduled(&self) -> bool {
        self.port.is_scheduled()
    }

    fn arm(&mut self) -> Ready {
        self.port.arm()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.port.fd()
    }

    fn next_wake(&self) -> Option<Instant> {
        let line = self.on_line.front().map(|(ends, _)| *ends);
        [line, self.queues.scheduler.next_begin(), self.port.next_wake()].into_iter().flatten().min()
    }

    fn link(&mut self) -> LinkState {
        let link = self.port.link();
        if self.is_link {
            return LinkState { speed: self.queues.rate(), ..link };
        }
        if link.up {
            self.queues.scheduler.set_rate(link.speed);
        }
        link
    }

    fn takes_any_packet_type(&self) -> bool {
        self.port.takes_any_packet_type()
    }

    fn counters(&self) -> Counters {
        let counters = self.port.counters();
        Counters { tx_full: counters.tx_full + self.queues.dropped, ..counters }
    }

    fn set_admin(&mut self, up: bool) -> io::Result<()> {
        self.port.set_admin(up)
    }

    fn look_at_queues(&self, look: &mut dyn FnMut(&Queues)) {
        look(&self.queues);
    }

    fn change_queues(&mut self, change: &mut dyn FnMut(&mut Queues)) {
        change(&mut self.queues);
    }
}
