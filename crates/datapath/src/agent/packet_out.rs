//! Handles packet-outs (OpenFlow 1.3.5, 7.3.7).
use super::AgentRequest;
use crate::action_set::ActionSet;
use crate::buffers::BufferedPacket;
use crate::effects::{NO_COOKIE, PuntOrigin};
use crate::engine_effects::{EngineEffects, PipelineState};
use crate::group::GroupTable;
use crate::packet::PipelinePacket;
use crate::validate::{self, ActionListKind, KnownFields};
use crate::{Datapath, execute, pipeline};
use weir_openflow::Version;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::{Action, BufferId, ErrorType, MatchField, PacketInReason, PacketOut, PortNo};
use weir_packet::key::WORDS;
use weir_packet::{Field, FlowMask, Frame, FramePool, PacketType, ParsedHeaders, parse_as};

/// Origin of a packet-in caused by a packet-out, which has neither table nor entry.
const ORIGIN: PuntOrigin = PuntOrigin { table: 0, cookie: NO_COOKIE, reason: PacketInReason::Action };

fn is_output_to_tables(action: &Action) -> bool {
    matches!(action, Action::Output { port: PortNo::TABLE, .. })
}

impl Datapath {
    /// Executes a packet-out.
    ///
    /// # Errors
    /// The error to reply with.
    pub(super) fn packet_out(&mut self, message: &PacketOut, request: &mut AgentRequest<'_>) -> Result<(), ErrorType> {
        let take = |buffer| self.plane.take_buffered(request.channel, buffer);
        let kept = message.buffer_id.map(take).transpose()?;
        if let Err(error) = check_packet_out(&self.plane, &self.groups, message, kept.as_ref(), request.version) {
            kept.into_iter().for_each(|kept| request.pool.give(kept.frame));
            return Err(error);
        }
        send_packet_out(message, kept, &mut self.effects(request).0);
        Ok(())
    }

    /// Runs a buffered packet through the pipeline, as a flow-mod that names it requests (OpenFlow 1.3.5, 7.3.4.1).
    ///
    /// # Errors
    /// There is no packet with that buffer id.
    pub(super) fn release(&mut self, buffer: BufferId, request: &mut AgentRequest<'_>) -> Result<(), ErrorType> {
        let kept = self.plane.take_buffered(request.channel, buffer)?;
        let (mut live, set) = self.effects(request);
        release_kept(kept, set, &mut live);
        Ok(())
    }

    /// Returns the access to the live switch for packets of a message, and memory for their action sets.
    pub(super) fn effects<'a>(
        &'a mut self,
        request: &'a mut AgentRequest<'_>,
    ) -> (EngineEffects<'a>, &'a mut ActionSet) {
        let AgentRequest { now, pool, out, .. } = request;
        (EngineEffects::new(*now, &self.tables, &self.groups, &mut self.plane, pool, out), &mut self.set)
    }
}

/// Checks that a packet-out can be executed; `kept` is the buffered packet that it names.
///
/// # Errors
/// The error to reply with.
pub(super) fn check_packet_out(
    plane: &PipelineState,
    groups: &GroupTable,
    message: &PacketOut,
    kept: Option<&BufferedPacket>,
    version: Version,
) -> Result<(), ErrorType> {
    let in_port = message.in_port;
    // 1.0's `NONE` is decoded as `ANY`. A port that does not exist (any more) does no harm. Controllers of 1.0
    // may leave out the port of packets that do not go through the tables (OpenFlow 1.0.0, 5.3.6).
    let is_left_out =
        version == Version::V10 && in_port == PortNo(0) && !message.actions.iter().any(is_output_to_tables);
    let is_port = is_left_out
        || in_port.is_ordinary()
        || [PortNo::CONTROLLER, PortNo::LOCAL, PortNo::ANY].contains(&message.in_port);
    if !is_port {
        return Err(BadRequest::BadPort.into());
    }
    // All other fields are in the packet itself.
    let is_beside = |entry: &MatchField| matches!(entry, MatchField::Known { field, .. } if field.is_pipeline());
    if !message.matching.fields.iter().all(is_beside) {
        return Err(BadRequest::PipelineFieldsOnly.into());
    }
    let (bytes, kind) =
        kept.map_or((&message.data.0[..], packet_type(message)), |kept| (kept.frame.bytes(), kept.frame.packet_type()));
    let parsed = parse_as(bytes, kind).ok_or(BadRequest::BadPacket)?;
    let known = KnownFields::new(parsed.key, FlowMask { words: [u64::MAX; WORDS] });
    validate::actions(&message.actions, &known, ActionListKind::PacketOut, version)?;
    plane.meters.check_actions(&message.actions)?;
    groups.check_actions(&message.actions)
}

/// Executes a packet-out that was checked; `kept` is the buffered packet that it names.
pub(super) fn send_packet_out(message: &PacketOut, kept: Option<BufferedPacket>, live: &mut EngineEffects<'_>) {
    let mut frame = kept.map_or_else(|| frame_of(message, live.pool), |kept| kept.frame);
    let parsed = ParsedHeaders::of(&frame, message.in_port);
    // Without actions the switch drops the buffered packet. The controller asked for that, so it is not counted
    // as a drop.
    let Some(mut parsed) = parsed.ok().filter(|_| !message.actions.is_empty()) else {
        return live.pool.give(frame);
    };
    let mut packet = PipelinePacket::new(&mut frame, &mut parsed, message.in_port);
    pipeline_fields(message).for_each(|(field, value)| packet.set(field, value, live));
    let _ = execute::run(&message.actions, &mut packet, ORIGIN, live);
    packet.finish(live);
}

/// Runs a packet taken from the buffer through the pipeline.
pub(super) fn release_kept(kept: BufferedPacket, set: &mut ActionSet, live: &mut EngineEffects<'_>) {
    let (in_port, mut frame) = (kept.in_port, kept.frame);
    let Ok(mut parsed) = ParsedHeaders::of(&frame, in_port) else {
        return live.pool.give(frame);
    };
    let mut packet = PipelinePacket::new(&mut frame, &mut parsed, in_port);
    pipeline::run(live.tables.all(), &mut packet, set, live);
    packet.finish(live);
}

/// Returns the frame that a packet-out carries.
fn frame_of(message: &PacketOut, pool: &mut FramePool) -> Frame {
    let mut frame = pool.take(message.data.0.len());
    frame.assign(&message.data.0);
    frame.set_packet_type(packet_type(message));
    frame
}

/// Returns the packet type of the frame that a packet-out carries.
fn packet_type(message: &PacketOut) -> PacketType {
    let stated = message.matching.get(Field::PacketType).and_then(|(bits, _)| u32::try_from(bits).ok());
    stated.map_or(PacketType::ETHERNET, PacketType::from_bits)
}

/// Returns the pipeline fields that a packet-out sets, without the input port and the packet type.
fn pipeline_fields(message: &PacketOut) -> impl Iterator<Item = (Field, u128)> {
    message
        .matching
        .fields
        .iter()
        .filter_map(|entry| match entry {
            MatchField::Known { field, value, mask: None } if field.is_pipeline() => Some((*field, *value)),
            _ => None,
        })
        .filter(|(field, _)| !matches!(field, Field::InPort | Field::InPhyPort | Field::PacketType))
}
