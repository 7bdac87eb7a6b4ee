//! Reads and writes flow monitors and their updates (OpenFlow 1.4.1, 7.3.5.17).
use crate::model::error::{BadInstruction, BadRequest, FlowMonitorFailed};
use crate::model::flow::FlowRemovedReason;
use crate::model::monitor::{FlowEvent, FlowMonitor, FlowUpdate, FlowUpdateFull, MonitorCommand, MonitorFlags};
use crate::model::{GroupId, PortNo, TableId};
use crate::v13::{flow::proto, instruction, oxm};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, flow};

/// Events in the order of their numbers.
const EVENTS: [FlowEvent; 4] = [FlowEvent::Initial, FlowEvent::Added, FlowEvent::Removed, FlowEvent::Modified];
const ABBREV: u16 = 4;
const PAUSED: u16 = 5;
const RESUMED: u16 = 6;

pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<FlowMonitor> {
    Ok(FlowMonitor {
        id: reader.read_u32()?,
        out_port: PortNo(reader.read_u32()?),
        out_group: GroupId(reader.read_u32()?),
        flags: MonitorFlags(reader.read_u16()?),
        table: TableId(reader.read_u8()?),
        command: MonitorCommand::from_number(reader.read_u8()?),
        matching: oxm::decode_match(reader)?,
    })
}

pub(crate) fn encode_request(monitor: &FlowMonitor, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(monitor.id);
    writer.write_u32(monitor.out_port.0);
    writer.write_u32(monitor.out_group.0);
    writer.write_u16(monitor.flags.0);
    writer.write_u8(monitor.table.0);
    writer.write_u8(monitor.command.number());
    oxm::encode_match(&monitor.matching, writer)
}

pub(crate) fn decode_update(reader: &mut WireReader<'_>) -> Decoded<FlowUpdate> {
    let mut part = reader.take_element("flow update", 0, 8, BadRequest::BadLen)?;
    part.skip(2)?;
    let at = part.at();
    let update = match part.read_u16()? {
        ABBREV => FlowUpdate::Abbrev { xid: part.read_u32()? },
        end @ (PAUSED | RESUMED) => {
            part.skip(4)?;
            if end == PAUSED { FlowUpdate::Paused } else { FlowUpdate::Resumed }
        }
        event => {
            let event = EVENTS.get(usize::from(event)).copied().ok_or_else(|| {
                part.error_at(at, FlowMonitorFailed::Unknown, format_args!("found event {event}, expected 0 to 6"))
            })?;
            FlowUpdate::Full(decode_full(event, &mut part)?)
        }
    };
    part.finish()?;
    Ok(update)
}

fn decode_full(event: FlowEvent, part: &mut WireReader<'_>) -> Decoded<FlowUpdateFull> {
    let table = TableId(part.read_u8()?);
    // In other events the reason has no meaning.
    let reason = match event {
        FlowEvent::Removed => Some(flow::decode_reason(part, FlowRemovedReason::Eviction)?),
        _ => {
            part.skip(1)?;
            None
        }
    };
    let (idle_timeout, hard_timeout, priority) = (part.read_u16()?, part.read_u16()?, part.read_u16()?);
    part.skip(4)?;
    let (cookie, matching) = (part.read_u64()?, oxm::decode_match(part)?);
    let left = part.left();
    let instructions = part.take_part(left, "instructions", BadInstruction::BadLen)?.read_list(instruction::decode)?;
    Ok(FlowUpdateFull { event, reason, table, idle_timeout, hard_timeout, priority, cookie, matching, instructions })
}

pub(crate) fn encode_update(update: &FlowUpdate, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    match update {
        FlowUpdate::Full(full) => encode_full(full, writer)?,
        FlowUpdate::Abbrev { xid } => {
            writer.write_u16(ABBREV);
            writer.write_u32(*xid);
        }
        FlowUpdate::Paused | FlowUpdate::Resumed => {
            writer.write_u16(if *update == FlowUpdate::Paused { PAUSED } else { RESUMED });
            writer.write_zeros(4);
        }
    }
    writer.set_length(start, start)
}

fn encode_full(full: &FlowUpdateFull, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u16(full.event as u16);
    writer.write_u8(full.table.0);
    writer.write_u8(full.reason.map_or(0, |reason| reason as u8));
    writer.write_u16(full.idle_timeout);
    writer.write_u16(full.hard_timeout);
    writer.write_u16(full.priority);
    writer.write_zeros(4);
    writer.write_u64(full.cookie);
    oxm::encode_match(&full.matching, writer)?;
    instruction::encode_list(&full.instructions, proto(&full.matching), writer)
}
