//! Reads and writes flow monitors and their updates (OpenFlow 1.4.1, 7.3.5.17).
use crate::model::monitor::{FlowEvent, FlowMonitor, FlowUpdate, FlowUpdateFull, MonitorCommand, MonitorFlags};
use crate::model::{GroupId, PortNo, TableId};
use crate::v13::flow::{decode_instructions, proto};
use crate::v13::{instruction, oxm};
use crate::wire::monitor::{self, EventNumbers};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

/// Events, `OFPFME_*`.
const EVENTS: EventNumbers = EventNumbers {
    full: &[FlowEvent::Initial, FlowEvent::Added, FlowEvent::Removed, FlowEvent::Modified],
    abbrev: 4,
    has_pauses: true,
};

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
    EVENTS.decode_update(reader, decode_full)
}

fn decode_full(event: FlowEvent, part: &mut WireReader<'_>) -> Decoded<FlowUpdateFull> {
    let table = TableId(part.read_u8()?);
    let reason = monitor::decode_reason(event, part)?;
    let (idle_timeout, hard_timeout, priority) = (part.read_u16()?, part.read_u16()?, part.read_u16()?);
    part.skip(4)?;
    let (cookie, matching) = (part.read_u64()?, oxm::decode_match(part)?);
    let instructions = decode_instructions(part)?;
    Ok(FlowUpdateFull { event, reason, table, idle_timeout, hard_timeout, priority, cookie, matching, instructions })
}

pub(crate) fn encode_update(update: &FlowUpdate, writer: &mut WireWriter<'_>) -> Encoded {
    EVENTS.encode_update(update, writer, encode_full)
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
