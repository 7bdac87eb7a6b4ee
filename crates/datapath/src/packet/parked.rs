//! A packet that was put aside as it was at that moment, for somebody else to go on with.
use super::Packet;
use crate::effects::Effects;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, Parsed};

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Parked {
    frame: Frame,
    parsed: Box<Parsed>,
    in_port: PortNo,
    stale: bool,
    is_leaving: bool,
}

impl Packet<'_> {
    /// The packet as it is now; `frame` is a copy of its frame.
    pub(crate) fn park(&self, frame: Frame) -> Parked {
        let parsed = Box::new(*self.parsed);
        Parked { frame, parsed, in_port: self.in_port, stale: self.stale, is_leaving: self.is_leaving }
    }
}

impl Parked {
    /// Goes on with it, and ends its way.
    pub(crate) fn go_on<E: Effects>(mut self, fx: &mut E, act: impl FnOnce(&mut Packet, &mut E)) {
        let (stale, is_leaving) = (self.stale, self.is_leaving);
        let mut packet = Packet { stale, is_leaving, ..Packet::new(&mut self.frame, &mut self.parsed, self.in_port) };
        act(&mut packet, fx);
        packet.finish(fx);
    }
}
