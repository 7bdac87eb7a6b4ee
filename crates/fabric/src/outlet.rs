//! A virtual switch's part of an output: its queues, its discipline and its ceiling.
use crate::bits::IndexBitSet;
use crate::intra::{IntraScheduler, SchedulerProposal};
use crate::queue::{CrosspointQueue, DequeuedPacket};
use crate::rate_limit::GcraLimiter;
use crate::red::{RedParams, RedState};
use crate::slab::PacketSlab;
use crate::{
    BufferSharing, CrosspointCounters, DropPolicy, FabricDropReason, FabricPacket, IntraDiscipline, MergeCounters,
    PacketByteCount,
};
use weir_units::Instant;

/// Drops of a queue, by reason.
pub(crate) type QueueDropCounts = [PacketByteCount; FabricDropReason::ALL.len()];

pub(crate) struct OutputShare {
    /// Queues by input; a queue whose input does not lead here has capacity 0.
    pub(crate) queues: Vec<CrosspointQueue>,
    pub(crate) drops: Vec<QueueDropCounts>,
    /// Inputs whose queues hold packets.
    pub(crate) active: IndexBitSet,
    pub(crate) intra: IntraScheduler,
    /// Number of packets accepted so far; gives each packet its order of arrival.
    n_accepted: u64,
    /// Bytes that the switch may still send in this round, under deficit round robin.
    pub(crate) deficit: u32,
    pub(crate) quantum: u32,
    pub(crate) priority: u8,
    pub(crate) ceiling: Option<GcraLimiter>,
    pub(crate) manager: DropPolicy,
    /// True if a packet with room in its queue is accepted without further checks: tail drop or drop-head, strict
    /// sharing, no merge.
    is_plain: bool,
    law: Option<RedParams>,
    red: Vec<RedState>,
}

/// Limit of a virtual switch's turn at an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnLimit {
    /// Deficit round robin: the rest of this turn.
    Deficit,
    /// Deficit round robin without another ready switch: its own turns follow one another.
    Alone,
    /// Strict priority without another ready switch: no limit, and no deficit is counted.
    Unbounded,
}

/// Returns the deficit left after sending a packet, where the quantum is added as often as the packet requires.
#[inline]
fn after_turns(deficit: u32, quantum: u32, bytes: u32) -> u32 {
    if bytes <= deficit {
        deficit - bytes
    } else if bytes <= deficit + quantum {
        deficit + quantum - bytes
    } else {
        deficit + (bytes - deficit).div_ceil(quantum) * quantum - bytes
    }
}

/// Parameters of an outlet.
pub(crate) struct OutputShareParams {
    pub(crate) capacities: Vec<u32>,
    pub(crate) intra: crate::IntraDiscipline,
    pub(crate) intra_quantum: u32,
    pub(crate) manager: DropPolicy,
    pub(crate) law: Option<RedParams>,
    pub(crate) quantum: u32,
    pub(crate) priority: u8,
    pub(crate) ceiling: Option<GcraLimiter>,
    pub(crate) sharing: BufferSharing,
}

