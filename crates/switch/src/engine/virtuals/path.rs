//! Moves frames through virtual switches and the fabric.
use super::{EngineVirtualSwitch, EngineVirtualSwitches};
use crate::engine::Engine;
use crate::engine::logical::LogicalSwitch;
use weir_datapath::perf::ThreadStage;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_port::PortError;
use weir_slicing::{FabricIngress, FabricIngressSource, edge};
use weir_units::Instant;

impl Engine {
    /// Passes the frames received on a port to the virtual switches that the first lookup selects. Frames for which it
    /// selects none go through the physical switch's own flow tables.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn pass_to_virtuals(&mut self, now: Instant, port: PortNo) {
        let packets = self.batch.len();
        let received = self.note_received(now);
        self.drive(now);
        let Some(virtuals) = &mut self.virtuals else { return };
        let count = virtuals.sorter.sort(port, &mut self.batch);
        match received {
            None => (0..count).for_each(|at| self.pass_to_virtual(now, at)),
            Some(received) => self.pass_measured(now, count, packets, received),
        }
        self.watch.lap(ThreadStage::Transmit, packets - self.batch.len());
        if !self.batch.is_empty() {
            self.pass_to_own(now, port);
        }
    }

    /// Runs the frames in list `at` of the sorter through the virtual switch for which they were sorted.
    pub(super) fn pass_to_virtual(&mut self, now: Instant, at: usize) {
        let Some(virtuals) = &mut self.virtuals else { return };
        let EngineVirtualSwitches { sorter, switches: cuts, fabric, outlets, dropped, .. } = &mut **virtuals;
        let Some((target, frames)) = sorter.lists.get_mut(at) else { return };
        let (place, input) = (usize::from(target.switch), usize::from(target.input));
        let cut = cuts.get_mut(place).and_then(Option::as_deref_mut);
        let Some((cut, number)) = cut.and_then(|cut| cut.arrive(input, frames).map(|number| (cut, number))) else {
            return frames.drain(..).for_each(|frame| self.pool.give(frame));
        };
        let mut crossing = FabricIngress { fabric, outlets, dropped };
        cut.forward(now, (number, input), frames, &mut crossing, &mut self.pool);
        if cut.has_news() {
            let place = target.switch;
            self.serve_at(place, |engine| engine.deliver(now));
        }
    }

    /// Takes frames from the output of the datapath that is being served. Frames of a virtual switch enter the fabric.
    /// Frames of the physical switch for ports of the fabric are queued until the virtual switches leave capacity.
    #[cold]
    pub(in crate::engine) fn divert(&mut self, now: Instant) {
        let Some(virtuals) = &mut self.virtuals else { return };
        match self.serving {
            // While a virtual switch is served, its logical switch is in the engine's place.
            Some(place) => {
                let mut out = std::mem::take(&mut self.logical.out.frames);
                virtuals.enqueue(now, place, &mut out, &mut self.pool);
                self.logical.out.frames = out;
            }
            None => {
                for (port, frames) in &mut self.logical.out.frames {
                    virtuals.take_own(now, *port, frames, &mut self.pool);
                }
            }
        }
    }

    /// Transmits the frames that the fabric schedules up to `now`. Returns true if there were any.
    pub(in crate::engine) fn drive(&mut self, now: Instant) -> bool {
        let Some(virtuals) = &mut self.virtuals else { return false };
        let mut any = false;
        let mut gone: Option<(PortNo, PortError)> = None;
        let EngineVirtualSwitches { fabric, outlets, .. } = &mut **virtuals;
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
                // Without its device the line keeps running, so that the virtual switches' frames do not pile up.
                None => outlet.leaving.drain(..).for_each(|frame| self.pool.give(frame)),
            }
        }
        if let Some((number, error)) = gone {
            self.lose_port(now, number, &error);
        }
        any
    }

    /// Does one round of work for the virtual switches: transmits the frames that are due, serves waiting packets,
    /// serves controllers, and removes virtual switches whose lifetime is over. `forwarded` is true if the engine has
    /// forwarded packets in this round. Returns true if there was any work.
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

    /// Returns the latest time at which the engine must work for virtual switches again.
    pub(in crate::engine) fn virtuals_due(&self) -> Instant {
        let Some(virtuals) = &self.virtuals else { return Instant::FAR };
        let lines = virtuals.outlets.iter().map(|outlet| outlet.due());
        let cuts = virtuals.all().map(|cut| cut.due());
        lines.chain(cuts).fold(Instant::FAR, Instant::min)
    }

    /// Returns true if neither packets nor controllers of virtual switches have work for the engine.
    pub(in crate::engine) fn are_virtuals_quiet(&self) -> bool {
        let quiet = |virtuals: &EngineVirtualSwitches| {
            !virtuals.shares.has_waiting() && virtuals.all().all(|cut| cut.logical.is_quiet())
        };
        self.virtuals.as_deref().is_none_or(quiet)
    }
}

impl EngineVirtualSwitches {
    /// Queues frames that the physical switch's own tables output to `port`, if the port belongs to the fabric. The
    /// frames are sent when virtual switches leave capacity. Returns false and leaves `frames` unchanged if the port
    /// does not belong to the fabric.
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

    /// Moves frames into the fabric that the datapath of a virtual switch sent without an input port, because its
    /// controllers requested it.
    fn enqueue(&mut self, now: Instant, switch: u16, lists: &mut [(PortNo, Vec<Frame>)], pool: &mut FramePool) {
        let EngineVirtualSwitches { fabric, switches: cuts, outlets, dropped, .. } = self;
        let Some(cut) = cuts.get_mut(usize::from(switch)).and_then(Option::as_deref_mut) else { return };
        let whose = FabricIngressSource { index: cut.index, spec: &cut.spec, inlets: &mut cut.inlets, input: None };
        FabricIngress { fabric, outlets, dropped }.enqueue(now, whose, lists, pool);
    }
}

impl EngineVirtualSwitch {
    /// Counts received frames on the port at index `input`, removes their VLAN tag if the port has one, and returns
    /// the port's number.
    #[inline]
    pub(super) fn arrive(&mut self, input: usize, frames: &mut [Frame]) -> Option<PortNo> {
        let inlet = self.inlets.get_mut(input)?;
        inlet.count(frames);
        if inlet.vlan.is_some() {
            edge::strip(frames);
        }
        Some(inlet.number)
    }

    /// Runs frames through the virtual switch's datapath, and moves its output into the fabric. `from` contains the
    /// number and the index of the input port.
    #[inline]
    pub(super) fn forward(
        &mut self,
        now: Instant,
        from: (PortNo, usize),
        frames: &mut Vec<Frame>,
        crossing: &mut FabricIngress<'_>,
        pool: &mut FramePool,
    ) {
        let LogicalSwitch { datapath, out, .. } = &mut *self.logical;
        datapath.get().process(now, from.0, frames, pool, out);
        let whose =
            FabricIngressSource { index: self.index, spec: &self.spec, inlets: &mut self.inlets, input: Some(from.1) };
        crossing.enqueue(now, whose, &mut out.frames, pool);
    }

    /// Returns true if the datapath's output contains messages, rate-limited packet-ins or port changes to deliver.
    pub(super) fn has_news(&self) -> bool {
        let out = &self.logical.out;
        !out.messages.is_empty() || !out.limited.is_empty() || !out.port_admin.is_empty()
    }

    /// Returns the latest time at which the engine must work for this virtual switch again.
    fn due(&self) -> Instant {
        self.logical.due().min(self.expires.unwrap_or(Instant::FAR))
    }
}
