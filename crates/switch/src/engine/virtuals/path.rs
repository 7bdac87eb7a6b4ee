//! Moves received frames through the first lookup, the datapaths of virtual switches, and into the fabric.
use super::{EngineFabric, EngineVirtualSwitch, EngineVirtualSwitches};
use crate::engine::io::EngineIo;
use crate::engine::logical::LogicalSwitch;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

impl EngineVirtualSwitches {
    /// Passes the batch of frames received on a port to the virtual switches that the first lookup selects. Frames for
    /// which it selects none stay in the batch: they are for the physical switch's own flow tables.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn forward(&mut self, now: Instant, port: PortNo, io: &mut EngineIo) {
        let packets = io.batch.len();
        let received = self.note_received(now, io);
        self.fabric.drive(now, io);
        let count = self.classifier.sort(port, &mut io.batch);
        match received {
            None => (0..count).for_each(|at| self.forward_list(now, at, io)),
            Some(received) => self.forward_measured(now, (count, packets), received, io),
        }
    }

    /// Runs the frames in list `at` of the classifier through the virtual switch for which they were sorted.
    pub(super) fn forward_list(&mut self, now: Instant, at: usize, io: &mut EngineIo) {
        let Some((target, frames)) = self.classifier.lists.get_mut(at) else { return };
        let (place, input) = (target.switch, usize::from(target.input));
        let switch = self.switches.get_mut(usize::from(place)).and_then(Option::as_deref_mut);
        let arrived = switch.and_then(|switch| Some((switch.ports.arrive(input, frames)?, switch)));
        let Some((number, switch)) = arrived else {
            return frames.drain(..).for_each(|frame| io.pool.give(frame));
        };
        switch.forward(now, (number, input), frames, &mut self.fabric, &mut io.pool);
        if switch.has_news() {
            self.deliver(now, place, io);
        }
    }

    /// Hands out the output of the virtual switch of fabric index `place`.
    pub(super) fn deliver(&mut self, now: Instant, place: u16, io: &mut EngineIo) {
        if let Some(mut served) = self.served_at(place, io) {
            served.deliver(now);
        }
    }
}

impl EngineVirtualSwitch {
    /// Runs frames through the virtual switch's datapath, and moves its output into the fabric. `from` contains the
    /// number and the index of the input port.
    #[inline]
    pub(super) fn forward(
        &mut self,
        now: Instant,
        (port, input): (PortNo, usize),
        frames: &mut Vec<Frame>,
        fabric: &mut EngineFabric,
        pool: &mut FramePool,
    ) {
        let LogicalSwitch { datapath, out, .. } = &mut self.logical;
        datapath.get().process(now, port, frames, pool, out);
        fabric.ingress().enqueue(now, self.ports.source(Some(input)), &mut out.frames, pool);
    }

    /// Returns true if the datapath's output contains messages, rate-limited packet-ins or port changes to deliver.
    pub(super) fn has_news(&self) -> bool {
        let out = &self.logical.out;
        !out.messages.is_empty() || !out.limited.is_empty() || !out.port_admin.is_empty()
    }
}
