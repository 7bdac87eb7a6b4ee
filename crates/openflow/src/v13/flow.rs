//! Reads and writes flow-mods, flow-removed, and the multipart messages about flow entries (OpenFlow 1.3.5, 7.3.4.1,
//! 7.4.2, 7.3.5.2).
use super::{instruction, oxm};
use crate::model::error::{BadInstruction, BadRequest};
use crate::model::flow::{FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason};
use crate::model::multipart::{FlowRequest, FlowStats};
use crate::model::stats::OxsExtraStats;
use crate::model::{GroupId, Match, PortNo, TableId, Version};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, flow};
use weir_packet::Field;

/// Returns the `ip_proto` that a match is on. It determines the protocol of the ports that 1.0's actions set.
pub(crate) fn proto(matching: &Match) -> Option<u8> {
    matching.get(Field::IpProto).and_then(|(value, _)| u8::try_from(value).ok())
}

pub(crate) fn decode_instructions(reader: &mut WireReader<'_>) -> Decoded<Vec<crate::model::Instruction>> {
    let left = reader.left();
    reader.take_part(left, "instructions", BadInstruction::BadLen)?.read_list(instruction::decode)
}

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<FlowMod> {
    let (cookie, cookie_mask, table) = (reader.read_u64()?, reader.read_u64()?, TableId(reader.read_u8()?));
    let command = flow::command(reader, |reader| reader.read_u8().map(u16::from))?;
    let (idle_timeout, hard_timeout, priority) = (reader.read_u16()?, reader.read_u16()?, reader.read_u16()?);
    let buffer_id = reader.read_buffer_id()?;
    let (out_port, out_group) = (PortNo(reader.read_u32()?), GroupId(reader.read_u32()?));
    let flags = FlowFlags(reader.read_u16()?);
    let importance = importance(reader)?;
    Ok(FlowMod {
        cookie,
        cookie_mask,
        table,
        command,
        idle_timeout,
        hard_timeout,
        priority,
        buffer_id,
        out_port,
        out_group,
        flags,
        importance,
        matching: oxm::decode_match(reader)?,
        instructions: decode_instructions(reader)?,
    })
}

/// Reads the importance, which 1.4 has in place of two bytes of padding; returns 0 before 1.4.
fn importance(reader: &mut WireReader<'_>) -> Decoded<u16> {
    let number = reader.read_u16()?;
    Ok(if reader.version() >= Version::V14 { number } else { 0 })
}

fn encode_importance(importance: u16, writer: &mut WireWriter<'_>) {
    writer.write_u16(if writer.version() >= Version::V14 { importance } else { 0 });
}

pub(crate) fn encode_mod(flow: &FlowMod, writer: &mut WireWriter<'_>) -> Encoded {
    if flow.flags.contains(FlowFlags::EMERG) {
        return Err(writer.cannot("an emergency flow entry, which only 1.0 has"));
    }
    if flow.importance != 0 && writer.version() < Version::V14 {
        return Err(writer.cannot(format!("a flow-mod of importance {}", flow.importance)));
    }
    writer.write_u64(flow.cookie);
    writer.write_u64(flow.cookie_mask);
    writer.write_u8(flow.table.0);
    writer.write_u8(flow.command as u8);
    writer.write_u16(flow.idle_timeout);
    writer.write_u16(flow.hard_timeout);
    writer.write_u16(flow.priority);
    writer.write_buffer_id(flow.buffer_id);
    writer.write_u32(flow.out_port.0);
    writer.write_u32(flow.out_group.0);
    writer.write_u16(flow.flags.0);
    encode_importance(flow.importance, writer);
    oxm::encode_match(&flow.matching, writer)?;
    instruction::encode_list(&flow.instructions, proto(&flow.matching), writer)
}

/// Returns the last reason that the version defines.
pub(crate) fn last_reason(version: Version) -> FlowRemovedReason {
    if version >= Version::V14 { FlowRemovedReason::Eviction } else { FlowRemovedReason::GroupDelete }
}

