//! Reads and writes flow-mods, flow-removed, and the statistics of flow entries (OpenFlow 1.0.0, 5.3.3, 5.4.2,
//! 5.3.5).
//!
//! A flow entry has an action list, which becomes one apply-actions instruction. Flow-mods carry no table number:
//! deletes apply to all tables, other commands to table 0.
use super::{action, matching, port};
use crate::model::error::{BadAction, BadRequest, FlowModFailed};
use crate::model::flow::{FlowCommand, FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason};
use crate::model::multipart::{FlowRequest, FlowStats};
use crate::model::stats::OxsExtraStats;
use crate::model::{GroupId, Instruction, NxAction, PortNo, TableId};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, flow};

/// `OFPFF_EMERG`, whose bit has another meaning in 1.3.
const EMERG: u16 = 1 << 2;
/// `OFPFF_SEND_FLOW_REM` and `OFPFF_CHECK_OVERLAP`, whose bits are the same in 1.3.
const SHARED_FLAGS: u16 = 3;

pub(crate) fn decode_flags(reader: &mut WireReader<'_>) -> Decoded<FlowFlags> {
    let at = reader.at();
    let flags = reader.read_u16()?;
    if flags & !(SHARED_FLAGS | EMERG) != 0 {
        let reason = format!("found flags {flags:#x}, expected at most 0x7");
        return Err(reader.error_at(at, FlowModFailed::BadFlags, reason));
    }
    let emergency = if flags & EMERG != 0 { FlowFlags::EMERG } else { FlowFlags::default() };
    Ok(FlowFlags(flags & SHARED_FLAGS).with(emergency))
}

pub(crate) fn encode_flags(flags: FlowFlags, writer: &mut WireWriter<'_>) -> Encoded {
    let foreign = flags.0 & !(SHARED_FLAGS | FlowFlags::EMERG.0);
    if foreign != 0 {
        return Err(writer.cannot(format!("the flow flags {foreign:#x}")));
    }
    writer.write_u16(flags.0 & SHARED_FLAGS | if flags.contains(FlowFlags::EMERG) { EMERG } else { 0 });
    Ok(())
}

pub(crate) fn decode_actions(reader: &mut WireReader<'_>) -> Decoded<Vec<Instruction>> {
    let left = reader.left();
    let actions = reader.take_part(left, "actions", BadAction::BadLen)?.read_list(action::decode)?;
    Ok(if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] })
}

/// Writes instructions as an action list. Write-metadata and goto-table become Nicira's actions with nearly the same
/// effect, as Open vSwitch shows them in 1.0. Fails for other instructions.
pub(crate) fn encode_actions(instructions: &[Instruction], writer: &mut WireWriter<'_>) -> Encoded {
    let rank = |instruction: &Instruction| match instruction {
        Instruction::ApplyActions(_) => Some(0),
        Instruction::WriteMetadata { .. } => Some(1),
        Instruction::GotoTable(_) => Some(2),
        _ => None,
    };
    let mut ordered: Vec<_> = instructions.iter().collect();
    ordered.sort_by_key(|instruction| rank(instruction));
    ordered.into_iter().try_for_each(|instruction| match instruction {
        Instruction::ApplyActions(actions) => action::encode_list(actions, writer),
        Instruction::WriteMetadata { metadata, mask } => {
            let write = NxAction::WriteMetadata { metadata: *metadata, mask: *mask };
            action::encode_list(&[write.into_action()], writer)
        }
        Instruction::GotoTable(table) => {
            let resubmit = NxAction::Resubmit { port: PortNo::IN_PORT, table: Some(*table) };
            action::encode_list(&[resubmit.into_action()], writer)
        }
        _ => Err(writer.cannot("instructions other than apply-actions, write-metadata and goto-table")),
    })
}

pub(crate) fn is_delete(command: FlowCommand) -> bool {
    matches!(command, FlowCommand::Delete | FlowCommand::DeleteStrict)
}

/// Reads the command and the table. The table is in the command's high byte if the controller enabled that
/// (`NXT_FLOW_MOD_TABLE_ID`).
pub(crate) fn command(reader: &mut WireReader<'_>) -> Decoded<(FlowCommand, TableId)> {
    if reader.has_tables {
        let table = TableId(reader.read_u8()?);
        return Ok((flow::command(reader, |reader| reader.read_u8().map(u16::from))?, table));
    }
    let command = flow::command(reader, WireReader::read_u16)?;
    Ok((command, default_table(command)))
}

/// Returns the table that a flow-mod without table number applies to.
const fn default_table(command: FlowCommand) -> TableId {
    if matches!(command, FlowCommand::Delete | FlowCommand::DeleteStrict) { TableId::ALL } else { TableId(0) }
}

/// Writes the command, with the table in the high byte if it is not the default.
pub(crate) fn encode_command(flow: &FlowMod, writer: &mut WireWriter<'_>) {
    writer.write_u8(if flow.table == default_table(flow.command) { 0 } else { flow.table.0 });
    writer.write_u8(flow.command as u8);
}

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<FlowMod> {
    let (matching, cookie) = (matching::decode(reader)?, reader.read_u64()?);
    let (command, table) = self::command(reader)?;
    Ok(FlowMod {
        cookie,
        cookie_mask: 0,
        table,
        command,
        idle_timeout: reader.read_u16()?,
        hard_timeout: reader.read_u16()?,
        priority: reader.read_u16()?,
        buffer_id: reader.read_buffer_id()?,
        out_port: port::decode_no(reader)?,
        out_group: GroupId::ANY,
        flags: decode_flags(reader)?,
        importance: 0,
        matching,
        instructions: decode_actions(reader)?,
    })
}

