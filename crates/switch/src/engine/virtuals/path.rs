//! Frames through virtual switches.
use super::{Cut, Virtuals};
use crate::engine::Engine;
use crate::virtuals::edge;
use crate::virtuals::first_lookup::{Target, Way};
use weir_datapath::Output;
use weir_datapath::perf::Stage;
use weir_fabric::{Crosspoint, Packet, PortIndex};
use weir_openflow::model::PortNo;
use weir_packet::frame::DEFAULT_QUEUE;
use weir_packet::{Frame, FramePool, offload};
use weir_port::PortError;
use weir_units::Instant;

impl Engine {
    /// Gives the frames that came in on a port to the virtual switches they are for; those of none go through the physical
    /// switch's own tables.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn pass_to_virtuals(&mut self, now: Instant, port: PortNo) {
        let packets = self.batch.len();
        let received = self.note_received(now);
        self.drive(now);
        let Some(virtuals) = &mut self.virtuals else { return };
        let count = virtuals.sort(port, &mut self.batch);
        match received {
            None => (0..count).for_each(|at| self.pass_to_virtual(now, at)),
            Some(received) => self.pass_measured(now, count, packets, received),
        }
        self.watch.lap(Stage::Transmit, packets - self.batch.len());
        if !self.batch.is_empty() {
            self.pass_to_own(now, port);
        }
    }

    /// Runs a list of sorted frames through its virtual switch.
    pub(super) fn pass_to_virtual(&mut self, now: Instant, at: usize) {
        let Some(virtuals) = &mut self.virtuals else { return };
        let Some((target, number, mut frames)) = virtuals.arrive(at, &mut self.pool) else { return };
        let Some(cut) = virtuals.cut(target.switch) else { return };
        let logical = &mut *cut.logical;
        logical.datapath.get().process(now, number, &mut frames, &mut self.pool, &mut logical.out);
        virtuals.sorted[at].1 = frames;
        self.pass_to_fabric(now, target);
    }

    /// What a virtual switch's datapath made of packets goes where it is to go.
    pub(super) fn pass_to_fabric(&mut self, now: Instant, from: Target) {
        let Some(virtuals) = &mut self.virtuals else { return };
        virtuals.enqueue(now, from.switch, Some(usize::from(from.input)), &mut self.pool);
        if has_news(&virtuals.cuts, from.switch) {
            self.serve_at(from.switch, |engine| engine.deliver(now));
        }
    }

    /// What the datapath that is served sends: a virtual switch's frames go into the fabric, the physical switch's own that are for
    /// ports of the fabric wait for what the others leave.
    #[cold]
    pub(in crate::engine) fn divert(&mut self, now: Instant) {
        let Some(virtuals) = &mut self.virtuals else { return };
        match self.serving {
            // Served, it is in the engine's place.
            Some(place) => {
                let mut out = std::mem::take(&mut self.logical.out.frames);
                virtuals.enqueue_from(now, place, None, &mut out, &mut self.pool);
                self.logical.out.frames = out;
            }
            None => {
                for (port, frames) in &mut self.logical.out.frames {
                    virtuals.take_own(now, *port, frames, &mut self.pool);
                }
            }
        }
    }

    /// Lets leave what is to have left by now. Whether anything did.
    pub(in crate::engine) fn drive(&mut self, now: Instant) -> bool {
        let Some(virtuals) = &mut self.virtuals else { return false };
        let mut any = false;
        let mut gone: Option<(PortNo, PortError)> = None;
        let Virtuals { fabric, outlets, .. } = &mut **virtuals;
        for outlet in outlets {
            outlet.drive(now, fabric);
            if outlet.leaving.is_empty() {
                continue;
            }
            any = true;
            match self.ports.place(outlet.port).and_then(|place| self.ports.at(place).port.as_mut()) {
                Some(port) => {
                    if let Err(error) = port.transmit(now, &mut self.pool, &mut outlet.leaving) {
                        gone = Some((outlet.port, error));
                    }
                }
                // The line runs on without the device: what virtual switches are promised does not pile up.
                None => outlet.leaving.drain(..).for_each(|frame| self.pool.give(frame)),
            }
        }
        if let Some((number, error)) = gone {
            self.lose_port(now, number, &error);
        }
        any
    }

    /// What virtual switches have to be done in a round besides. Whether there was anything.
    pub(in crate::engine) fn keep_virtuals(&mut self, now: Instant, forwarded: bool) -> bool {
        if self.virtuals.is_none() {
            return false;
        }
        let left = self.drive(now);
        let waited = self.serve_waiting(now);
        let served = self.take_turns(now, forwarded || waited);
        self.end_expired(now);
        left || waited || served
    }

    /// When virtual switches need the engine next.
    pub(in crate::engine) fn virtuals_due(&self) -> Instant {
        let Some(virtuals) = &self.virtuals else { return Instant::FAR };
        let lines = virtuals.outlets.iter().map(|outlet| outlet.due());
        let cuts = virtuals.all().map(|cut| cut.due());
        lines.chain(cuts).fold(Instant::FAR, Instant::min)
    }

    /// Whether the controllers of virtual switches have left the engine nothing to do.
    pub(in crate::engine) fn are_virtuals_quiet(&self) -> bool {
        let quiet =
            |virtuals: &Virtuals| !virtuals.shares.has_waiting() && virtuals.all().all(|cut| cut.logical.is_quiet());
        self.virtuals.as_deref().is_none_or(quiet)
    }
}