pub(crate) fn decode_removed(reader: &mut WireReader<'_>) -> Decoded<FlowRemoved> {
    Ok(FlowRemoved {
        cookie: reader.read_u64()?,
        priority: reader.read_u16()?,
        reason: flow::decode_reason(reader, last_reason(reader.version()))?,
        table: TableId(reader.read_u8()?),
        duration_sec: reader.read_u32()?,
        duration_nsec: reader.read_u32()?,
        idle_timeout: reader.read_u16()?,
        hard_timeout: reader.read_u16()?,
        packet_count: reader.read_u64()?,
        byte_count: reader.read_u64()?,
        more: OxsExtraStats::default(),
        matching: oxm::decode_match(reader)?,
    })
}

pub(crate) fn encode_removed(removed: &FlowRemoved, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u64(removed.cookie);
    writer.write_u16(removed.priority);
    writer.write_u8(flow::reason(removed.reason, last_reason(writer.version())));
    writer.write_u8(removed.table.0);
    writer.write_u32(removed.duration_sec);
    writer.write_u32(removed.duration_nsec);
    writer.write_u16(removed.idle_timeout);
    writer.write_u16(removed.hard_timeout);
    writer.write_u64(removed.packet_count);
    writer.write_u64(removed.byte_count);
    oxm::encode_match(&removed.matching, writer)
}

pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<FlowRequest> {
    let table = TableId(reader.read_u8()?);
    reader.skip(3)?;
    let (out_port, out_group) = (PortNo(reader.read_u32()?), GroupId(reader.read_u32()?));
    reader.skip(4)?;
    let (cookie, cookie_mask) = (reader.read_u64()?, reader.read_u64()?);
    Ok(FlowRequest { table, out_port, out_group, cookie, cookie_mask, matching: oxm::decode_match(reader)? })
}

pub(crate) fn encode_request(request: &FlowRequest, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u8(request.table.0);
    writer.write_zeros(3);
    writer.write_u32(request.out_port.0);
    writer.write_u32(request.out_group.0);
    writer.write_zeros(4);
    writer.write_u64(request.cookie);
    writer.write_u64(request.cookie_mask);
    oxm::encode_match(&request.matching, writer)
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<FlowStats> {
    let mut entry = reader.take_element("flow statistics", 0, 56, BadRequest::BadLen)?;
    entry.skip(2)?;
    let table = TableId(entry.read_u8()?);
    entry.skip(1)?;
    let (duration_sec, duration_nsec) = (entry.read_u32()?, entry.read_u32()?);
    let (priority, idle_timeout, hard_timeout) = (entry.read_u16()?, entry.read_u16()?, entry.read_u16()?);
    let flags = FlowFlags(entry.read_u16()?);
    let importance = importance(&mut entry)?;
    entry.skip(2)?;
    Ok(FlowStats {
        table,
        duration_sec,
        duration_nsec,
        priority,
        idle_timeout,
        hard_timeout,
        flags,
        importance,
        cookie: entry.read_u64()?,
        packet_count: entry.read_u64()?,
        byte_count: entry.read_u64()?,
        more: OxsExtraStats::default(),
        matching: oxm::decode_match(&mut entry)?,
        instructions: decode_instructions(&mut entry)?,
    })
}

pub(crate) fn encode_stats(stats: &FlowStats, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u8(stats.table.0);
    writer.write_zeros(1);
    writer.write_u32(stats.duration_sec);
    writer.write_u32(stats.duration_nsec);
    writer.write_u16(stats.priority);
    writer.write_u16(stats.idle_timeout);
    writer.write_u16(stats.hard_timeout);
    writer.write_u16(stats.flags.0);
    encode_importance(stats.importance, writer);
    writer.write_zeros(2);
    writer.write_u64(stats.cookie);
    writer.write_u64(stats.packet_count);
    writer.write_u64(stats.byte_count);
    oxm::encode_match(&stats.matching, writer)?;
    instruction::encode_list(&stats.instructions, proto(&stats.matching), writer)?;
    writer.set_length(start, start)
}
