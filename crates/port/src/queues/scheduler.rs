//! Which of several queues sends next over one line: minimum rates first, then the rest, never beyond maximum rates.
//!
//! Whenever the line is free, at time *t*:
//! 1. A queue that has had its maximum rate up to *t* is passed over. What it sends is spaced by a virtual clock at that
//!    rate, which may fall behind by [`BURST_BYTES`]: so long a queue may make up for having been kept waiting.
//! 2. Of the queues whose minimum rate makes their first frame due to begin by *t*, the one goes whose frame is due to end
//!    first. (Each frame is due to begin when the one before was due to end at the minimum rate.) So every queue gets its
//!    minimum, with no frame later than one longest frame's time, if the minima together are within the line's rate:
//!    the earliest deadline first is optimal, and here a frame under way is all that it waits for.
//! 3. Else the queues of the highest priority share the line, by start-time fair queueing: the queue that got the fewest
//!    bytes in this way goes. Only bytes sent in this step count there, and only bytes sent in step 2 count there: what a
//!    queue gets beyond its minimum is not held against it.
//!
//! The line is never idle while a queue waits that is below its maximum. Minima that are together more than the line's rate
//! are all scaled down to it.
//!
//! All times come from those of the frames before, not from when somebody looked: a late caller delays frames, but lowers no
//! rate. Time is kept in 1/1024 ns, so that rates of 100 Gbit/s and more are exact.
//!
//! Parameters: [`QueueConfig`] for each queue; the line's rate, none for a line that takes no time (there minima mean nothing,
//! everything waits only for maxima). Counters: [`QueueCounters`].
//!
//! Sources: the two criteria and separate accounts are those of H-FSC (Stoica, Zhang, Ng: "A Hierarchical Fair Service Curve
//! Algorithm", SIGCOMM 1997) with straight service curves and one level; step 3 is Goyal, Vin, Cheng: "Start-time Fair
//! Queuing", SIGCOMM 1996; virtual clocks: Zhang, SIGCOMM 1990.
use super::config::{MAX_PRIORITY, QueueConfig};
use std::collections::VecDeque;
use weir_packet::frame::DEFAULT_QUEUE;
use weir_units::{Bps, Instant};

/// Queues of one line at most.
pub const MAX_QUEUES: usize = 256;
/// Frames that wait in one queue at most, whatever its buffer in bytes.
pub const MAX_FRAMES: usize = 16_384;
/// Bytes by which a queue may exceed its maximum rate for a moment, besides one frame.
pub const BURST_BYTES: u64 = 6_000;

/// Points in time, in 1/1024 ns.
type Ticks = u128;
const TICKS_PER_NS: u128 = 1024;

/// Queues that share a line.
#[derive(Debug)]
pub struct Scheduler<T> {
    rate: Option<Bps>,
    /// Ascending by number; the default queue is always there.
    queues: Vec<Queue<T>>,
    /// When the line has sent everything it was given.
    free_at: Ticks,
    /// When something was last put in: nothing that waits could have begun before.
    clock: Ticks,
    /// When the next frame begins; none if none waits.
    next: Option<Ticks>,
    /// Bytes that a queue of each priority has got that wanted a share all the time.
    virtual_bytes: [u64; MAX_PRIORITY as usize + 1],
}

#[derive(Debug)]
struct Queue<T> {
    config: QueueConfig,
    frames: VecDeque<Waiting<T>>,
    waiting_bytes: u64,
    /// What it really gets of its minimum; see [`Scheduler::set_rate`].
    min: Option<Bps>,
    /// When its first frame is due to begin by its minimum rate.
    due: Ticks,
    /// When it may send again by its maximum rate.
    free_at: Ticks,
    /// Its bytes sent in step 3, at least those of the others of its priority when it came in.
    shared_bytes: u64,
    counters: QueueCounters,
    since: Instant,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    bytes: u64,
    charge: u64,
}

