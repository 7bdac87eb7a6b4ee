//! Reads and writes packet-ins with pipeline fields (`NXT_PACKET_IN`) and with properties (`NXT_PACKET_IN2`).
use super::nxm;
use crate::model::error::BadRequest;
use crate::model::nicira::PacketIn2;
use crate::model::packet_io::{PacketIn, PacketInReason};
use crate::model::{BufferId, Bytes, Match, TableId};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

const PACKET: u16 = 0;
const FULL_LEN: u16 = 1;
const BUFFER_ID: u16 = 2;
const TABLE_ID: u16 = 3;
const COOKIE: u16 = 4;
const REASON: u16 = 5;
const METADATA: u16 = 6;
const USERDATA: u16 = 7;

fn decode_reason(reader: &mut WireReader<'_>) -> Decoded<PacketInReason> {
    let (at, number) = (reader.at(), reader.read_u8()?);
    PacketInReason::from_number(number)
        .ok_or_else(|| reader.error_at(at, BadRequest::BadType, format_args!("found reason {number}, expected 0 to 5")))
}

pub(super) fn decode(reader: &mut WireReader<'_>) -> Decoded<PacketIn> {
    let (buffer_id, total_len) = (reader.read_buffer_id()?, reader.read_u16()?);
    let (reason, table, cookie) = (decode_reason(reader)?, TableId(reader.read_u8()?), reader.read_u64()?);
    let length = reader.read_u16()?;
    reader.skip(6)?;
    let (matching, _) = nxm::decode_match(reader, length)?;
    reader.skip(2)?;
    Ok(PacketIn { buffer_id, total_len, reason, table, cookie, matching, data: reader.read_rest() })
}

pub(super) fn encode(packet: &PacketIn, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_buffer_id(packet.buffer_id);
    writer.write_u16(packet.total_len);
    writer.write_u8(packet.reason as u8);
    writer.write_u8(packet.table.0);
    writer.write_u64(packet.cookie);
    let place = writer.at();
    writer.write_zeros(8);
    nxm::encode_match(&packet.matching, None, place, writer)?;
    writer.write_zeros(2);
    writer.write_bytes(&packet.data.0);
    Ok(())
}

/// Reads a packet-in with properties. Defaults for missing properties: no buffer, table 0, no cookie, reason
/// "action".
pub(super) fn decode2(reader: &mut WireReader<'_>) -> Decoded<PacketIn2> {
    let mut packet = PacketIn {
        buffer_id: None,
        total_len: 0,
        reason: PacketInReason::Action,
        table: TableId(0),
        cookie: u64::MAX,
        matching: Match::any(),
        data: Bytes::default(),
    };
    let (mut userdata, mut whole) = (Bytes::default(), None);
    while !reader.is_empty() {
        let mut property = reader.take_element("packet-in property", 2, 4, BadRequest::BadLen)?;
        let padding = property.left().next_multiple_of(8) - property.left();
        reader.skip(padding.min(reader.left()))?;
        let kind = property.read_u16()?;
        property.skip(2)?;
        match kind {
            PACKET => packet.data = property.read_rest(),
            FULL_LEN => whole = Some(property.read_u32()?),
            BUFFER_ID => packet.buffer_id = Some(BufferId(property.read_u32()?)),
            TABLE_ID => packet.table = TableId(property.read_u8()?),
            COOKIE => {
                property.skip(4)?;
                packet.cookie = property.read_u64()?;
            }
            REASON => packet.reason = decode_reason(&mut property)?,
            METADATA => {
                let length = u16::try_from(property.left()).unwrap_or(u16::MAX);
                // Padding belongs to the property.
                packet.matching = nxm::decode_fields(&mut property, length)?.0;
            }
            USERDATA => userdata = property.read_rest(),
            other => {
                let reason = format!("found type {other}, expected 0 to 7");
                return Err(property.error(BadRequest::BadType, reason));
            }
        }
    }
    let length = u16::try_from(packet.data.0.len()).unwrap_or(u16::MAX);
    packet.total_len = whole.map_or(length, |whole| u16::try_from(whole).unwrap_or(u16::MAX));
    Ok(PacketIn2 { packet, userdata })
}

pub(super) fn encode2(message: &PacketIn2, writer: &mut WireWriter<'_>) -> Encoded {
    let packet = &message.packet;
    property(PACKET, writer, |writer| writer.write_bytes(&packet.data.0))?;
    if usize::from(packet.total_len) != packet.data.0.len() {
        property(FULL_LEN, writer, |writer| writer.write_u32(packet.total_len.into()))?;
    }
    if let Some(buffer) = packet.buffer_id {
        property(BUFFER_ID, writer, |writer| writer.write_u32(buffer.0))?;
    }
    property(TABLE_ID, writer, |writer| writer.write_u8(packet.table.0))?;
    if packet.cookie != u64::MAX {
        property(COOKIE, writer, |writer| {
            writer.write_zeros(4);
            writer.write_u64(packet.cookie);
        })?;
    }
    property(REASON, writer, |writer| writer.write_u8(packet.reason as u8))?;
    let start = writer.at();
    writer.write_u16(METADATA);
    writer.write_u16(0);
    nxm::encode_fields(&packet.matching, writer)?;
    writer.set_length(start + 2, start)?;
    writer.pad_from(start);
    if !message.userdata.0.is_empty() {
        property(USERDATA, writer, |writer| writer.write_bytes(&message.userdata.0))?;
    }
    Ok(())
}

fn property(kind: u16, writer: &mut WireWriter<'_>, value: impl FnOnce(&mut WireWriter<'_>)) -> Encoded {
    let start = writer.at();
    writer.write_u16(kind);
    writer.write_u16(0);
    value(writer);
    writer.set_length(start + 2, start)?;
    writer.pad_from(start);
    Ok(())
}
