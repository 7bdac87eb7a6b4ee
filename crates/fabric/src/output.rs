//! An output: decides which virtual switch it serves next.
use crate::bits::{BEFORE_FIRST, IndexBitSet};
use crate::intra::SchedulerProposal;
use crate::outlet::{OutputShare, TurnLimit};
use crate::queue::DequeuedPacket;
use crate::slab::PacketSlab;
use crate::{BufferSharing, FabricDeparture, InterDiscipline, OutputConfig};
use weir_units::Instant;

pub(crate) struct FabricOutput {
    pub(crate) config: OutputConfig,
    pub(crate) sharing: BufferSharing,
    /// Outlets by virtual switch; `None`: the switch does not use this output.
    pub(crate) outlets: Vec<Option<Box<OutputShare>>>,
    /// Bytes at each crosspoint, by input; maintained only if sharing is flexible.
    pub(crate) occupied: Vec<u64>,
    /// Virtual switches with packets that may be served.
    pub(crate) ready: IndexBitSet,
    /// Virtual switches with packets that a ceiling or a merge holds back.
    held: IndexBitSet,
    /// Earliest time at which a switch in `held` may be served again.
    release: Instant,
    scheduler: InterScheduler,
    /// Virtual switch served last, if that emptied the queue served.
    emptied: Option<u16>,
}

/// State of the discipline among virtual switches.
enum InterScheduler {
    Drr {
        /// Virtual switch of the current or last visit.
        last: u16,
        /// True if the visit of `last` is not over.
        visiting: bool,
    },
    /// Priority levels by rising priority number.
    StrictPriority(Vec<PriorityLevel>),
}

/// Virtual switches of one priority.
struct PriorityLevel {
    priority: u8,
    members: IndexBitSet,
    last: u16,
}

/// Decision of an output.
pub(crate) enum OutputDecision {
    /// Serve a packet of this virtual switch (first) from this input (second).
    Serve(u16, u16),
    Wait(Instant),
    Empty,
}

impl FabricOutput {
    pub(crate) fn new(config: OutputConfig, sharing: BufferSharing, inputs: usize) -> FabricOutput {
        FabricOutput {
            config,
            sharing,
            outlets: Vec::new(),
            occupied: vec![0; inputs],
            ready: IndexBitSet::default(),
            held: IndexBitSet::default(),
            release: Instant::FAR,
            scheduler: match config.discipline {
                InterDiscipline::Drr => InterScheduler::Drr { last: BEFORE_FIRST, visiting: false },
                InterDiscipline::StrictPriority => InterScheduler::StrictPriority(Vec::new()),
            },
            emptied: None,
        }
    }

    pub(crate) fn outlet(&self, switch: u16) -> Option<&OutputShare> {
        self.outlets.get(usize::from(switch))?.as_deref()
    }

    #[inline]
    pub(crate) fn outlet_mut(&mut self, switch: u16) -> Option<&mut OutputShare> {
        self.outlets.get_mut(usize::from(switch))?.as_deref_mut()
    }

    /// Sets or removes the outlet of a virtual switch. Returns the previous one, whose packets the caller must keep
    /// or drop.
    pub(crate) fn set_outlet(&mut self, switch: u16, outlet: Option<OutputShare>) -> Option<OutputShare> {
        let priority = outlet.as_ref().map(|outlet| outlet.priority);
        if self.outlets.len() <= usize::from(switch) && outlet.is_some() {
            self.outlets.resize_with(usize::from(switch) + 1, || None);
        }
        let place = self.outlets.get_mut(usize::from(switch))?;
        let before = std::mem::replace(place, outlet.map(Box::new)).map(|before| *before);
        self.scheduler.set_priority(switch, priority);
        self.update_readiness(switch);
        before
    }

    /// Updates the readiness of a switch after its packets changed other than by being served.
    #[inline]
    pub(crate) fn update_readiness(&mut self, switch: u16) {
        self.held.remove(switch);
        match self.outlets[usize::from(switch)].as_deref() {
            Some(outlet) if !outlet.is_empty() => self.ready.insert(switch),
            Some(_) => self.ready.remove(switch),
            None => {
                self.ready.remove(switch);
                self.scheduler.forget(switch);
            }
        }
    }

