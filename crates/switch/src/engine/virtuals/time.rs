//! Enforces the virtual switches' shares of the engine's time ([`weir_slicing::CpuShares`]). Time is measured with
//! the time stamp counter, once for a list of packets, and only while ports have more frames than the engine takes.
use super::EngineVirtualSwitches;
use crate::clock::cycles;
use crate::engine::Engine;
use weir_openflow::model::PortNo;
use weir_slicing::FabricIngress;
use weir_units::{Clock, Instant};

impl EngineVirtualSwitches {
    /// Returns true if a port must not be read now, because all its packets are for one virtual switch whose waiting
    /// queue has no room for a burst.
    #[inline]
    pub(in crate::engine) fn holds(&mut self, port: PortNo, burst: usize) -> bool {
        self.shares.is_pressed() && self.holds_back(port, burst)
    }

    #[cold]
    fn holds_back(&mut self, port: PortNo, burst: usize) -> bool {
        self.asked_at = cycles();
        self.sorter.only(port).is_some_and(|target| self.shares.is_full(target.switch, burst))
    }
}

impl Engine {
    /// Notes that a port has filled the batch. Returns the counts of the time stamp counter that reading took, if
    /// time is measured.
    #[inline]
    pub(super) fn note_received(&mut self, now: Instant) -> Option<u64> {
        let virtuals = self.virtuals.as_deref_mut()?;
        let was_pressed = virtuals.shares.is_pressed();
        if self.batch.len() >= self.burst {
            virtuals.shares.gave_all(now, cycles());
        }
        if !was_pressed {
            return None;
        }
        let took = cycles().saturating_sub(virtuals.asked_at);
        virtuals.shares.received(took);
        Some(took)
    }

    /// Runs lists of sorted frames through their virtual switches, or queues them for their turns. Receiving all
    /// `packets` took `received` counts of the time stamp counter.
    pub(super) fn pass_measured(&mut self, now: Instant, count: usize, packets: usize, received: u64) {
        let has_more = packets >= self.burst;
        for at in 0..count {
            let Some(virtuals) = &mut self.virtuals else { return };
            let (target, frames) = &virtuals.sorter.lists[at];
            let (place, its) = (target.switch, frames.len());
            let shared = received * its as u64 / packets.max(1) as u64;
            if has_more {
                virtuals.shares.wants_more(place);
            }
            let began = cycles();
            let takes_turns = virtuals.shares.takes_turns();
            if takes_turns {
                self.have_wait(at)
            } else {
                self.pass_to_virtual(now, at)
            }
            let took = cycles().saturating_sub(began);
            let done = if takes_turns { 0 } else { its };
            if let Some(virtuals) = &mut self.virtuals {
                virtuals.shares.charge(place, shared + took, done);
            }
        }
    }

    /// Queues the sorted frames of list `at` for their virtual switch's turn.
    fn have_wait(&mut self, at: usize) {
        let Some(virtuals) = &mut self.virtuals else { return };
        let EngineVirtualSwitches { sorter, switches: cuts, shares, .. } = &mut **virtuals;
        let Some((target, frames)) = sorter.lists.get_mut(at) else { return };
        let input = usize::from(target.input);
        let cut = cuts.get_mut(usize::from(target.switch)).and_then(Option::as_deref_mut);
        let Some((cut, number)) = cut.and_then(|cut| cut.arrive(input, frames).map(|number| (cut, number))) else {
            return frames.drain(..).for_each(|frame| self.pool.give(frame));
        };
        shares.put(target.switch, number.0, frames, |frame| {
            cut.inlets[input].unserved += 1;
            self.pool.give(frame);
        });
    }

    /// Serves waiting packets until the ports must be read again. Returns true if there were any.
    #[inline]
    pub(super) fn serve_waiting(&mut self, now: Instant) -> bool {
        let Some(virtuals) = &self.virtuals else { return false };
        virtuals.shares.is_pressed() && self.take_turns_at_packets(now)
    }

    #[cold]
    fn take_turns_at_packets(&mut self, now: Instant) -> bool {
        let Some(virtuals) = &self.virtuals else { return false };
        let (budget, mut spent) = (virtuals.shares.budget(), 0);
        while spent < budget
            && let Some(took) = self.serve_next()
        {
            spent += took.max(1);
        }
        if let Some(virtuals) = &mut self.virtuals {
            let took_turns = virtuals.shares.takes_turns();
            virtuals.shares.end_round(now, cycles(), budget, spent);
            if !took_turns && virtuals.shares.takes_turns() {
                tracing::debug!("virtual switches take turns");
            }
        }
        spent > 0
    }

    /// Serves packets of the virtual switch whose turn it is. Returns the counts of the time stamp counter that this
    /// took.
    fn serve_next(&mut self) -> Option<u64> {
        if !self.virtuals.as_ref()?.shares.has_waiting() {
            return None;
        }
        let now = self.clock.now();
        self.drive(now);
        let began = cycles();
        let virtuals = self.virtuals.as_deref_mut()?;
        let EngineVirtualSwitches { shares, turn, switches: cuts, fabric, outlets, dropped, .. } = virtuals;
        let (place, number) = shares.take(turn)?;
        let packets = turn.len();
        let cut = cuts.get_mut(usize::from(place)).and_then(Option::as_deref_mut)?;
        let input = cut.inlets.iter().position(|inlet| inlet.number.0 == number);
        match input {
            Some(input) => {
                let mut crossing = FabricIngress { fabric, outlets, dropped };
                cut.forward(now, (PortNo(number), input), turn, &mut crossing, &mut self.pool);
            }
            // The virtual switch has lost the port since these packets arrived.
            None => {
                turn.drain(..).for_each(|frame| self.pool.give(frame));
                shares.lost(place, packets);
            }
        }
        if cut.has_news() {
            self.serve_at(place, |engine| engine.deliver(now));
        }
        let took = cycles().saturating_sub(began);
        self.virtuals.as_deref_mut()?.shares.charge(place, took, packets);
        Some(took)
    }
}
