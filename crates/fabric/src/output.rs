//! An output: which virtual switch it serves next.
use crate::bits::{BEFORE_FIRST, Bits};
use crate::intra::Proposal;
use crate::outlet::{OuterTurn, Outlet};
use crate::queue::Taken;
use crate::slab::Slab;
use crate::{Departure, InterDiscipline, OutputConfig, Sharing};
use weir_units::Instant;

pub(crate) struct Output {
    pub(crate) config: OutputConfig,
    pub(crate) sharing: Sharing,
    /// By virtual switch; none: it does not use this output.
    pub(crate) outlets: Vec<Option<Box<Outlet>>>,
    /// Bytes at each crosspoint, by input; only kept if sharing is flexible.
    pub(crate) occupied: Vec<u64>,
    /// Switches with packets that may be asked.
    pub(crate) ready: Bits,
    /// Switches with packets that a ceiling or a merge holds back.
    held: Bits,
    /// When the first of those may be asked again, at the earliest.
    release: Instant,
    scheduler: Scheduler,
    /// The switch served last, if that emptied the queue served.
    emptied: Option<u16>,
}

/// A discipline among virtual switches and its state.
enum Scheduler {
    Drr {
        /// Whose visit is or was the last.
        last: u16,
        /// Whether it still is.
        visiting: bool,
    },
    /// By rising priority number.
    StrictPriority(Vec<Level>),
}

/// Virtual switches of the same priority.
struct Level {
    priority: u8,
    members: Bits,
    last: u16,
}

/// What an output decides.
pub(crate) enum Decision {
    /// A packet of this switch, from this input.
    Serve(u16, u16),
    Wait(Instant),
    Empty,
}

impl Output {
    pub(crate) fn new(config: OutputConfig, sharing: Sharing, inputs: usize) -> Output {
        Output {
            config,
            sharing,
            outlets: Vec::new(),
            occupied: vec![0; inputs],
            ready: Bits::default(),
            held: Bits::default(),
            release: Instant::FAR,
            scheduler: match config.discipline {
                InterDiscipline::Drr => Scheduler::Drr { last: BEFORE_FIRST, visiting: false },
                InterDiscipline::StrictPriority => Scheduler::StrictPriority(Vec::new()),
            },
            emptied: None,
        }
    }

    pub(crate) fn outlet(&self, switch: u16) -> Option<&Outlet> {
        self.outlets.get(usize::from(switch))?.as_deref()
    }

    #[inline]
    pub(crate) fn outlet_mut(&mut self, switch: u16) -> Option<&mut Outlet> {
        self.outlets.get_mut(usize::from(switch))?.as_deref_mut()
    }

    /// Gives a virtual switch its part, or takes it: what it holds is the caller's to keep.
    pub(crate) fn set_outlet(&mut self, switch: u16, outlet: Option<Outlet>) -> Option<Outlet> {
        let priority = outlet.as_ref().map(|outlet| outlet.priority);
        if self.outlets.len() <= usize::from(switch) && outlet.is_some() {
            self.outlets.resize_with(usize::from(switch) + 1, || None);
        }
        let place = self.outlets.get_mut(usize::from(switch))?;
        let before = std::mem::replace(place, outlet.map(Box::new)).map(|before| *before);
        self.scheduler.set_priority(switch, priority);
        self.changed(switch);
        before
    }