pub(crate) fn encode_mod(flow: &FlowMod, writer: &mut WireWriter<'_>) -> Encoded {
    check_mod(flow).map_err(|what| writer.cannot(what))?;
    matching::encode(&flow.matching, writer)?;
    writer.write_u64(flow.cookie);
    writer.write_u16(flow.command as u16);
    writer.write_u16(flow.idle_timeout);
    writer.write_u16(flow.hard_timeout);
    writer.write_u16(flow.priority);
    writer.write_buffer_id(flow.buffer_id);
    port::encode_no(flow.out_port, writer)?;
    encode_flags(flow.flags, writer)?;
    encode_actions(&flow.instructions, writer)
}

/// Fails with the part of a flow-mod that 1.0 cannot carry and that changes its effect. Table 0 is accepted in deletes,
/// too, although 1.0's deletes apply to all tables: for a switch with one table, both mean the same.
fn check_mod(flow: &FlowMod) -> Result<(), String> {
    let delete = is_delete(flow.command);
    if flow.table != TableId(0) && !(delete && flow.table == TableId::ALL) {
        return Err(format!("a flow-mod of table {}", flow.table));
    }
    if flow.command != FlowCommand::Add && flow.cookie_mask != 0 {
        return Err("a flow-mod of the entries with a cookie".to_owned());
    }
    check_either(flow)
}

/// Fails with the part of a flow-mod that neither 1.0's nor Nicira's flow-mod can carry.
pub(crate) fn check_either(flow: &FlowMod) -> Result<(), String> {
    if is_delete(flow.command) && flow.out_group != GroupId::ANY {
        return Err("a delete of the entries that output to a group".to_owned());
    }
    if flow.importance != 0 {
        return Err(format!("a flow-mod of importance {}", flow.importance));
    }
    Ok(())
}

pub(crate) fn decode_removed(reader: &mut WireReader<'_>) -> Decoded<FlowRemoved> {
    let (matching, cookie, priority) = (matching::decode(reader)?, reader.read_u64()?, reader.read_u16()?);
    let reason = flow::decode_reason(reader, FlowRemovedReason::Delete)?;
    reader.skip(1)?;
    let (duration_sec, duration_nsec, idle_timeout) = (reader.read_u32()?, reader.read_u32()?, reader.read_u16()?);
    reader.skip(2)?;
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table: TableId(0),
        duration_sec,
        duration_nsec,
        idle_timeout,
        hard_timeout: 0,
        packet_count: reader.read_u64()?,
        byte_count: reader.read_u64()?,
        more: OxsExtraStats::default(),
        matching,
    })
}

pub(crate) fn encode_removed(removed: &FlowRemoved, writer: &mut WireWriter<'_>) -> Encoded {
    matching::encode(&removed.matching, writer)?;
    writer.write_u64(removed.cookie);
    writer.write_u16(removed.priority);
    writer.write_u8(flow::reason(removed.reason, FlowRemovedReason::Delete));
    writer.write_zeros(1);
    writer.write_u32(removed.duration_sec);
    writer.write_u32(removed.duration_nsec);
    writer.write_u16(removed.idle_timeout);
    writer.write_zeros(2);
    writer.write_u64(removed.packet_count);
    writer.write_u64(removed.byte_count);
    Ok(())
}

pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<FlowRequest> {
    let (matching, table) = (matching::decode(reader)?, TableId(reader.read_u8()?));
    reader.skip(1)?;
    Ok(FlowRequest { table, out_port: port::decode_no(reader)?, matching, ..FlowRequest::all() })
}

pub(crate) fn encode_request(request: &FlowRequest, writer: &mut WireWriter<'_>) -> Encoded {
    if request.cookie_mask != 0 || request.out_group != GroupId::ANY {
        return Err(writer.cannot("a request for the entries with a cookie or a group"));
    }
    matching::encode(&request.matching, writer)?;
    writer.write_u8(request.table.0);
    writer.write_zeros(1);
    port::encode_no(request.out_port, writer)
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<FlowStats> {
    let mut entry = reader.take_element("flow statistics", 0, 88, BadRequest::BadLen)?;
    entry.skip(2)?;
    let table = TableId(entry.read_u8()?);
    entry.skip(1)?;
    let matching = matching::decode(&mut entry)?;
    let (duration_sec, duration_nsec) = (entry.read_u32()?, entry.read_u32()?);
    let (priority, idle_timeout, hard_timeout) = (entry.read_u16()?, entry.read_u16()?, entry.read_u16()?);
    entry.skip(6)?;
    Ok(FlowStats {
        table,
        duration_sec,
        duration_nsec,
        priority,
        idle_timeout,
        hard_timeout,
        flags: FlowFlags::default(),
        importance: 0,
        cookie: entry.read_u64()?,
        packet_count: entry.read_u64()?,
        byte_count: entry.read_u64()?,
        more: OxsExtraStats::default(),
        matching,
        instructions: decode_actions(&mut entry)?,
    })
}

pub(crate) fn encode_stats(stats: &FlowStats, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u8(stats.table.0);
    writer.write_zeros(1);
    matching::encode(&stats.matching, writer)?;
    writer.write_u32(stats.duration_sec);
    writer.write_u32(stats.duration_nsec);
    writer.write_u16(stats.priority);
    writer.write_u16(stats.idle_timeout);
    writer.write_u16(stats.hard_timeout);
    writer.write_zeros(6);
    writer.write_u64(stats.cookie);
    writer.write_u64(stats.packet_count);
    writer.write_u64(stats.byte_count);
    encode_actions(&stats.instructions, writer)?;
    writer.set_length(start, start)
}
