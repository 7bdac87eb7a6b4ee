//! Reads and writes experimenter messages (1.0: vendor) and multipart bodies without interpreting them (OpenFlow
//! 1.3.5, 7.5.4 and 7.3.5.17; OpenFlow 1.0.0, 5.5.4).
use super::{Decoded, Encoded, WireReader, WireWriter};
use crate::model::{Experimenter, Version};

pub(crate) fn decode(reader: &mut WireReader<'_>, version: Version) -> Decoded<Experimenter> {
    let id = reader.read_u32()?;
    let kind = if version == Version::V10 { None } else { Some(reader.read_u32()?) };
    Ok(Experimenter { id, kind, data: reader.read_rest() })
}

/// Writes an experimenter message. The type number is at the place where the data of 1.0 begins, so a message decoded
/// from 1.0 can be encoded for other versions if it has at least four bytes of data.
pub(crate) fn encode(experimenter: &Experimenter, version: Version, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(experimenter.id);
    if let Some(kind) = experimenter.kind {
        writer.write_u32(kind);
    } else if version != Version::V10 && experimenter.data.0.len() < 4 {
        return Err(writer.cannot("an experimenter message without a type number"));
    }
    writer.write_bytes(&experimenter.data.0);
    Ok(())
}