/// Whether a virtual switch has anything to tell controllers.
fn has_news(cuts: &[Option<Box<Cut>>], place: u16) -> bool {
    let out = cuts.get(usize::from(place)).and_then(Option::as_ref).map(|cut| &cut.logical.out);
    out.is_some_and(|out: &Output| !out.messages.is_empty() || !out.limited.is_empty() || !out.port_admin.is_empty())
}

impl Virtuals {
    /// Sorts frames that came in on a port by where they go; gives the number of lists. Those of no virtual switch stay.
    fn sort(&mut self, port: PortNo, batch: &mut Vec<Frame>) -> usize {
        let Some(way) = self.lookup.at(port) else { return 0 };
        if let Way::One(target) = way {
            let target = *target;
            let list = list(&mut self.sorted, 0, target);
            list.append(batch);
            return 1;
        }
        let (mut count, mut kept) = (0, 0);
        for at in 0..batch.len() {
            let Some(target) = way.target(&batch[at], &mut self.room) else {
                batch.swap(kept, at);
                kept += 1;
                continue;
            };
            let known = self.sorted[..count.min(self.sorted.len())].iter().rposition(|(other, _)| *other == target);
            let place = known.unwrap_or(count);
            count = count.max(place + 1);
            list(&mut self.sorted, place, target).push(std::mem::take(&mut batch[at]));
        }
        batch.truncate(kept);
        count
    }

    /// A list of sorted frames as the virtual switch has it: where they go, the number of the port that they come in by, and they.
    #[inline]
    pub(super) fn arrive(&mut self, at: usize, pool: &mut FramePool) -> Option<(Target, PortNo, Vec<Frame>)> {
        let (target, frames) = self.sorted.get_mut(at)?;
        let (target, mut frames) = (*target, std::mem::take(frames));
        let cut = self.cuts.get_mut(usize::from(target.switch)).and_then(Option::as_deref_mut);
        let Some(inlet) = cut.and_then(|cut| cut.inlets.get_mut(usize::from(target.input))) else {
            frames.into_iter().for_each(|frame| pool.give(frame));
            return None;
        };
        inlet.count(&frames);
        if inlet.vlan.is_some() {
            edge::strip(&mut frames);
        }
        Some((target, inlet.number, frames))
    }

    /// Takes the physical switch's own frames for a port, if it is one of the fabric's: they wait for what the others leave.
    pub(in crate::engine) fn take_own(
        &mut self,
        now: Instant,
        port: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
    ) -> bool {
        let Some(outlet) = self.outlets.iter_mut().find(|outlet| outlet.port == port) else { return false };
        frames.drain(..).for_each(|frame| outlet.take_own(now, frame, pool));
        true
    }

    /// Puts what a virtual switch's datapath sends into the fabric.
    fn enqueue(&mut self, now: Instant, switch: u16, input: Option<usize>, pool: &mut FramePool) {
        let Some(cut) = self.cuts.get_mut(usize::from(switch)).and_then(Option::as_deref_mut) else { return };
        let mut out = std::mem::take(&mut cut.logical.out.frames);
        self.enqueue_from(now, switch, input, &mut out, pool);
        if let Some(cut) = self.cut(switch) {
            cut.logical.out.frames = out;
        }
    }

