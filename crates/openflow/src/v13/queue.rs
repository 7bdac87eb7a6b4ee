//! Reads and writes the messages about queues (OpenFlow 1.3.5, 7.3.6, 7.2.2, 7.3.5.8).
use crate::model::PortNo;
use crate::model::error::BadRequest;
use crate::model::queue::{QueueConfig, QueueConfigReply, QueueStats};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, queue};

pub(crate) fn decode_config_request(reader: &mut WireReader<'_>) -> Decoded<PortNo> {
    let port = PortNo(reader.read_u32()?);
    reader.skip(4)?;
    Ok(port)
}

pub(crate) fn encode_config_request(port: PortNo, writer: &mut WireWriter<'_>) {
    writer.write_u32(port.0);
    writer.write_zeros(4);
}

pub(crate) fn decode_config(reader: &mut WireReader<'_>) -> Decoded<QueueConfigReply> {
    Ok(QueueConfigReply { port: decode_config_request(reader)?, queues: reader.read_list(decode_queue)? })
}

fn decode_queue(reader: &mut WireReader<'_>) -> Decoded<QueueConfig> {
    let mut part = reader.take_element("queue", 8, 16, BadRequest::BadLen)?;
    let (queue, port) = (part.read_u32()?, PortNo(part.read_u32()?));
    part.skip(8)?;
    Ok(QueueConfig { queue, port, properties: part.read_list(queue::decode_property)? })
}

pub(crate) fn encode_config(reply: &QueueConfigReply, writer: &mut WireWriter<'_>) -> Encoded {
    encode_config_request(reply.port, writer);
    for queue in &reply.queues {
        let start = writer.at();
        writer.write_u32(queue.queue);
        writer.write_u32(queue.port.0);
        writer.write_zeros(8);
        for property in &queue.properties {
            queue::encode_property(property, writer)?;
        }
        writer.set_length(start + 8, start)?;
    }
    Ok(())
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<QueueStats> {
    Ok(QueueStats {
        port: PortNo(reader.read_u32()?),
        queue: reader.read_u32()?,
        tx_bytes: reader.read_u64()?,
        tx_packets: reader.read_u64()?,
        tx_errors: reader.read_u64()?,
        duration_sec: reader.read_u32()?,
        duration_nsec: reader.read_u32()?,
        properties: Vec::new(),
    })
}

pub(crate) fn encode_stats(stats: &QueueStats, writer: &mut WireWriter<'_>) {
    writer.write_u32(stats.port.0);
    writer.write_u32(stats.queue);
    writer.write_u64(stats.tx_bytes);
    writer.write_u64(stats.tx_packets);
    writer.write_u64(stats.tx_errors);
    writer.write_u32(stats.duration_sec);
    writer.write_u32(stats.duration_nsec);
}
