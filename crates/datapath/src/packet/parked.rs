//! A packet set aside in its present state, for later processing outside the worker that parsed it.
use super::Packet;
use crate::effects::Effects;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, Parsed};

/// A packet set aside: see the [module](self).
#[derive(Debug)]
pub(crate) struct Parked {
    frame: Frame,
    parsed: Box<Parsed>,
    in_port: PortNo,
    stale: bool,
    is_leaving: bool,
}

impl Packet<'_> {
    /// Copies the packet in its present state; `frame` is a copy of its frame.
    pub(crate) fn park(&self, frame: Frame) -> Parked {
        let parsed = Box::new(*self.parsed);
        Parked { frame, parsed, in_port: self.in_port, stale: self.stale, is_leaving: self.is_leaving }
    }
}

impl Parked {
    /// Calls `act` with the packet, and ends its processing.
    pub(crate) fn go_on<E: Effects>(mut self, fx: &mut E, act: impl FnOnce(&mut Packet, &mut E)) {
        let (stale, is_leaving) = (self.stale, self.is_leaving);
        let mut packet = Packet { stale, is_leaving, ..Packet::new(&mut self.frame, &mut self.parsed, self.in_port) };
        act(&mut packet, fx);
        packet.finish(fx);
    }
}
