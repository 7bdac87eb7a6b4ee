//! Reads and writes the controller status (OpenFlow 1.5.1, 7.3.5.18 and 7.4.7).
use crate::model::error::BadRequest;
use crate::model::status::{ControllerReason, ControllerStatus};
use crate::v13::role;
use crate::v14::status;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, property};

const URI: u16 = 0;

const REASONS: [(u8, ControllerReason); 7] = [
    (0, ControllerReason::Request),
    (1, ControllerReason::ChannelStatus),
    (2, ControllerReason::Role),
    (3, ControllerReason::ControllerAdded),
    (4, ControllerReason::ControllerRemoved),
    (5, ControllerReason::ShortId),
    (6, ControllerReason::Experimenter),
];

pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<ControllerStatus> {
    let mut part = reader.take_element("controller status", 0, 16, BadRequest::BadLen)?;
    part.skip(2)?;
    let (short_id, role) = (part.read_u16()?, role::decode_role(&mut part)?);
    let reason = status::reason(&mut part, &REASONS)?;
    let is_up = status::reason(&mut part, &[(0, true), (1, false)])?;
    part.skip(6)?;
    let (mut uri, mut properties) = (String::new(), Vec::new());
    property::each(&mut part, |kind, part| {
        match kind {
            URI => uri = String::from_utf8_lossy(&part.read_rest().0).replace(char::REPLACEMENT_CHARACTER, "?"),
            kind => properties.push(property::raw(kind, part)),
        }
        Ok(())
    })?;
    Ok(ControllerStatus { short_id, role, reason, is_up, uri, properties })
}

pub(crate) fn encode(status: &ControllerStatus, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u16(status.short_id);
    role::encode_role(status.role, writer);
    writer.write_u8(status.reason as u8);
    writer.write_u8(u8::from(!status.is_up));
    writer.write_zeros(6);
    if !status.uri.is_empty() {
        property::write(URI, writer, |writer| {
            writer.write_bytes(status.uri.as_bytes());
            Ok(())
        })?;
    }
    property::encode_list(&status.properties, writer)?;
    writer.set_length(start, start)
}
