//! Reads and writes what multipart messages (statistics in 1.0) of all versions share: the head, the description and
//! the aggregate (OpenFlow 1.3.5, 7.3.5; OpenFlow 1.0.0, 5.3.5).
pub(crate) mod kind;

use super::{Decoded, WireReader, WireWriter};
use crate::model::multipart::{AggregateStats, SwitchDesc};

/// Flag that more parts follow: `OFPMPF_REQ_MORE` and `OFPMPF_REPLY_MORE`.
const MORE: u16 = 1;
/// Length in bytes of a description's text fields; the serial number has its own.
const DESC_BYTES: usize = 256;
const SERIAL_BYTES: usize = 32;

/// Reads the multipart type, and true if more parts follow.
pub(crate) fn decode_head(reader: &mut WireReader<'_>) -> Decoded<(u16, bool)> {
    Ok((reader.read_u16()?, reader.read_u16()? & MORE != 0))
}

pub(crate) fn encode_head(kind: u16, more: bool, writer: &mut WireWriter<'_>) {
    writer.write_u16(kind);
    writer.write_u16(if more { MORE } else { 0 });
}

pub(crate) fn decode_desc(reader: &mut WireReader<'_>) -> Decoded<SwitchDesc> {
    Ok(SwitchDesc {
        mfr_desc: reader.read_text(DESC_BYTES)?,
        hw_desc: reader.read_text(DESC_BYTES)?,
        sw_desc: reader.read_text(DESC_BYTES)?,
        serial_num: reader.read_text(SERIAL_BYTES)?,
        dp_desc: reader.read_text(DESC_BYTES)?,
    })
}

pub(crate) fn encode_desc(desc: &SwitchDesc, writer: &mut WireWriter<'_>) {
    writer.write_text(&desc.mfr_desc, DESC_BYTES);
    writer.write_text(&desc.hw_desc, DESC_BYTES);
    writer.write_text(&desc.sw_desc, DESC_BYTES);
    writer.write_text(&desc.serial_num, SERIAL_BYTES);
    writer.write_text(&desc.dp_desc, DESC_BYTES);
}

pub(crate) fn decode_aggregate(reader: &mut WireReader<'_>) -> Decoded<AggregateStats> {
    let stats = AggregateStats {
        packet_count: reader.read_u64()?,
        byte_count: reader.read_u64()?,
        flow_count: reader.read_u32()?,
    };
    reader.skip(4)?;
    Ok(stats)
}

pub(crate) fn encode_aggregate(stats: &AggregateStats, writer: &mut WireWriter<'_>) {
    writer.write_u64(stats.packet_count);
    writer.write_u64(stats.byte_count);
    writer.write_u32(stats.flow_count);
    writer.write_zeros(4);
}
