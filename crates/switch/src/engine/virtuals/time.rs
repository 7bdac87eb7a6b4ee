//! Enforces the virtual switches' shares of the engine's time ([`weir_slicing::CpuShares`]). Time is measured with
//! the time stamp counter, once for a list of packets, and only while ports have more frames than the engine takes.
use super::EngineVirtualSwitches;
use crate::clock::cycles;
use crate::engine::io::EngineIo;
use weir_openflow::model::PortNo;
use weir_units::Instant;

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
        self.classifier.only(port).is_some_and(|target| self.shares.is_full(target.switch, burst))
    }

    /// Notes that a port has filled the batch. Returns the counts of the time stamp counter that reading took, if
    /// time is measured.
    #[inline]
    pub(super) fn note_received(&mut self, now: Instant, io: &EngineIo) -> Option<u64> {
        let was_pressed = self.shares.is_pressed();
        if io.batch.len() >= io.burst {
            self.shares.gave_all(now, cycles());
        }
        if !was_pressed {
            return None;
        }
        let took = cycles().saturating_sub(self.asked_at);
        self.shares.received(took);
        Some(took)
    }

    /// Runs `count` lists of sorted frames through their virtual switches, or queues them for their turns. Receiving
    /// all `packets` took `received` counts of the time stamp counter.
    pub(super) fn forward_measured(
        &mut self,
        now: Instant,
        (count, packets): (usize, usize),
        received: u64,
        io: &mut EngineIo,
    ) {
        let has_more = packets >= io.burst;
        for at in 0..count {
            let (target, frames) = &self.classifier.lists[at];
            let (place, its) = (target.switch, frames.len());
            let shared = received * its as u64 / packets.max(1) as u64;
            if has_more {
                self.shares.wants_more(place);
            }
            let began = cycles();
            let takes_turns = self.shares.takes_turns();
            if takes_turns {
                self.have_wait(at, io)
            } else {
                self.forward_list(now, at, io)
            }
            let took = cycles().saturating_sub(began);
            self.shares.charge(place, shared + took, if takes_turns { 0 } else { its });
        }
    }

    /// Queues the sorted frames of list `at` for their virtual switch's turn.
    fn have_wait(&mut self, at: usize, io: &mut EngineIo) {
        let EngineVirtualSwitches { classifier, switches, shares, .. } = self;
        let Some((target, frames)) = classifier.lists.get_mut(at) else { return };
        let input = usize::from(target.input);
        let switch = switches.get_mut(usize::from(target.switch)).and_then(Option::as_deref_mut);
        let arrived = switch.and_then(|switch| Some((switch.ports.arrive(input, frames)?, switch)));
        let Some((number, switch)) = arrived else {
            return frames.drain(..).for_each(|frame| io.pool.give(frame));
        };
        shares.put(target.switch, number.0, frames, |frame| {
            switch.ports.inlets[input].unserved += 1;
            io.pool.give(frame);
        });
    }

    /// Serves waiting packets until the ports must be read again. Returns true if there were any.
    #[inline]
    pub(super) fn serve_waiting(&mut self, now: Instant, io: &mut EngineIo) -> bool {
        self.shares.is_pressed() && self.take_turns_at_packets(now, io)
    }

    #[cold]
    fn take_turns_at_packets(&mut self, now: Instant, io: &mut EngineIo) -> bool {
        let (budget, mut spent) = (self.shares.budget(), 0);
        while spent < budget
            && let Some(took) = self.serve_next(io)
        {
            spent += took.max(1);
        }
        let took_turns = self.shares.takes_turns();
        self.shares.end_round(now, cycles(), budget, spent);
        if !took_turns && self.shares.takes_turns() {
            tracing::debug!("virtual switches take turns");
        }
        spent > 0
    }

    /// Serves packets of the virtual switch whose turn it is. Returns the counts of the time stamp counter that this
    /// took.
    fn serve_next(&mut self, io: &mut EngineIo) -> Option<u64> {
        if !self.shares.has_waiting() {
            return None;
        }
        let now = io.now();
        self.fabric.drive(now, io);
        let began = cycles();
        let EngineVirtualSwitches { shares, turn, switches, fabric, .. } = self;
        let (place, number) = shares.take(turn)?;
        let packets = turn.len();
        let switch = switches.get_mut(usize::from(place)).and_then(Option::as_deref_mut)?;
        match switch.ports.inlets.iter().position(|inlet| inlet.number.0 == number) {
            Some(input) => switch.forward(now, (PortNo(number), input), turn, fabric, &mut io.pool),
            // The virtual switch has lost the port since these packets arrived.
            None => {
                turn.drain(..).for_each(|frame| io.pool.give(frame));
                shares.lost(place, packets);
            }
        }
        if switch.has_news() {
            self.deliver(now, place, io);
        }
        let took = cycles().saturating_sub(began);
        self.shares.charge(place, took, packets);
        Some(took)
    }
}
