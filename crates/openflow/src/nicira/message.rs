//! Reads and writes Nicira's messages (Open vSwitch's `NXT_*`). Messages that weir does not know stay uninterpreted.
use super::{nxm, packet_in};
use crate::model::nicira::{FlowFormat, NICIRA, NxMessage, PacketInFormat};
use crate::model::role::{AsyncConfig, Role, RoleMessage};
use crate::model::stats::OxsExtraStats;
use crate::model::{Body, FlowMod, FlowRemoved, FlowRemovedReason, GroupId, TableId, Version};
use crate::v10::{flow as v10_flow, port};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, flow, opaque};

const ROLE_REQUEST: u32 = 10;
const ROLE_REPLY: u32 = 11;
const SET_FLOW_FORMAT: u32 = 12;
const FLOW_MOD: u32 = 13;
const FLOW_REMOVED: u32 = 14;
const FLOW_MOD_TABLE_ID: u32 = 15;
const SET_PACKET_IN_FORMAT: u32 = 16;
const PACKET_IN: u32 = 17;
const SET_ASYNC: u32 = 19;
const SET_CONTROLLER_ID: u32 = 20;
const FLOW_MONITOR_CANCEL: u32 = 21;
const FLOW_MONITOR_PAUSED: u32 = 22;
const FLOW_MONITOR_RESUMED: u32 = 23;
const PACKET_IN2: u32 = 30;

/// Reads an experimenter message (1.0: vendor) after the OpenFlow header.
pub(crate) fn decode(reader: &mut WireReader<'_>, version: Version) -> Decoded<Body> {
    let mut head = reader.clone();
    if head.left() >= 8 && head.read_u32()? == NICIRA {
        let subtype = head.read_u32()?;
        head.rename("Nicira message");
        if let Some(message) = decode_known(subtype, &mut head, version)? {
            *reader = head;
            return Ok(Body::Nx(Box::new(message)));
        }
    }
    Ok(Body::Experimenter(opaque::decode(reader, version)?))
}

fn decode_known(subtype: u32, reader: &mut WireReader<'_>, version: Version) -> Decoded<Option<NxMessage>> {
    if is_only_in_v10(subtype) && version != Version::V10 {
        return Ok(None);
    }
    Ok(Some(match subtype {
        ROLE_REQUEST => NxMessage::RoleRequest(decode_role(reader)?),
        ROLE_REPLY => NxMessage::RoleReply(decode_role(reader)?),
        SET_FLOW_FORMAT => NxMessage::SetFlowFormat(FlowFormat::from_number(reader.read_u32()?)),
        FLOW_MOD => NxMessage::FlowMod(decode_flow_mod(reader)?),
        FLOW_REMOVED => NxMessage::FlowRemoved(decode_removed(reader)?),
        FLOW_MOD_TABLE_ID => {
            let set = reader.read_u8()? != 0;
            reader.skip(7)?;
            NxMessage::FlowModTableId(set)
        }
        SET_PACKET_IN_FORMAT => NxMessage::SetPacketInFormat(PacketInFormat::from_number(reader.read_u32()?)),
        PACKET_IN => NxMessage::PacketIn(packet_in::decode(reader)?),
        PACKET_IN2 => NxMessage::PacketIn2(packet_in::decode2(reader)?),
        SET_ASYNC => NxMessage::SetAsync(decode_async(reader)?),
        SET_CONTROLLER_ID => {
            reader.skip(6)?;
            NxMessage::SetControllerId(reader.read_u16()?)
        }
        FLOW_MONITOR_CANCEL => NxMessage::FlowMonitorCancel(reader.read_u32()?),
        FLOW_MONITOR_PAUSED => NxMessage::FlowMonitorPaused,
        FLOW_MONITOR_RESUMED => NxMessage::FlowMonitorResumed,
        _ => return Ok(None),
    }))
}

