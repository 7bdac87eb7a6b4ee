//! Disciplines among the queues of a virtual switch at an output.
use crate::bits::{BEFORE_FIRST, IndexBitSet};
use crate::queue::CrosspointQueue;
use crate::slab::PacketSlab;
use crate::tournament::TournamentTree;
use crate::{IntraDiscipline, MergeCounters};
use std::time::Duration;
use weir_units::Instant;

/// Packet that a discipline proposes to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchedulerProposal {
    /// Oldest packet from this input (first), with its length in bytes (second).
    Packet(u16, u32),
    /// No packet before this time.
    Wait(Instant),
}

/// A discipline and its state at one output.
///
/// Queues are ordered by their inputs. A proposal stays valid until a packet arrives, is dropped or is served:
/// callers may ask again, or not serve it.
pub(crate) enum IntraScheduler {
    RoundRobin { last: u16 },
    Drr(DeficitRoundRobin),
    Fcfs(TournamentTree),
    Lqf { largest: TournamentTree, last: u16 },
    Merge(MergeScheduler),
}

impl IntraScheduler {
    /// Creates the state of a discipline. `quantum` is that of deficit round robin. `members` are the inputs that lead
    /// to the output, out of `inputs` in total.
    pub(crate) fn new(
        discipline: IntraDiscipline,
        quantum: u32,
        inputs: usize,
        members: IndexBitSet,
    ) -> IntraScheduler {
        match discipline {
            IntraDiscipline::RoundRobin => IntraScheduler::RoundRobin { last: BEFORE_FIRST },
            IntraDiscipline::Drr => IntraScheduler::Drr(DeficitRoundRobin { quantum, last: BEFORE_FIRST, open: false }),
            IntraDiscipline::Fcfs => IntraScheduler::Fcfs(TournamentTree::new(inputs)),
            IntraDiscipline::Lqf => IntraScheduler::Lqf { largest: TournamentTree::new(inputs), last: BEFORE_FIRST },
            IntraDiscipline::Merge { patience } => {
                IntraScheduler::Merge(MergeScheduler::new(patience, inputs, members))
            }
        }
    }

    /// Returns the packet to serve. `active` are the queues that hold packets; there must be at least one.
    #[inline]
    pub(crate) fn propose<T>(
        &mut self,
        now: Instant,
        active: &IndexBitSet,
        queues: &mut [CrosspointQueue],
        slab: &PacketSlab<T>,
    ) -> SchedulerProposal {
        let input = match self {
            IntraScheduler::Drr(drr) => {
                let input = drr.propose(active, queues);
                return SchedulerProposal::Packet(input, queues[usize::from(input)].head_bytes());
            }
            IntraScheduler::RoundRobin { last } => active.next_after(*last).unwrap_or(0),
            IntraScheduler::Fcfs(first) => first.winner_after(BEFORE_FIRST),
            IntraScheduler::Lqf { largest, last } => largest.winner_after(*last),
            IntraScheduler::Merge(merge) => match merge.propose(now, active, queues, slab) {
                Ok(input) => input,
                Err(until) => return SchedulerProposal::Wait(until),
            },
        };
        SchedulerProposal::Packet(input, queues[usize::from(input)].head_bytes())
    }

    /// Updates the state when a proposed packet is being served. `queue` still holds the packet.
    #[inline]
    pub(crate) fn note_served<T>(&mut self, input: u16, queue: &mut CrosspointQueue, slab: &PacketSlab<T>) {
        match self {
            IntraScheduler::RoundRobin { last } | IntraScheduler::Lqf { last, .. } => *last = input,
            IntraScheduler::Drr(_) => queue.deficit -= queue.head_bytes(),
            IntraScheduler::Fcfs(_) => {}
            IntraScheduler::Merge(merge) => merge.note_served(slab.node(queue.head()).number),
        }
    }

    /// Updates the state after a queue's packets changed.
    #[inline]
    pub(crate) fn note_change<T>(&mut self, input: u16, queue: &CrosspointQueue, slab: &PacketSlab<T>) {
        let earliest = |order: fn(&crate::slab::PacketNode<T>) -> u64| {
            if queue.is_empty() { 0 } else { u64::MAX - order(slab.node(queue.head())) }
        };
        match self {
            IntraScheduler::RoundRobin { .. } | IntraScheduler::Drr(_) => {}
            IntraScheduler::Fcfs(first) => first.set(input, earliest(|node| node.order)),
            IntraScheduler::Lqf { largest, .. } => largest.set(input, queue.bytes.into()),
            IntraScheduler::Merge(merge) => merge.first.set(input, earliest(|node| node.number)),
        }
    }

