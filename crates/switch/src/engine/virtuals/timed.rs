//! Runs virtual switches of a switch with a profile. Each virtual switch takes the times of a device of its own: its
//! messages and packets wait for each other, and never for those of another virtual switch. Its packets enter the
//! fabric when the device would send them.
use super::EngineVirtualSwitches;
use crate::engine::io::EngineIo;
use crate::engine::logical::LogicalSwitch;
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_units::Instant;

impl EngineVirtualSwitches {
    /// Looks up a frame that arrived at `came`, if it belongs to a virtual switch. Returns the frame if it does not.
    pub(in crate::engine) fn pass_timed(
        &mut self,
        (now, came): (Instant, Instant),
        port: PortNo,
        frame: Frame,
        io: &mut EngineIo,
    ) -> Option<Frame> {
        self.turn.push(frame);
        let count = self.classifier.sort(port, &mut self.turn);
        if count == 0 {
            return self.turn.pop();
        }
        let (target, frames) = self.classifier.lists.first_mut()?;
        let input = usize::from(target.input);
        let switch = self.switches.get_mut(usize::from(target.switch)).and_then(Option::as_deref_mut);
        let Some((number, switch)) = switch.and_then(|switch| Some((switch.ports.arrive(input, frames)?, switch)))
        else {
            frames.drain(..).for_each(|frame| io.pool.give(frame));
            return None;
        };
        let LogicalSwitch { timed: Some(timed), datapath, out, .. } = &mut switch.logical else {
            switch.forward(now, (number, input), frames, &mut self.fabric, &mut io.pool);
            return None;
        };
        for frame in frames.drain(..) {
            timed.packet(now, came, (number, frame), datapath.get(), &mut io.pool, out);
        }
        None
    }

    /// Time at which a virtual switch's device releases its next item; [`Instant::FAR`] if none.
    pub(in crate::engine) fn release_due(&self) -> Instant {
        self.all().map(|switch| switch.logical.release_due()).fold(Instant::FAR, Instant::min)
    }

    /// Releases everything due by `until`. Returns false if that took so long that other work must have its turn first.
    pub(in crate::engine) fn release(&mut self, until: Instant, io: &mut EngineIo, worked: &mut bool) -> bool {
        let mut is_all = true;
        for at in 0..self.order.len() {
            let place = self.order[at];
            let is_due = self.switch(place).is_some_and(|switch| switch.logical.release_due() <= until);
            if is_due && let Some(mut served) = self.served_at(place, io) {
                is_all &= served.release(until, worked);
            }
        }
        is_all
    }

    /// Tells the devices when their messages were written, and hands out what lookups have caused.
    pub(in crate::engine) fn keep_timed(&mut self, now: Instant, io: &mut EngineIo) {
        for at in 0..self.order.len() {
            let place = self.order[at];
            let Some(switch) = self.switch(place) else { continue };
            if let LogicalSwitch { timed: Some(timed), channels, .. } = &mut switch.logical {
                channels.written().for_each(|(given, written)| timed.said(written, written.since(given)));
            }
            if switch.has_news() {
                self.deliver(now, place, io);
            }
        }
    }
}
