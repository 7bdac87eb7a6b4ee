//! Scheduler that decides which of several queues sends next on one line: minimum rates first, then shares of the
//! rest, never above maximum rates.
//!
//! Whenever the line is free, at time *t*:
//! 1. A queue that has used its maximum rate up to *t* is skipped. Its frames are spaced by a virtual clock at the
//!    maximum rate. The clock may lag by [`BURST_BYTES`], so a queue may catch up by that much after it was kept
//!    waiting.
//! 2. Among the queues whose first frame is due to begin by *t* at their minimum rate, the scheduler picks the queue
//!    whose frame is due to end first. (Each frame is due to begin when the previous one was due to end at the
//!    minimum rate.) Every queue gets its minimum, with no frame later than the time of one longest frame, if the sum
//!    of the minima is within the line's rate: earliest deadline first is optimal, and a frame waits at most for the
//!    frame being sent.
//! 3. Otherwise the queues of the highest priority share the line by start-time fair queueing: the scheduler picks
//!    the queue that has sent the fewest bytes in this step. Bytes sent in step 2 do not count in step 3 and vice
//!    versa, so the share that a queue gets beyond its minimum does not reduce the minimum.
//!
//! The line is never idle while a queue below its maximum waits. Minima whose sum exceeds the line's rate are all
//! scaled down to it.
//!
//! All times are computed from those of earlier frames, not from when the caller runs: a late caller delays frames
//! but lowers no rate. Time is kept in 1/1024 ns, so that rates of 100 Gbit/s and more are exact.
//!
//! Parameters: [`PortQueueConfig`] for each queue, and the line's rate; `None` for a line that takes no time (then
//! minima have no effect, and frames wait only for maxima). Counters: [`QueueCounters`].
//!
//! Sources: the two criteria and separate accounts are those of H-FSC (Stoica, Zhang, Ng: "A Hierarchical Fair
//! Service Curve Algorithm", SIGCOMM 1997) with straight service curves and one level; step 3 is Goyal, Vin, Cheng:
//! "Start-time Fair Queuing", SIGCOMM 1996; virtual clocks: Zhang, SIGCOMM 1990.
use super::config::{MAX_PRIORITY, PortQueueConfig};
use std::collections::VecDeque;
use weir_packet::frame::DEFAULT_QUEUE;
use weir_units::{Bps, Instant};

/// Maximum number of queues of one line.
pub const MAX_QUEUES: usize = 256;
/// Maximum number of frames waiting in one queue, whatever its buffer in bytes.
pub const MAX_FRAMES: usize = 16_384;
/// Bytes by which a queue may momentarily exceed its maximum rate, in addition to one frame.
pub const BURST_BYTES: u64 = 6_000;

/// Time in units of 1/1024 ns.
type SubNanos = u128;
const TICKS_PER_NS: u128 = 1024;

/// Queues that share a line.
#[derive(Debug)]
pub struct QueueScheduler<T> {
    rate: Option<Bps>,
    /// Queues, ascending by number; the default queue always exists and comes first.
    queues: Vec<ScheduledQueue<T>>,
    /// Time at which the line has sent all frames given to it.
    free_at: SubNanos,
    /// Time of the last insertion: no waiting frame could have begun before.
    clock: SubNanos,
    /// Time at which the next frame begins; `None` if no frame waits.
    next: Option<SubNanos>,
    /// Per priority: bytes that a continuously backlogged queue has sent in step 3 (the virtual time of fair
    /// queueing).
    virtual_bytes: [u64; MAX_PRIORITY as usize + 1],
}

#[derive(Debug)]
struct ScheduledQueue<T> {
    config: PortQueueConfig,
    frames: VecDeque<QueuedItem<T>>,
    waiting_bytes: u64,
    /// Effective minimum rate, scaled down if the minima exceed the line's rate; see [`QueueScheduler::set_rate`].
    min: Option<Bps>,
    /// Time at which the first frame is due to begin at the minimum rate.
    due: SubNanos,
    /// Time from which the queue may send again at its maximum rate.
    free_at: SubNanos,
    /// Bytes sent in step 3; raised to the virtual bytes of its priority when an empty queue gets a frame.
    shared_bytes: u64,
    counters: QueueCounters,
    since: Instant,
}

#[derive(Debug)]
struct QueuedItem<T> {
    item: T,
    bytes: u64,
    charge: u64,
}

/// Counters of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct QueueCounters {
    /// Frames sent from the queue.
    pub tx_packets: u64,
    /// Bytes sent, as ports count them.
    pub tx_bytes: u64,
    /// Frames dropped because the buffer was full.
    pub tx_full: u64,
}

/// Snapshot of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueState {
    /// Configuration of the queue.
    pub config: PortQueueConfig,
    /// Counters of the queue.
    pub counters: QueueCounters,
    /// Time at which the queue was created.
    pub since: Instant,
    /// Bytes waiting in the queue.
    pub waiting_bytes: u64,
}

/// A frame that the line sends.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueDeparture<T> {
    /// The frame itself.
    pub item: T,
    /// Time at which the first bit of the frame is sent.
    pub begins: Instant,
    /// Time at which the last bit of the frame is sent.
    pub ends: Instant,
}