    /// The same, with the frames apart. `input`: the place of the port that they came in by; none for those of controllers.
    fn enqueue_from(
        &mut self,
        now: Instant,
        switch: u16,
        input: Option<usize>,
        lists: &mut [(PortNo, Vec<Frame>)],
        pool: &mut FramePool,
    ) {
        let Virtuals { fabric, cuts, outlets, dropped, .. } = self;
        let Some(cut) = cuts.get_mut(usize::from(switch)).and_then(Option::as_deref_mut) else { return };
        for (port, frames) in lists.iter_mut().filter(|(_, frames)| !frames.is_empty()) {
            let Some(output) = cut.inlets.iter().position(|inlet| inlet.number == *port) else {
                frames.drain(..).for_each(|frame| pool.give(frame));
                continue;
            };
            let to = cut.inlets[output].index;
            let own = input.unwrap_or_else(|| cut.input_for(output));
            if let Some(vlan) = cut.inlets[output].vlan {
                // A super-frame's packets each have a tag.
                if frames.iter().any(|frame| !frame.offload.is_none()) {
                    finish(frames, pool);
                }
                cut.inlets[output].untagged += edge::tag(frames, vlan, pool);
            }
            if frames.iter().all(|frame| frame.offload.is_none() && frame.queue == DEFAULT_QUEUE) {
                let at = Crosspoint { switch: cut.index, input: cut.inlets[own].index, output: to };
                let packets = frames.drain(..).map(|frame| Packet::new(frame.bytes_len(), frame));
                fabric.enqueue_all(now, at, packets, dropped);
            } else {
                finish(frames, pool);
                for mut frame in frames.drain(..) {
                    let from = match frame.queue {
                        DEFAULT_QUEUE => own,
                        queue => cut.input_of_queue(queue).unwrap_or(own),
                    };
                    frame.queue = DEFAULT_QUEUE;
                    let at = Crosspoint { switch: cut.index, input: cut.inlets[from].index, output: to };
                    fabric.enqueue(now, at, Packet::new(frame.bytes_len(), frame), dropped);
                }
            }
            if let Some(outlet) = outlets.get_mut(usize::from(to.0)) {
                outlet.expect(now);
            }
        }
        if !self.dropped.is_empty() {
            self.give_back(pool);
        }
    }
}

/// Does what senders left to be done: a super-frame would take its whole turn at a line for one packet, and not fit most buffers.
#[cold]
fn finish(frames: &mut Vec<Frame>, pool: &mut FramePool) {
    let mut finished = Vec::with_capacity(frames.len());
    for frame in frames.drain(..) {
        offload::finish(frame, pool, &mut finished);
    }
    *frames = finished;
}

/// The list at a place, for this target.
fn list(lists: &mut Vec<(Target, Vec<Frame>)>, place: usize, target: Target) -> &mut Vec<Frame> {
    if lists.len() <= place {
        lists.push((target, Vec::new()));
    }
    lists[place].0 = target;
    &mut lists[place].1
}

impl Cut {
    /// The port whose crosspoints a controller's packets for an output go through: the output's own, or the first that leads there.
    fn input_for(&self, output: usize) -> usize {
        let leads = |from: usize| {
            let (from, to) = (self.inlets[from].number.0, self.inlets[output].number.0);
            self.spec.paths.as_ref().is_none_or(|paths| paths.contains(&[from, to]))
        };
        if leads(output) { output } else { (0..self.inlets.len()).find(|from| leads(*from)).unwrap_or(output) }
    }

    /// The port that a queue is named after.
    fn input_of_queue(&mut self, queue: u32) -> Option<usize> {
        self.inlets.iter().position(|inlet| inlet.number.0 == queue)
    }

    /// When it needs the engine next.
    fn due(&self) -> Instant {
        self.logical.due().min(self.expires.unwrap_or(Instant::FAR))
    }
}

/// The port of the fabric at a place among its ports.
pub(super) fn port_index(place: usize) -> PortIndex {
    PortIndex(u16::try_from(place).unwrap_or(u16::MAX))
}