impl OutputShare {
    pub(crate) fn new(plan: OutputShareParams) -> OutputShare {
        let queues: Vec<CrosspointQueue> =
            plan.capacities.iter().map(|capacity| CrosspointQueue::new(*capacity)).collect();
        let mut members = IndexBitSet::default();
        (0u16..).zip(&queues).filter(|(_, queue)| queue.capacity > 0).for_each(|(input, _)| members.insert(input));
        let red = |law: &RedParams| plan.capacities.iter().map(|capacity| RedState::new(law, *capacity)).collect();
        OutputShare {
            drops: vec![QueueDropCounts::default(); queues.len()],
            active: IndexBitSet::default(),
            intra: IntraScheduler::new(plan.intra, plan.intra_quantum, queues.len(), members),
            n_accepted: 0,
            deficit: 0,
            quantum: plan.quantum,
            priority: plan.priority,
            ceiling: plan.ceiling,
            manager: plan.manager,
            is_plain: plan.law.is_none()
                && plan.sharing == BufferSharing::Strict
                && !matches!(plan.intra, IntraDiscipline::Merge { .. }),
            red: plan.law.as_ref().map(red).unwrap_or_default(),
            law: plan.law,
            queues,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Returns the number of packets accepted so far.
    #[inline]
    pub(crate) fn arrivals(&self) -> u64 {
        self.n_accepted
    }

    /// Returns the packet to serve, or how long to wait. Call only while the outlet holds packets.
    #[inline]
    pub(crate) fn propose<T>(&mut self, now: Instant, slab: &PacketSlab<T>) -> SchedulerProposal {
        match &self.ceiling {
            Some(ceiling) if !ceiling.may_go(now) => SchedulerProposal::Wait(ceiling.next()),
            _ => self.intra.propose(now, &self.active, &mut self.queues, slab),
        }
    }

    /// Ends the turn of a queue that has run empty.
    #[inline]
    pub(crate) fn end_empty_turn(&mut self) {
        if let IntraScheduler::Drr(drr) = &mut self.intra {
            drr.end_empty_turn(&mut self.queues);
        }
    }

    /// Removes the packet that was proposed and returns it.
    #[inline]
    pub(crate) fn serve<T>(&mut self, now: Instant, input: u16, slab: &mut PacketSlab<T>) -> Option<DequeuedPacket<T>> {
        let queue = &mut self.queues[usize::from(input)];
        self.intra.note_served(input, queue, slab);
        let taken = queue.pop_head(slab)?;
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.charge(now, taken.packet.bytes);
        }
        if queue.is_empty() {
            self.active.remove(input);
            if let Some(red) = self.red.get_mut(usize::from(input)) {
                red.mark_empty(now);
            }
        }
        self.intra.note_change(input, queue, slab);
        Some(taken)
    }

    /// Accepts packets, and counts them as arrived, as long as room is the only condition to check. Returns the first
    /// packet that needs further checks.
    #[inline]
    pub(crate) fn accept_run<T>(
        &mut self,
        now: Instant,
        input: u16,
        packets: &mut impl Iterator<Item = FabricPacket<T>>,
        slab: &mut PacketSlab<T>,
    ) -> Option<FabricPacket<T>> {
        let queue = &mut self.queues[usize::from(input)];
        if !self.is_plain || queue.capacity == 0 {
            return packets.next();
        }
        let before = queue.packets;
        let left = queue.push_run(slab, now, &mut self.n_accepted, packets);
        if queue.packets != before {
            if before == 0 {
                self.active.insert(input);
            }
            if before == 0 || matches!(self.intra, IntraScheduler::Lqf { .. }) {
                self.intra.note_change(input, queue, slab);
            }
        }
        left
    }

    /// Returns true if an arriving packet can be accepted and room is the only condition to check.
    #[inline]
    pub(crate) fn has_plain_room(&self, input: u16, bytes: u32) -> bool {
        let queue = &self.queues[usize::from(input)];
        self.is_plain && queue.capacity > 0 && u64::from(queue.bytes) + u64::from(bytes) <= u64::from(queue.capacity)
    }

    /// Appends a packet for which there is room.
    #[inline]
    pub(crate) fn accept<T>(&mut self, now: Instant, input: u16, packet: FabricPacket<T>, slab: &mut PacketSlab<T>) {
        let queue = &mut self.queues[usize::from(input)];
        self.n_accepted += 1;
        queue.push(slab, now, self.n_accepted, packet);
        if queue.packets == 1 {
            self.active.insert(input);
            if let Some(red) = self.red.get_mut(usize::from(input)) {
                red.mark_filled();
            }
            self.intra.note_change(input, queue, slab);
        } else if let IntraScheduler::Lqf { .. } = self.intra {
            self.intra.note_change(input, queue, slab);
        }
    }

    /// Serves the packets after the one just served that are certain to be served next, as long as `send` wants more:
    /// packets within the rest of the turns and, if no other queue or switch could take a turn, those of the next
    /// turns. Never takes a queue's last packet, because emptying a queue changes more state. Returns the bytes
    /// taken.
    #[inline]
    pub(crate) fn serve_run<T>(
        &mut self,
        input: u16,
        turn: TurnLimit,
        slab: &mut PacketSlab<T>,
        send: impl FnMut(DequeuedPacket<T>) -> bool,
    ) -> u32 {
        let is_alone = self.active.is_only(input);
        let inner = match &self.intra {
            IntraScheduler::Drr(drr) => Some(drr.quantum()),
            IntraScheduler::Merge(_) => return 0,
            _ if is_alone => None,
            _ => return 0,
        };
        if self.ceiling.is_some() {
            return 0;
        }
        let queue = &mut self.queues[usize::from(input)];
        let (mut its, mut outer) = (queue.deficit, self.deficit);
        let quantum = self.quantum;
        let may_go = |bytes| {
            if inner.is_some() && !is_alone && bytes > its || turn == TurnLimit::Deficit && bytes > outer {
                return false;
            }
            if let Some(quantum) = inner {
                its = after_turns(its, quantum, bytes);
            }
            if turn != TurnLimit::Unbounded {
                outer = after_turns(outer, quantum, bytes);
            }
            true
        };
        let taken = queue.pop_run(slab, may_go, send);
        queue.deficit = its;
        self.intra.note_change(input, queue, slab);
        self.deficit = outer;
        taken
    }

    /// Removes a packet to drop it, the oldest or the youngest, and counts it.
    pub(crate) fn evict<T>(
        &mut self,
        now: Instant,
        input: u16,
        oldest: bool,
        reason: FabricDropReason,
        slab: &mut PacketSlab<T>,
    ) -> Option<DequeuedPacket<T>> {
        let queue = &mut self.queues[usize::from(input)];
        let taken = if oldest { queue.pop_head(slab) } else { queue.pop_tail(slab) }?;
        if queue.is_empty() {
            self.active.remove(input);
            self.intra.note_empty(input, queue);
            if let Some(red) = self.red.get_mut(usize::from(input)) {
                red.mark_empty(now);
            }
        }
        self.intra.note_change(input, queue, slab);
        self.drops[usize::from(input)][reason as usize].add(taken.packet.bytes);
        Some(taken)
    }

    /// Returns the reason to drop an arriving packet regardless of room; `None` if there is none.
    #[inline]
    pub(crate) fn decide_refusal<T>(
        &mut self,
        now: Instant,
        input: u16,
        packet: &FabricPacket<T>,
        random: impl FnOnce() -> f64,
    ) -> Option<FabricDropReason> {
        let queue = &self.queues[usize::from(input)];
        if queue.capacity == 0 {
            return Some(FabricDropReason::NoPath);
        }
        if let IntraScheduler::Merge(merge) = &mut self.intra
            && merge.check_late(packet.number, self.active.is_empty())
        {
            return Some(FabricDropReason::Late);
        }
        let (law, red) = (self.law.as_ref()?, &mut self.red[usize::from(input)]);
        red.decide_drop(law, now, packet.bytes, queue.bytes, random)
    }

    pub(crate) fn counters(&self, input: u16) -> Option<CrosspointCounters> {
        let queue =
            self.queues.get(usize::from(input)).filter(|queue| queue.capacity > 0 || queue.arrived.packets > 0)?;
        let queued = PacketByteCount { packets: queue.packets.into(), bytes: queue.bytes.into() };
        Some(CrosspointCounters::new(queue.arrived, queued, queue.peak.into(), self.drops[usize::from(input)]))
    }

    /// Declares that no more packets will arrive by an input.
    pub(crate) fn finish(&mut self, input: u16) {
        if let IntraScheduler::Merge(merge) = &mut self.intra {
            merge.finish(input);
        }
    }

    pub(crate) fn merge_counters(&self) -> Option<MergeCounters> {
        if let IntraScheduler::Merge(merge) = &self.intra { Some(merge.counters) } else { None }
    }

    /// Takes over packets, counters, deficit, merge state, RED averages and ceiling history from the outlet that it
    /// replaces. Round-robin positions start anew.
    pub(crate) fn resume<T>(&mut self, before: OutputShare, slab: &PacketSlab<T>) {
        for (queue, old) in self.queues.iter_mut().zip(before.queues) {
            queue.resume(old);
        }
        self.drops = before.drops;
        if let (IntraScheduler::Merge(merge), IntraScheduler::Merge(old)) = (&mut self.intra, &before.intra) {
            merge.resume(old);
        }
        for (red, old) in self.red.iter_mut().zip(before.red) {
            red.resume(old);
        }
        (self.active, self.n_accepted) = (before.active, before.n_accepted);
        self.deficit = if self.active.is_empty() { 0 } else { before.deficit.min(self.quantum) };
        if let Some(ceiling) = &mut self.ceiling {
            *ceiling = ceiling.with_history_of(before.ceiling);
        }
        for input in self.active.iter() {
            self.intra.note_change(input, &self.queues[usize::from(input)], slab);
            if let Some(red) = self.red.get_mut(usize::from(input)) {
                red.mark_filled();
            }
        }
    }
}
