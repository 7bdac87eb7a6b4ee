//! A worker's stage: takes frames from its ring, runs them through the tables, and hands on what is to be transmitted.
use super::Carried;
use super::outlet::{Outlet, read};
use super::share::HandOn;
use rtrb::Consumer;
use weir_datapath::{MAX_PORTS, Output};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Frames given to the tables at once: what they look up together.
const LOOK_UP_MAX: usize = 64;

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Frames read at once.
    read: usize,
    ring: Consumer<Carried>,
    outlet: Outlet,
    received: Vec<Carried>,
    /// Of one port.
    frames: Vec<Frame>,
    /// What the tables gave. Messages are for the worker's owner to take.
    pub(crate) out: Output,
}

impl Stage {
    /// A stage that reads at most `read` frames at once.
    pub(crate) fn new(read: usize, ring: Consumer<Carried>, outlet: Outlet) -> Stage {
        let (received, frames) = (Vec::with_capacity(read), Vec::with_capacity(read));
        Stage { read, ring, outlet, received, frames, out: Output::default() }
    }

    /// Takes a burst from the ring; how many frames.
    #[inline]
    pub(crate) fn read(&mut self) -> usize {
        let received = &mut self.received;
        read(&mut self.ring, self.read, |carried| received.push(carried))
    }

    /// Gives what was read to `forward`, frames of one port at a time, in their order.
    #[inline]
    pub(crate) fn process(
        &mut self,
        pool: &mut FramePool,
        mut forward: impl FnMut(PortNo, &mut Vec<Frame>, &mut FramePool, &mut Output),
    ) {
        let mut from = None;
        for Carried { port, frame } in self.received.drain(..) {
            if let Some(last) = from
                && (last != port || self.frames.len() == LOOK_UP_MAX)
            {
                forward(last, &mut self.frames, pool, &mut self.out);
                self.frames.clear();
            }
            from = Some(port);
            self.frames.push(frame);
        }
        if let Some(last) = from {
            forward(last, &mut self.frames, pool, &mut self.out);
            self.frames.clear();
        }
    }

    /// Ends a turn: hands on what is to be transmitted, in bursts.
    #[inline]
    pub(super) fn write(&mut self, now: Instant, pool: &mut FramePool, hand_on: HandOn) {
        for (port, frames) in &mut self.out.frames {
            for frame in frames.drain(..) {
                self.outlet.push(now, Carried { port: *port, frame }, pool);
            }
        }
        if self.out.frames.len() > MAX_PORTS {
            // Ports that come and go must not leave lists behind for ever.
            self.out.frames.clear();
        }
        match hand_on {
            HandOn::WhenDue => self.outlet.turn(now, pool),
            HandOn::AtOnce => self.outlet.hand_on(pool),
        }
    }

    /// Whether no frame waits for a burst to fill.
    #[inline]
    pub(crate) fn has_handed_on(&self) -> bool {
        self.outlet.is_empty()
    }

    /// Whether no frame waits, neither in the ring nor for a burst to fill.
    pub(crate) fn is_idle(&self) -> bool {
        self.ring.is_empty() && self.outlet.is_empty()
    }
}