    /// The outlet's packets changed other than by being served: asks it again.
    #[inline]
    pub(crate) fn changed(&mut self, switch: u16) {
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

    /// As [`Output::changed`], after packets were dropped: a switch that lost its last loses what it had left to send, unless it is its turn.
    pub(crate) fn dropped(&mut self, switch: u16) {
        let its_turn = matches!(self.scheduler, Scheduler::Drr { last, visiting: true } if last == switch);
        if let Some(outlet) = self.outlet_mut(switch).filter(|outlet| outlet.is_empty() && !its_turn) {
            outlet.deficit = 0;
        }
        self.changed(switch);
    }

    /// Which packet leaves next.
    ///
    /// Whether the queue and the switch that were served last have run empty is looked at only now, so that what arrived meanwhile goes
    /// on with their turn.
    #[inline]
    pub(crate) fn decide<T>(&mut self, now: Instant, slab: &Slab<T>) -> Decision {
        if self.release <= now {
            self.release_held();
        }
        if let Some(switch) = self.emptied.take()
            && let Some(outlet) = self.outlet_mut(switch)
        {
            outlet.end_empty_turn();
        }
        let chosen = match self.scheduler {
            Scheduler::Drr { last, visiting } => self.decide_drr(now, last, visiting, slab),
            Scheduler::StrictPriority(_) => self.decide_strict(now, slab),
        };
        match chosen {
            Some((switch, input)) => Decision::Serve(switch, input),
            None if self.held.is_empty() => Decision::Empty,
            None => Decision::Wait(self.release),
        }
    }

    /// Takes the packet that was decided on.
    #[inline]
    pub(crate) fn serve<T>(&mut self, now: Instant, switch: u16, input: u16, slab: &mut Slab<T>) -> Option<Taken<T>> {
        let outlet = self.outlets[usize::from(switch)].as_deref_mut()?;
        let taken = outlet.serve(now, input, slab)?;
        if outlet.queues[usize::from(input)].is_empty() {
            self.emptied = Some(switch);
            if outlet.is_empty() {
                self.ready.remove(switch);
            }
        }
        match &mut self.scheduler {
            Scheduler::Drr { .. } => outlet.deficit -= taken.packet.bytes,
            Scheduler::StrictPriority(levels) => {
                let level = levels.iter_mut().find(|level| level.priority == outlet.priority);
                level.into_iter().for_each(|level| level.last = switch);
            }
        }
        if self.sharing == Sharing::Flexible {
            self.occupied[usize::from(input)] -= u64::from(taken.packet.bytes);
        }
        Some(taken)
    }

    /// Takes the packet that was decided on, and those after it that are certain to be next, as long as `send` says when one starts.
    /// When the next that is to be decided on starts; none: no more are wanted.
    #[inline]
    pub(crate) fn serve_turn<T>(
        &mut self,
        now: Instant,
        switch: u16,
        input: u16,
        slab: &mut Slab<T>,
        send: &mut impl FnMut(Departure<T>) -> Option<Instant>,
    ) -> Option<Instant> {
        let now = send(self.serve(now, switch, input, slab)?.depart(switch, input))?;
        let is_alone = self.ready.is_only(switch);
        let turn = match self.scheduler {
            Scheduler::Drr { .. } if is_alone => OuterTurn::Alone,
            Scheduler::Drr { .. } => OuterTurn::Deficit,
            Scheduler::StrictPriority(_) if is_alone => OuterTurn::Unbounded,
            Scheduler::StrictPriority(_) => return Some(now),
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
        if self.sharing == Sharing::Flexible {
            self.occupied[usize::from(input)] -= u64::from(bytes);
        }
        next
    }

    /// Deficit round robin by the quanta of the switches' ports.
    #[inline]
    fn decide_drr<T>(&mut self, now: Instant, last: u16, visiting: bool, slab: &Slab<T>) -> Option<(u16, u16)> {
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
        self.scheduler = Scheduler::Drr { last, visiting: chosen.is_some() };
        chosen
    }

    fn deficit(&self, switch: u16) -> u32 {
        self.outlet(switch).map_or(0, |outlet| outlet.deficit)
    }

    /// Grants at once what rounds without any service would: quanta may be much smaller than packets.
    #[cold]
    fn skip_rounds<T>(&mut self, now: Instant, slab: &Slab<T>) {
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

    /// Strict priority, round robin by packets among equals.
    fn decide_strict<T>(&mut self, now: Instant, slab: &Slab<T>) -> Option<(u16, u16)> {
        loop {
            let Scheduler::StrictPriority(levels) = &self.scheduler else { return None };
            let first = |level: &Level| self.ready.and(&level.members).next_after(level.last);
            let switch = levels.iter().find_map(first)?;
            if let Some((input, _)) = self.offer(now, switch, slab) {
                return Some((switch, input));
            }
        }
    }

    /// What a switch would send now; if that is nothing, it is held back.
    #[inline]
    fn offer<T>(&mut self, now: Instant, switch: u16, slab: &Slab<T>) -> Option<(u16, u32)> {
        let outlet = self.outlets[usize::from(switch)].as_deref_mut()?;
        match outlet.propose(now, slab) {
            Proposal::Packet(input, bytes) => Some((input, bytes)),
            Proposal::Wait(until) => {
                // Its visit is over, but being held must not let it save up more than a round.
                outlet.deficit = outlet.deficit.min(outlet.quantum);
                self.ready.remove(switch);
                self.held.insert(switch);
                self.release = self.release.min(until);
                None
            }
        }
    }

    /// Lets all that are held be asked again: those that must wait on are held again.
    #[cold]
    fn release_held(&mut self) {
        self.release = Instant::FAR;
        for switch in self.held.iter() {
            self.ready.insert(switch);
        }
        self.held = Bits::default();
    }
}

impl Scheduler {
    /// Puts a virtual switch into the level of its priority, and out of any other.
    fn set_priority(&mut self, switch: u16, priority: Option<u8>) {
        let Scheduler::StrictPriority(levels) = self else { return };
        levels.iter_mut().for_each(|level| level.members.remove(switch));
        if let Some(priority) = priority {
            let place = levels.binary_search_by_key(&priority, |level| level.priority).unwrap_or_else(|place| {
                levels.insert(place, Level { priority, members: Bits::default(), last: BEFORE_FIRST });
                place
            });
            levels[place].members.insert(switch);
        }
        levels.retain(|level| !level.members.is_empty());
    }

    /// A virtual switch is gone: its visit is over.
    fn forget(&mut self, switch: u16) {
        if let Scheduler::Drr { last, visiting } = self
            && *last == switch
        {
            *visiting = false;
        }
    }
}
