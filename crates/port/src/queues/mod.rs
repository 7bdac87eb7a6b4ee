//! Queues in front of any port: a transmitted frame waits in the queue that it names, and leaves by minimum rate,
//! priority and maximum rate ([`scheduler`]).
//!
//! The line's rate is that of a link around the port ([`crate::link`]), which hands its rate over to the queues, or
//! that of the device. With a link's rate, a frame reaches the port when its last bit was sent. With a device's rate,
//! it reaches the port when its first bit is sent, because the device takes the rest of the time. A port without a
//! rate sends frames immediately as long as their queue is below its maximum. Super-frames count the bytes of their
//! segments for rates, and their own bytes for buffers and counters.
//!
//! A frame for a queue that does not exist waits in the default queue (number 0), which every port has. Open vSwitch
//! does the same, and OpenFlow leaves it open. The number of such frames is counted ([`TransmitQueues::strays`]).
pub mod config;
pub mod scheduler;

#[cfg(test)]
mod tests;

pub use config::PortQueueConfig;
use config::{MAX_BUFFER, MIN_BUFFER};
pub use scheduler::{MAX_QUEUES, QueueCounters, QueueDeparture, QueueScheduler, QueueState};

use crate::{FrameCounters, LinkState, Port, PortResult};
use std::collections::VecDeque;
use weir_packet::frame::DEFAULT_QUEUE;
use weir_packet::{Frame, FramePool};
use weir_units::{Bps, ByteSize, Instant, SystemClock};

/// Queues of one port.
#[derive(Debug)]
pub struct TransmitQueues {
    scheduler: QueueScheduler<Frame>,
    strays: u64,
    /// Frames dropped so far, including those in queues that were removed.
    dropped: u64,
}

impl TransmitQueues {
    fn new(rate: Option<Bps>) -> TransmitQueues {
        TransmitQueues { scheduler: QueueScheduler::new(rate), strays: 0, dropped: 0 }
    }

    /// Iterates over the queues, ascending by number.
    pub fn iter(&self) -> impl Iterator<Item = QueueState> {
        self.scheduler.queues()
    }

    /// Returns the rate in bit/s that the queues share; `None` without a limit.
    pub fn rate(&self) -> Option<Bps> {
        self.scheduler.rate()
    }

    /// Returns the number of frames that waited in the default queue because their queue does not exist.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Adds or changes a queue; frames that wait in it stay.
    ///
    /// # Errors
    /// Fails for the reasons of [`QueueScheduler::set`].
    pub fn set(&mut self, now: Instant, config: PortQueueConfig) -> Result<(), String> {
        self.scheduler.set(now, config)
    }

    /// Removes a queue. Frames that waited in it move to the default queue, as far as they fit. Removing the default
    /// queue only resets its settings. Returns false if there is no such queue.
    pub fn remove(&mut self, now: Instant, id: u32, pool: &mut FramePool) -> bool {
        let Some(left) = self.scheduler.remove(id) else { return false };
        left.into_iter().for_each(|frame| self.put(now, DEFAULT_QUEUE, frame, pool));
        true
    }

    /// Inserts a frame into its queue, or drops and counts it.
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

/// Inserts queues in front of a port, unless `configs` is empty.
///
/// # Errors
/// Fails for the reasons of [`QueueScheduler::set`].
pub fn queued(port: Box<dyn Port>, configs: Vec<PortQueueConfig>) -> Result<Box<dyn Port>, String> {
    if configs.is_empty() {
        return Ok(port);
    }
    let mut queued = QueuedPort::new(port);
    configs.into_iter().try_for_each(|config| queued.queues.set(Instant::ZERO, config))?;
    Ok(Box::new(queued))
}

/// A port with queues in front.
pub struct QueuedPort {
    port: Box<dyn Port>,
    queues: TransmitQueues,
    /// True if the rate came from a link that handed it over to the queues.
    is_link: bool,
    /// Frames whose last bit is not sent yet, in order.
    on_line: VecDeque<(Instant, Frame)>,
    /// Frames on their way into the port; kept to reuse the allocation.
    leaving: Vec<Frame>,
}

impl QueuedPort {
    /// Inserts queues in front of `port`: initially the default queue only.
    pub fn new(mut port: Box<dyn Port>) -> QueuedPort {
        let link = port.take_rate();
        let rate = link.map(|(rate, _)| rate).or_else(|| port.link().speed);
        let mut queues = TransmitQueues::new(rate);
        if let Some((_, buffer)) = link {
            // The clamped buffer is valid, so setting it cannot fail.
            let _ = queues.set(
                Instant::ZERO,
                PortQueueConfig { buffer: buffer.clamp(MIN_BUFFER, MAX_BUFFER), ..Default::default() },
            );
        }
        QueuedPort { port, queues, is_link: link.is_some(), on_line: VecDeque::new(), leaving: Vec::new() }
    }

    /// Transmits the frames that are due to the port.
    fn flush(&mut self, now: Instant, pool: &mut FramePool) -> PortResult {
        while let Some(departure) = self.queues.scheduler.pop(now) {
            if self.is_link {
                self.on_line.push_back((departure.ends, departure.item));
            } else {
                self.leaving.push(departure.item);
            }
        }
        while let Some((ends, frame)) = self.on_line.pop_front_if(|(ends, _)| *ends <= now) {
            self.leaving.push(frame);
            // The link's delay counts from the last bit, not from when the engine ran.
            self.port.transmit(ends, pool, &mut self.leaving)?;
        }
        if self.leaving.is_empty() { Ok(()) } else { self.port.transmit(now, pool, &mut self.leaving) }
    }
}

impl Port for QueuedPort {
    crate::traits::inner_port!();

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        self.flush(now, pool)?;
        self.port.receive(now, pool, batch, max)
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.flush(now, pool)?;
        for frame in frames.drain(..) {
            self.queues.push(now, frame, pool);
            // A free line begins with the first frame, which frees its buffer space for the next.
            if self.queues.scheduler.next_begin().is_some_and(|begin| begin <= now) {
                self.flush(now, pool)?;
            }
        }
        Ok(())
    }

    fn next_wake(&self) -> Option<Instant> {
        let line = self.on_line.front().map(|(ends, _)| *ends);
        [line, self.queues.scheduler.next_begin(), self.port.next_wake()].into_iter().flatten().min()
    }

    /// False: frames leave after the call of [`Port::transmit`] that brought them.
    fn stamp_departures(&mut self, _clock: SystemClock) -> bool {
        false
    }

    fn departed(&mut self) -> Option<Instant> {
        None
    }

    /// The queues have taken the rate over.
    fn take_rate(&mut self) -> Option<(Bps, ByteSize)> {
        None
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

    fn counters(&self) -> FrameCounters {
        let counters = self.port.counters();
        FrameCounters { tx_full: counters.tx_full + self.queues.dropped, ..counters }
    }

    fn look_at_queues(&self, look: &mut dyn FnMut(&TransmitQueues)) {
        look(&self.queues);
    }

    fn change_queues(&mut self, change: &mut dyn FnMut(&mut TransmitQueues)) {
        change(&mut self.queues);
    }
}
