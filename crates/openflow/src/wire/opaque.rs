//! Experimenter (1.0: vendor) messages and multipart bodies: a number, and what is not looked into
//! (OpenFlow 1.3.5, 7.5.4 and 7.3.5.17; OpenFlow 1.0.0, 5.5.4).
use super::{Decoded, Encoded, Reader, Writer};
use crate::model::{Experimenter, Version};

pub(crate) fn decode(reader: &mut Reader<'_>, version: Version) -> Decoded<Experimenter> {
    let id = reader.u32()?;
    let kind = if version == Version::V10 { None } else { Some(reader.u32()?) };
    Ok(Experimenter { id, kind, data: reader.rest() })
}

/// The type number lies where 1.0's data begins, so one version's message can be sent in the other if it is long enough.
pub(crate) fn encode(experimenter: &Experimenter, version: Version, writer: &mut Writer<'_>) -> Encoded {
    writer.u32(experimenter.id);
    if let Some(kind) = experimenter.kind {
        writer.u32(kind);
    } else if version != Version::V10 && experimenter.data.0.len() < 4 {
        return Err(writer.cannot("an experimenter message without a type number"));
    }
    writer.bytes(&experimenter.data.0);
    Ok(())
}