    /// Updates the readiness of a switch after packets were dropped. A switch that lost its last packet loses its
    /// deficit, unless its visit is in progress.
    pub(crate) fn note_drops(&mut self, switch: u16) {
        let its_turn = matches!(self.scheduler, InterScheduler::Drr { last, visiting: true } if last == switch);
        if let Some(outlet) = self.outlet_mut(switch).filter(|outlet| outlet.is_empty() && !its_turn) {
            outlet.deficit = 0;
        }
        self.update_readiness(switch);
    }

    /// Decides which packet leaves next.
    ///
    /// Checks only now whether the queue and the switch that were served last have run empty, so that packets that
    /// arrived in the meantime continue their turn.
    #[inline]
    pub(crate) fn decide<T>(&mut self, now: Instant, slab: &PacketSlab<T>) -> OutputDecision {
        if self.release <= now {
            self.release_held();
        }
        if let Some(switch) = self.emptied.take()
            && let Some(outlet) = self.outlet_mut(switch)
        {
            outlet.end_empty_turn();
        }
        let chosen = match self.scheduler {
            InterScheduler::Drr { last, visiting } => self.decide_drr(now, last, visiting, slab),
            InterScheduler::StrictPriority(_) => self.decide_strict(now, slab),
        };
        match chosen {
            Some((switch, input)) => OutputDecision::Serve(switch, input),
            None if self.held.is_empty() => OutputDecision::Empty,
            None => OutputDecision::Wait(self.release),
        }
    }

    /// Removes the packet that was decided on and returns it.
    #[inline]
    pub(crate) fn serve<T>(
        &mut self,
        now: Instant,
        switch: u16,
        input: u16,
        slab: &mut PacketSlab<T>,
    ) -> Option<DequeuedPacket<T>> {
        let outlet = self.outlets[usize::from(switch)].as_deref_mut()?;
        let taken = outlet.serve(now, input, slab)?;
        if outlet.queues[usize::from(input)].is_empty() {
            self.emptied = Some(switch);
            if outlet.is_empty() {
                self.ready.remove(switch);
            }
        }
        match &mut self.scheduler {
            InterScheduler::Drr { .. } => outlet.deficit -= taken.packet.bytes,
            InterScheduler::StrictPriority(levels) => {
                let level = levels.iter_mut().find(|level| level.priority == outlet.priority);
                level.into_iter().for_each(|level| level.last = switch);
            }
        }
        if self.sharing == BufferSharing::Flexible {
            self.occupied[usize::from(input)] -= u64::from(taken.packet.bytes);
        }
        Some(taken)
    }

    /// Serves the packet that was decided on and the following packets that are certain to be next, as long as `send`
    /// returns when the next one starts. Returns when the next packet to decide on starts; `None` if `send` wants no
    /// more.
    #[inline]
    pub(crate) fn serve_turn<T>(
        &mut self,
        now: Instant,
        switch: u16,
        input: u16,
        slab: &mut PacketSlab<T>,
        send: &mut impl FnMut(FabricDeparture<T>) -> Option<Instant>,
    ) -> Option<Instant> {
        let now = send(self.serve(now, switch, input, slab)?.depart(switch, input))?;
        let is_alone = self.ready.is_only(switch);
        let turn = match self.scheduler {
            InterScheduler::Drr { .. } if is_alone => TurnLimit::Alone,
            InterScheduler::Drr { .. } => TurnLimit::Deficit,
            InterScheduler::StrictPriority(_) if is_alone => TurnLimit::Unbounded,
            InterScheduler::StrictPriority(_) => return Some(now),
        };
        if now >= self.release {
            return Some(now);
        }
        let (mut next, release) = (Some(now), self.release);
        let outlet = self.outlets[usize::from(switch)].as_deref_mut()?;
        let bytes = outlet.serve_run(input, turn, slab, |taken| {
            next = send(taken.depart(switch, input));
            next.is_some_and(|next| next < release)
        });
        if self.sharing == BufferSharing::Flexible {
            self.occupied[usize::from(input)] -= u64::from(bytes);
        }
        next
    }

