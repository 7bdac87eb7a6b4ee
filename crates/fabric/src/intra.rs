//! Disciplines among the queues of a virtual switch at an output.
use crate::bits::{BEFORE_FIRST, Bits};
use crate::queue::Queue;
use crate::slab::Slab;
use crate::tournament::Tournament;
use crate::{IntraDiscipline, MergeCounters};
use std::time::Duration;
use weir_units::Instant;

/// Packet that a discipline proposes to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proposal {
    /// Oldest packet from this input (first), with its length in bytes (second).
    Packet(u16, u32),
    /// No packet before this time.
    Wait(Instant),
}

/// A discipline and its state at one output.
///
/// Queues are ordered by their inputs. A proposal stays valid until a packet arrives, is dropped or is served:
/// callers may ask again, or not serve it.
pub(crate) enum Intra {
    RoundRobin { last: u16 },
    Drr(Drr),
    Fcfs(Tournament),
    Lqf { largest: Tournament, last: u16 },
    Merge(Merge),
}

impl Intra {
    /// Creates the state of a discipline. `members` are the inputs that lead to the output, out of `inputs` in total.
    pub(crate) fn new(discipline: IntraDiscipline, inputs: usize, members: Bits) -> Intra {
        match discipline {
            IntraDiscipline::RoundRobin => Intra::RoundRobin { last: BEFORE_FIRST },
            IntraDiscipline::Drr { quantum } => Intra::Drr(Drr { quantum, last: BEFORE_FIRST, open: false }),
            IntraDiscipline::Fcfs => Intra::Fcfs(Tournament::new(inputs)),
            IntraDiscipline::Lqf => Intra::Lqf { largest: Tournament::new(inputs), last: BEFORE_FIRST },
            IntraDiscipline::Merge { patience } => Intra::Merge(Merge::new(patience, inputs, members)),
        }
    }

    /// Returns the packet to serve. `active` are the queues that hold packets; there must be at least one.
    #[inline]
    pub(crate) fn propose<T>(&mut self, now: Instant, active: &Bits, queues: &mut [Queue], slab: &Slab<T>) -> Proposal {
        let input = match self {
            Intra::Drr(drr) => {
                let input = drr.propose(active, queues);
                return Proposal::Packet(input, queues[usize::from(input)].head_bytes());
            }
            Intra::RoundRobin { last } => active.next_after(*last).unwrap_or(0),
            Intra::Fcfs(first) => first.winner_after(BEFORE_FIRST),
            Intra::Lqf { largest, last } => largest.winner_after(*last),
            Intra::Merge(merge) => match merge.propose(now, active, queues, slab) {
                Ok(input) => input,
                Err(until) => return Proposal::Wait(until),
            },
        };
        Proposal::Packet(input, queues[usize::from(input)].head_bytes())
    }

    /// Updates the state when a proposed packet is being served. `queue` still holds the packet.
    #[inline]
    pub(crate) fn serving<T>(&mut self, input: u16, queue: &mut Queue, slab: &Slab<T>) {
        match self {
            Intra::RoundRobin { last } | Intra::Lqf { last, .. } => *last = input,
            Intra::Drr(_) => queue.deficit -= queue.head_bytes(),
            Intra::Fcfs(_) => {}
            Intra::Merge(merge) => merge.serving(slab.node(queue.head()).number),
        }
    }

    /// Updates the state after a queue's packets changed.
    #[inline]
    pub(crate) fn changed<T>(&mut self, input: u16, queue: &Queue, slab: &Slab<T>) {
        let earliest = |order: fn(&crate::slab::Node<T>) -> u64| {
            if queue.is_empty() { 0 } else { u64::MAX - order(slab.node(queue.head())) }
        };
        match self {
            Intra::RoundRobin { .. } | Intra::Drr(_) => {}
            Intra::Fcfs(first) => first.set(input, earliest(|node| node.order)),
            Intra::Lqf { largest, .. } => largest.set(input, queue.bytes.into()),
            Intra::Merge(merge) => merge.first.set(input, earliest(|node| node.number)),
        }
    }

    /// Resets the deficit of a queue that lost its last packet other than by being served, unless its turn is in
    /// progress.
    pub(crate) fn emptied(&mut self, input: u16, queue: &mut Queue) {
        if !matches!(self, Intra::Drr(Drr { last, open: true, .. }) if *last == input) {
            queue.deficit = 0;
        }
    }
}