/// Step of the algorithm that chose a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchedulingStep {
    Minimum,
    Share,
}

impl<T> QueueScheduler<T> {
    /// Creates a line with the default queue only.
    pub fn new(rate: Option<Bps>) -> QueueScheduler<T> {
        let queues = vec![ScheduledQueue::new(PortQueueConfig::default(), Instant::ZERO)];
        let virtual_bytes = [0; MAX_PRIORITY as usize + 1];
        QueueScheduler { rate, queues, free_at: 0, clock: 0, next: None, virtual_bytes }
    }

    /// Returns the line's rate in bit/s; `None` for a line that takes no time.
    pub fn rate(&self) -> Option<Bps> {
        self.rate
    }

    /// Changes the line's rate. Minima whose sum exceeds it are scaled down to it.
    pub fn set_rate(&mut self, rate: Option<Bps>) {
        if rate != self.rate {
            self.rate = rate;
            self.share_out();
        }
    }

    /// Iterates over the queues, ascending by number.
    pub fn queues(&self) -> impl Iterator<Item = QueueState> {
        self.queues.iter().map(|queue| QueueState {
            config: queue.config,
            counters: queue.counters,
            since: queue.since,
            waiting_bytes: queue.waiting_bytes,
        })
    }

    /// Adds or changes a queue; frames that wait in it stay.
    ///
    /// # Errors
    /// The configuration is not valid ([`PortQueueConfig::check`]), the minima would exceed the line's rate, or there
    /// are too many queues. The text says what was found and what was expected.
    pub fn set(&mut self, now: Instant, config: PortQueueConfig) -> Result<(), String> {
        config.check()?;
        self.check_minima(&config)?;
        match self.find(config.id) {
            Ok(place) => {
                let queue = &mut self.queues[place];
                queue.config = config;
                // Times computed with the old rates do not apply to the new ones.
                (queue.due, queue.free_at) = (ticks(now), ticks(now));
                queue.shared_bytes = self.virtual_bytes[usize::from(config.priority)];
            }
            Err(_) if self.queues.len() >= MAX_QUEUES => {
                return Err(format!("queue {}: there are {MAX_QUEUES} queues already, the most a port has", config.id));
            }
            Err(place) => self.queues.insert(place, ScheduledQueue::new(config, now)),
        }
        self.share_out();
        self.find_next();
        Ok(())
    }

    /// Removes a queue and returns the frames that waited in it, in order. The default queue only loses its settings.
    /// Returns `None` if there is no such queue.
    pub fn remove(&mut self, id: u32) -> Option<Vec<T>> {
        let place = self.find(id).ok()?;
        let mut left = Vec::new();
        if id == DEFAULT_QUEUE {
            self.queues[place].config = PortQueueConfig::default();
        } else {
            left = self.queues.remove(place).frames.into_iter().map(|waiting| waiting.item).collect();
        }
        self.share_out();
        self.find_next();
        Some(left)
    }

    /// Inserts a frame of `bytes` into a queue, or into the default queue if `queue` does not exist. `charge` is the
    /// number of bytes on the wire, which count for rates. Call [`QueueScheduler::pop`] for frames due by `now` first.
    /// An empty queue accepts a frame of any length.
    ///
    /// # Errors
    /// Returns the frame if the buffer is full; the drop is counted.
    pub fn push(&mut self, now: Instant, queue: u32, bytes: u64, charge: u64, item: T) -> Result<(), T> {
        // Queue numbers are usually small and without gaps, so the number is tried as an index first.
        let at_once =
            usize::try_from(queue).ok().filter(|&at| self.queues.get(at).is_some_and(|q| q.config.id == queue));
        let place = at_once.or_else(|| self.find(queue).ok()).unwrap_or(0);
        let queue = &mut self.queues[place];
        let is_empty = queue.frames.is_empty();
        let fits = is_empty || queue.waiting_bytes + bytes <= queue.config.buffer.0 && queue.frames.len() < MAX_FRAMES;
        if !fits {
            queue.counters.tx_full += 1;
            return Err(item);
        }
        queue.frames.push_back(QueuedItem { item, bytes, charge });
        queue.waiting_bytes += bytes;
        self.clock = self.clock.max(ticks(now));
        if is_empty {
            queue.due = queue.due.max(self.clock);
            queue.shared_bytes = queue.shared_bytes.max(self.virtual_bytes[usize::from(queue.config.priority)]);
            let begins = self.free_at.max(self.clock).max(queue.free_at);
            self.next = Some(self.next.map_or(begins, |next| next.min(begins)));
        }
        Ok(())
    }

    /// Returns true if there is a queue with this number.
    pub fn has(&self, id: u32) -> bool {
        self.find(id).is_ok()
    }

    /// Returns the time at which the next frame begins; `None` if no frame waits.
    pub fn next_begin(&self) -> Option<Instant> {
        self.next.map(instant)
    }