    /// Resets the deficit of a queue that lost its last packet other than by being served, unless its turn is in
    /// progress.
    pub(crate) fn note_empty(&mut self, input: u16, queue: &mut CrosspointQueue) {
        if !matches!(self, IntraScheduler::Drr(DeficitRoundRobin { last, open: true, .. }) if *last == input) {
            queue.deficit = 0;
        }
    }
}

/// Deficit round robin (Shreedhar and Varghese, 1995).
///
/// A turn stays open while the discipline among switches serves others. Only when the output next chooses a packet,
/// the turn of an empty queue is ended: packets that arrived in the meantime continue the turn.
pub(crate) struct DeficitRoundRobin {
    quantum: u32,
    /// Input of the current or last turn.
    last: u16,
    /// True if the turn of `last` is not over.
    open: bool,
}

impl DeficitRoundRobin {
    pub(crate) fn quantum(&self) -> u32 {
        self.quantum
    }

    #[inline]
    fn propose(&mut self, active: &IndexBitSet, queues: &mut [CrosspointQueue]) -> u16 {
        self.end_empty_turn(queues);
        if self.open {
            let queue = &queues[usize::from(self.last)];
            if queue.head_bytes() <= queue.deficit {
                return self.last;
            }
        }
        self.start_next_turn(active, queues)
    }

    /// Starts the turn of the next queue that may send, and returns its input.
    fn start_next_turn(&mut self, active: &IndexBitSet, queues: &mut [CrosspointQueue]) -> u16 {
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
    pub(crate) fn end_empty_turn(&mut self, queues: &mut [CrosspointQueue]) {
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
    fn skip_rounds(&self, active: &IndexBitSet, queues: &mut [CrosspointQueue]) {
        let rounds = |queue: &CrosspointQueue| queue.head_bytes().saturating_sub(queue.deficit).div_ceil(self.quantum);
        let least = active.iter().map(|input| rounds(&queues[usize::from(input)])).min().unwrap_or(0);
        let granted = least.saturating_sub(1) * self.quantum;
        active.iter().for_each(|input| queues[usize::from(input)].deficit += granted);
    }
}

/// Serves packets in the order of their numbers, with bounded waiting.
pub(crate) struct MergeScheduler {
    patience: Duration,
    /// Queues by the number of their oldest packet, smallest first.
    first: TournamentTree,
    /// Inputs by which packets may still arrive.
    expecting: IndexBitSet,
    /// Inputs that were declared finished.
    finished: IndexBitSet,
    /// Number after the one served last.
    next: u64,
    /// True if the last proposal was made because the patience had run out.
    impatient: bool,
    pub(crate) counters: MergeCounters,
}

/// Distance by which a smaller number must belong to a new series: no path delays that many packets.
const NEW_SERIES: u64 = 1 << 20;

impl MergeScheduler {
    fn new(patience: Duration, inputs: usize, members: IndexBitSet) -> MergeScheduler {
        MergeScheduler {
            patience,
            first: TournamentTree::new(inputs),
            expecting: members,
            finished: IndexBitSet::default(),
            next: 0,
            impatient: false,
            counters: MergeCounters::default(),
        }
    }

    /// Returns the input to serve, or the time until which to wait.
    fn propose<T>(
        &mut self,
        now: Instant,
        active: &IndexBitSet,
        queues: &[CrosspointQueue],
        slab: &PacketSlab<T>,
    ) -> Result<u16, Instant> {
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

    fn note_served(&mut self, number: u64) {
        self.counters.gave_up += u64::from(self.impatient);
        self.counters.missing += number.saturating_sub(self.next);
        self.next = self.next.max(number.saturating_add(1));
    }

    /// Returns true if a packet is too late to be served in order. A number far below the expected one starts a new
    /// series if the queues are empty.
    pub(crate) fn check_late(&mut self, number: u64, nothing_queued: bool) -> bool {
        if nothing_queued && number.saturating_add(NEW_SERIES) < self.next {
            self.next = number;
        }
        number < self.next
    }

    /// Declares that no more packets will arrive by an input.
    pub(crate) fn finish(&mut self, input: u16) {
        self.expecting.remove(input);
        self.finished.insert(input);
    }

    /// Takes over the expected number, the finished inputs and the counters of the merge that this one replaces. An
    /// input that no longer leads here is forgotten, so that it is expected again if it ever leads here again.
    pub(crate) fn resume(&mut self, before: &MergeScheduler) {
        (self.next, self.counters) = (before.next, before.counters);
        before.finished.and(&self.expecting).iter().for_each(|input| self.finish(input));
    }
}
