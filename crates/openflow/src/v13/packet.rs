//! Reads and writes packet-in and packet-out (OpenFlow 1.3.5, 7.4.1 and 7.3.7).
use super::{action, oxm};
use crate::model::error::{BadAction, BadRequest};
use crate::model::packet_io::{PacketIn, PacketInReason, PacketOut};
use crate::model::{Match, PortNo, TableId, Version};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

/// Returns the number of reasons that the version has.
fn n_reasons(version: Version) -> usize {
    if version >= Version::V14 { 6 } else { 3 }
}

pub(crate) fn decode_reason(reader: &mut WireReader<'_>) -> Decoded<PacketInReason> {
    let at = reader.at();
    let number = reader.read_u8()?;
    let known = &PacketInReason::ALL[..n_reasons(reader.version())];
    known.get(usize::from(number)).copied().ok_or_else(|| {
        let last = known.len() - 1;
        reader.error_at(at, BadRequest::BadType, format_args!("found reason {number}, expected 0 to {last}"))
    })
}

pub(crate) fn decode_in(reader: &mut WireReader<'_>) -> Decoded<PacketIn> {
    let (buffer_id, total_len) = (reader.read_buffer_id()?, reader.read_u16()?);
    let (reason, table, cookie) = (decode_reason(reader)?, TableId(reader.read_u8()?), reader.read_u64()?);
    let matching = oxm::decode_match(reader)?;
    reader.skip(2)?;
    Ok(PacketIn { buffer_id, total_len, reason, table, cookie, matching, data: reader.read_rest() })
}

pub(crate) fn encode_in(packet: &PacketIn, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_buffer_id(packet.buffer_id);
    writer.write_u16(packet.total_len);
    writer.write_u8(match packet.reason {
        // 1.4 distinguishes where an output action was; earlier versions have one reason for all.
        reason if reason as usize >= n_reasons(writer.version()) => PacketInReason::Action,
        reason => reason,
    } as u8);
    writer.write_u8(packet.table.0);
    writer.write_u64(packet.cookie);
    oxm::encode_match(&packet.matching, writer)?;
    writer.write_zeros(2);
    writer.write_bytes(&packet.data.0);
    Ok(())
}

pub(crate) fn decode_out(reader: &mut WireReader<'_>) -> Decoded<PacketOut> {
    let (buffer_id, in_port) = (reader.read_buffer_id()?, PortNo(reader.read_u32()?));
    let length = reader.read_u16()?;
    reader.skip(6)?;
    let actions = reader.take_part(length.into(), "actions", BadAction::BadLen)?.read_list(action::decode)?;
    Ok(PacketOut { buffer_id, in_port, matching: Match::any(), actions, data: reader.read_rest() })
}

pub(crate) fn encode_out(packet: &PacketOut, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_buffer_id(packet.buffer_id);
    writer.write_u32(packet.in_port.0);
    let place = writer.at();
    writer.write_u16(0);
    writer.write_zeros(6);
    let actions = writer.at();
    action::encode_list(&packet.actions, None, writer)?;
    writer.set_length(place, actions)?;
    writer.write_bytes(&packet.data.0);
    Ok(())
}
