//! Reads and writes the messages about queues (OpenFlow 1.0.0, 5.3.4, 5.2.2, 5.3.5).
use super::port;
use crate::model::PortNo;
use crate::model::error::BadRequest;
use crate::model::queue::{QueueConfig, QueueConfigReply, QueueStats};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, queue};

pub(crate) fn decode_config_request(reader: &mut WireReader<'_>) -> Decoded<PortNo> {
    let port = port::decode_no(reader)?;
    reader.skip(2)?;
    Ok(port)
}

pub(crate) fn encode_config_request(port: PortNo, writer: &mut WireWriter<'_>) -> Encoded {
    port::encode_no(port, writer)?;
    writer.write_zeros(2);
    Ok(())
}

pub(crate) fn decode_config(reader: &mut WireReader<'_>) -> Decoded<QueueConfigReply> {
    let port = port::decode_no(reader)?;
    reader.skip(6)?;
    Ok(QueueConfigReply { port, queues: reader.read_list(decode_queue)? })
}

fn decode_queue(reader: &mut WireReader<'_>) -> Decoded<QueueConfig> {
    let mut part = reader.take_element("queue", 4, 8, BadRequest::BadLen)?;
    let queue = part.read_u32()?;
    part.skip(4)?;
    Ok(QueueConfig { queue, port: PortNo::ANY, properties: part.read_list(queue::decode_property)? })
}

pub(crate) fn encode_config(reply: &QueueConfigReply, writer: &mut WireWriter<'_>) -> Encoded {
    port::encode_no(reply.port, writer)?;
    writer.write_zeros(6);
    for queue in &reply.queues {
        let start = writer.at();
        writer.write_u32(queue.queue);
        writer.write_zeros(4);
        for property in &queue.properties {
            queue::encode_property(property, writer)?;
        }
        writer.set_length(start + 4, start)?;
    }
    Ok(())
}

/// Converts the port of a statistics request: all ports are `ALL` in 1.0 and `ANY` in 1.3. 1.0's `NONE` becomes
/// `ALL`, which is not a port with queues.
fn swapped(port: PortNo) -> PortNo {
    match port {
        PortNo::ALL => PortNo::ANY,
        PortNo::ANY => PortNo::ALL,
        port => port,
    }
}

pub(crate) fn decode_stats_request(reader: &mut WireReader<'_>) -> Decoded<(PortNo, u32)> {
    let port = decode_config_request(reader)?;
    Ok((swapped(port), reader.read_u32()?))
}

pub(crate) fn encode_stats_request(port: PortNo, queue: u32, writer: &mut WireWriter<'_>) -> Encoded {
    encode_config_request(swapped(port), writer)?;
    writer.write_u32(queue);
    Ok(())
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<QueueStats> {
    Ok(QueueStats {
        port: decode_config_request(reader)?,
        queue: reader.read_u32()?,
        tx_bytes: reader.read_u64()?,
        tx_packets: reader.read_u64()?,
        tx_errors: reader.read_u64()?,
        duration_sec: 0,
        duration_nsec: 0,
        properties: Vec::new(),
    })
}

pub(crate) fn encode_stats(stats: &QueueStats, writer: &mut WireWriter<'_>) -> Encoded {
    encode_config_request(stats.port, writer)?;
    writer.write_u32(stats.queue);
    writer.write_u64(stats.tx_bytes);
    writer.write_u64(stats.tx_packets);
    writer.write_u64(stats.tx_errors);
    Ok(())
}