/// What a queue did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct QueueCounters {
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes sent, as ports count them.
    pub tx_bytes: u64,
    /// Frames dropped since the buffer was full.
    pub tx_full: u64,
}

/// A queue at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueState {
    /// What it is to get.
    pub config: QueueConfig,
    /// What it did.
    pub counters: QueueCounters,
    /// When it was made.
    pub since: Instant,
    /// Bytes that wait in it.
    pub waiting_bytes: u64,
}

/// A frame that the line sends.
#[derive(Debug, PartialEq, Eq)]
pub struct Departure<T> {
    /// The frame.
    pub item: T,
    /// When its first bit is sent.
    pub begins: Instant,
    /// When its last bit was.
    pub ends: Instant,
}

/// Which step chose a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Minimum,
    Share,
}

impl<T> Scheduler<T> {
    /// A line with the default queue only.
    pub fn new(rate: Option<Bps>) -> Scheduler<T> {
        let queues = vec![Queue::new(QueueConfig::default(), Instant::ZERO)];
        let virtual_bytes = [0; MAX_PRIORITY as usize + 1];
        Scheduler { rate, queues, free_at: 0, clock: 0, next: None, virtual_bytes }
    }

    /// The line's rate.
    pub fn rate(&self) -> Option<Bps> {
        self.rate
    }

    /// Changes the line's rate. Minima that are together more than it are scaled down to it.
    pub fn set_rate(&mut self, rate: Option<Bps>) {
        if rate != self.rate {
            self.rate = rate;
            self.share_out();
        }
    }

    /// The queues, ascending by number.
    pub fn queues(&self) -> impl Iterator<Item = QueueState> {
        self.queues.iter().map(|queue| QueueState {
            config: queue.config,
            counters: queue.counters,
            since: queue.since,
            waiting_bytes: queue.waiting_bytes,
        })
    }

    /// Adds a queue, or changes one; frames that wait in it stay.
    ///
    /// # Errors
    /// The configuration is wrong ([`QueueConfig::check`]), the minima would be more than the line's rate, or there are too many
    /// queues: with what was found and expected.
    pub fn set(&mut self, now: Instant, config: QueueConfig) -> Result<(), String> {
        config.check()?;
        self.check_minima(&config)?;
        match self.find(config.id) {
            Ok(place) => {
                let queue = &mut self.queues[place];
                queue.config = config;
                // Debts and claims from before do not fit the new rates.
                (queue.due, queue.free_at) = (ticks(now), ticks(now));
                queue.shared_bytes = self.virtual_bytes[usize::from(config.priority)];
            }
            Err(_) if self.queues.len() >= MAX_QUEUES => {
                return Err(format!("queue {}: there are {MAX_QUEUES} queues already, the most a port has", config.id));
            }
            Err(place) => self.queues.insert(place, Queue::new(config, now)),
        }
        self.share_out();
        self.find_next();
        Ok(())
    }

    /// Removes a queue, and gives the frames that waited in it, in order; the default queue only loses its settings. `None`: there
    /// is no such queue.
    pub fn remove(&mut self, id: u32) -> Option<Vec<T>> {
        let place = self.find(id).ok()?;
        let mut left = Vec::new();
        if id == DEFAULT_QUEUE {
            self.queues[place].config = QueueConfig::default();
        } else {
            left = self.queues.remove(place).frames.into_iter().map(|waiting| waiting.item).collect();
        }
        self.share_out();
        self.find_next();
        Some(left)
    }