/// Deficit round robin (Shreedhar and Varghese, 1995).
///
/// A turn stays open while the discipline among switches serves others. Only when the output next chooses a packet,
/// the turn of an empty queue is ended: packets that arrived in the meantime continue the turn.
pub(crate) struct Drr {
    quantum: u32,
    /// Input of the current or last turn.
    last: u16,
    /// True if the turn of `last` is not over.
    open: bool,
}

impl Drr {
    pub(crate) fn quantum(&self) -> u32 {
        self.quantum
    }

    #[inline]
    fn propose(&mut self, active: &Bits, queues: &mut [Queue]) -> u16 {
        self.end_empty_turn(queues);
        if self.open {
            let queue = &queues[usize::from(self.last)];
            if queue.head_bytes() <= queue.deficit {
                return self.last;
            }
        }
        self.next_turn(active, queues)
    }

    /// Starts the turn of the next queue that may send, and returns its input.
    fn next_turn(&mut self, active: &Bits, queues: &mut [Queue]) -> u16 {
        let mut refused = 0;
        while let Some(input) = active.next_after(self.last) {
            self.last = input;
            let queue = &mut queues[usize::from(input)];
            queue.deficit += self.quantum;
            if queue.head_bytes() <= queue.deficit {
                break;
            }
            refused += 1;
            if refused > active.len() {
                self.skip_rounds(active, queues);
                refused = 0;
            }
        }
        self.open = true;
        self.last
    }

    /// Ends the turn of a queue that has run empty.
    #[inline]
    pub(crate) fn end_empty_turn(&mut self, queues: &mut [Queue]) {
        if !self.open {
            return;
        }
        let queue = &mut queues[usize::from(self.last)];
        if queue.is_empty() {
            queue.deficit = 0;
            self.open = false;
        }
    }

    /// Grants the quanta of all rounds that would serve no packet at once: quanta may be much smaller than packets.
    #[cold]
    fn skip_rounds(&self, active: &Bits, queues: &mut [Queue]) {
        let rounds = |queue: &Queue| queue.head_bytes().saturating_sub(queue.deficit).div_ceil(self.quantum);
        let least = active.iter().map(|input| rounds(&queues[usize::from(input)])).min().unwrap_or(0);
        let granted = least.saturating_sub(1) * self.quantum;
        active.iter().for_each(|input| queues[usize::from(input)].deficit += granted);
    }
}

/// Serves packets in the order of their numbers, with bounded waiting.
pub(crate) struct Merge {
    patience: Duration,
    /// Queues by the number of their oldest packet, smallest first.
    first: Tournament,
    /// Inputs by which packets may still arrive.
    expecting: Bits,
    /// Number after the one served last.
    next: u64,
    /// True if the last proposal was made because the patience had run out.
    impatient: bool,
    pub(crate) counters: MergeCounters,
}

/// Distance by which a smaller number must belong to a new series: no path delays that many packets.
const NEW_SERIES: u64 = 1 << 20;

impl Merge {
    fn new(patience: Duration, inputs: usize, members: Bits) -> Merge {
        Merge {
            patience,
            first: Tournament::new(inputs),
            expecting: members,
            next: 0,
            impatient: false,
            counters: MergeCounters::default(),
        }
    }

    /// Returns the input to serve, or the time until which to wait.
    fn propose<T>(&mut self, now: Instant, active: &Bits, queues: &[Queue], slab: &Slab<T>) -> Result<u16, Instant> {
        let input = self.first.winner_after(BEFORE_FIRST);
        let head = slab.node(queues[usize::from(input)].head());
        self.impatient = false;
        if head.number <= self.next || self.expecting.and(active) == self.expecting {
            return Ok(input);
        }
        let until = head.arrived + self.patience;
        self.impatient = until <= now;
        if self.impatient { Ok(input) } else { Err(until) }
    }

    fn serving(&mut self, number: u64) {
        self.counters.gave_up += u64::from(self.impatient);
        self.counters.missing += number.saturating_sub(self.next);
        self.next = self.next.max(number.saturating_add(1));
    }

    /// Returns true if a packet is too late to be served in order. A number far below the expected one starts a new
    /// series if the queues are empty.
    pub(crate) fn is_late(&mut self, number: u64, nothing_queued: bool) -> bool {
        if nothing_queued && number.saturating_add(NEW_SERIES) < self.next {
            self.next = number;
        }
        number < self.next
    }

    /// Declares that no more packets will arrive by an input.
    pub(crate) fn finish(&mut self, input: u16) {
        self.expecting.remove(input);
    }

    /// Takes over the expected number and the counters of the merge that this one replaces.
    pub(crate) fn resume(&mut self, before: &Merge) {
        (self.next, self.counters) = (before.next, before.counters);
    }
}
