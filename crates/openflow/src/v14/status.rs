//! Decodes and encodes role-status, table-status and request-forward messages (OpenFlow 1.4.1, 7.4.4 to 7.4.6).
use super::bundle::{decode_inner, encode_inner};
use super::table;
use crate::model::error::{BadRequest, BundleFailed};
use crate::model::status::{RoleReason, RoleStatus, TableReason, TableStatus};
use crate::model::{Body, Message, Version};
use crate::v13::group;
use crate::v13::role;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, property};

/// Decodes the reason field of a message: reads a number, and returns the value that `known` lists for it.
pub(crate) fn reason<T: Copy>(reader: &mut WireReader<'_>, known: &[(u8, T)]) -> Decoded<T> {
    let at = reader.at();
    let number = reader.read_u8()?;
    let found = known.iter().find(|(known, _)| *known == number);
    found.map(|(_, reason)| *reason).ok_or_else(|| {
        let numbers: Vec<u8> = known.iter().map(|(number, _)| *number).collect();
        reader.error_at(at, BadRequest::BadType, format_args!("found reason {number}, expected one of {numbers:?}"))
    })
}

const ROLE_REASONS: [(u8, RoleReason); 3] =
    [(0, RoleReason::MasterRequest), (1, RoleReason::Config), (2, RoleReason::Experimenter)];

pub(crate) fn decode_role(reader: &mut WireReader<'_>) -> Decoded<RoleStatus> {
    let (role, reason) = (role::decode_role(reader)?, reason(reader, &ROLE_REASONS)?);
    reader.skip(3)?;
    let generation_id = reader.read_u64()?;
    Ok(RoleStatus { role, reason, generation_id, properties: property::decode_list(reader)? })
}

pub(crate) fn encode_role(status: &RoleStatus, writer: &mut WireWriter<'_>) -> Encoded {
    role::encode_role(status.role, writer);
    writer.write_u8(status.reason as u8);
    writer.write_zeros(3);
    writer.write_u64(status.generation_id);
    property::encode_list(&status.properties, writer)
}

pub(crate) fn decode_table(reader: &mut WireReader<'_>) -> Decoded<TableStatus> {
    let reason = reason(reader, &[(3, TableReason::VacancyDown), (4, TableReason::VacancyUp)])?;
    reader.skip(7)?;
    Ok(TableStatus { reason, table: table::decode_desc(reader)? })
}

pub(crate) fn encode_table(status: &TableStatus, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u8(status.reason as u8);
    writer.write_zeros(7);
    table::encode_desc(&status.table, writer)
}

/// Returns true for requests that a request-forward message can contain: group-mods and meter-mods (OpenFlow 1.4.1,
/// 7.4.6).
fn can_be_forwarded(body: &Body) -> bool {
    matches!(body, Body::GroupMod(_) | Body::MeterMod(_))
}

pub(crate) fn decode_forwarded(reader: &mut WireReader<'_>) -> Decoded<Box<Message>> {
    decode_inner(reader, BundleFailed::MsgBadLen, can_be_forwarded).map(Box::new)
}

/// Encodes the body of a request-forward message: `request`, which another controller sent. For a receiver that uses
/// 1.4, the parts of a group-mod that only 1.5 has are left out.
pub(crate) fn encode_forwarded(request: &Message, writer: &mut WireWriter<'_>) -> Encoded {
    match &request.body {
        Body::GroupMod(change) if writer.version() < Version::V15 => {
            let body = Body::GroupMod(group::without_newer(change));
            encode_inner(&Message { xid: request.xid, body }, can_be_forwarded, writer)
        }
        _ => encode_inner(request, can_be_forwarded, writer),
    }
}
