//! A packet set aside in its present state, for later processing outside the worker that parsed it.
use super::PipelinePacket;
use crate::effects::Effects;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, ParsedHeaders};

/// A packet set aside: see the [module](self).
#[derive(Debug)]
pub(crate) struct ParkedPacket {
    frame: Frame,
    parsed: Box<ParsedHeaders>,
    in_port: PortNo,
    stale: bool,
    is_leaving: bool,
}

impl PipelinePacket<'_> {
    /// Copies the packet in its present state; `frame` is a copy of its frame.
    pub(crate) fn park(&self, frame: Frame) -> ParkedPacket {
        let parsed = Box::new(*self.parsed);
        ParkedPacket { frame, parsed, in_port: self.in_port, stale: self.stale, is_leaving: self.is_leaving }
    }
}

impl ParkedPacket {
    /// Calls `act` with the packet, and ends its processing.
    pub(crate) fn resume<E: Effects>(mut self, fx: &mut E, act: impl FnOnce(&mut PipelinePacket, &mut E)) {
        let (stale, is_leaving) = (self.stale, self.is_leaving);
        let mut packet = PipelinePacket {
            stale,
            is_leaving,
            ..PipelinePacket::new(&mut self.frame, &mut self.parsed, self.in_port)
        };
        act(&mut packet, fx);
        packet.finish(fx);
    }
}