    /// Puts a frame of `bytes` into a queue, the default one if there is no such; gives it back if the buffer is full, which is
    /// counted. `charge` are its bytes on the wire, by which rates go. What was due by `now` is to be taken out before. An empty
    /// queue takes a frame of any length.
    ///
    /// # Errors
    /// The frame, which does not fit.
    pub fn push(&mut self, now: Instant, queue: u32, bytes: u64, charge: u64, item: T) -> Result<(), T> {
        // Numbers are mostly small and without gaps.
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
        queue.frames.push_back(Waiting { item, bytes, charge });
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

    /// Whether there is a queue of this number.
    pub fn has(&self, id: u32) -> bool {
        self.find(id).is_ok()
    }

    /// When the next frame begins; none if none waits.
    pub fn next_begin(&self) -> Option<Instant> {
        self.next.map(instant)
    }

    /// Takes the next frame that begins by `now`.
    pub fn pop(&mut self, now: Instant) -> Option<Departure<T>> {
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
            (Step::Minimum, Some(min)) => queue.due += time_of(waiting.charge, min),
            _ => {
                let all = &mut self.virtual_bytes[usize::from(queue.config.priority)];
                *all = queue.shared_bytes.max(*all);
                queue.shared_bytes += waiting.charge;
            }
        }
        let ends = begins + self.rate.map_or(0, |rate| time_of(waiting.charge, rate));
        self.free_at = ends;
        self.find_next();
        Some(Departure { item: waiting.item, begins: instant(begins), ends: instant(ends) })
    }

    /// The queue that sends at `now`, and by which step; one that may is there.
    fn choose(&self, now: Ticks) -> Option<(usize, Step)> {
        let mut soonest: Option<(Ticks, usize)> = None;
        let mut poorest: Option<((u8, u64), usize)> = None;
        for (place, queue) in self.queues.iter().enumerate() {
            // 1.
            let Some(first) = queue.frames.front().filter(|_| queue.free_at <= now) else { continue };
            // 2.
            if let Some(min) = queue.min
                && queue.due <= now
            {
                let end = queue.due + time_of(first.charge, min);
                if soonest.is_none_or(|(before, _)| end < before) {
                    soonest = Some((end, place));
                }
            }
            // 3.
            let share = (MAX_PRIORITY - queue.config.priority, queue.shared_bytes);
            if poorest.is_none_or(|(before, _)| share < before) {
                poorest = Some((share, place));
            }
        }
        let soonest = soonest.map(|(_, place)| (place, Step::Minimum));
        soonest.or_else(|| poorest.map(|(_, place)| (place, Step::Share)))
    }

    fn find(&self, id: u32) -> Result<usize, usize> {
        self.queues.binary_search_by_key(&id, |queue| queue.config.id)
    }

    fn find_next(&mut self) {
        let waiting = self.queues.iter().filter(|queue| !queue.frames.is_empty());
        let free_at = waiting.map(|queue| queue.free_at).min();
        self.next = free_at.map(|free_at| free_at.max(self.free_at).max(self.clock));
    }

    /// Gives each queue its minimum, or what the line has for it.
    fn share_out(&mut self) {
        let asked: u128 = self.queues.iter().filter_map(|queue| queue.config.min).map(|min| u128::from(min.0)).sum();
        let there = self.rate.map_or(asked, |rate| asked.min(rate.0.into())).max(1);
        for queue in &mut self.queues {
            let share = |min: Bps| u64::try_from(u128::from(min.0) * there / asked.max(1)).unwrap_or(u64::MAX);
            queue.min = queue.config.min.map(|min| Bps(share(min).max(1)));
        }
    }

    fn check_minima(&self, new: &QueueConfig) -> Result<(), String> {
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

impl<T> Queue<T> {
    fn new(config: QueueConfig, now: Instant) -> Queue<T> {
        Queue {
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

fn ticks(now: Instant) -> Ticks {
    u128::from(now.as_nanos()) * TICKS_PER_NS
}

/// Rounded up, so that nothing happens too early.
fn instant(ticks: Ticks) -> Instant {
    Instant::from_nanos(u64::try_from(ticks.div_ceil(TICKS_PER_NS)).unwrap_or(u64::MAX))
}

/// How long bytes take at a rate, which is above zero; rounded up.
fn time_of(bytes: u64, rate: Bps) -> Ticks {
    (u128::from(bytes) * 8_000_000_000 * TICKS_PER_NS).div_ceil(u128::from(rate.0.max(1)))
}