    /// Removes and returns the next frame that begins by `now`.
    pub fn pop(&mut self, now: Instant) -> Option<QueueDeparture<T>> {
        let begins = self.next.filter(|next| instant(*next) <= now)?;
        let (place, step) = self.choose(begins)?;
        let queue = &mut self.queues[place];
        let waiting = queue.frames.pop_front()?;
        queue.waiting_bytes -= waiting.bytes;
        queue.counters.tx_packets += 1;
        queue.counters.tx_bytes += waiting.bytes;
        if let Some(max) = queue.config.max {
            let earliest = begins.saturating_sub(time_of(BURST_BYTES, max));
            queue.free_at = queue.free_at.max(earliest) + time_of(waiting.charge, max);
        }
        match (step, queue.min) {
            (SchedulingStep::Minimum, Some(min)) => queue.due += time_of(waiting.charge, min),
            _ => {
                let all = &mut self.virtual_bytes[usize::from(queue.config.priority)];
                *all = queue.shared_bytes.max(*all);
                queue.shared_bytes += waiting.charge;
            }
        }
        let ends = begins + self.rate.map_or(0, |rate| time_of(waiting.charge, rate));
        self.free_at = ends;
        self.find_next();
        Some(QueueDeparture { item: waiting.item, begins: instant(begins), ends: instant(ends) })
    }

    /// Returns the queue that sends at `now` and the step that chose it; `None` if no queue may send.
    fn choose(&self, now: SubNanos) -> Option<(usize, SchedulingStep)> {
        let mut soonest: Option<(SubNanos, usize)> = None;
        let mut poorest: Option<((u8, u64), usize)> = None;
        for (place, queue) in self.queues.iter().enumerate() {
            // Step 1.
            let Some(first) = queue.frames.front().filter(|_| queue.free_at <= now) else { continue };
            // Step 2.
            if let Some(min) = queue.min
                && queue.due <= now
            {
                let end = queue.due + time_of(first.charge, min);
                if soonest.is_none_or(|(before, _)| end < before) {
                    soonest = Some((end, place));
                }
            }
            // Step 3.
            let share = (MAX_PRIORITY - queue.config.priority, queue.shared_bytes);
            if poorest.is_none_or(|(before, _)| share < before) {
                poorest = Some((share, place));
            }
        }
        let soonest = soonest.map(|(_, place)| (place, SchedulingStep::Minimum));
        soonest.or_else(|| poorest.map(|(_, place)| (place, SchedulingStep::Share)))
    }

    fn find(&self, id: u32) -> Result<usize, usize> {
        self.queues.binary_search_by_key(&id, |queue| queue.config.id)
    }

    fn find_next(&mut self) {
        let waiting = self.queues.iter().filter(|queue| !queue.frames.is_empty());
        let free_at = waiting.map(|queue| queue.free_at).min();
        self.next = free_at.map(|free_at| free_at.max(self.free_at).max(self.clock));
    }

    /// Computes the effective minimum rate of each queue: the configured one, or its share of the line's rate.
    fn share_out(&mut self) {
        let asked: u128 = self.queues.iter().filter_map(|queue| queue.config.min).map(|min| u128::from(min.0)).sum();
        let there = self.rate.map_or(asked, |rate| asked.min(rate.0.into())).max(1);
        for queue in &mut self.queues {
            let share = |min: Bps| u64::try_from(u128::from(min.0) * there / asked.max(1)).unwrap_or(u64::MAX);
            queue.min = queue.config.min.map(|min| Bps(share(min).max(1)));
        }
    }

    fn check_minima(&self, new: &PortQueueConfig) -> Result<(), String> {
        let (Some(rate), Some(min)) = (self.rate, new.min) else { return Ok(()) };
        let others = self.queues.iter().filter(|queue| queue.config.id != new.id);
        let taken: u128 = others.filter_map(|queue| queue.config.min).map(|min| u128::from(min.0)).sum();
        if taken + u128::from(min.0) <= rate.0.into() {
            return Ok(());
        }
        let left = Bps(u64::try_from(u128::from(rate.0).saturating_sub(taken)).unwrap_or(0));
        Err(format!(
            "queue {}: found min={min}, expected at most {left}: what others leave of the port's {rate}",
            new.id
        ))
    }
}

impl<T> ScheduledQueue<T> {
    fn new(config: PortQueueConfig, now: Instant) -> ScheduledQueue<T> {
        ScheduledQueue {
            config,
            frames: VecDeque::new(),
            waiting_bytes: 0,
            min: None,
            due: ticks(now),
            free_at: ticks(now),
            shared_bytes: 0,
            counters: QueueCounters::default(),
            since: now,
        }
    }
}

fn ticks(now: Instant) -> SubNanos {
    u128::from(now.as_nanos()) * TICKS_PER_NS
}

/// Converts to an instant; rounds up, so that no frame leaves too early.
fn instant(ticks: SubNanos) -> Instant {
    Instant::from_nanos(u64::try_from(ticks.div_ceil(TICKS_PER_NS)).unwrap_or(u64::MAX))
}

/// Returns the time that bytes take at a rate, which is above zero; rounds up.
fn time_of(bytes: u64, rate: Bps) -> SubNanos {
    (u128::from(bytes) * 8_000_000_000 * TICKS_PER_NS).div_ceil(u128::from(rate.0.max(1)))
}
