//! Reads and writes queue properties (OpenFlow 1.3.5, 7.2.2; OpenFlow 1.0.0, 5.2.2), which have the same layout in
//! 1.0 and 1.3.
use super::{Decoded, Encoded, WireReader, WireWriter};
use crate::model::error::BadRequest;
use crate::model::queue::QueueProperty;

const MIN_RATE: u16 = 1;
const MAX_RATE: u16 = 2;
const EXPERIMENTER: u16 = 0xffff;

pub(crate) fn decode_property(reader: &mut WireReader<'_>) -> Decoded<QueueProperty> {
    let mut property = reader.take_element("queue property", 2, 8, BadRequest::BadLen)?;
    let kind = property.read_u16()?;
    property.skip(6)?;
    let decoded = match kind {
        MIN_RATE => QueueProperty::MinRate(rate(&mut property)?),
        MAX_RATE => QueueProperty::MaxRate(rate(&mut property)?),
        EXPERIMENTER => {
            let id = property.read_u32()?;
            property.skip(4)?;
            QueueProperty::Experimenter { id, data: property.read_rest() }
        }
        kind => QueueProperty::Unknown { kind, data: property.read_rest() },
    };
    property.finish()?;
    Ok(decoded)
}

fn rate(property: &mut WireReader<'_>) -> Decoded<u16> {
    let rate = property.read_u16()?;
    property.skip(6)?;
    Ok(rate)
}

pub(crate) fn encode_property(property: &QueueProperty, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(match property {
        QueueProperty::MinRate(_) => MIN_RATE,
        QueueProperty::MaxRate(_) => MAX_RATE,
        QueueProperty::Experimenter { .. } => EXPERIMENTER,
        QueueProperty::Unknown { kind, .. } => *kind,
    });
    writer.write_zeros(6);
    match property {
        QueueProperty::MinRate(rate) | QueueProperty::MaxRate(rate) => {
            writer.write_u16(*rate);
            writer.write_zeros(6);
        }
        QueueProperty::Experimenter { id, data } => {
            writer.write_u32(*id);
            writer.write_zeros(4);
            writer.write_bytes(&data.0);
        }
        QueueProperty::Unknown { data, .. } => writer.write_bytes(&data.0),
    }
    writer.set_length(start + 2, start)
}
