//! Reads and writes controller roles and asynchronous configuration (OpenFlow 1.3.5, 7.3.9 and 7.3.10).
use crate::model::Version;
use crate::model::role::{AsyncConfig, Role, RoleMessage};
use crate::wire::{Decoded, WireReader, WireWriter};

pub(crate) fn decode_role(reader: &mut WireReader<'_>) -> Decoded<Role> {
    Ok(Role::from_number(reader.read_u32()?))
}

/// Reads a role message. In place of two bytes of padding, 1.5 has a number that the controller chooses.
pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<RoleMessage> {
    let (role, short_id) = (decode_role(reader)?, reader.read_u16()?);
    reader.skip(2)?;
    let short_id = if reader.version() >= Version::V15 { short_id } else { 0 };
    Ok(RoleMessage { role, short_id, generation_id: reader.read_u64()? })
}

pub(crate) fn encode_role(role: Role, writer: &mut WireWriter<'_>) {
    writer.write_u32(role.number());
}

pub(crate) fn encode(message: &RoleMessage, writer: &mut WireWriter<'_>) {
    encode_role(message.role, writer);
    writer.write_u16(if writer.version() >= Version::V15 { message.short_id } else { 0 });
    writer.write_zeros(2);
    writer.write_u64(message.generation_id);
}

pub(crate) fn decode_async(reader: &mut WireReader<'_>) -> Decoded<AsyncConfig> {
    let mut pair = || Ok([Some(reader.read_u32()?), Some(reader.read_u32()?)]);
    Ok(AsyncConfig { packet_in: pair()?, port_status: pair()?, flow_removed: pair()?, ..AsyncConfig::default() })
}

pub(crate) fn encode_async(config: &AsyncConfig, writer: &mut WireWriter<'_>) {
    for bitmap in [config.packet_in, config.port_status, config.flow_removed].concat() {
        writer.write_u32(bitmap.unwrap_or(0));
    }
}
