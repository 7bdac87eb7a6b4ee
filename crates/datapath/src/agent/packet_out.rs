//! Packets from controllers (OpenFlow 1.3.5, 7.3.7).
use super::Request;
use crate::effects::{NO_COOKIE, Origin};
use crate::live::Live;
use crate::packet::Packet;
use crate::validate::{self, Known, Place};
use crate::{Datapath, execute, pipeline};
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::{BufferId, ErrorType, PacketInReason, PacketOut, PortNo};
use weir_packet::key::WORDS;
use weir_packet::{FlowMask, Frame, parse};

/// A packet from a controller that sends itself there again says so; no entry or table sent it.
const ORIGIN: Origin = Origin { table: 0, cookie: NO_COOKIE, reason: PacketInReason::Action };

impl Datapath {
    pub(super) fn packet_out(&mut self, message: &PacketOut, request: &mut Request<'_>) -> Result<(), ErrorType> {
        let in_port = message.in_port;
        // `ANY` is what 1.0's `NONE` becomes. A port that does not exist (any more) does no harm.
        let is_port =
            in_port.is_ordinary() || [PortNo::CONTROLLER, PortNo::LOCAL, PortNo::ANY].contains(&message.in_port);
        if !is_port {
            return Err(BadRequest::BadPort.into());
        }
        let mut frame = self.packet_of(message, request)?;
        let Ok(mut parsed) = parse(frame.bytes(), in_port) else {
            request.pool.give(frame);
            return Err(BadRequest::BadPacket.into());
        };
        let known = Known::new(parsed.key, FlowMask { words: [u64::MAX; WORDS] });
        let checked = validate::actions(&message.actions, &known, Place::PacketOut, request.version)
            .and_then(|()| self.groups.check_actions(&message.actions));
        if let Err(error) = checked {
            request.pool.give(frame);
            return Err(error);
        }
        if message.actions.is_empty() {
            // Tells the switch to drop what it kept: asked for, so not counted as lost.
            request.pool.give(frame);
            return Ok(());
        }
        let mut live = Live::new(request.now, &self.tables, &self.groups, &mut self.plane, request.pool, request.out);
        let mut packet = Packet::new(&mut frame, &mut parsed, in_port);
        let _ = execute::run(&message.actions, &mut packet, ORIGIN, &mut live);
        packet.finish(&mut live);
        Ok(())
    }

    /// The packet that a packet-out carries or names.
    fn packet_of(&mut self, message: &PacketOut, request: &mut Request<'_>) -> Result<Frame, ErrorType> {
        if let Some(buffer) = message.buffer_id {
            return self.plane.buffers.take(self.main_of(request.channel), buffer).map(|(_, frame)| frame);
        }
        let mut frame = request.pool.take(message.data.0.len());
        frame.assign(&message.data.0);
        Ok(frame)
    }

    /// Runs a packet that was kept through the pipeline, as a flow-mod that names it asks for (OpenFlow 1.3.5, 7.3.4.2).
    pub(super) fn release(&mut self, buffer: BufferId, request: &mut Request<'_>) -> Result<(), ErrorType> {
        let (in_port, mut frame) = self.plane.buffers.take(self.main_of(request.channel), buffer)?;
        let Ok(mut parsed) = parse(frame.bytes(), in_port) else {
            request.pool.give(frame);
            return Ok(());
        };
        let mut live = Live::new(request.now, &self.tables, &self.groups, &mut self.plane, request.pool, request.out);
        let mut packet = Packet::new(&mut frame, &mut parsed, in_port);
        pipeline::run(live.tables, &mut packet, &mut self.set, &mut live);
        packet.finish(&mut live);
        Ok(())
    }
}
