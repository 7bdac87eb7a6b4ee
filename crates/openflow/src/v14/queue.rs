//! Reads and writes queue descriptions and statistics (OpenFlow 1.4.1, 7.3.5.8 and 7.3.5.16).
use crate::model::PortNo;
use crate::model::error::BadRequest;
use crate::model::queue::{QueueConfig, QueueProperty, QueueStats};
use crate::v13;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, property};

const MIN_RATE: u16 = 1;
const MAX_RATE: u16 = 2;
const EXPERIMENTER: u16 = 0xffff;

pub(crate) fn decode_desc(reader: &mut WireReader<'_>) -> Decoded<QueueConfig> {
    let mut part = reader.take_element("queue description", 8, 16, BadRequest::BadLen)?;
    let (port, queue) = (PortNo(part.read_u32()?), part.read_u32()?);
    part.skip(8)?;
    let mut properties = Vec::new();
    property::each(&mut part, |kind, part| {
        let mut rate = || {
            let rate = part.read_u16()?;
            part.skip(2)?;
            Ok(rate)
        };
        properties.push(match kind {
            MIN_RATE => QueueProperty::MinRate(rate()?),
            MAX_RATE => QueueProperty::MaxRate(rate()?),
            EXPERIMENTER => QueueProperty::Experimenter { id: part.read_u32()?, data: part.read_rest() },
            kind => QueueProperty::Unknown { kind, data: part.read_rest() },
        });
        Ok(())
    })?;
    Ok(QueueConfig { queue, port, properties })
}

pub(crate) fn encode_desc(queue: &QueueConfig, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u32(queue.port.0);
    writer.write_u32(queue.queue);
    writer.write_zeros(8);
    for one in &queue.properties {
        match one {
            QueueProperty::MinRate(rate) => property::write_words(MIN_RATE, &[u32::from(*rate) << 16], writer)?,
            QueueProperty::MaxRate(rate) => property::write_words(MAX_RATE, &[u32::from(*rate) << 16], writer)?,
            QueueProperty::Experimenter { id, data } => property::write(EXPERIMENTER, writer, |writer| {
                writer.write_u32(*id);
                writer.write_bytes(&data.0);
                Ok(())
            })?,
            QueueProperty::Unknown { kind, data } => property::write(*kind, writer, |writer| {
                writer.write_bytes(&data.0);
                Ok(())
            })?,
        }
    }
    writer.set_length(start + 8, start)
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<QueueStats> {
    let mut part = reader.take_element("queue statistics", 0, 48, BadRequest::BadLen)?;
    part.skip(8)?;
    let stats = v13::queue::decode_stats(&mut part)?;
    Ok(QueueStats { properties: property::decode_list(&mut part)?, ..stats })
}

pub(crate) fn encode_stats(stats: &QueueStats, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_zeros(8);
    v13::queue::encode_stats(stats, writer);
    property::encode_list(&stats.properties, writer)?;
    writer.set_length(start, start)
}
