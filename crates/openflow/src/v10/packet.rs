//! Reads and writes packet-in and packet-out (OpenFlow 1.0.0, 5.4.1 and 5.3.6).
use super::{action, port};
use crate::model::error::{BadAction, BadRequest};
use crate::model::packet_io::{PacketIn, PacketInReason, PacketOut};
use crate::model::{Match, PortNo, TableId};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};
use weir_packet::Field;

/// Cookie of a packet-in without cookie.
const NO_COOKIE: u64 = u64::MAX;

pub(crate) fn decode_in(reader: &mut WireReader<'_>) -> Decoded<PacketIn> {
    let (buffer_id, total_len, in_port) = (reader.read_buffer_id()?, reader.read_u16()?, port::decode_no(reader)?);
    let at = reader.at();
    let reason = match reader.read_u8()? {
        0 => PacketInReason::NoMatch,
        1 => PacketInReason::Action,
        other => {
            return Err(reader.error_at(
                at,
                BadRequest::BadType,
                format_args!("found reason {other}, expected 0 or 1"),
            ));
        }
    };
    reader.skip(1)?;
    let matching = match in_port {
        PortNo::ANY => Match::any(),
        port => Match::any().with(Field::InPort, port.0),
    };
    let (table, cookie) = (TableId(0), NO_COOKIE);
    Ok(PacketIn { buffer_id, total_len, reason, table, cookie, matching, data: reader.read_rest() })
}

/// Writes a packet-in, without the parts that 1.0 cannot carry: the table, the cookie, and all pipeline fields except
/// the port.
pub(crate) fn encode_in(packet: &PacketIn, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_buffer_id(packet.buffer_id);
    writer.write_u16(packet.total_len);
    port::encode_no(packet.in_port().unwrap_or(PortNo::ANY), writer)?;
    writer.write_u8(match packet.reason {
        PacketInReason::NoMatch => 0,
        // An invalid TTL results from an action; 1.0 has no action that decrements the TTL, and no reason for it.
        _ => 1,
    });
    writer.write_zeros(1);
    writer.write_bytes(&packet.data.0);
    Ok(())
}

pub(crate) fn decode_out(reader: &mut WireReader<'_>) -> Decoded<PacketOut> {
    let (buffer_id, in_port, length) = (reader.read_buffer_id()?, port::decode_no(reader)?, reader.read_u16()?);
    let actions = reader.take_part(length.into(), "actions", BadAction::BadLen)?.read_list(action::decode)?;
    Ok(PacketOut { buffer_id, in_port, matching: Match::any(), actions, data: reader.read_rest() })
}

pub(crate) fn encode_out(packet: &PacketOut, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_buffer_id(packet.buffer_id);
    port::encode_no(packet.in_port, writer)?;
    let place = writer.at();
    writer.write_u16(0);
    action::encode_list(&packet.actions, writer)?;
    writer.set_length(place, place + 2)?;
    writer.write_bytes(&packet.data.0);
    Ok(())
}