    /// Chooses by deficit round robin with the quanta of the switches' ports. Returns switch and input.
    #[inline]
    fn decide_drr<T>(&mut self, now: Instant, last: u16, visiting: bool, slab: &PacketSlab<T>) -> Option<(u16, u16)> {
        if visiting && let Some(outlet) = self.outlet_mut(last) {
            if outlet.is_empty() {
                outlet.deficit = 0;
            } else if let Some((input, bytes)) = self.offer(now, last, slab)
                && bytes <= self.deficit(last)
            {
                return Some((last, input));
            }
        }
        let (mut last, mut refused) = (last, 0);
        let chosen = loop {
            let Some(switch) = self.ready.next_after(last) else { break None };
            last = switch;
            let Some((input, bytes)) = self.offer(now, switch, slab) else { continue };
            let Some(outlet) = self.outlet_mut(switch) else { continue };
            outlet.deficit += outlet.quantum;
            if bytes <= outlet.deficit {
                break Some((switch, input));
            }
            refused += 1;
            if refused > self.ready.len() {
                self.skip_rounds(now, slab);
                refused = 0;
            }
        };
        self.scheduler = InterScheduler::Drr { last, visiting: chosen.is_some() };
        chosen
    }

    fn deficit(&self, switch: u16) -> u32 {
        self.outlet(switch).map_or(0, |outlet| outlet.deficit)
    }

    /// Grants the quanta of all rounds that would serve no packet at once: quanta may be much smaller than packets.
    #[cold]
    fn skip_rounds<T>(&mut self, now: Instant, slab: &PacketSlab<T>) {
        let mut least = u32::MAX;
        for switch in self.ready.iter() {
            let Some((_, bytes)) = self.offer(now, switch, slab) else { continue };
            let Some(outlet) = self.outlet(switch) else { continue };
            least = least.min(bytes.saturating_sub(outlet.deficit).div_ceil(outlet.quantum));
        }
        for switch in self.ready.iter() {
            let Some(outlet) = self.outlet_mut(switch) else { continue };
            outlet.deficit += outlet.quantum * least.saturating_sub(1);
        }
    }

    /// Chooses by strict priority, with round robin by packets among equals. Returns switch and input.
    fn decide_strict<T>(&mut self, now: Instant, slab: &PacketSlab<T>) -> Option<(u16, u16)> {
        loop {
            let InterScheduler::StrictPriority(levels) = &self.scheduler else { return None };
            let first = |level: &PriorityLevel| self.ready.and(&level.members).next_after(level.last);
            let switch = levels.iter().find_map(first)?;
            if let Some((input, _)) = self.offer(now, switch, slab) {
                return Some((switch, input));
            }
        }
    }

    /// Returns the input and length in bytes of the packet that a switch would send now. If there is none, moves the
    /// switch to `held`.
    #[inline]
    fn offer<T>(&mut self, now: Instant, switch: u16, slab: &PacketSlab<T>) -> Option<(u16, u32)> {
        let outlet = self.outlets[usize::from(switch)].as_deref_mut()?;
        match outlet.propose(now, slab) {
            SchedulerProposal::Packet(input, bytes) => Some((input, bytes)),
            SchedulerProposal::Wait(until) => {
                // The visit is over. While held back, the switch must not save up more than one round.
                outlet.deficit = outlet.deficit.min(outlet.quantum);
                self.ready.remove(switch);
                self.held.insert(switch);
                self.release = self.release.min(until);
                None
            }
        }
    }

    /// Makes all held switches ready again; a switch that must wait longer is held again when it is offered.
    #[cold]
    fn release_held(&mut self) {
        self.release = Instant::FAR;
        for switch in self.held.iter() {
            self.ready.insert(switch);
        }
        self.held = IndexBitSet::default();
    }
}

impl InterScheduler {
    /// Moves a virtual switch to the level of its priority; `None` removes it from all levels.
    fn set_priority(&mut self, switch: u16, priority: Option<u8>) {
        let InterScheduler::StrictPriority(levels) = self else { return };
        levels.iter_mut().for_each(|level| level.members.remove(switch));
        if let Some(priority) = priority {
            let place = levels.binary_search_by_key(&priority, |level| level.priority).unwrap_or_else(|place| {
                levels.insert(place, PriorityLevel { priority, members: IndexBitSet::default(), last: BEFORE_FIRST });
                place
            });
            levels[place].members.insert(switch);
        }
        levels.retain(|level| !level.members.is_empty());
    }

    /// Ends the visit of a virtual switch that was removed.
    fn forget(&mut self, switch: u16) {
        if let InterScheduler::Drr { last, visiting } = self
            && *last == switch
        {
            *visiting = false;
        }
    }
}