/// Returns true for messages that exist in 1.0 only, because later versions have standard messages or others'
/// extensions instead.
const fn is_only_in_v10(subtype: u32) -> bool {
    matches!(subtype, ROLE_REQUEST..=FLOW_MOD_TABLE_ID | SET_ASYNC | FLOW_MONITOR_CANCEL..=FLOW_MONITOR_RESUMED)
}

/// Reads a role. There is no election number in 1.0.
fn decode_role(reader: &mut WireReader<'_>) -> Decoded<RoleMessage> {
    let role = match reader.read_u32()? {
        0 => Role::Equal,
        1 => Role::Master,
        2 => Role::Slave,
        other => Role::Unknown(other),
    };
    Ok(RoleMessage { role, short_id: 0, generation_id: 0 })
}

fn decode_async(reader: &mut WireReader<'_>) -> Decoded<AsyncConfig> {
    let mut both = || Ok([Some(reader.read_u32()?), Some(reader.read_u32()?)]);
    Ok(AsyncConfig { packet_in: both()?, port_status: both()?, flow_removed: both()?, ..AsyncConfig::default() })
}

fn decode_flow_mod(reader: &mut WireReader<'_>) -> Decoded<FlowMod> {
    let cookie = reader.read_u64()?;
    let (command, table) = v10_flow::command(reader)?;
    let (idle_timeout, hard_timeout, priority) = (reader.read_u16()?, reader.read_u16()?, reader.read_u16()?);
    let (buffer_id, out_port) = (reader.read_buffer_id()?, port::decode_no(reader)?);
    let (flags, length) = (v10_flow::decode_flags(reader)?, reader.read_u16()?);
    reader.skip(6)?;
    // The message carries an add's cookie; the match carries the cookie and mask that select entries.
    let (matching, selected) = nxm::decode_match(reader, length)?;
    let (chosen, cookie_mask) = selected.unwrap_or((cookie, 0));
    Ok(FlowMod {
        cookie: if v10_flow::is_delete(command) { chosen } else { cookie },
        cookie_mask,
        table,
        command,
        idle_timeout,
        hard_timeout,
        priority,
        buffer_id,
        out_port,
        out_group: GroupId::ANY,
        flags,
        importance: 0,
        matching,
        instructions: v10_flow::decode_actions(reader)?,
    })
}

fn decode_removed(reader: &mut WireReader<'_>) -> Decoded<FlowRemoved> {
    let (cookie, priority) = (reader.read_u64()?, reader.read_u16()?);
    let reason = flow::decode_reason(reader, FlowRemovedReason::Delete)?;
    // The field holds the table number plus one; 0 means unknown.
    let table = TableId(reader.read_u8()?.saturating_sub(1));
    let (duration_sec, duration_nsec, idle_timeout) = (reader.read_u32()?, reader.read_u32()?, reader.read_u16()?);
    let length = reader.read_u16()?;
    let (packet_count, byte_count) = (reader.read_u64()?, reader.read_u64()?);
    let (matching, _) = nxm::decode_match(reader, length)?;
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table,
        duration_sec,
        duration_nsec,
        idle_timeout,
        hard_timeout: 0,
        packet_count,
        byte_count,
        more: OxsExtraStats::default(),
        matching,
    })
}

