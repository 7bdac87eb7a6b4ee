//! Reads and writes packet-out (OpenFlow 1.5.1, 7.3.6), which carries the packet's pipeline fields as a match.
use crate::model::error::BadAction;
use crate::model::packet_io::PacketOut;
use crate::model::{Match, MatchField, PortNo};
use crate::v13::{action, oxm};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};
use weir_packet::Field;

/// Reads a packet-out. The input port is `ANY` if the match does not contain it.
pub(crate) fn decode_out(reader: &mut WireReader<'_>) -> Decoded<PacketOut> {
    let (buffer_id, length) = (reader.read_buffer_id()?, reader.read_u16()?);
    reader.skip(2)?;
    let mut matching = oxm::decode_match(reader)?;
    let in_port = take_in_port(&mut matching).unwrap_or(PortNo::ANY);
    let actions = reader.take_part(length.into(), "actions", BadAction::BadLen)?.read_list(action::decode)?;
    Ok(PacketOut { buffer_id, in_port, matching, actions, data: reader.read_rest() })
}

/// Removes the first unmasked input port from the match, and returns it.
fn take_in_port(matching: &mut Match) -> Option<PortNo> {
    let (at, port) = matching.fields.iter().enumerate().find_map(|(at, field)| match field {
        MatchField::Known { field: Field::InPort, value, mask: None } => {
            Some((at, PortNo(u32::try_from(*value).ok()?)))
        }
        _ => None,
    })?;
    matching.fields.remove(at);
    Some(port)
}

pub(crate) fn encode_out(packet: &PacketOut, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_buffer_id(packet.buffer_id);
    let place = writer.at();
    writer.write_zeros(4);
    let in_port = MatchField::Known { field: Field::InPort, value: packet.in_port.0.into(), mask: None };
    let fields = std::iter::once(in_port).chain(packet.matching.fields.iter().cloned()).collect();
    oxm::encode_match(&Match { fields }, writer)?;
    let actions = writer.at();
    action::encode_list(&packet.actions, None, writer)?;
    writer.set_length(place, actions)?;
    writer.write_bytes(&packet.data.0);
    Ok(())
}