/// Writes a message after the OpenFlow header.
pub(crate) fn encode(message: &NxMessage, version: Version, writer: &mut WireWriter<'_>) -> Encoded {
    let subtype = subtype(message);
    if is_only_in_v10(subtype) && version != Version::V10 {
        return Err(writer.cannot("a Nicira message of 1.0, for which it has messages of its own"));
    }
    writer.write_u32(NICIRA);
    writer.write_u32(subtype);
    match message {
        NxMessage::RoleRequest(role) | NxMessage::RoleReply(role) => writer.write_u32(match role.role {
            Role::NoChange => return Err(writer.cannot("a role request that changes nothing")),
            Role::Equal => 0,
            Role::Master => 1,
            Role::Slave => 2,
            Role::Unknown(number) => number,
        }),
        NxMessage::SetFlowFormat(format) => writer.write_u32(format.number()),
        NxMessage::FlowMod(flow) => encode_flow_mod(flow, writer)?,
        NxMessage::FlowRemoved(removed) => encode_removed(removed, writer)?,
        NxMessage::FlowModTableId(set) => {
            writer.write_u8((*set).into());
            writer.write_zeros(7);
        }
        NxMessage::SetPacketInFormat(format) => writer.write_u32(format.number()),
        NxMessage::PacketIn(packet) => packet_in::encode(packet, writer)?,
        NxMessage::PacketIn2(packet) => packet_in::encode2(packet, writer)?,
        NxMessage::SetAsync(config) => {
            let told = [config.packet_in, config.port_status, config.flow_removed];
            told.iter().flatten().for_each(|bits| writer.write_u32(bits.unwrap_or(0)));
        }
        NxMessage::SetControllerId(id) => {
            writer.write_zeros(6);
            writer.write_u16(*id);
        }
        NxMessage::FlowMonitorCancel(id) => writer.write_u32(*id),
        NxMessage::FlowMonitorPaused | NxMessage::FlowMonitorResumed => {}
    }
    Ok(())
}

const fn subtype(message: &NxMessage) -> u32 {
    match message {
        NxMessage::RoleRequest(_) => ROLE_REQUEST,
        NxMessage::RoleReply(_) => ROLE_REPLY,
        NxMessage::SetFlowFormat(_) => SET_FLOW_FORMAT,
        NxMessage::FlowMod(_) => FLOW_MOD,
        NxMessage::FlowRemoved(_) => FLOW_REMOVED,
        NxMessage::FlowModTableId(_) => FLOW_MOD_TABLE_ID,
        NxMessage::SetPacketInFormat(_) => SET_PACKET_IN_FORMAT,
        NxMessage::PacketIn(_) => PACKET_IN,
        NxMessage::PacketIn2(_) => PACKET_IN2,
        NxMessage::SetAsync(_) => SET_ASYNC,
        NxMessage::SetControllerId(_) => SET_CONTROLLER_ID,
        NxMessage::FlowMonitorCancel(_) => FLOW_MONITOR_CANCEL,
        NxMessage::FlowMonitorPaused => FLOW_MONITOR_PAUSED,
        NxMessage::FlowMonitorResumed => FLOW_MONITOR_RESUMED,
    }
}

fn encode_flow_mod(flow: &FlowMod, writer: &mut WireWriter<'_>) -> Encoded {
    v10_flow::check_either(flow).map_err(|what| writer.cannot(what))?;
    let selects = flow.cookie_mask != 0;
    writer.write_u64(if selects && v10_flow::is_delete(flow.command) { 0 } else { flow.cookie });
    v10_flow::encode_command(flow, writer);
    writer.write_u16(flow.idle_timeout);
    writer.write_u16(flow.hard_timeout);
    writer.write_u16(flow.priority);
    writer.write_buffer_id(flow.buffer_id);
    port::encode_no(flow.out_port, writer)?;
    v10_flow::encode_flags(flow.flags, writer)?;
    let place = writer.at();
    writer.write_zeros(8);
    nxm::encode_match(&flow.matching, selects.then_some((flow.cookie, flow.cookie_mask)), place, writer)?;
    v10_flow::encode_actions(&flow.instructions, writer)
}

fn encode_removed(removed: &FlowRemoved, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u64(removed.cookie);
    writer.write_u16(removed.priority);
    writer.write_u8(flow::reason(removed.reason, FlowRemovedReason::Delete));
    writer.write_u8(removed.table.0.saturating_add(1));
    writer.write_u32(removed.duration_sec);
    writer.write_u32(removed.duration_nsec);
    writer.write_u16(removed.idle_timeout);
    let place = writer.at();
    writer.write_zeros(2);
    writer.write_u64(removed.packet_count);
    writer.write_u64(removed.byte_count);
    nxm::encode_match(&removed.matching, None, place, writer)
}
